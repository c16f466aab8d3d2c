"""The English tagger: TextBlob's own, without what TextBlob imports besides."""

from __future__ import annotations

from lightrag_jsonl.adapters.offline.english_tokens import the_tagger
from tests.processes import run_python

SENTENCE = (
    "The Cratchits quickly unwrapped 12 strangely-coloured gooseberries , and Scrooge 's nephew "
    "laughed at the flibbertigibbet in Peckham-on-Sea !"
)


def test_it_tags_as_textblob_does() -> None:
    """Known words, unknown ones, names and numbers get the tags of `textblob.en`."""
    from textblob.en import parser

    tagger, words = the_tagger(), SENTENCE.split()

    assert list(tagger.find_tags(words)) == parser.find_tags(words)
    assert dict(tagger.lexicon) == dict(parser.lexicon)


def test_it_starts_without_a_language_toolkit() -> None:
    """Reading English loads neither NLTK nor scikit-learn, which takes seconds; it leaves no file open."""
    code = (
        "import sys; from lightrag_jsonl.adapters.offline.english_tokens import the_tagger\n"
        "the_tagger().find_tags(['Hello'])\n"
        "print([name for name in ('nltk', 'sklearn', 'scipy') if name in sys.modules])"
    )
    done = run_python(code, PYTHONDEVMODE="1")

    assert (done.stdout.strip(), done.stderr) == ("[]", "")
