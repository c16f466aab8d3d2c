"""The pictures of the READMEs show what the program makes today."""

import importlib.util
from pathlib import Path

import pytest

from lightrag_jsonl.core.languages import Language
from tests.conftest import CHECKOUT

PICTURES = CHECKOUT / "docs" / "pictures"


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_picture_of_the_graph_is_current(language: Language, tmp_path: Path) -> None:
    """Names, types, relations and descriptions of the picture are those of the samples' records; if not:
    python docs/pictures/make.py
    """
    images = pytest.importorskip("PIL.Image", reason="needs the extra files")
    if not PICTURES.is_dir():
        pytest.skip("needs the sources")
    spec = importlib.util.spec_from_file_location("make_pictures", PICTURES / "make.py")
    assert spec is not None and spec.loader is not None
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)

    make.write_graph(tmp_path, language)
    picture = images.open(PICTURES / f"graph-{language}.png")

    assert picture.info[make.DIGEST] == make.page_digest(tmp_path / "graph.html")
