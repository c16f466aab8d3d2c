"""Makes the pictures of the README from the samples: python docs/pictures/make.py

Needs Chromium (apt-get install chromium) and Pillow (extra `files`). Works without a model: the graph is made of the
records that come with the samples, which a model has read, and the answer is written here, with one false statement, to
show its mark. Each picture holds a digest of what it shows, by which a test finds out whether it is outdated.
"""

import json
import re
import shutil
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from lightrag_jsonl import LightRAG
from lightrag_jsonl.cli.samples import sample_documents, sample_questions, sample_records
from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.testing import Request, ScriptedLLM

HERE = Path(__file__).parent
SIZES = {
    "answer": (1100, 640),
    "graph": (1150, 940),
}  # windows, in pixels of CSS, drawn at twice that
SCALE = 2
FRAME = 120  # pixels of CSS below the window, which headless Chromium takes for a frame and leaves blank
DIGEST = "shows"  # of what the page shows, in the PNG
QUESTION: dict[Language, int] = {"en": 4, "zh": 5}
# The documents in brackets become the numbers of their passages. The last sentence is false: 1924 for 1923, thirteen
# books for twelve.
ANSWER: dict[Language, str] = {
    "en": "Dirk Coster helped Lise Meitner across the border to the Netherlands [Lise Meitner]. "
    "Coster and George de Hevesy had discovered hafnium in 1924 [George de Hevesy].",
    "zh": "是高昌王麴文泰，他与玄奘结为兄弟，为他准备了旅费[玄奘]。"
    "玄奘口述的《大唐西域记》共十三卷，完成于公元646年[《大唐西域记》]。",
}
OPEN_MARKED = '<script>document.querySelector("#answer a.cite.marked").click()</script>'
# Few articles, since a README shows the picture so small that the words of more are not readable.
GRAPH_ARTICLES: dict[Language, tuple[str, ...]] = {
    "en": ("en/george-de-hevesy", "en/lise-meitner", "en/niels-bohr-institute"),
    "zh": ("zh/da-tang-xiyu-ji", "zh/da-yan-ta", "zh/xuan-zang"),
}


def main() -> None:
    """Photograph an answer with a marked claim and the page of a graph, in each language."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no browser: apt-get install chromium")
    for language in QUESTION:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            write_answer(folder, language)
            write_graph(folder, language)
            for page in SIZES:
                photograph(browser, folder / f"{page}.html", HERE / f"{page}-{language}.png")


def write_answer(folder: Path, language: Language) -> None:
    """Write the page of an answer about all samples with their records, as `answer.html`, the marked claim open."""
    records = sample_records(language)
    llm = ScriptedLLM(lambda request: numbered(ANSWER[language], request))
    with LightRAG(
        folder / "answer", language=language, llm="none", models={"answer": llm}, embedder="hash"
    ) as rag:
        for document in sample_documents(language):
            rag.insert_records(document, records[document.id])
        question = sample_questions(language)[QUESTION[language]]
        answer = rag.query(question, mode="local", explain=True)
        assert answer.trace_id is not None
        page = re.sub(
            "<meta[^>]*Content-Security-Policy[^>]*>", "", rag.traces.page(answer.trace_id)
        )
    (folder / "answer.html").write_text(page + OPEN_MARKED, "utf-8")


def numbered(answer: str, request: Request) -> str:
    """The answer with the numbers that its documents have in the request."""
    prompt = "\n".join(message.content for message in request.messages)

    def number(title: re.Match[str]) -> str:
        passage = re.search(rf"\[(\d+)\] {re.escape(title[1])}", prompt)
        assert passage is not None, f"not in the prompt: {title[1]}"
        return f"[{passage[1]}]"

    return re.sub(r"\[([^\]]+)\]", number, answer)


def write_graph(folder: Path, language: Language) -> None:
    """Write the graph of some samples with their records, as `graph.html`."""
    records = sample_records(language)
    with LightRAG(folder / "graph", language=language, llm="none", embedder="hash") as rag:
        for document in sample_documents(language):
            if document.id in GRAPH_ARTICLES[language]:
                rag.insert_records(document, records[document.id])
        rag.admin.export(folder / "graph.html")


def page_digest(page: Path) -> str:
    """A digest of the question, the answer, names and relations that a page shows, wherever they are drawn."""
    pattern = r'<title>(.*?)</title>|<section id="answer">(.*?)</section>'
    parts = re.findall(pattern, page.read_text("utf-8"), re.DOTALL)
    return sha256(json.dumps(sorted(parts)).encode()).hexdigest()[:16]


def photograph(browser: str, page: Path, picture: Path) -> None:
    """Write the first screen of a page as a PNG with 128 colours."""
    shot = page.with_suffix(".png")
    width, height = SIZES[page.stem]
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--hide-scrollbars",
        f"--force-device-scale-factor={SCALE}",
        f"--screenshot={shot}",
        f"--window-size={width},{height + FRAME}",
        "--virtual-time-budget=20000",
        page.as_uri(),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    notes = PngInfo()
    notes.add_text(DIGEST, page_digest(page))
    image = Image.open(shot).convert("RGB").crop((0, 0, SCALE * width, SCALE * height))
    image.quantize(128).save(picture, optimize=True, pnginfo=notes)


if __name__ == "__main__":
    main()
