"""A real browser for the tests of the server's pages, and the packages that the page is built from."""

import contextlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium", reason="needs the package selenium")

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from lightrag_jsonl.server.app import STATIC
from tests.processes import installed_browser
from tests.server.running import SECONDS, Running

QUIET = (
    "--ignore-scripts",
    "--prefer-offline",
    "--no-audit",
    "--no-fund",
)  # no more requests than needed
OFFLINE = re.compile("ENOTFOUND|ECONNREFUSED|ECONNRESET|EAI_AGAIN|ETIMEDOUT|ENETUNREACH")
# The elements of a kind with a text, in one request: drivers take several for each element.
VISIBLE = """
const [selector, text, done] = arguments;
const box = (element) => element.closest("select") ?? element;
const visible = () => [...document.querySelectorAll(selector)].filter((element) =>
  box(element).checkVisibility({opacityProperty: true, visibilityProperty: true}) &&
  [...box(element).getClientRects()].some((place) => place.width && place.height) &&
  (element.innerText ?? element.textContent).includes(text));
"""
ALL = f"{VISIBLE} return visible();"
# Waiting is the page's work: a request for each look costs three processes ten times as much.
FIRST = f"{VISIBLE} (function look() {{ visible()[0] ? done(visible()[0]) : setTimeout(look, 20); }})();"
NONE = f"{VISIBLE} (function look() {{ visible()[0] ? setTimeout(look, 20) : done(true); }})();"


class Page:
    """What a user sees and does."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, server: Running, view: str = "ask") -> None:
        """Open a view as a new visitor would."""
        self.driver.get("about:blank")
        self.driver.get(f"{server.url}/#{view}")

    def all(self, selector: str) -> list[WebElement]:
        """What there is of a kind at the moment, and can be seen."""
        elements: list[WebElement] = self.driver.execute_script(ALL, selector, "")
        return elements

    def wait(self, selector: str, text: str = "") -> WebElement:
        """The first visible element of a kind with this text, once it is there."""
        element: WebElement = self._waited(FIRST, selector, text)
        return element

    def _waited(self, script: str, selector: str, text: str) -> Any:
        """The value of a script that waits, started again where another page has come meanwhile."""

        def look(driver: webdriver.Chrome) -> Any:
            return driver.execute_async_script(script, selector, text)

        waiting = WebDriverWait(self.driver, SECONDS, 0.05, [Exception])
        return waiting.until(look, f"{selector} {text!r}")

    def click(self, selector: str, text: str, button: str) -> None:
        """Click a button inside an element, which the page may replace at any time."""

        def press(driver: webdriver.Chrome) -> bool:
            self.wait(selector, text).find_element(By.CSS_SELECTOR, button).click()
            return True

        ignored = [StaleElementReferenceException]
        WebDriverWait(self.driver, SECONDS, 0.05, ignored).until(press, f"{selector} {button}")

    def unfold(self, selector: str) -> None:
        """Open a part that is folded, by the keyboard: what loads above may move it away from a pointer."""
        self.wait(f"{selector} > summary").send_keys(Keys.ENTER)
        self.wait(f"{selector}[open]")

    def gone(self, selector: str) -> None:
        """Wait until no element of a kind can be seen."""
        self._waited(NONE, selector, "")

    def press(self, *keys: str) -> None:
        """Press keys, where the focus is."""
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def ask(self, question: str) -> None:
        """Ask by the keyboard."""
        self.wait("#index option")
        self.wait("textarea").send_keys(question, Keys.ENTER)

    def run(self, script: str) -> Any:
        """The value of a script's expression."""
        return self.driver.execute_script(f"return {script}")

    def problems(self) -> list[str]:
        """Errors and refusals on the console, such as those of the content security policy."""
        log = self.driver.get_log("browser")
        messages = [line["message"] for line in log if line["level"] == "SEVERE"]
        # A test ends its server while the page may still ask: that is no fault of the page.
        return [message for message in messages if "ERR_CONNECTION_REFUSED" not in message]


@contextlib.contextmanager
def started_browser() -> Iterator[webdriver.Chrome]:
    """A browser that shows no windows; the test is skipped where none is installed."""
    browser, driver = installed_browser(), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no browser: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    arguments = ["headless", "no-sandbox", "disable-dev-shm-usage", "lang=en-US"]
    arguments += ["use-angle=swiftshader", "enable-unsafe-swiftshader", "window-size=1400,900"]
    # Pages are composed without WebGL, in one process for all servers: half of the work.
    arguments += ["disable-gpu-compositing", "renderer-process-limit=1"]
    arguments += ["disable-site-isolation-trials"]
    for argument in arguments:
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options, Service(driver)) as chrome:
        chrome.set_script_timeout(SECONDS)
        yield chrome


def install_packages(folder: Path) -> Path:
    """A copy of the page's sources in `folder`, with the packages of its lockfile; npm may skip the test."""
    sources = STATIC.with_name("page")
    if shutil.which("npm") is None or not sources.is_dir():
        pytest.skip("needs node, npm and the page's sources")
    page = folder / "page"
    shutil.copytree(sources, page, ignore=shutil.ignore_patterns("node_modules"))
    run_npm(page, "ci", *QUIET)
    return page


def run_npm(page: Path, *command: str) -> None:
    """Run npm in the page's folder."""
    npm = shutil.which("npm")
    assert npm is not None
    done = subprocess.run([npm, *command], cwd=page, capture_output=True, encoding="utf-8")
    if done.returncode and OFFLINE.search(done.stderr):
        pytest.skip("npm reaches no registry")
    assert done.returncode == 0, done.stderr
