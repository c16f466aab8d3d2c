"""The command line, as `lightrag-jsonl` and as `python -m lightrag_jsonl`."""

import sys

from lightrag_jsonl import __version__


def run_program() -> None:
    """Answer --version at once; everything else needs the commands."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"lightrag-jsonl {__version__}\n")
        return
    from lightrag_jsonl.cli import main

    main()


if __name__ == "__main__":
    run_program()
