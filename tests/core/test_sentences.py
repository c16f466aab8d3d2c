"""What a sentence is where lines are long."""

from lightrag_jsonl.core.sentences import sentence_spans


def test_a_long_line_goes_on_in_a_line_of_another_length() -> None:
    """Lines of a page in columns or of justified text have all lengths; a small letter goes on with the
    sentence, and a capital letter after a long line begins a paragraph.
    """
    first = (
        "The survey of the estuary was led by Ines Calder, who had mapped the two northern channels "
        * 2
    )
    text = f"{first}with Sonde, an open-source\ntool for depths. {'It was slow. ' * 3}"
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    assert sentences[0].endswith("an open-source\ntool for depths.")
    parts = f"{first * 2}with Sonde\nTools for depths were rare."
    assert len(sentence_spans(parts)) == 2
