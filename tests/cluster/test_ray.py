"""Indexing on a Ray cluster of two nodes on this machine, of which one is killed."""

import gzip
import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cluster as benchmark
from lightrag_jsonl import Document, IndexOptions, LightRAG
from lightrag_jsonl.cluster import (
    LARGEST_SHARD,
    SHARDS_OF_EACH_CPU,
    insert_on_ray,
    shards,
)
from lightrag_jsonl.providers.settings import Setup
from tests.cli.conftest import run, run_json
from tests.cluster.kit import QUICK, answer, insert_only, insert_then_summarize
from tests.kit import pending_document, problems, view
from tests.servers import ScriptedServer
from tests.tools.test_merging import documents

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(900)]
OPTIONS = IndexOptions(summarize_fragments=3, max_gleanings=0)


@pytest.fixture(autouse=True)
def only_loopback() -> None:
    """Ray's processes meet at this machine's own address, in place of loopback."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head that works on nothing; each test takes or adds its nodes."""
    ray = pytest.importorskip("ray", reason="needs the extra: pip install '.[ray]'")
    from ray.cluster_utils import Cluster

    os.environ.update(QUICK)
    head = {"num_cpus": 0, "include_dashboard": False, "include_log_monitor": False}
    found = Cluster(initialize_head=True, head_node_args=head)
    yield found
    ray.shutdown()
    found.shutdown()


def nodes_of(cluster: Any, count: int) -> list[Any]:
    """So many working nodes: those that are there, and new ones, which take seconds to start."""
    nodes = [*cluster.worker_nodes]
    return nodes + [cluster.add_node(num_cpus=1) for _ in range(count - len(nodes))]


def calls(server: ScriptedServer) -> Counter[str]:
    return Counter(body["messages"][-1]["content"] for body in server.bodies)


def opened(folder: Path, server: ScriptedServer) -> LightRAG:
    """An index that knows its model by name."""
    os.environ["OPENAI_BASE_URL"] = server.base_url
    return LightRAG(folder, llm="scripted", options=OPTIONS)


def inserted(rag: LightRAG, given: Any, cluster: Any, server: ScriptedServer, **more: Any) -> Any:
    setup = Setup(base_url=server.base_url)
    return rag.run(insert_on_ray, given, cluster.address, setup=setup, shard_characters=60, **more)


def test_a_killed_node_costs_its_shard_only(tmp_path: Path, cluster: Any) -> None:
    """The index equals one made at once; only calls of the shard in hand are repeated; what is there
    is not read again, and a changed document replaces its earlier version.
    """
    given = documents("en", 24)
    nodes = nodes_of(cluster, 2)
    seen: list[Any] = []

    def kill(progress: Any) -> None:
        seen.append(progress)
        if progress.documents_done >= 4 and len(nodes) == 2:
            cluster.remove_node(nodes.pop(), allow_graceful=False)

    with ScriptedServer(respond=answer) as server, opened(tmp_path / "once", server) as rag:
        rag.run(insert_then_summarize, given)
        at_once = calls(server)
    with ScriptedServer(respond=answer) as server, opened(tmp_path / "all", server) as rag:
        report = inserted(rag, given, cluster, server, progress=kill)
        made = calls(server)
        status = rag.status()
        assert len(nodes) == 1 and report.failures == ()
        assert (report.entities, report.relations) == (status.entities, status.relations)
        assert set(report.documents) == {one.id for one in given}
        assert made.keys() == at_once.keys()
        assert sum(made.values()) - len(made) <= 3 * 2, "more than two shards were repeated"
        assert seen[-1].chunks_done == 24 and seen[-1].steps["shards"][0] == len(seen) - 1
        before = len(server.requests)
        again = inserted(rag, given, cluster, server)
        assert set(again.unchanged) == {one.id for one in given} and not again.documents
        assert len(server.requests) == before
        assert view(tmp_path / "all") == view(tmp_path / "once")
        changed = Document("Ann0 met Eve.", id="d0")
        assert inserted(rag, changed, cluster, server).documents == ("d0",)
        assert "Eve" in rag.graph and problems(tmp_path / "all") == []


def test_the_benchmark_measures_a_lost_node(
    tmp_path: Path,
    cluster: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It prints one JSON object: the index of a cluster that lost a node equals one made at once."""
    corpus = tmp_path / "bench-2wiki-corpus" / "corpus.json.gz"
    corpus.parent.mkdir()
    texts = [{"title": one.id, "text": one.text} for one in documents("en", 5)]
    corpus.write_bytes(gzip.compress(json.dumps(texts).encode()))
    monkeypatch.setenv("LIGHTRAG_JSONL_DATA", str(tmp_path))
    nodes = iter(nodes_of(cluster, 3))
    monkeypatch.setattr("ray.cluster_utils.Cluster", lambda *_, **__: cluster)
    monkeypatch.setattr(cluster, "add_node", lambda **_: next(nodes))
    monkeypatch.setattr(cluster, "shutdown", lambda: None)  # further tests use it
    tiny = "--passages 5 0 --seconds 0.05 --characters 60"
    monkeypatch.setattr(sys, "argv", ["cluster", *tiny.split()])
    benchmark.main()
    figures = json.loads(capsys.readouterr().out)
    assert figures["benchmark"] == "cluster" and figures["node"]["passages"] == 5
    assert figures["node"]["graph_equal"] and len(cluster.worker_nodes) == 2
    for reported, there in figures["node"]["reported_and_there"].values():
        assert reported == there > 0


def test_summaries_that_a_lost_driver_owed_are_written(tmp_path: Path, cluster: Any) -> None:
    """Though all documents are there already."""
    given = documents("en", 24)
    with ScriptedServer(respond=answer) as server:
        with opened(tmp_path / "once", server) as rag:
            rag.run(insert_then_summarize, given)
        with opened(tmp_path / "all", server) as rag:
            rag.run(insert_only, given)
            assert view(tmp_path / "all") != view(tmp_path / "once")
            assert not inserted(rag, given, cluster, server).documents
        assert view(tmp_path / "all") == view(tmp_path / "once")


def test_the_command_line_names_the_cluster(
    tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Chinese index by `insert --ray`; what cannot be reached, or combined with it, is an error."""
    nodes_of(cluster, 1)
    text = tmp_path / "三国.txt"
    text.write_text("刘备见了关羽。关羽见了张飞。", encoding="utf-8")
    with ScriptedServer(respond=answer) as server:
        more = ["-l", "zh", "--llm", "scripted", "--base-url", server.base_url]
        given = ["insert", "-w", tmp_path / "kb", *more, text, "--ray"]
        report = run_json(*given, cluster.address)
        assert report["chunks"] == 1 and report["usage"]["calls"] == len(server.requests) > 0
        assert "limits" in run(*given, cluster.address, "--max-calls", 3).stderr
        refusal = run(*given, "127.0.0.1:1").stderr
        assert "no Ray cluster" in refusal and "ray start --head" in refusal
        assert run(*given, cluster.address, "--sync").exit_code == 2
    assert problems(tmp_path / "kb") == []


def test_documents_are_dealt_by_their_size() -> None:
    """In order, as many as there is room for, and a larger one alone."""
    texts = ["a" * 4, "b" * 6, "c" * 1, "d" * 30, "e"]
    dealt = shards(waiting(texts), cpus=2, characters=10)
    assert [[one.document.text[0] for one in shard] for shard in dealt] == [
        ["a", "b"], ["c"], ["d"], ["e"],
    ]  # fmt: skip


def waiting(texts: Iterable[str]) -> Iterator[Any]:
    return (pending_document(Document(text)) for text in texts)


def test_shards_fit_the_work() -> None:
    """Four for each CPU; where there is much to read, of the largest size, and not all is read ahead."""
    assert [len(shard) for shard in shards(waiting(["文" * 100] * 48), cpus=3)] == [4] * 12
    assert [len(shard) for shard in shards(waiting(["a" * 9] * 3), cpus=8)] == [1] * 3
    read: list[int] = []

    def endless() -> Iterator[Any]:
        for number in itertools.count():
            read.append(number)
            yield from waiting(["x" * (LARGEST_SHARD // 2)])

    dealt = shards(endless(), cpus=2)
    assert [len(next(dealt)) for _ in range(3)] == [2] * 3
    assert len(read) == 2 * 2 * SHARDS_OF_EACH_CPU


def test_what_was_purged_does_not_return_from_a_cluster(tmp_path: Path, cluster: Any) -> None:
    """Neither what was purged before, nor under another name what is purged meanwhile: the report names both.
    On request it comes back; a new text may have the old name.
    """
    given = documents("en", 24)
    nodes_of(cluster, 1)
    twin = Document(given[0].text, id="twin")
    purged_at: list[int] = []

    def purge(progress: Any) -> None:
        if purged_at:
            return
        with LightRAG(tmp_path / "all", llm="scripted") as other:
            if given[0].id in {document.id for document in other.documents()}:
                purged_at.append(progress.documents_done)
                other.delete(given[0].id, purge=True)

    with ScriptedServer(respond=answer) as server, opened(tmp_path / "all", server) as rag:
        report = inserted(rag, [*given, twin], cluster, server, progress=purge)
        assert purged_at and purged_at[0] < 24
        assert report.purged == ("twin",) and "twin" not in report.documents
        report = inserted(rag, [given[0], given[1]], cluster, server)
        assert report.purged == (given[0].id,) and report.unchanged == (given[1].id,)
        assert given[0].id not in {document.id for document in rag.documents()}
        rewritten = Document("Ann0 met Eve.", id=given[0].id)
        assert inserted(rag, rewritten, cluster, server).documents == (given[0].id,)
        report = inserted(rag, twin, cluster, server, restore_purged=True)
        assert report.documents == ("twin",) and report.purged == ()
    assert problems(tmp_path / "all") == []


def test_a_failed_start_leaves_nothing(tmp_path: Path) -> None:
    """Neither an index, nor a connection."""
    ray = pytest.importorskip("ray", reason="needs the extra: pip install '.[ray]'")
    text = tmp_path / "a.txt"
    text.write_text("Ann met Bob in Rome.", encoding="utf-8")
    failed = run("insert", "-w", tmp_path / "kb", text, "--ray", "127.0.0.1:1")
    assert failed.exit_code == 1 and "no Ray cluster" in failed.stderr
    assert not (tmp_path / "kb").exists() and not ray.is_initialized()


def test_a_cluster_reads_nothing_in_an_index_that_is_read_when_it_is_asked(
    tmp_path: Path, cluster: Any
) -> None:
    """Nodes ask a model for nothing; what questions had read before stays, and so does their number."""
    given = documents("en", 12)
    nodes_of(cluster, 1)
    with ScriptedServer(respond=answer) as server:
        with opened(tmp_path / "once", server) as rag:
            rag.insert(given, read="asked", progress=False)
            rag.query("Who met Ann0?", read_chunks=2)
            expected = rag.status().reading
        with opened(tmp_path / "all", server) as rag:
            rag.insert(given[:6], read="asked", progress=False)
            rag.query("Who met Ann0?", read_chunks=2)
            before = len(server.requests)
            inserted(rag, given, cluster, server)
            assert len(server.requests) == before
            reading = rag.status().reading
    assert (reading.read, reading.questions) == (expected.read, 1)
    assert (reading.chunks_read, reading.chunks_unread) == (2, 10)
    assert problems(tmp_path / "all") == []
