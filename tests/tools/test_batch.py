"""Batch files: rounds of requests and results until the index is what an insert would have made it."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import ConfigError, Document, IndexOptions, LightRAG, Message, OpenAILLM
from lightrag_jsonl.llm.requests import BROKEN_OFF
from lightrag_jsonl.testing import ReplayLLM, Request, ScriptedLLM
from lightrag_jsonl.tools import batch
from lightrag_jsonl.tools.batch import export_batch, import_batch
from tests.replays import carol

Line = dict[str, Any]
Answer = Callable[[Line], Line | None]

ENTITY = '{"type":"entity","name":"Scrooge","entity_type":"person","description":"A miser."}'
MORE = '{"type":"entity","name":"Marley","entity_type":"person","description":"A ghost."}'
SHORT = "Scrooge met Marley."  # too short to be gleaned
LONG = "Scrooge met Marley in the counting house on Christmas Eve. " * 10


def lines(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def result(request: Line, text: str, finish: str = "stop") -> Line:
    """A good result in the provider's form."""
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": finish}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    response = {"status_code": 200, "body": {"choices": [choice], "usage": usage}}
    return {"custom_id": request["custom_id"], "response": response, "error": None}


def answered_by(llm: ReplayLLM) -> Answer:
    def answer(request: Line) -> Line:
        turns = [Message(m["role"], m["content"]) for m in request["body"]["messages"]]
        return result(request, asyncio.run(llm.complete(turns)).text)

    return answer


def run_batch(requests: Path, answer: Answer) -> Path:
    """What a provider makes of a file; a request answered with None is missing."""
    results = requests.with_suffix(".results")
    found = [one for one in map(answer, lines(requests)) if one is not None]
    results.write_text("".join(json.dumps(line) + "\n" for line in found), encoding="utf-8")
    return results


def small() -> ReplayLLM:
    texts = {SHORT: [ENTITY], LONG: [ENTITY, MORE]}
    return ReplayLLM(texts, otherwise=lambda request: "A summary.")


@pytest.fixture
def rag(tmp_path: Path) -> Iterator[LightRAG]:
    """An empty index whose model must never be called."""
    llm = ScriptedLLM([], name="replay")
    with LightRAG(tmp_path / "kb", llm=llm) as opened:
        yield opened
    assert llm.requests == []


@pytest.fixture
def requests(tmp_path: Path) -> Path:
    return tmp_path / "requests.jsonl"


@pytest.mark.slow
def test_rounds_of_files_make_what_an_insert_makes(shared_data: Path, tmp_path: Path) -> None:
    """First turns, gleanings, summaries: then the index holds what live calls would have brought."""
    documents, answers = carol.documents(shared_data, 12)

    def summary(request: Request) -> str:
        return "In short: " + " ".join(request.question.split()[:40])

    llm = ReplayLLM(answers, otherwise=summary)
    options = IndexOptions(chunk_tokens=2000, summarize_fragments=3)
    rounds, given, path = [], documents, tmp_path / "requests.jsonl"
    with LightRAG(tmp_path / "batch", llm=llm, options=options) as rag:
        while (export := rag.run(export_batch, path, given)).requests:
            rounds.append((export.round, export.requests, export.pending))
            imported = rag.run(import_batch, [run_batch(path, answered_by(llm))])
            assert (imported.answered, imported.missing) == (export.requests, 0)
            given = []
        batched, graph, left = rag.admin.export_text("jsonl"), rag.graph.copy(), rag.status()
    assert rounds[:2] == [("extraction", 12, 12), ("extraction", 12, 12)]
    assert {one[0] for one in rounds[2:]} == {"summaries"}
    assert left.documents == {"done": 12}
    with LightRAG(tmp_path / "live", llm=llm, options=options) as rag:
        rag.insert(documents)
        live = rag.admin.export_text("jsonl")
        assert sorted(batched.split("\n")) == sorted(live.split("\n"))
        assert {n: d["description"] for n, d in graph.nodes(data=True)} == {
            n: d["description"] for n, d in rag.graph.nodes(data=True)
        }


def test_nothing_is_visible_before_its_answers_are_whole(rag: LightRAG, requests: Path) -> None:
    """A document waits through its gleaning; one without gleaning is there after one round. An export
    can be repeated; known documents are not asked for again.
    """
    given = [Document(SHORT, id="s"), Document(LONG, id="l")]
    export = rag.run(export_batch, requests, given)
    first = requests.read_bytes()
    assert rag.run(export_batch, requests, given) == export and requests.read_bytes() == first
    assert (export.round, export.requests, export.pending) == ("extraction", 2, 2)
    imported = rag.run(import_batch, [run_batch(requests, answered_by(small()))])
    assert imported.inserted.documents == ("s",) and imported.pending == imported.requests == 1
    assert set(rag.graph) == {"Scrooge"}
    assert rag.run(export_batch, requests).requests == 1
    assert len(lines(requests)[0]["body"]["messages"]) > 3
    imported = rag.run(import_batch, [run_batch(requests, answered_by(small()))])
    assert imported.inserted.documents == ("l",) and imported.round == "done"
    assert set(rag.graph) == {"Scrooge", "Marley"}
    again = rag.run(export_batch, requests, given)
    assert (again.round, again.unchanged, again.files) == ("done", ("s", "l"), ())
    assert not requests.exists()


def test_missing_failed_doubled_and_strange_results(
    rag: LightRAG, requests: Path, tmp_path: Path
) -> None:
    """Each kind is counted, over several files; what has no good result is asked for again."""
    rag.run(export_batch, requests, [f"Text {number}: {SHORT}" for number in range(6)])
    asked = lines(requests)
    failed = {**result(asked[1], ""), "response": None, "error": {"message": "quota"}}
    refused = result(asked[2], "")
    refused["response"] = {"status_code": 429, "body": {"error": {"message": "slow down"}}}
    silent = result(asked[3], "")
    silent["response"]["body"]["choices"][0]["message"] = {"content": None, "refusal": "no"}
    good, retried = result(asked[0], ENTITY), result(asked[2], ENTITY)
    stranger = result({"custom_id": "someone else's"}, ENTITY)
    paths = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    parts = [[good, good, failed, silent], [refused, retried, stranger, ["no result"]]]
    for path, part in zip(paths, parts, strict=True):
        text = "".join(json.dumps(line) + "\n" for line in part) + '{"custom_id": "cut'
        path.write_text(text, encoding="utf-8")
    report = rag.run(import_batch, paths)
    assert (report.answered, report.missing, report.unreadable, report.unused) == (2, 4, 3, 0)
    assert {reason[:22] for _, reason in report.failed} == {"quota", "the model gave no text"}
    assert (len(report.inserted.documents), report.pending) == (2, 4)
    assert rag.run(export_batch, requests).requests == 4
    assert rag.run(import_batch, paths).unused == 2
    with pytest.raises(ConfigError, match=r"nothing\.jsonl"):
        rag.run(import_batch, [tmp_path / "nothing.jsonl"])


def test_finish_waits_for_nothing(rag: LightRAG, requests: Path) -> None:
    """What never came counts as failed chunks, which a later round or `retry` may still bring; what
    the answers cost is counted.
    """
    given = [Document(SHORT, id="a"), Document("Other: " + SHORT, id="b")]
    rag.run(export_batch, requests, given)
    first = lines(requests)[0]["custom_id"]
    part = run_batch(requests, lambda r: result(r, ENTITY) if r["custom_id"] == first else None)
    report = rag.run(import_batch, [part], finish=True)
    assert report.pending == 0 and len(report.inserted.failures) == 1
    assert (report.usage.input_tokens, report.usage.calls) == (100, 1)
    assert rag.status().documents == {"done": 1, "failed": 1}
    assert rag.run(export_batch, requests).requests == 1
    report = rag.run(import_batch, [run_batch(requests, lambda one: result(one, MORE))])
    assert report.inserted.documents == ("b",) and rag.status().documents == {"done": 2}
    assert set(rag.graph) == {"Scrooge", "Marley"}


@pytest.mark.slow
def test_finish_gives_up_on_any_number_of_missing_answers(rag: LightRAG, requests: Path) -> None:
    """However many in a row never came: no document is left waiting."""
    rag.run(export_batch, requests, [Document(f"{SHORT} {n}", id=f"d{n}") for n in range(60)])
    report = rag.run(import_batch, [run_batch(requests, lambda request: None)], finish=True)
    assert report.pending == 0 and len(report.inserted.failures) == 60


def test_what_an_answer_lost_is_a_request_of_the_next_round(rag: LightRAG, requests: Path) -> None:
    """What could be read is visible until then. An answer that a content filter cut off is no answer:
    its document waits.
    """
    rag.run(export_batch, requests, [Document(SHORT, id="a"), Document("Other: " + SHORT, id="b")])
    first = lines(requests)[0]["custom_id"]
    lossy = ENTITY + '\n{"type": "entity"}\n{"type": "relationship"}'

    def answer(request: Line) -> Line:
        is_first = request["custom_id"] == first
        return result(request, lossy) if is_first else result(request, ENTITY, "content_filter")

    report = rag.run(import_batch, [run_batch(requests, answer)])
    assert [reason for _, reason in report.failed] == [BROKEN_OFF["filter"]]
    assert ["2 of 3 records" in one.reason for one in report.inserted.failures] == [True]
    assert rag.status().documents == {"partial": 1, "pending": 1} and "Scrooge" in rag.graph
    assert rag.run(export_batch, requests).requests == 2
    rag.run(import_batch, [run_batch(requests, lambda one: result(one, MORE))])
    assert rag.status().documents == {"done": 2}


def test_requests_have_the_form_that_providers_take(
    tmp_path: Path, requests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method, address, and the body that a live call would send; ids are unique; no file holds more
    requests than providers take.
    """
    options = IndexOptions(max_extract_tokens=500, max_calls=1)  # about calls that are made now
    llm = OpenAILLM("gpt-4o-mini", extra_body={"seed": 7})
    with LightRAG(tmp_path / "kb", llm=llm, options=options) as rag:
        rag.run(export_batch, requests, [SHORT, "张骞出使西域。"])
        found = lines(requests)
        assert {(one["method"], one["url"]) for one in found} == {("POST", "/v1/chat/completions")}
        assert len({one["custom_id"] for one in found}) == 2
        assert "张骞出使西域" in requests.read_text(encoding="utf-8")
        body = found[0]["body"]
        turns = body.pop("messages")
        assert body == {"model": "gpt-4o-mini", "temperature": 0.0, "max_tokens": 500, "seed": 7}
        assert [turn["role"] for turn in turns] == ["system", "user"]
        rag.run(export_batch, requests, reasoning=True)
        body = lines(requests)[0]["body"]
        assert "temperature" not in body and body["max_completion_tokens"] == 500
        monkeypatch.setattr(batch, "MAX_REQUESTS", 1)
        export = rag.run(export_batch, requests)
        assert [Path(file).name for file in export.files] == ["requests.jsonl", "requests-2.jsonl"]
