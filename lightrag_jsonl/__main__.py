"""python -m lightrag_jsonl: the command line, also where its script is not on the path."""

from lightrag_jsonl.cli import main

if __name__ == "__main__":
    main(prog_name="lightrag-jsonl")
