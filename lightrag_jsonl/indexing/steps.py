"""Tracks the steps of an insert besides reading chunks: which are under way, and how far."""

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
    """The steps of one insert; `told` is called whenever a step begins or advances."""

    def __init__(self, told: Callable[[], None] = lambda: None) -> None:
        self._told = told
        self._under_way: list[_Step] = []

    @contextlib.contextmanager
    def step(self, name: StepName, known: int = 1) -> Iterator[Callable[[int], None]]:
        """Count a step of `known` items as under way; the function it yields adds to the items done."""
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
        """For each step under way, by name: (items done, items known)."""
        found: dict[StepName, tuple[int, int]] = {}
        for step in self._under_way:
            if step.known:
                done, known = found.get(step.name, (0, 0))
                found[step.name] = (done + step.done, known + step.known)
        return found
