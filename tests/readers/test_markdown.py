"""Markdown and notebooks: front matter, headings, code, and data that is no text."""

import base64
import json
import random
import textwrap
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lightrag_jsonl import Document, LightRAG
from tests.readers.files import headings_in, read, read_content

PICTURE = base64.b64encode(random.Random(7).randbytes(20_000)).decode()


def wrapped(width: int) -> str:
    return "\n".join(textwrap.wrap(PICTURE, width))


@pytest.mark.parametrize(
    ("front", "title", "date", "metadata"),
    [
        (
            "---\ntitle: 航海日志\ndate: 1815-12-10\ntags: [ship, 港口]\ndraft: false\n---\n",
            "航海日志",
            "1815-12-10",
            {"tags": ["ship", "港口"], "draft": False},
        ),
        ("---\ndate: 2024-05-06T10:00:00Z\nn: {a: 1}\n---\n\n", "a", "2024-05-06", {"n": {"a": 1}}),
        ('+++\ntitle = "Log"\ndate = 2024-05-06\n+++\n', "Log", "2024-05-06", {}),
        (
            "---\r\ntitle: Log\r\nupdated: 2024-05-06\r\n---\r\n",
            "Log",
            None,
            {"updated": "2024-05-06"},
        ),
    ],
)
def test_front_matter_is_no_text(
    front: str, title: str, date: str | None, metadata: dict[str, Any]
) -> None:
    """It gives title, date and metadata, in YAML and in TOML."""
    expected = Document("The ship sails.", title=title, date=date, metadata=metadata)
    assert read(f"{front}The ship sails.", "a.md") == expected


@pytest.mark.parametrize(
    "text",
    [
        "---\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n---\n\nThe ship.",
        "---\nNot: [closed\n---\n\nThe ship.",
        "---\n\nOnly a line above.\n\n---\n\nThe ship.",
        "---\n" + "[" * 5_000 + "\n---\n\nThe ship.",
        "+++\nno toml\n+++\n\nThe ship.",
    ],
    ids=["aliases", "broken", "text", "deep", "toml"],
)
def test_what_only_looks_like_front_matter_stays_text(text: str) -> None:
    """Aliases could grow without bound, so they are not resolved."""
    document = read(text, "a.md")
    assert document.metadata == {} and document.title == "a"
    assert document.text.endswith("The ship.")


@pytest.mark.parametrize(
    ("block", "metadata"),
    [
        ("2026-11-03: moored", {"2026-11-03": "moored"}),
        (
            "log: {2026-11-03: moored, 7: [港, yes]}",
            {"log": {"2026-11-03": "moored", "7": ["港", True]}},
        ),
        ("tons: 36893488147419103232", {"tons": "36893488147419103232"}),
        ("crew: !!set {Ben, Ann}", {"crew": ["Ann", "Ben"]}),
        ("load: .inf\nseal: !!binary aGk=\n~: none", {"load": "inf", "seal": "hi", "null": "none"}),
        ("order: !!omap [{first: 1}]", {"order": [["first", 1]]}),
    ],
    ids=["date", "nested", "large", "set", "no number", "pairs"],
)
def test_values_of_yaml_that_json_lacks_are_texts(block: str, metadata: dict[str, Any]) -> None:
    """They cost neither the file nor the other fields."""
    document = read(f"---\ntitle: Log\n{block}\n---\nThe ship.", "a.md")
    assert document == Document("The ship.", title="Log", metadata=metadata)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(document.metadata)) == metadata


@pytest.mark.parametrize(
    "value", ["!!bool x", "!!timestamp x", "!!int ''", "!!float x", "9" * 5_000]
)
def test_values_that_are_not_of_their_type_leave_the_text(value: str) -> None:
    """What PyYAML cannot read is text, and the file is read."""
    document = read(f"---\na: {value}\n---\n\nThe ship.", "a.md")
    assert document.metadata == {} and document.text.endswith("The ship.")


@pytest.mark.slow
def test_odd_front_matter_loses_no_file(tmp_path: Path) -> None:
    """It comes through the process that reads files, and through the index."""
    path = tmp_path / "log.md"
    path.write_text(
        "---\n2026-11-03: 36893488147419103232\nc: !!set {a}\n---\nLeith.", encoding="utf-8"
    )
    with LightRAG(tmp_path / "kb") as rag:
        assert not rag.insert(path).failures
        (document,) = rag.documents()
        assert document.metadata == {"2026-11-03": "36893488147419103232", "c": ["a"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    "places", ["[1]", "{page: 1}", '[{"page": 1, "start": 0, "end": 999, "box": [1, 2, 3, 4]}]']
)
def test_front_matter_forges_no_picture(tmp_path: Path, places: str) -> None:
    """The places of pictures lie apart from what a document says of itself: it is cited without a box."""
    path = tmp_path / "log.md"
    names = ("seen", "seen_pictures", "pictures")
    fields = "".join(f"{name}: {places}\n" for name in names)
    path.write_text(f"---\n{fields}---\nAda Brook wrote the log in Leith.", encoding="utf-8")
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert(path)
        (citation,) = rag.query("Who wrote the log in Leith?").citations
        assert citation.box is None
        (document,) = rag.documents()
        assert document.metadata.keys() == set(names)


@pytest.mark.slow
def test_metadata_of_front_matter_filters(tmp_path: Path) -> None:
    """It comes through the process that reads files."""
    for name in ("log", "letter"):
        text = f"---\nkind: {name}\n---\n\nAda wrote this {name} in Leith."
        (tmp_path / f"{name}.md").write_text(text, encoding="utf-8")
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert([tmp_path / "log.md", tmp_path / "letter.md"])
        chunks = rag.retrieve("Leith", mode="naive", where={"kind": "log"}).chunks
    assert [chunk.title for chunk in chunks] == ["log"]


def test_underlined_headings_are_headings() -> None:
    """Not in code, not below a table or a list, and not a line between paragraphs."""
    text = (
        "航海日志\n====\n\nWords.\n\n---\n\nThe Crew\n--------\n\nThey sail.\nFast\n----\n\n"
        "```\nA command\n---------\n```\n\n- item\n---\n\n| a |\n---\n"
    )
    document = read(text, "a.md")
    headings = [(heading.level, heading.title) for heading in headings_in(document)]
    assert headings == [(1, "航海日志"), (2, "The Crew")]
    assert "A command\n---------" in document.text


@pytest.mark.parametrize("before", ["Run `pump`", "```\npump --slow\n```", "- 运行 `pump`👻"])
def test_an_underlined_heading_below_code_stays_on_its_line(before: str) -> None:
    """Nothing before a heading is changed; what follows code on its line is no heading."""
    text = f"{before}\n\nThe Crew\n--------\nThey sail.\n"
    assert read(text, "a.md").text == f"{before}\n\n## The Crew\nThey sail.\n"

    beside_code = "Turn `pump` slowly\n---\n"
    assert read(beside_code, "a.md").text == beside_code


def test_marks_of_raised_and_lowered_characters_go() -> None:
    """Numbers keep their meaning as characters of Unicode; code keeps its tags."""
    text = "H<sub>2</sub>O, 10<sup>−6</sup> m, the 1<sup>st</sup>, x<SUP>２</SUP>, `a<sub>1</sub>`"
    expected = "H₂O, 10⁻⁶ m, the 1st, x２, `a<sub>1</sub>`"
    assert read(text, "a.md").text == expected
    pytest.importorskip("trafilatura")
    words = "<p>The harbour master of Leith keeps a careful log of every vessel in the harbour.</p>"
    page = (
        f"<html><body><article><p>{text.rpartition(',')[0]}</p>{words * 8}</article></body></html>"
    )
    assert read(page, "a.html").text.startswith(expected.rpartition(",")[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ada &amp; Bo&nbsp;&mdash; the log", "Ada & Bo\xa0— the log"),
        (
            "&emsp;&emsp;船长说：&ldquo;起锚&rdquo;&#12290;&#x1F6A2;",
            "\u2003\u2003船长说：“起锚”。🚢",
        ),
        ("《&lt;航海日志&gt;序》，１ &lt; ２", "《<航海日志>序》，１ < ２"),
        ("用 &lt;b&gt;&lt;br/&gt; 与 List&lt;Ship&gt;", "用 `<b><br/>` 与 List<Ship>"),
        ("&#42;sic&#42; &#124; &bogus; AT&T; &amp;lt;", "&#42;sic&#42; &#124; &bogus; AT&T; &lt;"),
        (
            "Write &lt;a href=&quot;x&quot;&gt; or &#60;b&#62; to link",
            'Write &lt;a href="x"> or &#60;b> to link',
        ),
        ("&gt; 5 kg, &lt;!-- not hidden", "&gt; 5 kg, &lt;!-- not hidden"),
        ("`&nbsp;`\n\n```\n&nbsp;\n```\n", "`&nbsp;`\n\n```\n&nbsp;\n```\n"),
    ],
)
def test_entities_of_markdown_are_characters(text: str, expected: str) -> None:
    """Also in notebooks, but not in code; a tag stays words about it, and what is no mark becomes none. A plain
    text has no entities.
    """
    assert read(text, "a.md").text == expected
    cell = {"cell_type": "markdown", "source": text}
    assert read(notebook(cell), "a.ipynb").text.strip() == expected.strip()
    assert read(text, "a.txt").text == text


def test_entities_of_linked_names_are_characters() -> None:
    """The name that the metadata keep is the one in the text."""
    document = read("See [Ada &amp; Bo](crew.md).", "a.md")
    assert document.metadata == {"linked_names": ["Ada & Bo"]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Ada ![a chart](data:image/png;base64,{PICTURE}) sails.", "Ada a chart sails."),
        (f"Ada ![][i] sails.\n\n[i]: <data:image/png;base64,{PICTURE}>\n", "Ada ![][i] sails.\n\n"),
        (f'Ada <img src="data:image/gif;base64,{PICTURE}" alt="x"> sails.', "Ada  sails."),
        ("Ada ![](data:image/svg+xml,%3Csvg%20a%3E) sails.", "Ada  sails."),
        (f"Ada <!-- {PICTURE} --> sails.", "Ada  sails."),
    ],
    ids=["image", "reference", "tag", "svg", "comment"],
)
def test_pictures_in_markdown_are_left_out(text: str, expected: str) -> None:
    """Their descriptions stay, and the report says how much went."""
    document = read(text, "a.md")
    assert document.text == expected


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.csv"])
def test_blocks_of_base64_are_left_out(name: str) -> None:
    """In lines of any width; the words around them stay, and a note says how much went."""
    if name == "a.html":
        pytest.importorskip("trafilatura")
    for width in (64, 76, 30_000):
        text = f"Ada 张骞 sails.\n\n{wrapped(width)}\n\nBob waits\nat home."
        content = read_content(text, name)
        assert "Ada 张骞 sails." in content.document.text
        assert "Bob waits" in content.document.text and "at home." in content.document.text
        assert len(content.document.text) < 100
        assert len(content.notes) == 1 and "characters of embedded data" in content.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        "ACGTTGCAAC" * 200,
        "org/apache/commons/lang3/builder/ToStringBuilder2\n" * 4 + "org/apache/commons/A\n" * 9,
        f"https://leith.example/{'aB1' * 200}?q=1",
        "0123456789abcdef" * 8,
        "The data: image, and text/plain;base64 as words.",
        "词" * 5_000,
        "Donaudampfschifffahrtsgesellschaft" * 20,
    ],
    ids=["genes", "paths", "address", "digest", "words", "chinese", "word"],
)
def test_other_long_words_are_text(text: str) -> None:
    """What is no mixture of letters and digits as in base64 is not touched."""
    content = read_content(text, "a.md")
    assert (content.document.text.strip(), content.notes) == (text.strip(), ())


def notebook(*cells: dict[str, Any], **fields: Any) -> str:
    return json.dumps({"cells": cells, "nbformat": 4, "metadata": {}, **fields}, ensure_ascii=False)


def test_a_notebook_is_its_cells() -> None:
    """Texts, code in its language, and outputs as text, without pictures, colors and widgets."""
    outputs = [
        {"output_type": "stream", "text": ["\x1b[31mtotal\x1b[0m 12\n"]},
        {
            "output_type": "display_data",
            "data": {"image/png": PICTURE, "text/plain": "<Figure size 640x480 with 1 Axes>"},
        },
        {
            "output_type": "execute_result",
            "data": {"text/html": "<b>", "text/plain": ["   born\n", "0  1815"]},
        },
        {"output_type": "error", "ename": "KeyError", "evalue": "'张'", "traceback": ["long"]},
    ]
    text = notebook(
        {
            "cell_type": "markdown",
            "source": ["# 船队\n", "\n", "Ada ![x](attachment:x.png) sails."],
        },
        {"cell_type": "code", "source": "count(ships)", "outputs": outputs},
        {"cell_type": "markdown", "source": "  "},
        metadata={"language_info": {"name": "python"}, "title": "Fleet"},
    )
    assert read(text, "a.ipynb") == Document(
        "# 船队\n\nAda x sails.\n\n```python\ncount(ships)\n```\n\n```output\ntotal 12\n```\n\n"
        "```output\nborn\n0  1815\n```\n\n```output\nKeyError: '张'\n```",
        title="Fleet",
    )


def test_an_old_notebook_is_read() -> None:
    """Format 3 has worksheets, headings of their own, and `input` for code."""
    cells = [
        {"cell_type": "heading", "level": 2, "source": "Costs"},
        {
            "cell_type": "code",
            "input": ["1 + 1"],
            "outputs": [{"output_type": "pyout", "text": "2"}],
        },
    ]
    text = json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3})
    assert read(text, "a.ipynb").text == "## Costs\n\n```\n1 + 1\n```\n\n```output\n2\n```"


def test_a_broken_notebook_says_so() -> None:
    """Cut off, or not one at all; strange values inside are no error."""
    for text, words in (
        ('{"cells": [', "not a valid notebook"),
        ("[1]", "no JSON object"),
        ("{}", "empty"),
    ):
        with pytest.raises(ValueError, match=rf"a\.ipynb is .*{words}"):
            read(text, "a.ipynb")
    odd = '{"cells": [7, {"cell_type": "code", "source": {"a": 1}, "outputs": 3}, {"cell_type": "raw", "source": "Ada"}]}'
    assert read(odd, "a.ipynb").text == "Ada"


def test_notes_of_obsidian_are_what_their_readers_see() -> None:
    """Comments, marks of blocks and pictures go; links, embedded notes and callouts are their words."""
    note = (
        "# Quay\n\n%% ask Dora\nabout it %%\nDora Finch keeps [[The Lamp|the lamp]] of [[Leith]] and [[码头#灯|灯]]. "
        "%%why?%%\n\n![[lamp.png|300]]\n![[Log of 1902]]\n\n> [!warning]- Hot glass\n> Wait for Cid. ^a1b2c3\n\n"
        "> [!note]\n> See [[Oil#Prices]] and [[#Quay]].\n\n| Boat | Port |\n| [[Petrel\\|the Petrel]] | Hull |\n\n"
        "The matrix [[1, 2]] and 5%% of `[[code|x]]` stay. ^quay-block\n"
    )
    text = read(note, "a.md").text
    assert text.split("\n\n") == [
        "# Quay",
        "\nDora Finch keeps the lamp of Leith and 灯. ",
        "\nLog of 1902",
        "> Hot glass\n> Wait for Cid.",
        "> Note\n> See Oil > Prices and Quay.",
        "| Boat | Port |\n| the Petrel | Hull |",
        "The matrix [[1, 2]] and 5%% of `[[code|x]]` stay.\n",
    ]
