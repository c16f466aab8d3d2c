"""Processes of Python that answer requests, and the messages to and from them: a length, as eight bytes,
and so many bytes.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from queue import SimpleQueue
from typing import IO, Final

LENGTH: Final = 8  # bytes, before each message
# Threads of numeric libraries take memory, and block each other where processes share the cores.
ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def start_python(
    code: str, *arguments: str, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """A new process that runs code with the search path of this process, and pipes to and from it."""
    search_path = os.pathsep.join(filter(None, sys.path))
    creation_flags = 0
    if sys.platform == "win32":
        creation_flags = subprocess.CREATE_NO_WINDOW
    return subprocess.Popen(
        [sys.executable, "-P", "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**environment, **ONE_THREAD, "PYTHONPATH": search_path},
        creationflags=creation_flags,
    )


def write_message(stream: IO[bytes], message: bytes) -> None:
    """Write a message at once."""
    stream.write(len(message).to_bytes(LENGTH, "big"))
    stream.write(message)
    stream.flush()


def read_message(stream: IO[bytes], longest: int | None = None) -> bytes | None:
    """The next message; None at the end of the stream, and for a message beyond `longest` bytes."""
    head = stream.read(LENGTH)
    length = int.from_bytes(head, "big")
    if len(head) < LENGTH or (longest is not None and length > longest):
        return None
    message = stream.read(length)
    return message if len(message) == length else None


def requests_until_left(stream: IO[bytes]) -> Iterator[bytes]:
    """The messages from a parent process; when it ends, this process ends at once, whatever it does."""
    messages: SimpleQueue[bytes] = SimpleQueue()

    def receive() -> None:
        while message := read_message(stream):
            messages.put(message)
        os._exit(0)

    threading.Thread(target=receive, daemon=True).start()
    while True:
        yield messages.get()
