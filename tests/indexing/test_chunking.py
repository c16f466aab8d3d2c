"""Chunking: pages, chunks that end where a reader would, and chunks that outlive an edit."""

import math
from itertools import pairwise

import pytest

from lightrag_jsonl import Chunk, Document, Tokenizer
from lightrag_jsonl.indexing.chunking import chunk_pages, document_pages
from tests.kit import TOKENIZER
from tests.laws.test_span import Bytes, assert_law

FITTED = TOKENIZER
ENGLISH = "\n\n".join(
    " ".join(f"Sentence {n} of paragraph {p} tells what the clerk wrote." for n in range(6))
    for p in range(40)
)
CHINESE = "".join(
    f"第{n}回，玄德与关公、张飞同至城下。公曰：“此言是也！”众人皆喜。" for n in range(120)
)


def chunks_of(
    text: str, *, size: int = 100, overlap: int = 20, tokenizer: Tokenizer = FITTED
) -> tuple[Chunk, ...]:
    pages = document_pages("doc", Document(text))
    return chunk_pages(pages, tokenizer=tokenizer, size=size, overlap=overlap)


def edited(old: str, new: str, *, size: int = 100, overlap: int = 20) -> tuple[Chunk, ...]:
    pages, old_pages = (document_pages("doc", Document(text)) for text in (new, old))
    before = chunk_pages(old_pages, tokenizer=FITTED, size=size, overlap=overlap)
    return chunk_pages(pages, old_pages, before, tokenizer=FITTED, size=size, overlap=overlap)


def assert_sound(text: str, chunks: tuple[Chunk, ...], size: int = 100) -> None:
    """The chunks of a one-page text keep the law."""
    assert_law(document_pages("doc", Document(text)), chunks, FITTED, size)


def new_texts(old: str, new: str) -> set[str]:
    """The texts of an edited document's chunks that the old version did not have."""
    return {chunk.text for chunk in edited(old, new)} - {chunk.text for chunk in chunks_of(old)}


def test_form_feeds_divide_pages() -> None:
    """A form feed ends a page; empty pages keep their number; no chunk crosses pages."""
    pages = document_pages("doc", Document("one\f\ftwo three\f"))

    assert [(page.number, page.text) for page in pages] == [
        (1, "one"),
        (2, ""),
        (3, "two three"),
        (4, ""),
    ]
    chunks = chunk_pages(pages, tokenizer=FITTED, size=50, overlap=5)
    assert [(chunk.page, chunk.text) for chunk in chunks] == [(1, "one"), (3, "two three")]


def test_given_pages_are_taken_as_they_are() -> None:
    """Pages given by the caller win over form feeds; what cannot be stored is replaced."""
    pages = document_pages("doc", Document("ignored", pages=("a\fb", "c\x00\ud800")))

    assert [page.text for page in pages] == ["a\fb", "c\ufffd\ufffd"]


@pytest.mark.parametrize(
    ("text", "overlap", "begins", "ends"),
    [
        (ENGLISH, 20, ("Sentence ",), ("wrote.",)),
        (CHINESE, 40, ("第", "公曰", "众人"), ("。", "！”")),
    ],
    ids=["en", "zh"],
)
def test_chunks_begin_and_end_with_sentences(
    text: str, overlap: int, begins: tuple[str, ...], ends: tuple[str, ...]
) -> None:
    """Where these are short; closing quotes belong to them."""
    chunks = chunks_of(text, overlap=overlap)

    assert_sound(text, chunks)
    assert all(chunk.text.startswith(begins) for chunk in chunks)
    assert all(chunk.text.rstrip().endswith(ends) for chunk in chunks)


@pytest.mark.parametrize("before_address", ["![灯塔](", "地图见"])
@pytest.mark.parametrize("repeats", range(1, 60, 4))
def test_no_chunk_begins_inside_an_address(repeats: int, before_address: str) -> None:
    """Without its beginning, an address reads like names."""
    name = "%E5%8D%97%E9%97%A8" * 8
    address = f"https://maps.example.org/stations/{name}-BE-20200916.jpg?size=A4"
    before = "值班员每天擦亮灯塔的铜门，并且写下风的方向。" * repeats
    after = "夜里值班员又写下风的方向，并且擦亮铜门。" * 20
    text = f"{before}\n\n{before_address}{address} )\n图中是北门。{after}"
    chunks = chunks_of(text, size=300, overlap=60)

    assert_sound(text, chunks, size=300)
    assert not any("%E5" in chunk.text.replace(address, "") for chunk in chunks)


def test_ids_tell_documents_pages_places_and_texts_apart() -> None:
    """The same text twice, on two pages or in two documents, has two ids; always the same ones."""
    pages = document_pages("a", Document("same\fsame")) + document_pages("b", Document("same"))
    chunks = chunk_pages(pages, tokenizer=FITTED, size=50, overlap=5)

    assert len({chunk.id for chunk in chunks}) == 3
    assert all(chunk.id.startswith("chunk-") for chunk in chunks)
    assert chunks == chunk_pages(pages, tokenizer=FITTED, size=50, overlap=5)


def test_paragraphs_are_preferred_near_an_even_share() -> None:
    """A chunk ends with a paragraph if one ends near its even share."""
    text = "\n\n".join("One two three. Four five six. Seven eight nine." for _ in range(300))
    chunks = chunks_of(text, size=1000, overlap=0, tokenizer=Bytes())

    assert all(chunk.text.endswith("nine.\n\n") for chunk in chunks[:-1])


@pytest.mark.parametrize("length", range(1_210, 30_000, 2_399))
def test_chunks_of_a_page_have_about_equal_sizes(length: int) -> None:
    """No short tail after full chunks, and at most one chunk more than a text needs."""
    words = [f"A{n} clerk wrote down every word." for n in range(length)]
    chunks = chunks_of("  ".join(words)[:length], size=1200, overlap=100, tokenizer=Bytes())

    sizes = [chunk.tokens for chunk in chunks]
    assert len(chunks) <= math.ceil((length - 100) / 1100) + 1
    assert min(sizes) >= 0.6 * max(sizes)


def test_chunks_overlap_by_about_what_was_asked() -> None:
    """Neighbours share text, never more tokens than the overlap; none is shared if none is asked."""
    unpunctuated = "玄德与关公张飞同至城下众人皆喜" * 400
    for text in (ENGLISH, CHINESE, " ".join(["word"] * 5000), unpunctuated):
        chunks = chunks_of(text, size=200, overlap=50)
        for one, two in pairwise(chunks):
            assert 10 <= FITTED.count(text[two.start : one.end]) <= 55
        plain = chunks_of(text, size=200, overlap=0)
        assert "".join(chunk.text for chunk in plain) == text


def test_a_sea_of_white_space_is_left_out() -> None:
    """White space that would fill chunks alone is covered by none; the words around it are."""
    text = "begin" + " " * 50_000 + "end"
    chunks = chunks_of(text, size=20, overlap=5)

    assert_sound(text, chunks, size=20)
    assert len(chunks) <= 3


# ── edits ───────────────────────────────────────────────────────────────────────


def test_an_unchanged_document_has_the_same_chunks() -> None:
    """Rechunking what did not change changes nothing, ids included."""
    for text in (ENGLISH, CHINESE, "one\ftwo\f\fone"):
        assert edited(text, text) == chunks_of(text)


def test_deleting_and_inserting_paragraphs() -> None:
    """A paragraph taken out or put in far up moves the rest without rewriting it."""
    paragraphs = ENGLISH.split("\n\n")
    shorter = "\n\n".join(paragraphs[:3] + paragraphs[5:])
    longer = "\n\n".join([*paragraphs[:3], "A wholly new paragraph. It is short.", *paragraphs[3:]])

    for new in (shorter, longer):
        assert_sound(new, edited(ENGLISH, new))
        assert len(new_texts(ENGLISH, new)) <= 3


@pytest.mark.slow
def test_appending_grows_the_last_chunk() -> None:
    """Text added again and again at the end does not leave a trail of tiny chunks."""
    text = ENGLISH
    pages = document_pages("doc", Document(text))
    chunks = chunk_pages(pages, tokenizer=FITTED, size=100, overlap=20)
    for number in range(60):
        text += f" Then entry {number} was added."
        old_pages, pages = pages, document_pages("doc", Document(text))
        chunks = chunk_pages(pages, old_pages, chunks, tokenizer=FITTED, size=100, overlap=20)

    assert_sound(text, chunks)
    assert len(chunks) <= 1.5 * len(chunks_of(text))


def test_moved_pages_keep_their_chunks() -> None:
    """A page put in front shifts the numbers of the others and leaves their texts alone."""
    first, second = ENGLISH[:3000], ENGLISH[3000:6000]
    new = f"A new title page.\f{first}\f{second}"

    chunks = edited(f"{first}\f{second}", new)

    assert new_texts(f"{first}\f{second}", new) == {"A new title page."}
    assert {chunk.page for chunk in chunks} == {1, 2, 3}


def test_a_wholly_new_text_is_chunked_anew() -> None:
    """Nothing kept means the same chunks as a first insert."""
    assert edited(ENGLISH, CHINESE) == chunks_of(CHINESE)
    assert edited(ENGLISH, "") == ()
    assert edited("", ENGLISH) == chunks_of(ENGLISH)


def test_a_word_that_grows_is_not_cut() -> None:
    """A kept chunk must not end inside a word that the edit made longer."""
    old = "The clerk was " + "very " * 60 + "happy"
    for chunk in edited(old, old + "iness"):
        assert "happyiness" in chunk.text or "happy" not in chunk.text
