"""Index and ask in Celery workers: celery --workdir examples -A celery_tasks worker

Needs `pip install 'celery[redis]'` and a broker, such as Redis. From another program:

    from celery_tasks import ask, insert
    insert.delay("report.md").get()
    print(ask.delay("Who wrote the report?").get())
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

from celery import Celery

from lightrag_jsonl import LightRAG, LockedError

BROKER = os.environ.get("BROKER", "redis://localhost:6379/0")
RESULTS = os.environ.get("RESULTS", BROKER)

app = Celery("celery_tasks", broker=BROKER, backend=RESULTS)
app.conf.task_acks_late = (
    True  # a killed worker's task is done again; texts read before cost nothing
)


@cache
def index() -> LightRAG:
    """The index, opened by the first task of each worker process: it cannot be taken over a fork."""
    return LightRAG("kb-celery")


@app.task(autoretry_for=(LockedError,), retry_backoff=True, max_retries=10)
def insert(path: str) -> dict[str, Any]:
    """Read a file or a folder; tried again later while another process writes."""
    report = index().insert(Path(path))
    failures = {failure.document_id: failure.reason for failure in report.failures}
    return {"documents": list(report.documents), "failures": failures}


@app.task
def ask(question: str) -> dict[str, Any]:
    """The answer to a question, with the sentences it comes from; sees what any process has written."""
    answer = index().query(question)
    sources = [
        f"{citation.document}, page {citation.page}: {citation.text}"
        for citation in answer.citations
    ]
    return {"answer": answer.text, "sources": sources}
