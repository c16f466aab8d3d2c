"""What asking a second time brings, and what evidence foretells: python -m benchmarks.gleaning

The recorded answers of gpt-4o and gpt-4o-mini about the 42 chunks of A Christmas Carol: the first answer to
each chunk, and the one to the request for missed records. A sentence is evidence of something missed if it has
two names of the first answer that no relation joins, or a name that no entity has. Prints one JSON object: the
share of the text that is evidence, what the second answers brought, and how much of that has its names in
the evidence, or in the evidence with the sentences beside it. A model that is asked about the evidence alone could bring no more.
"""

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from benchmarks.datasets import data_folder
from lightrag_jsonl.rules import text_names
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.sentences import sentence_spans
from tests.replays.carol import answers, chunks

Pair = frozenset[str]


@dataclass(slots=True)
class Figures:
    """Numbers of chunks, characters, and new names and pairs of names."""

    chunks: int = 0
    chunks_with_evidence: int = 0
    characters: int = 0
    characters_of_evidence: int = 0
    characters_with_neighbors: int = 0
    new_names: int = 0
    new_names_in_text: int = 0
    new_names_in_evidence: int = 0
    new_names_with_neighbors: int = 0
    new_pairs: int = 0
    new_pairs_of_known_names: int = 0
    new_pairs_in_evidence: int = 0
    new_pairs_with_neighbors: int = 0


def main() -> None:
    """Measure each run and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", nargs="+", default=("gpt-4o", "gpt-4o-mini"))
    given = parser.parse_args()
    runs = {run: asdict(measured(run)) for run in given.runs}
    print(json.dumps({"benchmark": "gleaning", "runs": runs}, indent=2))


def measured(run: str) -> Figures:
    """The figures of a recorded run."""
    figures = Figures()
    texts = chunks(data_folder())
    for text, recorded in zip(texts, answers(data_folder(), run), strict=False):
        _add(figures, text, recorded)
    return figures


def _add(figures: Figures, text: str, recorded: Sequence[str]) -> None:
    first = _records(recorded[0])
    names = _names(first)
    pairs = _pairs(first)
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    places = _places_of_evidence(text, sentences, names, pairs)
    evidence = "\n".join([sentences[place] for place in sorted(places)])
    places_beside = {place + step for place in places for step in (-1, 0, 1)}
    with_neighbors = "\n".join(
        [sentence for place, sentence in enumerate(sentences) if place in places_beside]
    )
    second = [record for answer in recorded[1:] for record in _records(answer)]
    new_names = {key: name for key, name in _names(second).items() if key not in names}
    new_pairs = _pairs(second) - pairs
    all_names = names | new_names
    figures.chunks += 1
    figures.chunks_with_evidence += bool(evidence)
    figures.characters += len(text)
    figures.characters_of_evidence += len(evidence)
    figures.characters_with_neighbors += len(with_neighbors)
    figures.new_names += len(new_names)
    spelled_names = [[name] for name in new_names.values()]
    figures.new_names_in_text += _count_in(text, spelled_names)
    figures.new_names_in_evidence += _count_in(evidence, spelled_names)
    figures.new_names_with_neighbors += _count_in(with_neighbors, spelled_names)
    figures.new_pairs += len(new_pairs)
    figures.new_pairs_of_known_names += sum(pair <= names.keys() for pair in new_pairs)
    spelled_pairs = [[all_names.get(key, key) for key in pair] for pair in new_pairs]
    figures.new_pairs_in_evidence += _count_in(evidence, spelled_pairs)
    figures.new_pairs_with_neighbors += _count_in(with_neighbors, spelled_pairs)


def _records(answer: str) -> list[dict[str, Any]]:
    """The whole records of an answer."""
    records: list[dict[str, Any]] = []
    for line in answer.split("\n"):
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    return records


def _names(records: Iterable[dict[str, Any]]) -> dict[str, str]:
    """The names of entities by their keys."""
    return {name_key(record["name"]): record["name"] for record in records if record.get("name")}


def _pairs(records: Iterable[dict[str, Any]]) -> set[Pair]:
    """The keys of the names that relations join."""
    return {
        frozenset((name_key(record["source"]), name_key(record["target"])))
        for record in records
        if record.get("source") and record.get("target")
    }


def _places_of_evidence(
    text: str, sentences: Sequence[str], names: dict[str, str], pairs: set[Pair]
) -> set[int]:
    """The positions of the sentences that may have something that the records lack."""
    unknown = [
        name
        for name in text_names(text, language="en")
        if not any(name_key(name) in key or key in name_key(name) for key in names)
    ]
    places: set[int] = set()
    for place, sentence in enumerate(sentences):
        named = [key for key, name in names.items() if name.casefold() in sentence.casefold()]
        is_unjoined = any(frozenset(pair) not in pairs for pair in combinations(named, 2))
        if is_unjoined or any(name in sentence for name in unknown):
            places.add(place)
    return places


def _count_in(text: str, groups_of_names: Iterable[Sequence[str]]) -> int:
    """The number of groups whose names all stand in a text."""
    folded = text.casefold()
    return sum(all(name.casefold() in folded for name in names) for names in groups_of_names)


if __name__ == "__main__":
    main()
