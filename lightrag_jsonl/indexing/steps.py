"""What is under way beside the reading of chunks: each step by its name, and how much of it is done."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

StepName = Literal["merging", "summarizing", "embedding", "writing"]


@dataclass(eq=False, slots=True)
class _Step:
    name: StepName
    known: int
    done: int = 0


class Steps:
    """The steps of one insert; `told` is called whenever one begins or comes on."""

    def __init__(self, told: Callable[[], None] = lambda: None) -> None:
        self._told = told
        self._under_way: list[_Step] = []

    @contextlib.contextmanager
    def step(self, name: StepName, known: int = 1) -> Iterator[Callable[[int], None]]:
        """Count a step as under way; what it gives is called with how many more are done."""
        step = _Step(name, known)

        def add(number: int) -> None:
            step.done += number
            self._told()

        self._under_way.append(step)
        self._told()
        try:
            yield add
        finally:
            self._under_way.remove(step)

    def sums(self) -> Mapping[StepName, tuple[int, int]]:
        """Done and known by name, of all that is under way."""
        found: dict[StepName, tuple[int, int]] = {}
        for step in self._under_way:
            if step.known:
                done, known = found.get(step.name, (0, 0))
                found[step.name] = (done + step.done, known + step.known)
        return found
