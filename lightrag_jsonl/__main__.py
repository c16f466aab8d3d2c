"""The command line, as `lightrag-jsonl` and as `python -m lightrag_jsonl`."""

import gc
import sys

from lightrag_jsonl import __version__


def run_program() -> None:
    """Answer --version at once; everything else needs the commands."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"lightrag-jsonl {__version__}\n")
        return
    gc.disable()  # what a start loads stays: to look for garbage in it takes a tenth of the time
    from lightrag_jsonl.cli import main

    gc.freeze()
    gc.enable()
    main()


if __name__ == "__main__":
    run_program()
