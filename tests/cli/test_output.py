"""Tables, cut lines and JSON: readable with wide characters, harmless for a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from lightrag_jsonl.cli import output


@given(st.text(st.characters(codec="utf-8")), st.integers(1, 40))
def test_text_keeps_to_its_limit_and_cannot_steer_a_terminal(text: str, limit: int) -> None:
    """A cut line is one line and never wider than it may be. No control character but line ends and
    tabs is left; the rest stays as it was.
    """
    cut, shown = output.one_line(text, limit), output.printable("\x1b[2J" + text)

    assert "\n" not in cut and output.width(cut) <= limit
    assert "\x1b" not in shown and "\x9b" not in shown and shown.startswith("\ufffd[2J")
