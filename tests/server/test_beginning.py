"""The first screen: what a collection is about, questions that it answers, and the model set in the page."""

from pathlib import Path

import pytest

from lightrag_jsonl import Document, LightRAG
from lightrag_jsonl.readers.formats import FILE_FORMATS
from tests.cli.conftest import run
from tests.kit import DEFAULT_MODE, MODES, entity, relation
from tests.server.running import Running, process_serving, serving
from tests.servers import Reply, Request, ScriptedServer, chat_reply, error_reply, stream_reply

TOKEN = "a-token-for-this-test"
TEXT = (
    "The ferry Solveig sails from Harwick to Lund Island. Captain Mary Osgood has commanded the Solveig "
    "since 1998. Lund Island has a lighthouse. Mary Osgood was born in Harwick."
)


def written(request: Request) -> Reply:
    """A model's answer, in pieces where they are asked for."""
    text = "Marie Curie [1]."
    return stream_reply([text]) if request.json.get("stream") else chat_reply(text)


def read(kb: Path, text: str = TEXT, language: str = "en") -> None:
    with LightRAG(kb, language=language) as rag:
        rag.insert(text)


def test_the_beginning_quotes_and_asks_what_the_text_answers(tmp_path: Path) -> None:
    """Each sentence is in its passage, and each question gets an answer with a citation; no model is asked."""
    read(tmp_path / "kb")
    with serving(tmp_path / "kb") as server:
        beginning = server.get("/indexes/kb/beginning")
        assert all(sentence["text"] in TEXT for sentence in beginning["sentences"])
        assert beginning["sentences"] and len(beginning["questions"]) == 3
        assert {"Solveig", "Mary Osgood"} & {name["name"] for name in beginning["names"]}
        for question in beginning["questions"]:
            assert server.post("/indexes/kb/query", {"question": question})["citations"]


def test_no_question_is_about_a_heading_and_none_comes_twice(tmp_path: Path) -> None:
    """Where a heading was read as a name, and is the most connected, it is asked what sentences tell of."""
    heading = "Brackley meet Denholm in Cup"
    others = ["Anton Pell", "Vera Holt", "Lund Quarry"]
    text = f"{heading}.\n\nAnton Pell runs the Lund Quarry and hired Vera Holt as his deputy in spring."
    names = [entity(name, "") for name in (heading, *others)]
    links = [relation(heading, name, "Of the article.") for name in others]
    with LightRAG(tmp_path / "kb") as rag:
        rag.insert_records(text, [*names, *links])
    with serving(tmp_path / "kb") as server:
        questions = server.get("/indexes/kb/beginning")["questions"]
    assert len(set(questions)) == len(questions) > 1
    assert heading not in str(questions)


def test_names_of_many_documents_come_before_a_heading_of_one(tmp_path: Path) -> None:
    """The heading of a long list is related to all in it, and says less of a collection than a name that many
    documents tell of; a footer's words, which are related to nothing else, are no main name.
    """
    rungs = [f"Rung {word}" for word in ("Amber", "Beech", "Cedar", "Dogwood", "Elder")]
    with LightRAG(tmp_path / "kb") as rag:
        heading = [relation("Ladder of Posts", rung, "Of the list.") for rung in rungs]
        rag.insert_records(Document("A list of posts.", id="list"), heading)
        for number, port in enumerate(["Harwick", "Lund", "Norby"]):
            sails = relation("Solveig", port, f"The Solveig sails to {port}.")
            footer = entity("Open Licence", "Of the footer.")
            rag.insert_records(
                Document(f"The ferry sails to {port}.", id=str(number)), [sails, footer]
            )
    with serving(tmp_path / "kb") as server:
        names = [name["name"] for name in server.get("/indexes/kb/beginning")["names"]]
    assert names[0] == "Solveig"
    assert "Ladder of Posts" in names and "Open Licence" not in names


def test_an_empty_index_has_no_beginning_and_takes_a_language(tmp_path: Path) -> None:
    """Until the first document; from then on the language is fixed, and the error says so."""
    LightRAG(tmp_path / "kb").close()
    with serving(tmp_path / "kb") as server:
        empty = {"sentences": [], "names": [], "questions": []}
        assert server.get("/indexes/kb/beginning") == empty
        assert server.post("/indexes/kb/settings", {"language": "zh"})["language"] == "zh"
        document = {"text": "张骞出使西域，到过大月氏。汉武帝派张骞联络大月氏。"}
        job = server.post("/indexes/kb/documents", {"documents": [document]}, 202)
        assert server.job(job)["state"] == "done"
        assert not server.get("/indexes/kb/settings")["may_set_language"]
        questions = server.get("/indexes/kb/beginning")["questions"]
        assert questions[0] == "这些资料主要讲什么？" and "张骞" in str(questions)
        refused = server.post("/indexes/kb/settings", {"language": "en"}, 400)
        assert "first document" in refused["error"]["message"]


def test_a_model_is_used_once_it_has_answered(kb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that fails is named with its error and changes nothing; no key but that of the request goes to its
    address, and it is in no file of the index.
    """
    monkeypatch.setenv("OPENAI_API_KEY", "the-key-of-the-environment")
    with (
        ScriptedServer(respond=lambda request: error_reply(404, "no such model")) as wrong,
        ScriptedServer(respond=written) as right,
        serving(kb) as server,
    ):
        refused = server.post(
            "/indexes/kb/settings", {"llm": "m", "base_url": wrong.base_url, "api_key": ""}, 502
        )
        assert "no such model" in refused["error"]["message"]
        assert server.get("/indexes/kb/settings")["llm"] == "none"
        chosen = {"llm": "m", "base_url": right.base_url, "api_key": "own-key"}
        assert server.post("/indexes/kb/settings", chosen)["llm"] == "m"
        answer = server.post("/indexes/kb/query", {"question": "Who discovered radium?"})
        assert answer["text"].startswith("Marie Curie") and not answer["notice"]
        sent = str([dict(request.headers) for request in (*wrong.requests, *right.requests)])
        assert "own-key" in sent and "the-key-of-the-environment" not in sent
        assert not any(b"own-key" in path.read_bytes() for path in kb.iterdir() if path.is_file())
        assert server.post("/indexes/kb/settings", {"llm": "none"})["llm"] == "none"
        assert server.post("/indexes/kb/query", {"question": "Who is Curie?"})["notice"]


def test_the_settings_name_every_mode_and_every_format(kb: Path) -> None:
    """In English and in Chinese, the default mode first: the page's lists are made from them."""
    with serving(kb) as server:
        settings = server.get("/indexes/kb/settings")
    assert {*settings["modes"]} == {*MODES}
    for language in ("en", "zh"):
        names = [names[language] for names in settings["modes"].values()]
        assert all(names) and len({*names}) == len(MODES)
    assert next(iter(settings["modes"])) == DEFAULT_MODE
    assert settings["formats"] == [by_language(format.names) for format in FILE_FORMATS]


def by_language(names: tuple[str, str]) -> dict[str, str]:
    return dict(zip(("en", "zh"), names, strict=True))


def test_the_model_of_a_shared_server_is_set_where_it_starts(kb: Path) -> None:
    """A server with a token or another name refuses it, and says how."""
    for access in ({"token": TOKEN}, {"hosts": ("kb.example.org",)}):
        with serving(kb, **access) as server:
            assert not server.get("/indexes/kb/settings")["may_set_model"]
            body = {"llm": "m", "base_url": "http://127.0.0.1:9/v1"}
            refused = server.post("/indexes/kb/settings", body, 403)
            assert "serve --llm" in refused["error"]["message"]


def test_the_text_of_a_document_comes_in_passages(server: Running) -> None:
    """With its state; an unknown id is an error."""
    shown = server.get("/indexes/kb/text", id="curie")
    assert shown["document"]["state"] == "done" and shown["total"] == 1
    assert "Marie Curie" in shown["chunks"][0]["text"]
    assert server.client.get("/indexes/kb/text", params={"id": "none"}).status_code == 404


@pytest.mark.slow
def test_serve_makes_an_index_where_there_is_none(tmp_path: Path) -> None:
    """A new folder becomes one, in a language; a folder of other files is named with what to do."""
    with process_serving(tmp_path / "new", "-l", "zh", "--no-open") as (_, client):
        assert client.get("/indexes").json() == ["new"]
        assert client.get("/indexes/new/settings").json()["language"] == "zh"
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text(TEXT, encoding="utf-8")
    result = run("serve", tmp_path / "notes")
    assert result.exit_code == 1 and "lightrag-jsonl insert" in result.stderr
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["a.txt"]
