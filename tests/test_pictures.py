"""The pictures of the READMEs show what the program makes today."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import CHECKOUT
from tests.kit import Language

PICTURES = CHECKOUT / "docs" / "pictures"


def script(name: str) -> ModuleType:
    """A script that makes pictures."""
    if not PICTURES.is_dir():
        pytest.skip("needs the sources")
    spec = importlib.util.spec_from_file_location(f"{name}_pictures", PICTURES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_pictures_of_pages_are_current(language: Language, tmp_path: Path) -> None:
    """The answer with its marked claim, names, types and relations are those of the program today; if not:
    python docs/pictures/make.py
    """
    images = pytest.importorskip("PIL.Image", reason="needs the extra files")
    make = script("make")

    make.write_graph(tmp_path, language)
    make.write_answer(tmp_path, language)

    for page in make.SIZES:
        picture = images.open(PICTURES / f"{page}-{language}.png")
        assert picture.info[make.DIGEST] == make.page_digest(tmp_path / f"{page}.html")
