"""Makes the pictures of the README from the samples: python docs/pictures/make.py

Needs Chromium (apt-get install chromium) and Pillow (extra `files`). Works without a model.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

from lightrag_jsonl import LightRAG
from lightrag_jsonl.cli.samples import sample_documents, sample_questions
from lightrag_jsonl.core.languages import Language

HERE = Path(__file__).parent
SIZES = {
    "trace": (640, 580),
    "graph": (1280, 1200),
}  # windows, in pixels of CSS, drawn at twice that
MIDDLE = (640, 620, 1920, 1780)  # of the graph: a README shows it so small that less is readable
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
            for page in SIZES:
                photograph(browser, folder / f"{page}.html", HERE / f"{page}-{language}.png")


def photograph(browser: str, page: Path, picture: Path) -> None:
    """Write the first screen of a page, or the middle of a graph, as a PNG with 128 colours."""
    shot = page.with_suffix(".png")
    width, height = SIZES[page.stem]
    command = [
        *(
            browser,
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            "--force-device-scale-factor=2",
            f"--screenshot={shot}",
        ),
        *(f"--window-size={width},{height}", "--virtual-time-budget=20000", page.as_uri()),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    image = Image.open(shot).convert("RGB")
    if page.stem == "graph":
        image = image.crop(MIDDLE)
    image.quantize(128).save(picture, optimize=True)


if __name__ == "__main__":
    main()
