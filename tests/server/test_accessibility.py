"""axe-core finds nothing on any view of the page, nor on the pages that are exported."""

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("uvicorn", reason="needs the extra: pip install '.[server]'")
pytest.importorskip("selenium", reason="needs the package selenium")

from selenium.webdriver.common.by import By

from lightrag_jsonl import Document, LightRAG
from tests.kit import Record, entity, relation
from tests.server.browsing import Page, install_packages
from tests.server.running import PacedLLM, Running, serving, serving_model
from tests.server.test_page import insert_heads, insert_namesakes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # a browser

WIDTHS = (1440, 390)
THEMES = ("light", "dark")
HEIGHT = 900
TRUE = "Ida Holm built the lighthouse of Norby in 1871"
FALSE = "Ida Holm built the lighthouse of Norby in 1781"
HEADINGS = {
    "en": {
        "overview": "Overview",
        "history": "History",
        "conflicts": "Contradictions",
        "namesakes": "Namesakes",
        "edit": "Edit",
    },
    "zh": {
        "overview": "全貌",
        "history": "沿革",
        "conflicts": "矛盾",
        "namesakes": "同名",
        "edit": "编辑",
    },
}
# What is against the rules, with the elements and why. A drawing on a canvas has a list beside it.
FINDINGS = """
const done = arguments[arguments.length - 1];
axe.run(document, {exclude: [["canvas"]]}).then(({violations}) => done(violations.flatMap(({id, nodes}) =>
  nodes.map(({target, failureSummary}) => [id, String(target), failureSummary]))));
"""


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, in the version of the page's lockfile."""
    page = install_packages(tmp_path_factory.mktemp("packages"))
    return (page / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture
def check(page: Page, axe: str) -> Iterator[Callable[[str], None]]:
    """Checks what is shown, at both widths and in both themes."""
    send = page.driver.execute_cdp_cmd

    def check(view: str) -> None:
        for width in WIDTHS:
            shape = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
            send("Emulation.setDeviceMetricsOverride", shape)
            for theme in THEMES:
                features = [{"name": "prefers-color-scheme", "value": theme}]
                send("Emulation.setEmulatedMedia", {"features": features})
                page.driver.execute_script(axe)
                findings = page.driver.execute_async_script(FINDINGS)
                assert findings == [], f"{view}, {width} pixels, {theme}"
            is_wider = "document.documentElement.scrollWidth > innerWidth"
            assert not page.run(is_wider), f"{view} is wider than {width} pixels"

    yield check
    send("Emulation.clearDeviceMetricsOverride", {})
    send("Emulation.setEmulatedMedia", {"features": []})


def fill(folder: Path) -> None:
    """An index with types, dates, contradictions and namesakes."""
    insert_heads(folder)
    insert_namesakes(folder)
    records: list[Record] = [
        entity("Ida Holm", "An engineer of lighthouses. She worked until 1890.", "person"),
        entity("Norby", "A village on the coast.", "place"),
        relation("Ida Holm", "Norby", f"{TRUE}.", valid_from="1871"),
    ]
    with LightRAG(folder, embedder="hash") as rag:
        rag.insert_records(Document(f"{TRUE}.", id="own", title="Own", date="1871"), records)


@pytest.fixture(params=["en", "zh"])
def words(request: pytest.FixtureRequest) -> dict[str, str]:
    """A language of the page, and its words for lists and buttons."""
    return {"language": request.param} | HEADINGS[request.param]


def set_language(page: Page, server: Running, language: str) -> None:
    """Set the language of the page, as its button does."""
    page.open(server)
    page.driver.execute_script("localStorage.setItem('language', arguments[0])", language)


def show(page: Page, server: Running, view: str, selector: str, text: str = "") -> None:
    """Open a view, and wait for what it shows."""
    page.open(server, view)
    page.wait("#index option")
    page.wait(selector, text)


def test_a_page_with_a_fault_does_not_pass(
    tmp_path: Path, page: Page, check: Callable[[str], None]
) -> None:
    """A button without a name is found."""
    (tmp_path / "page.html").write_text(
        "<!doctype html><html lang=en><title>A page</title><main><h1>A page</h1><button></button></main>"
    )
    page.driver.get((tmp_path / "page.html").as_uri())
    with pytest.raises(AssertionError, match="button-name"):
        check("fault")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_empty_index(
    tmp_path: Path, page: Page, check: Callable[[str], None], language: str
) -> None:
    """The first screen, the empty graph and table, and the dialogs of a text and of a model."""
    LightRAG(tmp_path / "kb", language=language).close()
    with serving(tmp_path / "kb") as server:
        set_language(page, server, language)
        show(page, server, "ask", "#ask h1")
        check("first file")
        page.wait("#ask .drop button:last-of-type").click()
        check("pasted text")
        page.driver.find_element(By.CSS_SELECTOR, "#edit button[type=button]").click()
        page.wait("#ask .link").click()
        check("model")
        page.driver.find_element(By.CSS_SELECTOR, "#edit button[type=button]:last-of-type").click()
        for view in ("graph", "graph/conflicts", "graph/entity/Ida"):
            show(page, server, view, "#graph button.main")
            assert not page.all("#graph canvas, #graph input")
        check("empty graph")
        show(page, server, "documents", "#documents .drop")
        check("empty table")


def test_a_filled_index(
    tmp_path: Path, page: Page, check: Callable[[str], None], words: dict[str, str]
) -> None:
    """The beginning, the graph with all that stands beside it, the table, a document and the dialogs of changes."""
    fill(tmp_path / "kb")
    name = quote("Ida Holm")
    with serving(tmp_path / "kb") as server:
        set_language(page, server, words["language"])
        show(page, server, "ask", "#ask .questions button")
        check("beginning")
        show(page, server, "graph", "#graph aside h2", words["overview"])
        page.wait("#graph .legend .chip")
        check("overview")
        show(page, server, f"graph/entity/{name}", "#graph aside .timeline")
        page.wait("#graph aside .links a")
        check("entity")
        page.wait("#graph aside button.link", words["edit"]).click()
        check("edit")
        page.wait("#edit button[type=button]").click()
        for place in ("history", "conflicts", "namesakes"):
            address = f"{place}/{name}" if place == "history" else place
            show(page, server, f"graph/{address}", "#graph aside h2", words[place])
            page.wait("#graph aside .line")
            check(place)
        show(page, server, "documents", "#documents tbody a", "Own")
        page.wait("#documents tbody input").click()
        check("table")
        show(page, server, "documents/own", "#documents .whole")
        check("document")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_answer_and_the_exports(
    tmp_path: Path, page: Page, check: Callable[[str], None], language: str
) -> None:
    """An answer with a marked claim, its passage, the page of its trace, and the page of a graph."""
    LightRAG(tmp_path / "kb", language=language).close()
    fill(tmp_path / "kb")
    llm = PacedLLM([f"{TRUE} [1].\n\n- {FALSE} [1].\n- The sea is cold."])
    llm.turns.release(9)
    with serving_model(tmp_path / "kb", llm) as server:
        set_language(page, server, language)
        show(page, server, "ask", "textarea")
        page.ask("Who built the lighthouse of Norby?")
        page.wait("#ask .foot .claim")
        check("answer")
        page.wait(".answer button.missing").click()
        page.wait("#passage mark")
        check("passage")
        trace = page.run("document.querySelector('#ask .foot a[target]').href")
        (tmp_path / "trace.html").write_text(server.client.get(trace).text, encoding="utf-8")
    with LightRAG(tmp_path / "kb") as rag:
        rag.admin.export(tmp_path / "graph.html")
    for name in ("trace", "graph"):
        page.driver.get((tmp_path / f"{name}.html").as_uri())
        page.wait("h1")
        check(name)
