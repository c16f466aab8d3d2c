"""Law `span`: chunks are exact, cover their pages, keep characters whole, and none only repeats."""

import re

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from lightrag_jsonl import Chunk, Document, Page, Tokenizer
from lightrag_jsonl.indexing.chunking import chunk_pages, document_pages
from tests.kit import TOKENIZER


class Words:
    """A tokenizer whose tokens are words, to show that the law asks nothing special of one."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())

    def truncate(self, text: str, limit: int) -> str:
        end = 0
        for count, word in enumerate(re.finditer(r"\S+\s*", text), 1):
            if count > limit:
                return text[:end]
            end = word.end()
        return text


class Bytes:
    """A tokenizer whose tokens are bytes: one character may have several."""

    name = "bytes"

    def count(self, text: str) -> int:
        return len(text.encode())

    def truncate(self, text: str, limit: int) -> str:
        return text.encode()[: max(limit, 0)].decode(errors="ignore")


TOKENIZERS: tuple[Tokenizer, ...] = (TOKENIZER, Words(), Bytes())
PIECES = [
    "Scrooge", " ", "   ", "\n", "\n\n", "\r\n", "\f", ". ", "! ", "?", "Mr. ", "3.14", "玄德", "曰：", "。", "！”",
    "，", "１２", "\u3000", "👩\u200d👩\u200d👧", "🇨🇳🇬🇧", "👍🏽", "e\u0301", "\u0301", "\x00", "\ud83d", "a" * 50, "的" * 30,
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=60).map("".join)
sizes = st.integers(1, 40).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


def assert_law(
    pages: tuple[Page, ...], chunks: tuple[Chunk, ...], tokenizer: Tokenizer, size: int
) -> None:
    """Every clause of the law, page by page."""
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    assert [chunk.page for chunk in chunks] == sorted(chunk.page for chunk in chunks)
    for page in pages:
        whole = {0, *(match.end() for match in regex.finditer(r"\X", page.text))}
        covered = begun = 0
        for chunk in (chunk for chunk in chunks if chunk.page == page.number):
            assert page.text[chunk.start : chunk.end] == chunk.text
            assert chunk.start in whole and chunk.end in whole
            assert chunk.start >= begun
            assert not page.text[covered : chunk.start].strip()
            assert page.text[covered : chunk.end].strip()
            assert chunk.tokens == tokenizer.count(chunk.text)
            assert chunk.tokens <= size or len(regex.findall(r"\X", chunk.text)) == 1
            covered, begun = chunk.end, chunk.start
        assert not page.text[covered:].strip()


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(texts, sizes, st.sampled_from(TOKENIZERS))
def test_span(text: str, sizes: tuple[int, int], tokenizer: Tokenizer) -> None:
    """For any text, any tokenizer, any size and overlap."""
    size, overlap = sizes
    pages = document_pages("doc", Document(text))

    chunks = chunk_pages(pages, tokenizer=tokenizer, size=size, overlap=overlap)

    assert_law(pages, chunks, tokenizer, size)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(texts, texts, texts, texts, sizes, st.sampled_from(TOKENIZERS))
def test_span_after_an_edit(
    head: str, old: str, new: str, tail: str, sizes: tuple[int, int], tokenizer: Tokenizer
) -> None:
    """The law holds whatever of an older version is kept."""
    size, overlap = sizes
    before, after = (document_pages("doc", Document(head + part + tail)) for part in (old, new))
    chunks = chunk_pages(before, tokenizer=tokenizer, size=size, overlap=overlap)

    kept = chunk_pages(after, before, chunks, tokenizer=tokenizer, size=size, overlap=overlap)

    assert_law(after, kept, tokenizer, size)
