"""Synchronize an index with a folder: python examples/sync_folder.py FOLDER [INDEX]

Run it again, from cron for example: edited files replace their earlier text, documents of deleted
files are deleted, and unchanged files cost nothing.
"""

import sys
from pathlib import Path

from lightrag_jsonl import LightRAG

folder, index, *_ = [*map(Path, sys.argv[1:]), Path("kb")]
with LightRAG(index) as rag:
    report = rag.insert(folder, sync=True)
    print("inserted:", *report.documents)
    print("unchanged:", *report.unchanged)
    print("deleted:", *report.deleted)
    for file in report.skipped:
        print("skipped:", file.path, file.reason)
    for failure in report.failures:
        print("failed:", failure.document_id, failure.reason)
