"""Reads files in a separate process; a file that takes too long ends the process."""

import contextlib
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path, PurePath
from typing import Any, Final, Self

import msgspec

from lightrag_jsonl.core.child_process import read_message, start_python, write_message
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.formats import FileContent, Readers, is_read_here, read_file
from lightrag_jsonl.readers.limits import MOST_PICTURE_BYTES, FileLimits, advice
from lightrag_jsonl.readers.worker import FileRequest, FileResponse
from lightrag_jsonl.text.strings import sanitize

START_SECONDS: Final = 120.0  # an empty process needs 0.2, but the machine may be busy
EXIT_SECONDS: Final = 5.0  # for a process whose pipes are closed
# Variables with these words in their names are not for what reads files.
NAMES_OF_KEYS: Final = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
# The package itself is not imported: it would load what indexing needs, for a second or more.
CODE: Final = """
import sys, types
package = types.ModuleType("lightrag_jsonl")
package.__path__ = [sys.argv[1]]
sys.modules["lightrag_jsonl"] = package
from lightrag_jsonl.readers.worker import answer_requests
answer_requests()
"""

log = logging.getLogger(__name__)


class ReadingProcess:
    """Reads files within limits: plain texts here, other formats in another process.

    The first file of another format starts the process for all later files; the process ends with
    `close`, and with the parent process. A user's own readers are called here, without limits.
    Where no process can be started, a warning is logged, and seconds and memory are not limited.
    With `sees`, documents have the pictures of the files.
    """

    def __init__(self, limits: FileLimits | None = None, *, sees: bool = False) -> None:
        self.limits = limits or FileLimits()
        self.sees = sees
        self._process: subprocess.Popen[bytes] | None = None
        self._is_possible = True
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, if started."""
        process = self._process
        self._process = None
        if process is None:
            return
        process.kill()  # it has nothing to lose
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                _close(stream)

    def read(self, data: bytes, path: PurePath, readers: Readers | None = None) -> Document:
        """The document in a file's bytes, as by `read_document`; `ConfigError` names a limit."""
        return self.read_file(data, path, readers).document

    def read_file(self, data: bytes, path: PurePath, readers: Readers | None = None) -> FileContent:
        """The content of a file's bytes, as by the function; `ConfigError` names a limit."""
        if is_read_here(path, readers):
            return read_file(data, path, readers, limits=self.limits)
        with self._lock:
            process = self._started()
            if process is None:
                return read_file(data, path, readers, limits=self.limits, sees=self.sees)
            request = FileRequest(sanitize(str(path)), data, self.limits, self.sees)
            return self._ask(process, request)

    def _started(self) -> subprocess.Popen[bytes] | None:
        """The process, ready to read; None where no process can be started."""
        if self._process is not None and self._process.poll() is not None:
            self.close()  # it was ended from outside, between two files
        if self._process is not None or not self._is_possible:
            return self._process
        if not sys.executable or getattr(sys, "frozen", False):
            self._give_up("this program has no Python interpreter of its own")
            return None
        try:
            process = self._process = _start()
        except OSError as error:
            self._give_up(str(error))
            return None
        assert process.stdout is not None
        with _Alarm(process, START_SECONDS):
            greeting = read_message(process.stdout)
        if greeting is None:
            self.close()
            self._give_up(f"{sys.executable} ended with status {process.returncode}")
            return None
        return process

    def _give_up(self, reason: str) -> None:
        self._is_possible = False
        log.warning(
            "no process can be started to read files (%s): seconds and memory are not limited",
            reason,
        )

    def _ask(self, process: subprocess.Popen[bytes], request: FileRequest) -> FileContent:
        alarm = _Alarm(process, self.limits.seconds)
        try:
            with alarm:
                response = self._exchange(process, request)
        except BaseException:  # the answer is not read to its end
            self.close()
            raise
        if response is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=EXIT_SECONDS)
        if response is None or response.final:
            self.close()
        if response is None:
            raise ConfigError(self._why_ended(process, request, alarm))
        if response.content is None:
            raise ConfigError(response.error)
        return response.content

    def _exchange(
        self, process: subprocess.Popen[bytes], request: FileRequest
    ) -> FileResponse | None:
        """The answer to a request; None if the process has ended."""
        assert process.stdin is not None and process.stdout is not None
        longest = 8 * self.limits.characters + (1 << 20)  # bytes; a character has four at most
        longest += 2 * MOST_PICTURE_BYTES if self.sees else 0
        try:
            write_message(process.stdin, msgspec.msgpack.encode(request))
            answer = read_message(process.stdout, longest)
        except OSError:
            return None
        return None if answer is None else msgspec.msgpack.decode(answer, type=FileResponse)

    def _why_ended(
        self, process: subprocess.Popen[bytes], request: FileRequest, alarm: "_Alarm"
    ) -> str:
        if alarm.has_rung:
            seconds = f"{self.limits.seconds:,g} seconds"
            return f"{request.path} takes more than {seconds} to read: {advice('seconds')}"
        return (
            f"{request.path} cannot be read: the process that read it ended (status "
            f"{process.returncode}). It may be damaged: save it anew, or convert it to text"
        )


class _Alarm:
    """Ends a process after so many seconds, unless the block is left before."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        self.has_rung = False
        self._process = process
        self._timer = threading.Timer(seconds, self._ring)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()

    def _ring(self) -> None:
        self.has_rung = True
        self._process.kill()


def _start() -> subprocess.Popen[bytes]:
    """A new process with the parent's search path, without the parent's keys."""
    inherited = {
        name: text
        for name, text in os.environ.items()
        if not any(secret in name.upper() for secret in NAMES_OF_KEYS)
    }
    return start_python(CODE, str(Path(__file__).parent.parent), environment=inherited)


def _close(stream: Any) -> None:
    """Close a pipe to an ended process, even with unwritten bytes."""
    try:
        stream.close()
    except OSError:
        stream.close()  # the unwritten bytes are gone by now
