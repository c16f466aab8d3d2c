"""Notices that a model repeats itself, while its answer is still being written."""

LEAST_LOOP = 1_000  # characters that have to be repetitions; rows of dashes are shorter
LEAST_REPEATS = 6
LONGEST_CYCLE = 1_500  # characters
LOOK_EVERY = 250  # characters between two looks


class LoopDetector:
    """Takes an answer in pieces, and says whether its end consists of one passage again and again."""

    def __init__(self) -> None:
        self._tail = ""
        self._new = 0  # characters since the last look

    def feed(self, piece: str) -> bool:
        """Take the next piece; whether the answer is in a loop now."""
        self._tail = (self._tail + piece)[-LONGEST_CYCLE * LEAST_REPEATS :]
        self._new += len(piece)
        if self._new < LOOK_EVERY:
            return False
        self._new = 0
        return ends_in_a_loop(self._tail)


def ends_in_a_loop(text: str) -> bool:
    """Whether a text ends with at least six copies of a passage, and a thousand characters of them.

    The passage is found by the last place where the text's end occurs before.
    """
    end = text[-LOOK_EVERY:]
    before = text.rfind(end, 0, len(text) - 1)
    if len(end) < LOOK_EVERY or before < 0:
        return False
    cycle = len(text) - len(end) - before
    size = max(LEAST_LOOP, LEAST_REPEATS * cycle)
    return len(text) >= size and text[-size:-cycle] == text[-size + cycle :]
