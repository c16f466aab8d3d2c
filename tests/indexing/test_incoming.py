"""Documents as the store can hold them: the same after every reading, known by id or by text."""

import pytest

from lightrag_jsonl import ConfigError, Document
from lightrag_jsonl.indexing.incoming import incoming_document, storable
from lightrag_jsonl.storage.rows import PendingDocument

DOCUMENTS = [
    Document("Tea in 苏州，１２ cups 🍵"),
    Document("one\ftwo", id="n", title="T\udc80", source="s", date="1931"),
    Document("three", pages=("p1\ud800", "p2"), metadata={"rows": (1, 2), "size": float("nan")}),
]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_storable_document_stays_the_same(document: Document) -> None:
    """A document that waited in the store, and is read again after a kill, has the same id and content."""
    pending = PendingDocument(document, created_at=7.0, records=({"type": "done"},))
    waiting = storable(pending)
    assert storable(waiting) == waiting
    assert incoming_document(storable(waiting)) == incoming_document(waiting)
    assert waiting.document.id == document.id or waiting.document.id.startswith("doc-")  # type: ignore[union-attr]


def test_the_same_text_is_the_same_document_unless_it_is_named() -> None:
    """Without an id, title and source do not count as content; with an id they do."""

    def content(**fields: str) -> str:
        pending = PendingDocument(Document("A text", **fields), created_at=0.0)  # type: ignore[arg-type]
        return incoming_document(storable(pending)).document.content

    assert content() == content(title="One title") == content(source="a.txt")
    assert content(id="x") != content(id="x", title="One title")
    assert content() != content(date="1931")


def test_pages_keep_offsets_and_belong_to_the_document() -> None:
    """Pages are numbered from 1, carry the document's id, and unstorable characters keep their place."""
    pending = storable(PendingDocument(Document("a\ud800b\f中文", id="d"), created_at=0.0))
    pages = incoming_document(pending).pages
    assert [(page.document_id, page.number, len(page.text)) for page in pages] == [
        ("d", 1, 3),
        ("d", 2, 2),
    ]


@pytest.mark.parametrize("id", ["\u200b", "a\ud800"])
def test_an_id_that_cannot_be_stored_is_refused(id: str) -> None:
    """The error quotes the id."""
    with pytest.raises(ConfigError, match="the id"):
        storable(PendingDocument(Document("text", id=id), created_at=0.0))
