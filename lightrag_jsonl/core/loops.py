"""Repetition in the answer of a model, noticed while the model is still writing."""

from collections import Counter

LEAST_LOOP = 1_000  # characters of repetitions at least; rows of dashes are shorter
LEAST_REPEATS = 6
LONGEST_CYCLE = 1_500  # characters
LOOK_EVERY = 250  # characters between two looks
LINE_COPIES = 4  # of a record that end an answer; larger models write one twice or so
LEAST_RECORD = 20  # characters


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
    """Takes an answer of records, one a line, in pieces, and says whether one comes back again and again."""

    def __init__(self) -> None:
        self._copies: Counter[str] = Counter()
        self._line = ""

    def feed(self, piece: str) -> bool:
        """Take the next piece; whether a record was written for the last time that makes sense."""
        *ended, self._line = (self._line + piece).split("\n")
        for line in ended:
            record = line.strip().rstrip(",")
            if len(record) >= LEAST_RECORD and record[0] == "{" and record[-1] == "}":
                self._copies[record] += 1
                if self._copies[record] >= LINE_COPIES:
                    return True
        return False


def repeats_a_record(text: str) -> bool:
    """Whether an answer has so many copies of a record that its end was cut off."""
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
