"""The graph as a wiki of Markdown pages."""

import contextlib
import errno
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

from lightrag_jsonl import ConfigError, Document, LightRAG
from lightrag_jsonl.export.wiki_folder import write_wiki
from tests.kit import Record, entity, relation

MILL = "Ada Fox built the mill in Oakby. The mill burned down in 1902.\fAda Fox moved to Lund."
LAKE = "Olaf Lind swims in Lake Vara. Ada Fox taught Olaf Lind."
ODD_NAME = "A/B: *x* [y] #z 👻"
ODD: list[Record] = [
    entity("Index", "The register of the mill."),
    entity(ODD_NAME, "It costs $5 and <b>more</b>. [[Lund]] is ==far==. 完全正确，编号１２。"),
    relation(ODD_NAME, "Index", "A strange pair.", keywords=["knows | likes"]),
]


def pages(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def body(page: str) -> str:
    return page.split("\n---\n", 1)[1]


def filled(folder: Path, *documents: Document) -> LightRAG:
    rag = LightRAG(folder, llm="none", embedder="hash")
    for document in documents:
        rag.insert(document)
    return rag


MILL_DOCUMENT = Document(MILL, id="mill", title="The mill", source="https://example.org/mill")
LAKE_DOCUMENT = Document(LAKE, id="lake", title="The lake", date="2024-05-01")


def test_each_sentence_has_a_footnote_to_characters_that_say_it(tmp_path: Path) -> None:
    """The footnote names the document, the page of a document with pages, and quotes the characters."""
    with filled(tmp_path / "kb", MILL_DOCUMENT) as rag:
        assert rag.admin.export(tmp_path / "wiki") == "wiki"

    page = (tmp_path / "wiki" / "entities" / "Ada Fox.md").read_text(encoding="utf-8")
    mark = re.search(r"Ada Fox moved to Lund\.\[\^(\d+)\]", page)
    assert mark is not None
    footnote = re.search(
        rf"^\[\^{mark[1]}\]: \[The mill\]\((\S+)\), page 2, characters (\d+)–(\d+): “(.+)”$",
        page,
        re.MULTILINE,
    )
    assert footnote is not None
    second_page = MILL.split("\f")[1]
    assert second_page[int(footnote[2]) : int(footnote[3])] == footnote[4] == second_page
    document = (tmp_path / "wiki" / "entities" / unquote(footnote[1])).read_text(encoding="utf-8")
    assert yaml.safe_load(document.split("---")[1])["resource"] == "https://example.org/mill"


def test_pages_follow_the_open_knowledge_format(tmp_path: Path) -> None:
    """Each page but the index has a `type`, and every link leads to a page."""
    with filled(tmp_path / "kb", MILL_DOCUMENT, LAKE_DOCUMENT) as rag:
        rag.insert_records(Document("The register. A strange pair.", id="odd"), ODD)
        rag.admin.export(tmp_path / "wiki")

    written = pages(tmp_path / "wiki")
    written.pop(".wiki.json")
    for path, page in written.items():
        front_matter = yaml.safe_load(page.split("---\n")[1])
        assert (
            front_matter == {"okf_version": "0.2"} if path == "index.md" else front_matter["type"]
        )
        links = re.findall(r"(?<!\\)\]\((\S+?)\)", body(page))
        assert links
        for link in links:
            assert (tmp_path / "wiki" / path).parent.joinpath(unquote(link)).is_file(), (path, link)
    dates = [yaml.safe_load(page.split("---\n")[1]).get("timestamp") for page in written.values()]
    assert [str(date) for date in dates if date] == ["2024-05-01"]


def test_names_and_texts_are_no_markup(tmp_path: Path) -> None:
    """A name that no file may have gets another file; "index" is the list of the folder."""
    with LightRAG(tmp_path / "kb", llm="none", embedder="hash") as rag:
        rag.insert_records(Document("Unlike words.", id="odd"), ODD)
        rag.admin.export(tmp_path / "wiki")

    names = [path.name for path in (tmp_path / "wiki" / "entities").iterdir()]
    assert len(names) == 2 and not {"index.md", "Index.md"} & {*names}
    odd = next(path for path in (tmp_path / "wiki" / "entities").iterdir() if "👻" in path.name)
    assert not set('<>:"/\\|?*#[]^') & set(odd.name)
    page = odd.read_text(encoding="utf-8")
    assert yaml.safe_load(page.split("---\n")[1])["title"] == ODD_NAME
    assert r"It costs **\$5** and \<b\>more\</b\>." in page and r"\[\[Lund\]\]" in page
    assert "(!)" in page and "编号１２" in page


def test_an_insert_rewrites_only_what_it_touched(tmp_path: Path) -> None:
    """And the wiki does not depend on the order of inserting, nor on a document that is gone again."""
    with filled(tmp_path / "kb", MILL_DOCUMENT) as rag:
        rag.insert(Document("Rita Moss paints. Rita Moss lives in Turin.", id="moss"))
        rag.admin.export(tmp_path / "wiki")
        before = pages(tmp_path / "wiki")
        untouched = tmp_path / "wiki" / "entities" / "Rita Moss.md"
        untouched.chmod(0o444)
        time_before = untouched.stat().st_mtime_ns

        rag.insert(LAKE_DOCUMENT)
        rag.admin.export(tmp_path / "wiki")
        assert "entities/Olaf Lind.md" in pages(tmp_path / "wiki")
        assert untouched.stat().st_mtime_ns == time_before

        rag.delete("lake")
        rag.admin.export(tmp_path / "wiki")
        assert pages(tmp_path / "wiki") == before

    with filled(tmp_path / "other") as rag:
        rag.insert(Document("Rita Moss paints. Rita Moss lives in Turin.", id="moss"))
        rag.insert(MILL_DOCUMENT)
        rag.admin.export(tmp_path / "again")
    assert pages(tmp_path / "again") == before


def test_own_files_stay(tmp_path: Path) -> None:
    """Notes beside the pages are kept; a page never replaces one."""
    wiki = tmp_path / "wiki"
    (wiki / "entities").mkdir(parents=True)
    (wiki / "entities" / "notes.md").write_text("mine", encoding="utf-8")
    with filled(tmp_path / "kb", MILL_DOCUMENT) as rag:
        rag.admin.export(wiki)
        rag.delete("mill")
        rag.admin.export(wiki)
        assert pages(wiki).keys() == {"index.md", ".wiki.json", "entities/notes.md"}

        rag.insert(MILL_DOCUMENT)
        (wiki / "entities" / "Ada Fox.md").write_text("mine, too", encoding="utf-8")
        with pytest.raises(ConfigError, match=r"Ada Fox\.md was not written by an export"):
            rag.admin.export(wiki)
    assert (wiki / "entities" / "Ada Fox.md").read_text(encoding="utf-8") == "mine, too"


def test_a_manifest_leads_nowhere_else(tmp_path: Path) -> None:
    """A prepared list of pages deletes no file outside the wiki; a damaged one is named."""
    wiki = tmp_path / "wiki"
    wiki.mkdir()
    (tmp_path / "precious.md").write_text("mine", encoding="utf-8")
    (wiki / ".wiki.json").write_text('{"../precious.md": "", "entities/../../precious.md": ""}')
    with filled(tmp_path / "kb", MILL_DOCUMENT) as rag:
        rag.admin.export(wiki)
        assert (tmp_path / "precious.md").read_text(encoding="utf-8") == "mine"
        (wiki / ".wiki.json").write_text("{")
        with pytest.raises(ConfigError, match="is damaged"):
            rag.admin.export(wiki)


def test_an_export_that_was_cut_off_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever an export ends, the next one makes the folder what a whole export makes it."""
    former_pages = {"index.md": "old", "entities/Ada.md": "old", "entities/Olaf.md": "old"}
    new_pages = {"index.md": "new", "entities/Ada.md": "new", "documents/lake.md": "new"}
    write_wiki(tmp_path / "whole", new_pages)
    for whole_writes in range(6):
        folder = tmp_path / str(whole_writes)
        if whole_writes % 2:
            write_wiki(folder, former_pages)
        with monkeypatch.context() as patch, contextlib.suppress(OSError):
            patch.setattr(Path, "write_text", half_written_after(whole_writes))
            write_wiki(folder, new_pages)
        write_wiki(folder, new_pages)
        assert pages(folder) == pages(tmp_path / "whole")


def half_written_after(count: int) -> Callable[..., int]:
    """A `Path.write_text` whose disk is full in the middle of the text after so many texts."""
    write_text = Path.write_text
    written_paths: list[Path] = []

    def write(path: Path, text: str, **options: str) -> int:
        if len(written_paths) == count:
            write_text(path, text[: len(text) // 2], **options)
            raise OSError(errno.ENOSPC, "No space left on device")
        written_paths.append(path)
        return write_text(path, text, **options)

    return write
