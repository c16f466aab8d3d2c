"""Makes the pictures of the README from the samples: python docs/pictures/make.py

Needs Chromium (apt-get install chromium) and Pillow (extra `files`). Works without a model.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

from lightrag_jsonl import LightRAG
from lightrag_jsonl.cli.samples import sample_documents, sample_questions
from lightrag_jsonl.core.types import Language

HERE = Path(__file__).parent
SIZE = (1280, 1160)
QUESTION: dict[Language, int] = {"en": 0, "zh": 3}


def main() -> None:
    """Index the samples of each language, ask one question, and photograph both pages."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no browser: apt-get install chromium")
    for language, number in QUESTION.items():
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            with LightRAG(folder / "kb", language=language) as rag:
                rag.insert(sample_documents(language))
                question = sample_questions(language)[number]
                answer = rag.query(question, mode="local", explain=True)
                assert answer.trace_id is not None
                (folder / "trace.html").write_text(rag.traces.page(answer.trace_id), "utf-8")
                rag.admin.export(folder / "graph.html")
            for page in ("trace", "graph"):
                photograph(browser, folder / f"{page}.html", HERE / f"{page}-{language}.png")


def photograph(browser: str, page: Path, picture: Path) -> None:
    """Write the first screen of a page as a PNG with a palette of 128 colours."""
    shot = page.with_suffix(".png")
    width, height = SIZE
    command = [
        *(browser, "--headless", "--no-sandbox", "--hide-scrollbars", f"--screenshot={shot}"),
        *(f"--window-size={width},{height}", "--virtual-time-budget=20000", page.as_uri()),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    Image.open(shot).convert("RGB").quantize(128).save(picture, optimize=True)


if __name__ == "__main__":
    main()
