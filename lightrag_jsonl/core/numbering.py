"""Numbers the citations of an answer 1, 2, 3 in the order of their first use, as it is written."""

import re

from lightrag_jsonl.core.citation_markers import marked_numbers, split_citations

_LONGEST_MARKER = 400  # characters; a longer one is not waited for
_UNFINISHED = re.compile(  # the beginning of a marker, or a whole one that may be a link's text
    r"`*\\?[\[［【][\s\d,，、;；‐-―−~～－-]*(?:[\]］】](?:\((?:#|h(?:t(?:t(?:p(?:s?:?)?)?)?)?)?)?)?\Z"
    r"|\\\Z|`+\Z"
)


class CitationNumbering:
    """Changes the numbers that items have in the prompt into those that readers see.

    `items` is how many items the prompt has. `numbers` maps the number in the prompt of each cited
    item to the number that readers see, in ascending order. A number of no item stays unchanged:
    items have lower numbers.
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
        pieces, self._code = split_citations(text[:end], self._code)
        return "".join(
            [piece if isinstance(piece, str) else self._renumbered(piece) for piece in pieces]
        )

    def _renumbered(self, marker: re.Match[str]) -> str:
        """The marker with the numbers that readers see."""
        prompt_numbers = marked_numbers(marker)
        if not any(0 < number <= self._items for number in prompt_numbers):
            return marker[0]
        numbers = []
        for number in prompt_numbers:
            if 0 < number <= self._items:
                number = self.numbers.setdefault(number, len(self.numbers) + 1)
            numbers.append(number)
        opening = marker[0][0]
        closing = marker[0][-1]
        return f"{opening}{', '.join(map(str, sorted(numbers)))}{closing}"
