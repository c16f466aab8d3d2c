"""Numbers the citations of an answer 1, 2, 3 in the order of their first use, as it is written."""

import re

from lightrag_jsonl.core.text import split_citations

_RANGE = re.compile(r"(\d+)(?:\s*[-‐-―−~～－]\s*(\d+))?")
_LONGEST_RANGE = 100  # longer ranges count as their two ends: so many items are never shown
_LONGEST_MARKER = 400  # characters; a longer one is not waited for
_UNFINISHED = re.compile(  # the beginning of a marker, or a whole one that may be a link's text
    r"`*\\?[\[［【][\s\d,，、;；‐-―−~～－-]*(?:[\]］】](?:\((?:#|h(?:t(?:t(?:p(?:s?:?)?)?)?)?)?)?)?\Z"
    r"|\\\Z|`+\Z"
)


class CitationNumbering:
    """Changes the numbers that items have in the prompt into those that readers see.

    `shown` is how many items the prompt has. `numbers` maps the number in the prompt of each cited
    item to the one that readers see, in ascending order. A number that was not shown stays as it
    is: it is higher than all others.
    """

    def __init__(self, shown: int) -> None:
        self._shown = shown
        self._held = self._code = ""
        self.numbers: dict[int, int] = {}

    def feed(self, piece: str, *, last: bool = False) -> str:
        """The next piece of the answer, renumbered; what may become a marker is held back, unless
        this is the `last` piece.
        """
        text = self._held + piece
        unfinished = _UNFINISHED.search(text, max(len(text) - _LONGEST_MARKER, 0))
        end = unfinished.start() if unfinished and not last else len(text)
        self._held = text[end:]
        pieces, self._code = split_citations(text[:end], self._code)
        return "".join([one if isinstance(one, str) else self._marker(one) for one in pieces])

    def _marker(self, found: re.Match[str]) -> str:
        numbers = marked_numbers(found)
        if not any(0 < number <= self._shown for number in numbers):
            return found[0]
        new = []
        for number in numbers:
            if 0 < number <= self._shown:
                number = self.numbers.setdefault(number, len(self.numbers) + 1)
            new.append(number)
        return f"{found[0][0]}{', '.join(map(str, sorted(new)))}{found[0][-1]}"


def marked_numbers(marker: re.Match[str]) -> tuple[int, ...]:
    """The numbers in a `CITATION_MARKER`: [1], [2, 5], [3-6]."""
    numbers: dict[int, None] = {}
    for first, last in _RANGE.findall(marker["numbers"]):
        start, end = int(first), int(last or first)
        within = 0 <= end - start < _LONGEST_RANGE
        numbers.update(dict.fromkeys(range(start, end + 1) if within else (start, end)))
    return tuple(numbers)
