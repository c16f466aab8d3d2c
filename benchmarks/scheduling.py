"""Whether the call slots stay full: python -m benchmarks.scheduling

Each call of the model takes 0.2 s (`--seconds`). Compares the wall time with the least that this number of calls
can take in this number of slots. Prints one JSON object.
"""

import argparse
import asyncio
import json
import math
import tempfile
import time
from typing import Any

from lightrag_jsonl import AsyncLightRAG, Document, IndexOptions
from lightrag_jsonl.testing import Request, ScriptedLLM

SECONDS = 0.2
CASES = ((8, 3, 16), (1, 18, 4))  # (documents, chunks in each, slots)


def main() -> None:
    """Run the cases and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="that a call takes")
    seconds = parser.parse_args().seconds
    figures = [asyncio.run(_case(*case, seconds)) for case in CASES]
    print(json.dumps({"benchmark": "scheduling", "seconds_per_call": seconds, "cases": figures}))


async def _case(documents: int, chunks: int, slots: int, seconds: float) -> dict[str, Any]:
    llm = ScriptedLLM(_answer, seconds=seconds)
    options = IndexOptions(max_concurrent_calls=slots)
    texts = [_document(number, chunks) for number in range(documents)]
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncLightRAG(folder, llm=llm, options=options) as rag:
            await rag.insert("Late imports are paid for here.")
            calls = len(llm.requests)
            started = time.perf_counter()
            await rag.insert(texts)
            wall = time.perf_counter() - started
    calls = len(llm.requests) - calls
    ideal = math.ceil(calls / slots) * seconds
    return {
        "documents": documents,
        "chunks_each": chunks,
        "slots": slots,
        "calls": calls,
        "most_in_flight": llm.most_in_flight,
        "wall_per_ideal": round(wall / ideal, 3),
    }


def _document(number: int, chunks: int) -> Document:
    pages = tuple(
        f"Note {number}-{page}. " + f"word{number}x{page} " * 80 for page in range(chunks)
    )
    return Document("", id=f"document-{number}", pages=pages)


def _answer(request: Request) -> str:
    if len(request.messages) > 2:
        return '{"type":"done","entities":0,"relationships":0}'
    name = request.question.split(".")[0].replace("Text:", "").strip()
    return json.dumps(
        {"type": "entity", "name": name, "entity_type": "concept", "description": "A note."}
    )


if __name__ == "__main__":
    main()
