"""Numbers the citations of an answer 1, 2, 3 in the order of their first use, piece by piece."""

import re

from lightrag_jsonl.core.citation_markers import CitationMarker, split_citations

_LONGEST_MARKER = 400  # characters; a longer one is not waited for
_UNFINISHED = re.compile(  # the beginning of a marker, or a whole one that may be a link's text
    r"`*\\?[\[［【][\s\d,，、;；‐-―−~～－-]*(?:[\]］】](?:\((?:#|h(?:t(?:t(?:p(?:s?:?)?)?)?)?)?)?)?\Z"
    r"|\\\Z|`+\Z"
)


class CitationNumbering:
    """Changes the numbers of items in the prompt into the numbers for readers.

    `items` is the number of items in the prompt. `numbers` maps the prompt's number of each cited
    item to the number for readers, in ascending order. A number above `items` stays unchanged.
    """

    def __init__(self, items: int) -> None:
        self._items = items
        self._held_back = ""  # the end of the answer so far, which may begin a marker
        self._code = ""  # the mark of Markdown code that is open
        self.numbers: dict[int, int] = {}

    def feed(self, piece: str, *, last: bool = False) -> str:
        """The next piece of the answer, renumbered; the beginning of a marker is held back, except at
        the end of the `last` piece.
        """
        text = self._held_back + piece
        unfinished = _UNFINISHED.search(text, max(len(text) - _LONGEST_MARKER, 0))
        end = unfinished.start() if unfinished and not last else len(text)
        self._held_back = text[end:]
        parts, self._code = split_citations(text[:end], self._code)
        return "".join(
            [part if isinstance(part, str) else self._renumbered(part) for part in parts]
        )

    def _renumbered(self, marker: CitationMarker) -> str:
        """The marker with the numbers for readers."""
        if not any(map(self._is_item, marker.numbers)):
            return marker.text
        numbers = []
        for number in marker.numbers:
            if self._is_item(number):
                number = self.numbers.setdefault(number, len(self.numbers) + 1)
            numbers.append(number)
        opening = marker.text[0]
        closing = marker.text[-1]
        return f"{opening}{', '.join(map(str, sorted(numbers)))}{closing}"

    def _is_item(self, number: int) -> bool:
        return 0 < number <= self._items
