"""`python -m lightrag_jsonl` is the command line."""

from lightrag_jsonl.cli import main

if __name__ == "__main__":
    main()
