"""Repetition in the answer of a model, noticed while the model is still writing."""

from collections import Counter

from lightrag_jsonl.text.patterns import pattern_of

LEAST_LOOP = 1_000  # characters of repetitions at least; rows of dashes are shorter
LEAST_REPEATS = 6
LONGEST_CYCLE = 1_500  # characters
LOOK_EVERY = 250  # characters between two looks
LINE_COPIES = 4  # of a record that end an answer; larger models write one twice or so
LEAST_RECORD = 20  # characters
NAMES_AGAIN = 3  # in a row that end a list: a single name may be listed twice by mistake
LONGEST_BEGINNING = 1_000  # characters before the first of a record
LONGEST_NAME = 1_500  # characters
_FIRST_CHARACTER = pattern_of(r"(?:\s|```\w*\n|\[)*([^\s\[`])")
_LISTED_NAME = pattern_of(r'(?:\A\s*|[\[,]\s*|\n[^\S\n]*)"([^"\\\n]*)"\s*(?=[,\]\n])')
_NAME_ENDS = pattern_of(r"[,\]\n]")


class LoopDetector:
    """Takes an answer in pieces, and says whether the end is a row of copies of a passage."""

    def __init__(self) -> None:
        self._tail = ""
        self._unread = 0  # characters since the last look

    def feed(self, piece: str) -> bool:
        """Take the next piece; whether the answer is in a loop now."""
        self._tail = (self._tail + piece)[-LONGEST_CYCLE * LEAST_REPEATS :]
        self._unread += len(piece)
        if self._unread < LOOK_EVERY:
            return False
        self._unread = 0
        return ends_in_a_loop(self._tail)


class RecordCounter:
    """Takes an answer of records in pieces, and says whether the model only repeats itself: one record,
    on a line of its own, comes back again and again, or several names of a list in a row come back.
    """

    def __init__(self) -> None:
        self._copies: Counter[str] = Counter()
        self._names: set[str] = set()
        self._repeated_names = 0  # at the end of the list so far
        self._is_list: bool | None = None  # known with the first character
        self._pieces: list[str] = []  # of the line or name that has not ended

    def feed(self, piece: str) -> bool:
        """Take the next piece; whether a record or name was written for the last time that makes sense."""
        self._pieces.append(piece)
        if self._is_list is None:
            self._is_list = self._begins_a_list()
        if self._is_list and _NAME_ENDS.search(piece):
            return self._repeats_names("".join(self._pieces))
        if self._is_list is False and "\n" in piece:
            return self._repeats_a_line("".join(self._pieces))
        return False

    def _begins_a_list(self) -> bool | None:
        """Whether the answer is a list of names; None if it has not begun."""
        text = "".join(self._pieces)
        beginning = _FIRST_CHARACTER.match(text)
        if beginning is None:
            return False if len(text) > LONGEST_BEGINNING else None
        return beginning[1] == '"'

    def _repeats_a_line(self, text: str) -> bool:
        """Whether one of the lines that have ended is a record that has come often enough."""
        *ended, open_line = text.split("\n")
        self._pieces = [open_line]
        for line in ended:
            record = line.strip().rstrip(",")
            if len(record) >= LEAST_RECORD and record[0] == "{" and record[-1] == "}":
                self._copies[record] += 1
                if self._copies[record] >= LINE_COPIES:
                    return True
        return False

    def _repeats_names(self, text: str) -> bool:
        """Whether the last names that have ended were all in the list before."""
        names = [*_LISTED_NAME.finditer(text)]
        open_name = text[names[-1].end() :] if names else text
        self._pieces = [open_name[-LONGEST_NAME:]]
        for name in names:
            self._repeated_names = self._repeated_names + 1 if name[1] in self._names else 0
            self._names.add(name[1])
            if self._repeated_names >= NAMES_AGAIN:
                return True
        return False


def repeats_a_record(text: str) -> bool:
    """Whether an answer has so many copies of a record, or of names, that its end was cut off."""
    return RecordCounter().feed(f"{text}\n")


def ends_in_a_loop(text: str) -> bool:
    """Whether a text ends with at least six copies of a passage, and a thousand characters of copies.

    The length of the passage is the distance to the last earlier place of the text's end.
    """
    end = text[-LOOK_EVERY:]
    before = text.rfind(end, 0, len(text) - 1)
    if len(end) < LOOK_EVERY or before < 0:
        return False
    cycle = len(text) - len(end) - before
    size = max(LEAST_LOOP, LEAST_REPEATS * cycle)
    return len(text) >= size and text[-size:-cycle] == text[-size + cycle :]
