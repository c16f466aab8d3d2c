"""A process that waits with everything imported, and forks a child for each order on its stdin.

An order is a line of JSON. The child says "started PID" before it begins, and its parent
"ended STATUS" when it is gone.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any


def serve(work: Callable[[Any], None]) -> None:
    """Fork a child for each order; the children do not outlive their kill."""
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                _say(f"started {os.getpid()}")
                work(order)
                status = 0
            finally:
                if status:
                    traceback.print_exc()
                os._exit(status)
        _, status = os.waitpid(child, 0)
        _say(f"ended {status}")


def _say(line: str) -> None:
    """One whole line to whoever gave the order."""
    os.write(1, (line + "\n").encode())
