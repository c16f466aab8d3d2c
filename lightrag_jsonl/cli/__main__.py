"""`python -m lightrag_jsonl.cli`."""

from lightrag_jsonl.cli import main

main(prog_name="lightrag-jsonl")
