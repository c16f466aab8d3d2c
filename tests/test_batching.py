"""Batch files: rounds of requests and results until the index is what an insert would have made it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lightrag_jsonl import (
    ConfigError,
    Document,
    IndexOptions,
    LightRAG,
    Message,
    OpenAILLM,
    batching,
)
from lightrag_jsonl.cli import main
from lightrag_jsonl.testing import ReplayLLM, Request, ScriptedLLM
from tests.replays import carol

Line = dict[str, Any]
Answer = Callable[[Line], Line | None]

ENTITY = '{"type":"entity","name":"Scrooge","entity_type":"person","description":"A miser."}'
MORE = '{"type":"entity","name":"Marley","entity_type":"person","description":"A ghost."}'
SHORT = "Scrooge met Marley."  # too short to be gleaned
LONG = "Scrooge met Marley in the counting house on Christmas Eve. " * 10
TURNS = {SHORT: [ENTITY], LONG: [ENTITY, MORE]}


def lines(path: Path) -> list[Line]:
    """The requests or results of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def result(request: Line, text: str, finish: str = "stop") -> Line:
    """A good result in the provider's form."""
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": finish}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    body = {"choices": [choice], "usage": usage}
    return {
        "id": "batch_req_1",
        "custom_id": request["custom_id"],
        "response": {"status_code": 200, "request_id": "r", "body": body},
        "error": None,
    }


def answered_by(llm: ReplayLLM) -> Answer:
    """A provider whose model is this one."""

    def answer(request: Line) -> Line:
        turns = [Message(m["role"], m["content"]) for m in request["body"]["messages"]]
        return result(request, asyncio.run(llm.complete(turns)).text)

    return answer


def run_batch(requests: Path, answer: Answer) -> Path:
    """What a provider makes of a file; a request answered with None is missing."""
    results = requests.with_suffix(".results")
    found = [one for one in map(answer, lines(requests)) if one is not None]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in found)
    results.write_text(text, encoding="utf-8")
    return results


def small() -> ReplayLLM:
    """A model that knows the two small texts."""
    return ReplayLLM(TURNS, otherwise=lambda request: "A summary.")


@pytest.fixture
def rag(tmp_path: Path) -> Iterator[LightRAG]:
    """An empty index whose model must never be called."""
    llm = ScriptedLLM([], name="replay")
    with LightRAG(tmp_path / "kb", llm=llm) as opened:
        yield opened
    assert llm.requests == []


# ── rounds ──────────────────────────────────────────────────────────────────────


def test_rounds_of_files_make_what_an_insert_makes(shared_data: Path, tmp_path: Path) -> None:
    """First turns, gleanings, summaries: then the index holds what live calls would have brought."""
    texts = carol.chunks(shared_data)[:12]
    answers = dict(zip(texts, carol.answers(shared_data), strict=False))

    def summary(request: Request) -> str:
        return "In short: " + " ".join(request.question.split()[:40])

    llm = ReplayLLM(answers, otherwise=summary)
    options = IndexOptions(chunk_tokens=2000, summarize_fragments=3)
    documents = [Document(text, id=f"chunk {n}") for n, text in enumerate(texts)]
    rounds = []
    with LightRAG(tmp_path / "batch", llm=llm, options=options) as rag:
        given = documents
        while (export := rag.export_batch(tmp_path / "requests.jsonl", given)).requests:
            rounds.append((export.round, export.requests, export.waiting))
            imported = rag.import_batch(run_batch(tmp_path / "requests.jsonl", answered_by(llm)))
            assert (imported.answered, imported.missing) == (export.requests, 0)
            given = []
        batched, graph, left = rag.records(), rag.graph, rag.status()
    assert rounds[:2] == [("extraction", 12, 12), ("extraction", 12, 12)]
    assert {one[0] for one in rounds[2:]} == {"summaries"}
    assert left.documents == {"done": 12}
    with LightRAG(tmp_path / "live", llm=llm, options=options) as rag:
        rag.insert(documents)
        assert sorted(map(repr, batched)) == sorted(map(repr, rag.records()))
        assert {n: d["description"] for n, d in graph.nodes(data=True)} == {
            n: d["description"] for n, d in rag.graph.nodes(data=True)
        }


def test_nothing_is_visible_before_its_answers_are_whole(rag: LightRAG, tmp_path: Path) -> None:
    """A document waits through its gleaning; one without gleaning is there after one round."""
    requests = tmp_path / "requests.jsonl"
    export = rag.export_batch(requests, [Document(SHORT, id="s"), Document(LONG, id="l")])
    assert (export.round, export.requests, export.waiting) == ("extraction", 2, 2)
    imported = rag.import_batch(run_batch(requests, answered_by(small())))
    assert imported.inserted.documents == ("s",) and imported.waiting == imported.requests == 1
    assert set(rag.graph) == {"Scrooge"}
    assert rag.export_batch(requests).requests == 1
    assert len(lines(requests)[0]["body"]["messages"]) > 3
    imported = rag.import_batch(run_batch(requests, answered_by(small())))
    assert imported.inserted.documents == ("l",) and imported.round == "done"
    assert set(rag.graph) == {"Scrooge", "Marley"}


def test_an_insert_later_pays_for_nothing_that_a_file_brought(tmp_path: Path) -> None:
    """The answers stand in the same cache under the same keys as those of live calls."""
    requests, llm = tmp_path / "requests.jsonl", small()
    with LightRAG(tmp_path / "kb", llm=llm) as rag:
        rag.export_batch(requests, LONG)
        rag.import_batch(run_batch(requests, answered_by(small())))
        assert llm.requests == []
        rag.resume()
        assert len(llm.requests) == 1 and rag.status().documents == {"done": 1}


def test_exporting_again_asks_for_the_same(rag: LightRAG, tmp_path: Path) -> None:
    """An export can be repeated; known documents are not asked for again."""
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    rag.export_batch(first, [SHORT])
    rag.export_batch(second, [SHORT])
    assert first.read_bytes() == second.read_bytes()
    rag.import_batch(run_batch(first, answered_by(small())))
    again = rag.export_batch(first, [SHORT])
    assert again.round == "done" and len(again.unchanged) == 1 and again.files == ()


# ── results that are not as they should be ──────────────────────────────────────


def test_exported_documents_that_share_an_id_are_told(
    rag: LightRAG, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Only the last of them is waited for; the same text twice is no reason."""
    given = [Document(SHORT, id="x"), Document(SHORT, id="x"), Document(LONG, id="y")]
    rag.export_batch(tmp_path / "requests.jsonl", given)
    assert caplog.messages == []
    export = rag.export_batch(tmp_path / "requests.jsonl", [*given, Document(LONG, id="x")])
    assert export.waiting == 2
    (told,) = caplog.messages
    assert "share the id 'x'" in told


def test_missing_failed_doubled_and_strange_results(rag: LightRAG, tmp_path: Path) -> None:
    """Each kind is counted; what has no good result is asked for again, and only that."""
    requests = tmp_path / "requests.jsonl"
    texts = [f"Text {number}: {SHORT}" for number in range(6)]
    rag.export_batch(requests, texts)
    asked = lines(requests)
    failed = {**result(asked[1], ""), "response": None, "error": {"message": "quota"}}
    refused = result(asked[2], "")
    refused["response"] = {"status_code": 429, "body": {"error": {"message": "slow down"}}}
    silent = result(asked[3], "")
    silent["response"]["body"]["choices"][0]["message"] = {"content": None, "refusal": "no"}
    good, retried = result(asked[0], ENTITY), result(asked[2], ENTITY)
    stranger = result({"custom_id": "someone else's"}, ENTITY)
    found = [good, good, failed, silent, refused, retried, stranger, ["no result"]]
    results = tmp_path / "results.jsonl"
    text = "".join(json.dumps(line) + "\n" for line in found) + '{"custom_id": "cut'
    results.write_text(text, encoding="utf-8")
    report = rag.import_batch(results)
    assert (report.answered, report.missing, report.doubled) == (2, 4, 1)
    assert (report.unknown, report.unreadable, report.known) == (1, 2, 0)
    assert {reason for _, reason in report.failed} == {"quota", "the model gave no text: no"}
    assert (len(report.inserted.documents), report.waiting) == (2, 4)
    assert rag.export_batch(requests).requests == 4
    assert rag.import_batch(results).known == 2


def test_several_files_are_one_batch(rag: LightRAG, tmp_path: Path) -> None:
    """Providers write answers and errors into two files; both can be given."""
    requests = tmp_path / "requests.jsonl"
    rag.export_batch(requests, [SHORT, "Other: " + SHORT])
    one, other = lines(requests)
    paths = [tmp_path / "output.jsonl", tmp_path / "errors.jsonl"]
    paths[0].write_text(json.dumps(result(one, ENTITY)), encoding="utf-8")
    error = {"custom_id": other["custom_id"], "response": None, "error": {"code": "expired"}}
    paths[1].write_text(json.dumps(error), encoding="utf-8")
    report = rag.import_batch(*paths)
    assert report.answered == 1 and report.failed == ((other["custom_id"], "expired"),)


def test_a_cut_answer_is_resumed_in_the_next_round(rag: LightRAG, tmp_path: Path) -> None:
    """What an answer held before its limit is kept, and the model is asked to go on."""
    requests = tmp_path / "requests.jsonl"
    rag.export_batch(requests, SHORT)
    cut = ENTITY + "\n" + MORE[:30]
    report = rag.import_batch(run_batch(requests, lambda one: result(one, cut, "length")))
    assert (report.answered, report.waiting, report.requests) == (1, 1, 1)
    rag.export_batch(requests)
    turns = lines(requests)[0]["body"]["messages"]
    assert turns[-2] == {"role": "assistant", "content": json.dumps(json.loads(ENTITY))}
    rag.import_batch(run_batch(requests, lambda one: result(one, MORE)))
    assert set(rag.graph) == {"Scrooge", "Marley"}


def test_an_unreadable_answer_is_asked_for_again(rag: LightRAG, tmp_path: Path) -> None:
    """An answer without any record does not stay in the cache."""
    requests = tmp_path / "requests.jsonl"
    rag.export_batch(requests, SHORT)
    report = rag.import_batch(run_batch(requests, lambda one: result(one, "{broken")))
    assert (report.waiting, report.requests, report.inserted.documents) == (1, 1, ())
    rag.export_batch(requests)
    report = rag.import_batch(run_batch(requests, answered_by(small())))
    assert report.round == "done" and set(rag.graph) == {"Scrooge"}


def test_finish_waits_for_nothing(rag: LightRAG, tmp_path: Path) -> None:
    """What never came counts as failed chunks, which a later round or `retry` may still bring."""
    requests = tmp_path / "requests.jsonl"
    rag.export_batch(requests, [Document(SHORT, id="a"), Document("Other: " + SHORT, id="b")])
    first = lines(requests)[0]["custom_id"]
    results = run_batch(
        requests, lambda one: result(one, ENTITY) if one["custom_id"] == first else None
    )
    report = rag.import_batch(results, finish=True)
    assert report.waiting == 0 and len(report.inserted.failures) == 1
    assert rag.status().documents == {"done": 1, "failed": 1}
    assert rag.export_batch(requests).requests == 1
    report = rag.import_batch(run_batch(requests, lambda one: result(one, MORE)))
    assert report.inserted.documents == ("b",) and rag.status().documents == {"done": 2}
    assert set(rag.graph) == {"Scrooge", "Marley"}


def test_a_results_file_that_is_not_there_is_named(rag: LightRAG, tmp_path: Path) -> None:
    """The error says which file it is."""
    rag.export_batch(tmp_path / "requests.jsonl", SHORT)
    with pytest.raises(ConfigError, match=r"nothing\.jsonl"):
        rag.import_batch(tmp_path / "nothing.jsonl")


# ── the format ──────────────────────────────────────────────────────────────────


def test_requests_have_the_form_that_providers_take(tmp_path: Path) -> None:
    """Method, address, and the body that a live call would send; ids are unique."""
    options = IndexOptions(max_extract_tokens=500)
    requests = tmp_path / "requests.jsonl"
    llm = OpenAILLM("gpt-4o-mini", extra_body={"seed": 7})
    with LightRAG(tmp_path / "kb", llm=llm, options=options) as rag:
        rag.export_batch(requests, [SHORT, "张骞出使西域。"])
        found = lines(requests)
        assert {(one["method"], one["url"]) for one in found} == {("POST", "/v1/chat/completions")}
        assert len({one["custom_id"] for one in found}) == 2
        assert "张骞出使西域" in requests.read_text(encoding="utf-8")
        body = found[0]["body"]
        turns = body.pop("messages")
        assert body == {"model": "gpt-4o-mini", "temperature": 0.0, "max_tokens": 500, "seed": 7}
        assert [turn["role"] for turn in turns] == ["system", "user"]
        rag.export_batch(requests, reasoning=True)
        body = lines(requests)[0]["body"]
        assert "temperature" not in body and body["max_completion_tokens"] == 500


def test_large_exports_are_divided(
    rag: LightRAG, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file holds more requests than providers take; together they hold all."""
    monkeypatch.setattr(batching, "MOST", 2)
    export = rag.export_batch(tmp_path / "r.jsonl", [f"{n}: {SHORT}" for n in range(5)])
    assert [Path(file).name for file in export.files] == ["r.jsonl", "r-2.jsonl", "r-3.jsonl"]
    parts = [run_batch(Path(file), lambda one: result(one, ENTITY)) for file in export.files]
    assert rag.import_batch(*parts).answered == 5


def test_limits_of_an_insert_do_not_limit_batches(tmp_path: Path) -> None:
    """`max_calls` is about calls that are made now."""
    options = IndexOptions(max_calls=1)
    with LightRAG(tmp_path / "kb", llm=small(), options=options) as rag:
        export = rag.export_batch(tmp_path / "r.jsonl", [f"{n}: {SHORT}" for n in range(3)])
        done = rag.import_batch(run_batch(tmp_path / "r.jsonl", lambda one: result(one, ENTITY)))
    assert export.requests == 3 and len(done.inserted.documents) == 3


def test_without_a_model_there_is_nothing_to_ask(tmp_path: Path) -> None:
    """An index that is read by rules says so instead of writing an empty file."""
    with LightRAG(tmp_path / "kb") as rag, pytest.raises(ConfigError, match="need a model"):
        rag.export_batch(tmp_path / "r.jsonl", SHORT)


def test_the_commands_go_round(tmp_path: Path) -> None:
    """Export and import need no key; the model is remembered; missing results are told."""
    text, requests, folder = tmp_path / "t.txt", tmp_path / "r.jsonl", tmp_path / "kb"
    text.write_text(LONG, encoding="utf-8")

    def run(*arguments: object) -> Any:
        asked = CliRunner().invoke(
            main, ["batch", *map(str, arguments), "-w", str(folder), "--json"]
        )
        return asked.exit_code, json.loads(asked.stdout)

    status, export = run("export", text, "-o", requests, "--llm", "gpt-4o-mini")
    assert status == 0 and export["requests"] == 1
    status, report = run("import", run_batch(requests, lambda one: None))
    assert status == 3 and report["missing"] == 1
    for wanted in ("extraction", "done"):
        run("export", "-o", requests)
        status, report = run("import", run_batch(requests, answered_by(small())))
        assert status == 0 and report["round"] == wanted
    assert report["inserted"]["chunks"] == 1


def test_what_a_batch_cost_is_told_and_kept(rag: LightRAG, tmp_path: Path) -> None:
    """Tokens that the provider counted are kept with the answer."""
    requests = tmp_path / "requests.jsonl"
    rag.export_batch(requests, SHORT)
    report = rag.import_batch(run_batch(requests, lambda one: result(one, ENTITY)))
    assert report.usage.input_tokens == 100 and report.usage.calls == 1
    assert rag.cache_stats().completions == 1


def test_results_of_an_earlier_export_are_kept(tmp_path: Path) -> None:
    """They are paid for: whatever is asked by now, an insert that needs them does not ask again."""
    llm = ScriptedLLM([ENTITY])
    with LightRAG(tmp_path / "kb", llm=llm) as rag:
        rag.export_batch(tmp_path / "one.jsonl", Document(SHORT, id="a"))
        earlier = [result(line, ENTITY) for line in lines(tmp_path / "one.jsonl")]
        rag.export_batch(tmp_path / "two.jsonl", Document("Scrooge slept.", id="a"))
        strange = {**earlier[0], "custom_id": "of another program"}
        (tmp_path / "results.jsonl").write_text(
            "".join(json.dumps(line) + "\n" for line in [*earlier, strange]), encoding="utf-8"
        )
        done = rag.import_batch(tmp_path / "results.jsonl")
        assert (done.answered, done.kept, done.unknown) == (0, 1, 1)
        again = rag.import_batch(tmp_path / "results.jsonl")
        assert (again.known, again.kept) == (1, 0)
        rag.insert(Document(SHORT, id="a"))
        assert len(llm.requests) == 0


def test_the_stored_text_exported_again_takes_the_waiting_one_back(tmp_path: Path) -> None:
    """A newer version that waits is not asked for any more, and its file does not stay to be sent."""
    path = tmp_path / "asked.jsonl"
    with LightRAG(tmp_path / "kb", llm=ScriptedLLM([ENTITY])) as rag:
        rag.insert(Document(SHORT, id="a"))
        assert rag.export_batch(path, Document("Scrooge slept.", id="a")).requests == 1
        assert path.exists()
        done = rag.export_batch(path, Document(SHORT, id="a"))
        assert (done.requests, done.waiting, done.unchanged) == (0, 0, ("a",))
        assert not path.exists()


def test_a_place_that_cannot_be_written_to_puts_nothing_on_the_list(tmp_path: Path) -> None:
    """Neither in a folder that is not there, nor over one."""
    with LightRAG(tmp_path / "kb", llm=ScriptedLLM([ENTITY])) as rag:
        for path in (tmp_path / "none" / "asked.jsonl", tmp_path):
            with pytest.raises(ConfigError, match="cannot write to"):
                rag.export_batch(path, Document(SHORT, id="a"))
        assert rag.documents() == ()
