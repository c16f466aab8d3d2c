"""Opens compressed files, up to the largest size of a document."""

import gzip
import zlib
from collections.abc import Iterator
from io import BytesIO
from zipfile import BadZipFile, ZipFile

from lightrag_jsonl.core.errors import ConfigError

LARGEST = 256 << 20  # bytes, unpacked
UNSUSPICIOUS = 16 << 20  # bytes, unpacked; larger files must not exceed the ratio
RATIO = 200  # of unpacked to compressed bytes; real XML has 10 to 50


def largest_content(compressed: int) -> int:
    """How many bytes so many compressed bytes may hold."""
    return min(LARGEST, max(UNSUSPICIOUS, RATIO * compressed))


def gunzip(data: bytes) -> bytes:
    """The content of a gzip file; `ConfigError` if the file is broken or exceeds the limits."""
    limit = largest_content(len(data))
    try:
        with gzip.open(BytesIO(data)) as stream:
            content = stream.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"is not a valid gzip file: {error}") from error
    if len(content) > limit:
        raise ConfigError(f"unpacks to more than {limit:,} bytes")
    return content


def archived_files(data: bytes) -> Iterator[tuple[str, bytes | ConfigError]]:
    """The files in a ZIP archive by name, or the reason why a file cannot be unpacked."""
    with open_zip(data, ".zip") as archive:
        for part in archive.infolist():
            if part.is_dir():
                continue
            try:
                yield part.filename, archive.read(part)
            except (RuntimeError, NotImplementedError, BadZipFile, zlib.error, EOFError) as error:
                yield part.filename, ConfigError(f"cannot be unpacked: {error}")


def open_zip(data: bytes, kind: str) -> ZipFile:
    """The ZIP archive of a file; no part unpacks to more bytes than the directory states.

    `ConfigError` for other files, and for archives with parts that together exceed the limits.
    """
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise ConfigError(f"is encrypted, or of an older format: save it as {kind}, unencrypted")
    try:
        archive = ZipFile(BytesIO(data))
    except BadZipFile as error:
        raise ConfigError(f"is not a valid {kind} file: {error}") from error
    size = sum(part.file_size for part in archive.infolist())
    limit = largest_content(len(data))
    if size > limit:
        raise ConfigError(f"unpacks to {size:,} bytes, more than {limit:,}")
    return archive
