"""The process for reading files: answers requests in turn.

Messages are MessagePack. Every import here delays the first file.
"""

import contextlib
import faulthandler
import json
import logging
import os
import re
import signal
import sys
import warnings
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Final

import msgspec

from lightrag_jsonl.core.child_process import requests_until_left, write_message
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.readers.formats import FileContent, read_file
from lightrag_jsonl.readers.limits import FileLimits, advice
from lightrag_jsonl.readers.markdown import metadata_json
from lightrag_jsonl.text.strings import sanitize

LATE_SECONDS: Final = 10.0  # after the limit, this process ends itself


class FileRequest(msgspec.Struct):
    """A file to read."""

    path: str
    data: bytes
    limits: FileLimits
    sees: bool = False


class FileResponse(msgspec.Struct):
    """The content of a file, or the reason for its absence; the last response is `final`."""

    content: FileContent | None = None
    error: str = ""
    final: bool = False


def answer_requests() -> None:
    """Answer requests until the stream ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback
    requests = os.fdopen(os.dup(0), "rb")
    responses = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the output of libraries is no answer
    logging.disable()  # a user could not act on the warnings of libraries
    warnings.simplefilter("ignore")
    write_message(responses, b"")
    is_limited = False
    for request_bytes in requests_until_left(requests):
        request = msgspec.msgpack.decode(request_bytes, type=FileRequest)
        if not is_limited:
            _limit_memory(request.limits.memory)
            is_limited = True
        response = _file_response(request)
        del request
        write_message(responses, msgspec.msgpack.encode(response))
        if response.final:
            break


def _limit_memory(memory: int) -> None:
    """Let requests for more memory fail, where the system has such a limit."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (memory, hard_limit))


def _file_response(request: FileRequest) -> FileResponse:
    """The answer to a request; `final` after the process ran out of memory."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123
        # its thread needs no lock of Python's, unlike any code here
        faulthandler.dump_traceback_later(
            request.limits.seconds + LATE_SECONDS, file=nowhere, exit=True
        )
        try:
            content = read_file(
                request.data, PurePath(request.path), limits=request.limits, sees=request.sees
            )
            return FileResponse(_storable(content), final=_is_short_of_memory(request))
        except MemoryError:
            return _out_of_memory(request)
        except ConfigError as error:
            if isinstance(error.__cause__, MemoryError):
                return _out_of_memory(request)
            reason = str(error)
            is_short_of_memory = _is_short_of_memory(request)
            if is_short_of_memory:  # libraries have their own words for it
                reason += f"; or it {_too_much_memory(request)}"
            return FileResponse(error=sanitize(reason), final=is_short_of_memory)
        finally:
            faulthandler.cancel_dump_traceback_later()


def _out_of_memory(request: FileRequest) -> FileResponse:
    return FileResponse(error=f"{request.path} {_too_much_memory(request)}", final=True)


def _too_much_memory(request: FileRequest) -> str:
    return f"needs more than {request.limits.memory >> 20:,} MB of memory: {advice('memory')}"


def _is_short_of_memory(request: FileRequest) -> bool:
    """Whether half of the memory was in use: a request for as much again would fail."""
    if sys.platform != "linux":
        return False
    # Not `getrusage`, whose peak has the memory of the program that started this process in it.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    peak = re.search(r"^VmHWM:\s+(\d+) kB", status, flags=re.MULTILINE)
    return peak is not None and 2048 * int(peak[1]) > request.limits.memory


def _storable(content: FileContent) -> FileContent:
    """The content without lone surrogates, since a message cannot hold any."""
    document = content.document
    clean = replace(
        document,
        text=sanitize(document.text),
        title=document.title and sanitize(document.title),
        date=document.date and sanitize(document.date),
        metadata=json.loads(
            sanitize(json.dumps(metadata_json(document.metadata), ensure_ascii=False))
        ),
        pages=document.pages and tuple(sanitize(page) for page in document.pages),
    )
    return FileContent(clean, tuple(map(sanitize, content.notes)))
