"""Objects that each event loop needs its own of: futures and locks cannot be shared between loops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

Thing = TypeVar("Thing")


class PerLoop(Generic[Thing]):
    """One object for each event loop, made when it is first asked for there."""

    def __init__(self, make: Callable[[], Thing]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, Thing] = WeakKeyDictionary()
        self._guard = threading.Lock()

    @property
    def here(self) -> Thing:
        """The object of the running loop."""
        loop = asyncio.get_running_loop()
        made = self._made.get(loop)
        if made is None:
            with self._guard:
                made = self._made.setdefault(loop, self._make())
        return made
