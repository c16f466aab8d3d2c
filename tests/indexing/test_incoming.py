"""Documents as the store can hold them: the same after every reading, known by id or by text."""

from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, Document, LightRAG
from lightrag_jsonl.indexing.incoming import incoming_document, storable
from tests.kit import pending_document

DOCUMENTS = [
    Document("Tea in 苏州，１２ cups 🍵"),
    Document("one\ftwo", id="n", title="T\udc80", source="s", date="1931"),
    Document("three", pages=("p1\ud800", "p2"), metadata={"rows": (1, 2), "size": float("nan")}),
]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_storable_document_stays_the_same(document: Document) -> None:
    """A document that waited in the store, and is read again after a kill, has the same id and content."""
    pending = pending_document(document, created_at=7.0, records=({"type": "done"},))
    waiting = storable(pending)
    assert storable(waiting) == waiting
    assert incoming_document(storable(waiting)) == incoming_document(waiting)
    assert waiting.document.id == document.id or waiting.document.id.startswith("doc-")  # type: ignore[union-attr]


def test_the_same_text_is_the_same_document_unless_it_is_named() -> None:
    """Without an id, title and source do not count as content; with an id they do."""

    def content(**fields: str) -> str:
        pending = pending_document(Document("A text", **fields))  # type: ignore[arg-type]
        return incoming_document(storable(pending)).document.content

    assert content() == content(title="One title") == content(source="a.txt")
    assert content(id="x") != content(id="x", title="One title")
    assert content() != content(date="1931")


def test_pages_keep_offsets_and_belong_to_the_document() -> None:
    """Pages are numbered from 1, carry the document's id, and unstorable characters keep their place."""
    pending = storable(pending_document(Document("a\ud800b\f中文", id="d")))
    pages = incoming_document(pending).pages
    assert [(page.document_id, page.number, len(page.text)) for page in pages] == [
        ("d", 1, 3),
        ("d", 2, 2),
    ]


@pytest.mark.parametrize("id", ["\u200b", "a\ud800"])
def test_an_id_that_cannot_be_stored_is_refused(id: str) -> None:
    """The error quotes the id."""
    with pytest.raises(ConfigError, match="the id"):
        storable(pending_document(Document("text", id=id)))


SPACED = " ".join("李娜在白鹭船厂担任船长，二〇一五年她造出了第一艘渡船。")


@pytest.mark.slow
def test_blanks_that_ocr_writes_between_chinese_characters_are_left_out(tmp_path: Path) -> None:
    """Names and citations are those of the text without the blanks, on pages of a file as well."""
    plain = SPACED.replace(" ", "")
    with LightRAG(tmp_path, language="zh") as rag:
        rag.insert([Document(SPACED, id="text"), Document("", id="pages", pages=(SPACED, "ok"))])
        chunks = rag.retrieve("李娜造出了什么？").chunks

        assert [page.text for page in rag.pages("text")] == [plain]
        assert [page.text for page in rag.pages("pages")] == [plain, "ok"]
        assert "李娜" in rag.graph
        assert {chunk.text for chunk in chunks} == {plain}
        assert "第一艘渡船" in rag.query("李娜造出了什么？").text


@pytest.mark.slow
def test_blanks_with_a_meaning_stay(tmp_path: Path) -> None:
    """Lists of names, columns, verses, Korean, and English words in Chinese text keep their blanks."""
    texts = [
        "张伟 李娜 王芳 刘洋 陈静 杨帆 赵磊 黄丽 周强 吴敏 徐杰 孙倩",
        "床前明月光 疑是地上霜 举头望明月 低头思故乡",
        "김 철 수 는 부 산 에 서 태 어 났 다 그 는 배 를 만 든 다",
        "第 一 章 码头的书记员每天登记船只，然后把登记表交给船厂。",
        "用 Python 写 的 RAG 与 GraphRAG 在 2024 年 5 月 发布",
    ]
    with LightRAG(tmp_path, language="zh") as rag:
        rag.insert([Document(text, id=str(at)) for at, text in enumerate(texts)])

        assert [rag.pages(str(at))[0].text for at in range(len(texts))] == texts


@pytest.mark.slow
def test_given_chunks_keep_their_blanks(tmp_path: Path) -> None:
    """Pieces that a caller has cut are parts of the text as it was given."""
    with LightRAG(tmp_path, language="zh") as rag:
        rag.insert_records(Document(SPACED, id="d"), [], chunks=[SPACED[:20], SPACED[20:]])

        assert rag.pages("d")[0].text == SPACED
