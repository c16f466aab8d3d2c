"""What a power cut leaves of a disk's files, from the notes of `disk.c`."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HEAD = struct.Struct("cc6xqq")
SECTOR = 512  # bytes that a disk writes whole, or spoils
NAMES = {"d": "index.sqlite", "w": "index.sqlite-wal", "j": "index.sqlite-journal"}


@dataclass(frozen=True)
class Note:
    """One thing done: Write, Truncate, Unlink, Sync, a sync that Failed, or a Mark."""

    op: str
    file: str
    place: int
    data: bytes

    @property
    def facts(self) -> dict[str, Any]:
        """What a mark says."""
        return dict(json.loads(self.data)) if self.op == "M" else {}


def read_notes(path: Path) -> list[Note]:
    """All notes, in order."""
    return list(_notes(path.read_bytes()))


def _notes(content: bytes) -> Iterator[Note]:
    at = 0
    while at < len(content):
        op, file, place, size = HEAD.unpack_from(content, at)
        at += HEAD.size
        size = size if op in b"WM" else 0
        yield Note(op.decode(), file.decode(), place, content[at : at + size])
        at += size


@dataclass
class _File:
    """What is on the disk for certain, and what is still on its way."""

    content: bytearray | None = None
    dirty: list[Note] = field(default_factory=list)

    def apply(self, note: Note) -> None:
        if note.op == "U":
            self.content = None
            return
        content = self.content = bytearray() if self.content is None else self.content
        end = note.place + len(note.data)
        content.extend(bytes(max(0, end - len(content))))
        if note.op == "T":
            del content[note.place :]
        else:
            content[note.place : end] = note.data

    def settle(self) -> None:
        """All that was on its way has arrived."""
        for note in self.dirty:
            self.apply(note)
        self.dirty.clear()

    def lose(self, chance: random.Random, *, spoil: bool) -> None:
        """Of what was on its way some has arrived, some not, some in part or as rubbish."""
        for note in self.dirty:
            fate = chance.choice(("whole", "lost", "torn") if spoil else ("whole", "lost"))
            if note.op == "U" and fate != "whole":
                break  # what came after it went to another file of this name
            if fate == "whole":
                self.apply(note)
            elif fate == "torn" and note.op == "W":
                self.apply(Note("W", note.file, note.place, self._torn(note, chance)))
        self.dirty.clear()

    def _torn(self, note: Note, chance: random.Random) -> bytes:
        """Each sector new, old or spoiled."""
        old = bytes(self.content or b"")[note.place : note.place + len(note.data)]
        torn = bytearray(old.ljust(len(note.data), b"\0"))
        for start in range(0, len(torn), SECTOR):
            part = note.data[start : start + SECTOR]
            fate = chance.choice(("new", "new", "old", "spoiled"))
            if fate != "old":
                torn[start : start + SECTOR] = (
                    part if fate == "new" else chance.randbytes(len(part))
                )
        return bytes(torn)


def cut(notes: Sequence[Note], folder: Path, chance: random.Random) -> None:
    """Write into `folder` what may be left where the power fails after these notes."""
    files = {kind: _File() for kind in NAMES}
    for note in notes:
        if note.op == "S":
            _sync(files, note.file)
        elif note.op == "F":  # the system counts the pages as written now, wherever they are
            files[note.file].lose(chance, spoil=False)
        elif note.op != "M":
            files[note.file].dirty.append(note)
    folder.mkdir(parents=True)
    for kind, file in files.items():
        file.lose(chance, spoil=True)
        if file.content is not None:
            (folder / NAMES[kind]).write_bytes(file.content)


def _sync(files: dict[str, _File], kind: str) -> None:
    files[kind].settle()
    if kind != "d":  # SQLite flushes the folder with a new log or journal
        for file in files.values():
            if any(note.op == "U" for note in file.dirty):
                file.settle()
