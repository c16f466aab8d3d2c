"""The names that the HippoRAG-2-like reference starts from."""

from __future__ import annotations

import pytest

from benchmarks.names import names_in


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What is the most popular hotel in Gisvi's city of birth?", ("Gisvi",)),
        (
            "In which year did the Duke of York and Émile Zola meet?",
            ("Duke of York and Émile Zola",),
        ),
        ("When did Lil Hardin Armstrong move to the UK?", ("Lil Hardin Armstrong", "UK")),
        ("《红楼梦》和「水浒传」的作者是谁？", ("红楼梦", "水浒传")),
        ("“the Grand Model” of 1669", ("the Grand Model", "Grand Model", "1669")),
        ("Who was it?", ()),
        ("", ()),
    ],
)
def test_names_as_written(question: str, names: tuple[str, ...]) -> None:
    """Capitalized runs with their small words, numbers and quoted titles; no question words."""
    assert names_in(question) == names
