"""Opens compressed files, unless they unpack to more than a document can be."""

import gzip
import zlib
from io import BytesIO
from zipfile import BadZipFile, ZipFile

from lightrag_jsonl.core.errors import ConfigError

LARGEST = 256 << 20  # bytes, unpacked
UNSUSPICIOUS = 16 << 20  # bytes, unpacked; larger files must not exceed the ratio
RATIO = 200  # of unpacked to packed bytes; real XML has 10 to 50


def most(packed: int) -> int:
    """The most bytes that so many packed ones may unpack to."""
    return min(LARGEST, max(UNSUSPICIOUS, RATIO * packed))


def gunzip(data: bytes) -> bytes:
    """The content of a gzip file; `ConfigError` if it is broken or exceeds the limits."""
    limit = most(len(data))
    try:
        with gzip.open(BytesIO(data)) as stream:
            content = stream.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"is not a valid gzip file: {error}") from error
    if len(content) > limit:
        raise ConfigError(f"unpacks to more than {limit:,} bytes")
    return content


def open_zip(data: bytes, kind: str) -> ZipFile:
    """A file that is a ZIP of parts, none of which can unpack to more than the archive states.

    `ConfigError` if it is none, or if all parts together exceed the limits.
    """
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise ConfigError(f"is encrypted, or of an older format: save it as {kind}, unencrypted")
    try:
        opened = ZipFile(BytesIO(data))
    except BadZipFile as error:
        raise ConfigError(f"is not a valid {kind} file: {error}") from error
    size = sum(part.file_size for part in opened.infolist())
    if size > most(len(data)):
        raise ConfigError(f"unpacks to {size:,} bytes, more than {most(len(data)):,}")
    return opened
