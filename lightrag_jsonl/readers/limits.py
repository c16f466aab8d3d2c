"""The limits of reading a file, and a meter of the amount read."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from msgspec import Meta

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.validation import check_fields
from lightrag_jsonl.readers.embedded_data import without_embedded_data
from lightrag_jsonl.readers.encoding import decode_text

MOST_PICTURE_BYTES = 200 << 20  # of a file: some thousand scanned pages in black and white
MOST_NOTES = 100  # of a file; an e-book could have one for each of its chapters

AtLeastOne: TypeAlias = Annotated[int, Meta(ge=1)]


@dataclass(frozen=True, slots=True)
class FileLimits:
    """The limits of reading a file; a file beyond a limit is refused, with the limit's name.

    Plain text, as large as the file, has no limit. Wrong values raise `ConfigError`.

    - `seconds`: a PDF file of 5,000 dense pages takes about one minute.
    - `memory`: bytes of the reading process, where the system has such a limit (Linux). 250 MB of
      XML, the largest permitted content of a packed file, need 1 to 2 GB.
    - `characters`: of the text. Long novels have 3 million; a table repeats the header in each row.
    - `cells`: of all sheets of a table, blank ones included. The longest sheet of Excel, 1,048,576
      rows, has 19 columns then.
    - `pages`: also sheets, slides and chapters.
    - `exclude`, `include`: of a folder, patterns in the form of a `.gitignore`. Files that match
      `exclude` are left out; files that match `include` are read even if hidden, ignored, or in a
      folder of packages.
    """

    seconds: Annotated[float, Meta(gt=0, le=1_000_000)] = 300.0
    memory: AtLeastOne = 2 << 30
    characters: AtLeastOne = 50_000_000
    cells: AtLeastOne = 20_000_000
    pages: AtLeastOne = 100_000
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)


class FileMeter:
    """Counts characters, cells and pages of a file; `ConfigError` beyond a limit.

    `notes` name the parts of the file missing from the text, such as undecodable bytes. With
    `sees`, the pictures in the file are wanted, too.
    """

    def __init__(self, limits: FileLimits, *, sees: bool = False) -> None:
        self.notes: list[str] = []
        self.sees = sees
        self._picture_bytes = 0
        self.limits = limits
        self._characters = 0
        self._cells = 0
        self._pages = 0

    def add_characters(self, count: int) -> None:
        """Count characters of text."""
        self._characters += count
        self._check("characters", self._characters, self.limits.characters)

    def add_cells(self, count: int) -> None:
        """Count cells of a table."""
        self._cells += count
        self._check("cells", self._cells, self.limits.cells)

    def add_pages(self, count: int) -> None:
        """Count pages, slides, sheets or chapters."""
        self._pages += count
        self._check("pages", self._pages, self.limits.pages)

    def has_room(self, size: int) -> bool:
        """Whether a picture of so many bytes still fits into an answer; if so, count the bytes."""
        if self._picture_bytes + size > MOST_PICTURE_BYTES:
            return False
        self._picture_bytes += size
        return True

    def decode(self, data: bytes, *, declared: str = "") -> str:
        """The text of bytes in the `declared` or the likeliest encoding, without embedded data.

        Damage, and the length of embedded data, are noted.
        """
        result = decode_text(data, declared=declared)
        if result.damage:
            self.add_note(result.damage)
        return self.without_embedded_data(result.text)

    def without_embedded_data(self, text: str) -> str:
        """The text without data URIs and blocks of base64; a note states the removed length."""
        shorter, left_out = without_embedded_data(text)
        if left_out:
            self.add_note(f"{left_out:,} characters of embedded data left out, such as a picture's")
        return shorter

    def add_note(self, note: str) -> None:
        """Note a part of the file missing from the text."""
        if len(self.notes) < MOST_NOTES:
            self.notes.append(note)

    def _check(self, name: str, count: int, limit: int) -> None:
        if count > limit:
            raise ConfigError(f"has more than {limit:,} {name}: split it, or {advice(name)}")


def advice(name: str) -> str:
    """How to raise the limit of this name."""
    return f"raise the limit (FileLimits.{name}, or insert --max-file-{name})"
