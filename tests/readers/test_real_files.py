"""A property over real files: those that the packages of the dev extra and this repository have."""

import importlib.util
import re
import zipfile
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("docx")

from lightrag_jsonl import ConfigError
from tests.readers.files import read_content

PACKAGES = ("docx", "pptx", "odfdo", "docutils", "reportlab", "sklearn", "matplotlib", "nltk")
ROOT = Path(__file__).parents[2]
MOST = 25  # of each kind
WORDS = re.compile(r"[\u3400-\u9fff]|[^\W\d_\u3400-\u9fff]{2,}")
# The parts of a package with words, and the elements that end a word.
PARTS = {
    ".docx": r"word/(?:document|footnotes|endnotes|comments)\.xml",
    ".pptx": r"ppt/slides/slide\d+\.xml",
    ".odt": r"content\.xml",
    ".odp": r"content\.xml",
    ".ods": r"content\.xml",
}
WORD_END = re.compile(r"</(?:w:p|a:p|text:p|text:h)>|<(?:w:(?:tab|br)|a:br|text:(?:s|tab))\b[^>]*>")
UNREAD = re.compile(
    r"<(?:office:(?:meta|styles|automatic-styles|master-styles)|dc:date|text:tracked-changes|style:\w+|"
    r"text:index-title-template|w:instrText|w:delText)\b[^>]*?(?<!/)>.*?</[^>]*>",
    re.DOTALL,
)


def files() -> Iterator[Path]:
    """Up to so many files of each kind."""
    folders = [ROOT / "docs", ROOT / "examples"]
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        folders += map(Path, (spec.submodule_search_locations or ()) if spec else ())
    for suffix in (*PARTS, ".csv"):
        paths = sorted(path for folder in folders for path in folder.rglob(f"*{suffix}"))
        yield from [path for path in paths if path.stat().st_size < 500_000][:MOST]


def second_words(path: Path) -> set[str]:
    """The words by another way: the text nodes of the parts, or the plain text of the file."""
    if path.suffix not in PARTS:
        return words(path.read_text(encoding="utf-8", errors="replace"))
    texts: list[str] = []
    with zipfile.ZipFile(path) as package:
        for name in package.namelist():
            if re.fullmatch(PARTS[path.suffix], name):
                part = package.read(name).decode("utf-8", "replace")
                texts.append(re.sub(r"<[^>]+>", "", WORD_END.sub(" ", UNREAD.sub(" ", part))))
    return words(unescape("\n".join(texts)))


def words(text: str) -> set[str]:
    return set(WORDS.findall(text.casefold()))


def words_of(content: Any) -> set[str]:
    document: Any = content.document
    metadata = " ".join(map(str, document.metadata.values()))
    pages = document.pages or (document.text,)
    return words(" ".join([*pages, document.title or "", metadata, *content.notes]))


@pytest.mark.slow
@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_every_word_of_a_second_reader_is_in_the_text_or_in_a_note(path: Path) -> None:
    """All words of the text nodes of a package, and of a table; an empty file has none."""
    expected = second_words(path)
    try:
        content = read_content(path.read_bytes(), path.name)
    except ConfigError as error:
        assert "is empty" in str(error)
        assert not expected
        return
    assert sorted(expected - words_of(content)) == []
