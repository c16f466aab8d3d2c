"""REST: questions, documents and jobs, traces and the graph, for people who write curl."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="needs the extra: pip install '.[server]'")

from prometheus_client.parser import text_string_to_metric_families

from lightrag_jsonl import Document, LightRAG
from lightrag_jsonl.testing import ScriptedLLM
from tests.kit import entity, index, relation
from tests.server.running import Running, serving, serving_model

QUESTIONS = [("Where was Marie Curie born?", "Warsaw"), ("谁派张骞联络大月氏？", "汉武帝")]


@pytest.mark.slow
@pytest.mark.parametrize(("question", "expected"), QUESTIONS)
def test_question_is_answered_with_citations_and_a_trace(
    server: Running, question: str, expected: str
) -> None:
    """An answer in either language names its sources, and its trace can be read and seen."""
    answer = server.post("/indexes/kb/query", {"question": question, "mode": "mix"})

    assert expected in answer["text"]
    assert expected in "".join(one["text"] for one in answer["citations"])
    assert {one["verdict"] for one in answer["claims"]} == {"nearest"}
    assert answer["uncited"] == []
    assert len(answer["sources"]) == len({one["number"] for one in answer["citations"]})
    trace = server.get(f"/indexes/kb/traces/{answer['trace_id']}")
    assert (trace["question"], trace["status"]) == (question, "complete")
    assert server.get("/indexes/kb/traces")[0]["id"] == answer["trace_id"]
    page = server.client.get(f"/indexes/kb/traces/{answer['trace_id']}/page")
    assert expected in page.text and page.headers["content-type"].startswith("text/html")


def test_stream_shows_keywords_and_evidence_before_the_pieces(server: Running) -> None:
    """The events come in the order of the work, and the pieces are the answer's text."""
    events = server.events("/indexes/kb/stream", {"question": QUESTIONS[0][0]})

    names = list(dict.fromkeys(name for name, _ in events))
    assert names == ["session", "keywords", "retrieval", "evidence", "piece", "answer"]
    pieces = "".join(value["text"] for name, value in events if name == "piece")
    assert pieces == events[-1][1]["text"] and events[-1][1]["citations"]
    shown = next(value["shown"] for name, value in events if name == "evidence")
    assert {one["kind"] for one in shown} == {"entity", "chunk"}


def test_graph_is_searched_and_walked(server: Running) -> None:
    """An entity is found by a part of its name in any case, with relations, ends and passages."""
    found = server.get("/indexes/kb/entities", q="CURIE", limit=1)
    assert found["total"] == 2 and len(found["items"]) == 1
    types = server.get("/indexes/kb/types")
    kind = next(iter(types))
    of_kind = server.get("/indexes/kb/entities", type=kind)
    assert of_kind["total"] == types[kind] and {one["type"] for one in of_kind["items"]} == {kind}

    around = server.get("/indexes/kb/neighbourhood", name="Marie Curie", limit=1)
    assert (
        around["entity"]["name"] == "Marie Curie"
        and around["total"] > len(around["relations"]) == 1
    )
    one = around["relations"][0]
    ends = {one["source"], one["target"]} - {"Marie Curie"}
    assert {line["name"] for line in around["neighbours"]} == ends
    overview = server.get("/indexes/kb/overview")
    drawn = {line["name"] for line in overview["entities"]}
    assert drawn and drawn == {
        edge[end] for edge in overview["relations"] for end in ("source", "target")
    }
    assert all(group["names"] and group["entities"] for group in overview["communities"])
    of_entity = server.get("/indexes/kb/sources", entity="Marie Curie")
    of_relation = server.get("/indexes/kb/sources", entity="Marie Curie", target=ends.pop())
    assert of_relation["chunks"] == of_entity["chunks"]
    chunk = of_entity["chunks"][0]
    assert "Marie Curie" in chunk["text"] and of_entity["documents"] == {"curie": "Curie"}
    assert server.get("/indexes/kb/sources", chunk=chunk["id"])["chunks"] == [chunk]


def test_a_history_is_read_in_parts(tmp_path: Path) -> None:
    """A part of the claims with the number of all; a sentence with several names once, if asked; and only
    what the text dates, if asked.
    """
    sentence = "Ida Holm drew the light of Norby, the light of Solvik and the light of Ness."
    dated = "Ida Holm opened the light of Norby in 1871."
    lights = [f"light of {place}" for place in ("Norby", "Solvik", "Ness")]
    records = [entity(name, sentence, "thing") for name in ("Ida Holm", *lights)]
    records += [relation("Ida Holm", light, sentence) for light in lights]
    records.append(relation("Ida Holm", lights[0], dated, valid_from="1871"))
    with LightRAG(tmp_path / "kb", embedder="hash") as rag:
        rag.insert_records(Document(f"{sentence} {dated}", id="own"), records)
        claims = rag.entities.history("Ida Holm")
    with serving(tmp_path / "kb") as server:

        def history(**params: object) -> dict[str, Any]:
            part = server.get("/indexes/kb/history", name="Ida Holm", **params)
            assert isinstance(part, dict)
            return part

        whole = history()
        parts = [history(offset=number, limit=1)["items"] for number in range(whole["total"])]
        assert [part[0] for part in parts] == whole["items"]
        assert [claim["text"] for claim in whole["items"]] == [claim.text for claim in claims]
        assert [claim["text"] for claim in history(sentences=True)["items"]] == [dated, sentence]
        assert [claim["text"] for claim in history(stated=True)["items"]] == [dated]
        assert history(stated=True, limit=1)["total"] == 1


def test_what_does_not_exist_is_404(server: Running) -> None:
    """Nothing of another name is given, and the error is JSON with a code and words; also for a POST,
    so that a program that asks for more of a protocol learns what is missing.
    """
    paths = ["/indexes/other", "/nothing", "/indexes/kb/jobs/0", "/indexes/kb/traces/zz"]
    paths += [
        f"/indexes/kb/{one}" for one in ("neighbourhood?name=x", "sources", "sources?chunk=x")
    ]
    for path in paths:
        response = server.client.get(path)
        assert response.status_code == 404, path
        assert response.json()["error"]["code"] == "not_found"
    for path in ("/v1/embeddings", "/v1/chat/completion", "/api/pull"):
        assert server.client.post(path, json={}).status_code == 404


SENSELESS = [
    *({}, [], {"question": ""}, {"question": " \n"}, {"question": 7}),
    *({"question": "q", "mode": "vector"}, {"question": "q", "top_k": -1}),
    *({"question": "q", "unknown": 1}, {"question": "q", "where": {"date": {"$near": 1}}}),
    {"question": "q", "conversation_history": [{"role": "robot", "content": "x"}]},
]


def test_senseless_questions_are_400(server: Running) -> None:
    """A wrong setting is named before anything is searched or paid for."""
    for body in SENSELESS:
        error = server.post("/indexes/kb/query", body, 400)["error"]
        assert error["code"] == "invalid" and error["message"]


def test_a_state_that_no_document_has_is_400(server: Running) -> None:
    """It is not taken for one that no document is in."""
    for state in ("done", "pending", "partial", "failed"):
        assert "items" in server.get("/indexes/kb/documents", state=state)
    response = server.client.get("/indexes/kb/documents?state=zz")
    assert response.status_code == 400 and "zz" in response.json()["error"]["message"]


def test_wrong_methods_are_405(server: Running) -> None:
    """With all that the path takes."""
    for method, path, allowed in (
        ("DELETE", "/indexes/kb/documents", "GET, HEAD, POST"),
        ("GET", "/indexes/kb/query", "POST"),
        ("PUT", "/health", "GET, HEAD"),
    ):
        response = server.client.request(method, path)
        assert (response.status_code, response.headers["allow"]) == (405, allowed)
        assert response.json()["error"]["code"] == "method"


@pytest.mark.slow
def test_documents_come_and_go_by_jobs(server: Running) -> None:
    """An upload and a text are indexed, seen by the next question without a restart, listed, and
    deleted again; a text without a title is listed by its first words. A retry is a job, too.
    """
    ask = {"question": "Meitner", "where": {"year": 1938}}
    assert not server.post("/indexes/kb/retrieve", ask)["entities"]
    text = "阿尔伯特·爱因斯坦生于乌尔姆。他和贝索在伯尔尼工作。😀".encode("gb18030")
    job = server.upload("爱因斯坦.txt", text, id="einstein", date="1905")
    assert job["state"] == "waiting"
    done = server.job(job)
    assert done["state"] == "done" and done["report"]["documents"] == ["einstein"]
    value = {"text": "Lise Meitner worked in Berlin with Otto Hahn.", "id": "meitner", "year": 1938}
    both = {"documents": [value, {"text": "Grace Hopper wrote a compiler. " * 5}]}
    done = server.job(server.post("/indexes/kb/documents", both, 202))
    assert done["progress"]["chunks_done"] >= 1 and done["report"]["chunks"] == 2

    part = server.get("/indexes/kb/documents", q="爱因斯坦.TXT")
    assert part["total"] == 1 and part["items"][0]["title"] == "爱因斯坦"
    assert part["items"][0]["date"] == "1905"
    listed = server.get("/indexes/kb/documents", offset=1, limit=2, state="done")
    assert listed["total"] == 5 and len(listed["items"]) == 2
    (one,) = server.get("/indexes/kb/documents", q="grace hopper")["items"]
    assert one["title"].startswith("Grace Hopper wrote") and len(one["title"]) <= 41
    found = server.post("/indexes/kb/retrieve", ask)
    assert "Lise Meitner" in {one["name"] for one in found["entities"]}
    assert {one["document_id"] for one in found["chunks"]} == {"meitner"}
    assert server.get("/indexes/kb/entities", q="meitner")["total"] == 1

    assert server.post("/indexes/kb/delete", {"ids": ["meitner", "x"]}, 404)
    gone = server.job(server.post("/indexes/kb/delete", {"ids": ["meitner"]}, 202))
    assert gone["report"]["documents"] == ["meitner"]
    assert server.get("/indexes/kb/entities", q="meitner")["total"] == 0
    done = server.job(server.post("/indexes/kb/retry", {}, 202))
    assert done["state"] == "done" and done["report"]["documents"] == []
    kinds = [one["kind"] for one in server.get("/indexes/kb/jobs")["items"]]
    assert kinds == ["retry", "delete", "insert", "upload"]


@pytest.mark.slow
def test_unreadable_uploads_fail_with_the_reason(server: Running) -> None:
    """A file that is no text fails as a job, in words, and the next job is done."""
    contents = {"a.bin": b"\0\1\2", "b.txt": b" \n", "c.txt": b"Ada met Bob."}
    jobs = [server.upload(name, content) for name, content in contents.items()]
    first, second, third = map(server.job, jobs)
    assert first["state"] == second["state"] == "failed" and third["state"] == "done"
    assert "a.bin" in first["error"] and "b.txt is empty" in second["error"]


@pytest.mark.slow
def test_several_indexes_are_apart(kb: Path, tmp_path: Path) -> None:
    """Every route uses the index in its path and no other; a Chinese name works."""
    other = tmp_path / "知识库"
    other.mkdir()
    for path in kb.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    with serving(kb, other) as server:
        assert server.get("/indexes") == ["kb", "知识库"]
        server.job(server.post("/indexes/知识库/delete", {"ids": ["curie"]}, 202), "知识库")
        assert server.get("/indexes/知识库")["documents"] == {"done": 1}
        assert server.get("/indexes/kb")["documents"] == {"done": 2}
        server.post("/indexes/知识库/query", {"question": "张骞"})
        counts = [len(server.get(f"/indexes/{name}/traces")) for name in ("知识库", "kb")]
        assert counts == [1, 0]


def test_the_page_is_served(server: Running) -> None:
    """At the root, and it may load only its own files."""
    page, script = server.client.get("/"), server.client.get("/main.js")
    assert "<title>" in page.text and "javascript" in script.headers["content-type"]
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]


@pytest.mark.slow
def test_a_pdf_is_uploaded_with_its_pages(server: Running) -> None:
    """Files of other kinds are read as the command line reads them; citations name the page."""
    files = pytest.importorskip("tests.readers.files")

    def draw(canvas: Any) -> None:
        for line in ("Grace Hopper worked in Boston.", "Ada Lovelace met Charles Babbage."):
            canvas.drawString(50, 800, line)
            canvas.showPage()

    assert server.job(server.upload("papers.pdf", files.pdf(draw), id="papers"))["state"] == "done"
    answer = server.post("/indexes/kb/query", {"question": "Whom did Ada Lovelace meet?"})
    assert ("papers", 2) in {(one["document_id"], one["page"]) for one in answer["citations"]}


METRICS = {  # the type and the labels of each metric; dashboards and alerts depend on them
    "lightrag_requests": ("counter", {"route", "status"}),
    "lightrag_request_seconds": ("histogram", {"route", "le"}),
    "lightrag_refused": ("counter", {"reason"}),
    "lightrag_questions": ("counter", {"index", "mode"}),
    "lightrag_questions_shared": ("counter", {"index"}),
    "lightrag_model_calls": ("counter", {"index"}),
    "lightrag_model_tokens": ("counter", {"index", "kind"}),
    "lightrag_questions_in_flight": ("gauge", set()),
    "lightrag_jobs": ("gauge", {"index", "state"}),
    "lightrag_documents": ("gauge", {"index", "state"}),
    "lightrag_chunks": ("gauge", {"index"}),
    "lightrag_entities": ("gauge", {"index"}),
    "lightrag_relations": ("gauge", {"index"}),
}


@pytest.mark.slow
def test_metrics_count_what_happened(server: Running) -> None:
    """Questions, requests, jobs and sizes appear in the text format, each name described once; no metric
    is renamed, loses a label or gets a companion that nobody asked for.
    """
    server.post("/indexes/kb/query", {"question": "Curie"})
    server.client.get("/indexes/other")
    server.client.get("/indexes", headers={"Host": "evil.example"})
    server.job(server.post("/indexes/kb/retry", {}, 202))
    response = server.client.get("/metrics")

    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = response.text.split("\n")
    assert 'lightrag_questions_total{index="kb",mode="mix"} 1.0' in lines
    assert 'lightrag_requests_total{route="GET /indexes/{index}",status="404"} 1.0' in lines
    assert 'lightrag_refused_total{reason="host"} 1.0' in lines
    assert 'lightrag_documents{index="kb",state="done"} 2.0' in lines
    assert 'lightrag_jobs{index="kb",state="done"} 1.0' in lines
    assert 'lightrag_model_tokens_total{index="kb",kind="cached"} 0.0' in lines
    count = 'lightrag_request_seconds_count{route="POST /indexes/{index}/query"} 1.0'
    assert count in lines
    types = [line for line in lines if line.startswith("# TYPE")]
    assert len(types) == len(set(types)) >= 8

    server.indexes.metrics.count_question("kb", "mix", shared=True)
    families = list(text_string_to_metric_families(server.client.get("/metrics").text))
    labels = {
        family.name: {name for sample in family.samples for name in sample.labels}
        for family in families
    }
    assert {family.name: (family.type, labels[family.name]) for family in families} == METRICS


@pytest.mark.slow
def test_each_line_of_jsonl_is_a_document(server: Running) -> None:
    """Of an upload, too; a bad line is a problem in the report, and no path of the server is shown."""
    lines = '{"text": "Ann Lee met Bob Ray.", "id": "ann"}\n\nno JSON\n"邓稼先出生于怀宁。"\n'
    job = server.job(server.upload("notes.jsonl", lines.encode(), id="x"))

    assert (
        job["state"] == "done" and "notes.jsonl, line 3" in job["report"]["failures"][0]["reason"]
    )
    found = server.get("/indexes/kb/documents", q="notes.jsonl")["items"]
    assert [one["characters"] for one in found] == [20, 9]
    assert "ann" in {one["id"] for one in found} and not any("/" in one["id"] for one in found)


@pytest.mark.slow
def test_a_filter_with_too_many_conditions_is_400(server: Running) -> None:
    """However many fields it names; many values of one field are no such case."""
    asked = {"question": "Curie", "mode": "naive"}
    where = {f"field{n}": n for n in range(20_000)}
    error = server.post("/indexes/kb/retrieve", {**asked, "where": where}, 400)["error"]
    assert "20,000 conditions" in error["message"]
    values = [*range(20_000), 1934]
    found = server.post("/indexes/kb/retrieve", {**asked, "where": {"year": values}})
    assert {chunk["document_id"] for chunk in found["chunks"]} == {"curie", "张骞"}


@pytest.mark.slow
def test_communities_are_listed_and_reports_need_a_model(server: Running) -> None:
    """Level 0 alone or with the parts; without a model the estimate says so, and a job fails in words."""
    listed = server.get("/indexes/kb/communities")
    assert listed["total"] == len(listed["items"]) > 0
    assert {item["level"] for item in listed["items"]} == {0}
    assert all(item["entities"] and item["report"] is None for item in listed["items"])
    deeper = server.get("/indexes/kb/communities", level=1, limit=1)
    assert deeper["total"] >= listed["total"] and len(deeper["items"]) == 1
    refused = server.client.get("/indexes/kb/communities/estimate")
    assert refused.status_code == 400 and "model" in refused.json()["error"]["message"]
    assert server.post("/indexes/kb/communities/report", {"calls": 0}, 400)
    job = server.job(server.post("/indexes/kb/communities/report", {"calls": 3}, 202))
    assert job["state"] == "failed" and "model" in job["error"]


@pytest.mark.slow
async def test_the_overview_shows_reports(tmp_path: Path) -> None:
    """Their titles and summaries, in place of names; they stay without a model. Missing are those that a
    model could write.
    """
    report = {
        "title": "渡船 １２ 😀",
        "summary": "Rowing.",
        "findings": [{"text": "x", "passages": [1]}],
    }
    crew = ("Petrel", "Ostrom", "Gannet")
    records = [*map(entity, crew), relation(crew[0], crew[1]), relation(crew[1], crew[2])]
    llm = ScriptedLLM(lambda request: json.dumps(report))
    async with index(tmp_path / "kb", llm) as rag:
        await rag.insert_records(Document(" met ".join(crew), id="d"), records)
    with serving_model(tmp_path / "kb", llm) as server:
        assert server.get("/indexes/kb/overview")["reports_missing"] == 1
    with serving_model(tmp_path / "kb", "none") as server:
        assert server.get("/indexes/kb/overview")["reports_missing"] == 0
    async with index(tmp_path / "kb", llm) as rag:
        await rag.communities.report()
    with serving_model(tmp_path / "kb", llm) as server:
        assert server.get("/indexes/kb/overview")["reports_missing"] == 0
    with serving(tmp_path / "kb") as server:
        (line,) = server.get("/indexes/kb/overview")["communities"]
        assert (line["title"], line["summary"]) == (report["title"], "Rowing.")
        (community,) = server.get("/indexes/kb/communities")["items"]
        assert community["report"]["findings"][0]["text"] == "x"


@pytest.mark.slow
def test_homonyms_are_listed_separated_and_rejoined(kb: Path) -> None:
    """A name with two bearers is told apart by a job, whose report says which names to rejoin."""
    with LightRAG(kb) as rag:
        for id, year in (("first", 1820), ("second", 1955)):
            text = f"Edda Quill was born in {year}."
            record = {"type": "entity", "name": "Edda Quill", "entity_type": "person"}
            document = Document(text, id=id, title=f"Register of {year}")
            rag.insert_records(document, [{**record, "description": text}])
    with serving(kb) as server:
        names = server.get("/indexes/kb/homonyms")
        (homonym,) = [item for item in names if item["name"] == "Edda Quill"]
        assert homonym["documents"] == {"first": "Register of 1820", "second": "Register of 1955"}
        edit = {"action": "separate", "name": "Edda Quill", "bearers": homonym["bearers"]}
        job = server.job(server.post("/indexes/kb/edit", edit, 202))
        rejoined = job["report"]["rejoin"]
        assert len(rejoined) == 2
        for name in rejoined:
            server.job(server.post("/indexes/kb/edit", {"action": "rejoin", "name": name}, 202))
        assert homonym in server.get("/indexes/kb/homonyms")
        server.post("/indexes/kb/edit", {"action": "separate", "name": "Edda Quill"}, 400)
