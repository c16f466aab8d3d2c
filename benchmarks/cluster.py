"""What a lost node and a lost driver cost on a Ray cluster: python -m benchmarks.cluster

Three nodes on this machine index bench-2wiki-corpus, every passage a document, from a model server of 0.2 s
a call. In one run a node is killed at half of the calls; in the other the driver, at a third and amid the
summaries, and started again. Each index is compared row by row with one made without Ray, all documents
first, then all summaries. A call is repeated if the same was made before; the report of the insert is compared with what is in
the index. Prints one JSON object.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.datasets import load
from lightrag_jsonl import Document, IndexOptions, LightRAG
from lightrag_jsonl.cluster import insert_on_ray
from lightrag_jsonl.providers.settings import Setup
from tests.cluster.kit import answer, insert_then_summarize
from tests.kit import view
from tests.servers import ScriptedServer


def drive(folder: Path, given: Sequence[Document], url: str, address: str, characters: int) -> None:
    """In a process of its own: insert on the cluster at `address`, or without one if that is empty."""
    os.environ["OPENAI_BASE_URL"] = url
    os.environ.pop("OPENAI_API_KEY", None)
    options = IndexOptions(max_gleanings=0)  # the scripted model misses nothing
    more: dict[str, Any] = {"setup": Setup(base_url=url), "shard_characters": characters}
    with LightRAG(folder, llm="scripted", options=options) as rag, redirect_stdout(sys.stderr):
        if not address:
            rag.run(insert_then_summarize, given)
            return
        report = rag.run(insert_on_ray, given, address, **more)
        status = rag.status()
    counts = {
        "documents": [
            len(report.documents) + len(report.unchanged),
            sum(status.documents.values()),
        ],
        "entities": [report.entities, status.entities],
        "relations": [report.relations, status.relations],
    }
    folder.with_suffix(".report").write_text(json.dumps(counts), encoding="utf-8")


def run(server: ScriptedServer, *arguments: Any, kill_at: int = 0, node: Any = None) -> int:
    """Run a driver; after so many different calls, kill a node, or else it. The calls by then."""
    driver = multiprocessing.get_context("spawn").Process(target=drive, args=arguments)
    driver.start()
    while kill_at and driver.is_alive() and len(set(calls(server))) < kill_at:
        driver.join(0.05)
    made = len(server.requests)
    if kill_at:
        (node or driver.kill)()
    driver.join()
    assert not driver.exitcode or (kill_at and not node), "the driver failed"
    return made


def calls(server: ScriptedServer) -> list[str]:
    """What was asked, call by call."""
    return [request.json["messages"][-1]["content"] for request in list(server.requests)]


def compared(folder: Path, given: Sequence[Document], options: Any) -> dict[str, Any]:
    """The figures of one run; the folder's name says what is killed."""
    from ray.cluster_utils import Cluster

    once = folder.with_suffix(".once")
    with ScriptedServer(respond=lambda one: replace(answer(one), delay=0.0)) as server:
        run(server, once, given, server.base_url, "", 0)
    needed = calls(server)
    total, summaries = len(needed), sum(one.startswith("Subject:") for one in needed)
    cluster = Cluster(True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    node, *_ = [cluster.add_node(num_cpus=1) for _ in range(options.nodes)]
    started = time.monotonic()
    with ScriptedServer(respond=lambda one: replace(answer(one), delay=options.seconds)) as server:
        each = folder, given, server.base_url, cluster.address, options.characters
        if folder.name == "node":
            lose = partial(cluster.remove_node, node, allow_graceful=False)
            killed = [run(server, *each, kill_at=total // 2, node=lose)]
        else:
            killed = [run(server, *each, kill_at=n) for n in (total // 3, total - summaries // 2)]
            run(server, *each)
    seconds, made, graph = time.monotonic() - started, calls(server), view(folder)
    cluster.shutdown()
    return {
        "passages": len(given),
        "nodes": options.nodes,
        "calls_at_once": total,
        "summaries": summaries,
        "killed_after_calls": killed,
        "calls": len(made),
        "calls_repeated": len(made) - len(set(made)),
        "calls_of_one_only": len(set(made) ^ set(needed)),
        "seconds": round(seconds, 1),
        "entities": len(graph.entities),
        "relations": len(graph.relations),
        "graph_equal": graph == view(once),
        "reported_and_there": json.loads(folder.with_suffix(".report").read_text("utf-8")),
    }


def main() -> None:
    """Run both and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--passages", type=int, nargs=2, default=(6119, 600), help="of each run, 0: not run"
    )
    parser.add_argument("--nodes", type=int, default=3, help="of one CPU each")
    parser.add_argument("--seconds", type=float, default=0.2, help="that a call takes")
    parser.add_argument("--characters", type=int, help="of a shard (default: as is)")
    options = parser.parse_args()
    given = [Document(one.content, id=one.id) for one in load("bench-2wiki-corpus").passages]
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with tempfile.TemporaryDirectory() as scratch:
        sizes = zip(("node", "driver"), options.passages, strict=True)
        runs = {name: compared(Path(scratch, name), given[:n], options) for name, n in sizes if n}
    print(json.dumps({"benchmark": "cluster", "shard_characters": options.characters, **runs}))


if __name__ == "__main__":
    main()
