"""Messages of Outlook, written as [MS-CFB] and [MS-OXMSG] say: no library writes such files."""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

SECTOR = 512
MINI_SECTOR = 64
END = 0xFFFFFFFE
FREE = 0xFFFFFFFF
FAT_SECTOR = 0xFFFFFFFD
STORAGE, STREAM, ROOT = 1, 2, 5
UNICODE, TIME = 0x001F, 0x0040
SUBJECT, BODY, SENDER, SENDER_ADDRESS, SENT = 0x0037, 0x1000, 0x0C1A, 0x0C1F, 0x0039
RECIPIENT, RECIPIENT_ADDRESS, FILE_NAME = 0x3001, 0x39FE, 0x3707
EPOCH = datetime(1601, 1, 1, tzinfo=UTC)


@dataclass
class Entry:
    """A storage with entries, or a stream with bytes."""

    name: str
    data: bytes | None = None
    children: list["Entry"] = field(default_factory=list)


def outlook_message(
    texts: Mapping[int, str],
    *,
    sent: datetime | None = None,
    recipients: tuple[str, ...] = (),
    files: tuple[str, ...] = (),
) -> bytes:
    """A message with texts by the number of the property, people who get it, and names of attached files."""
    head = struct.pack("<8xIIII8x", len(recipients), len(files), len(recipients), len(files))
    children = properties(head, texts, sent)
    for number, name in enumerate(recipients):
        inner = properties(bytes(8), {RECIPIENT: name})
        children.append(Entry(f"__recip_version1.0_#{number:08X}", children=inner))
    for number, name in enumerate(files):
        inner = properties(bytes(8), {FILE_NAME: name})
        children.append(Entry(f"__attach_version1.0_#{number:08X}", children=inner))
    return compound_file(children)


def properties(head: bytes, texts: Mapping[int, str], sent: datetime | None = None) -> list[Entry]:
    """The streams of texts, and the stream that lists them."""
    streams: list[Entry] = []
    rows = head
    for number, text in texts.items():
        data = text.encode("utf-16-le")
        streams.append(Entry(f"__substg1.0_{number:04X}{UNICODE:04X}", data))
        rows += struct.pack("<HHIII", UNICODE, number, 6, len(data) + 2, 0)
    if sent is not None:
        ticks = (sent - EPOCH) // timedelta(microseconds=1) * 10
        rows += struct.pack("<HHIQ", TIME, SENT, 6, ticks)
    return [*streams, Entry("__properties_version1.0", rows)]


def compound_file(children: list[Entry]) -> bytes:
    """A file of a directory, a stream of small sectors with all data, and tables of their chains."""
    entries = list(_flat(Entry("Root Entry", children=children)))
    small = bytearray()
    small_chains: list[int] = []
    starts: dict[int, int] = {}
    for entry, _ in entries:
        if entry.data:
            starts[id(entry)] = len(small_chains)
            count = -(-len(entry.data) // MINI_SECTOR)
            small_chains += [*range(len(small_chains) + 1, len(small_chains) + count), END]
            small += entry.data.ljust(count * MINI_SECTOR, b"\0")
    positions = {id(entry): number for number, (entry, _) in enumerate(entries)}
    directory = b""
    for number, (entry, following) in enumerate(entries):
        kind = ROOT if number == 0 else STORAGE if entry.data is None else STREAM
        name = (entry.name + "\0").encode("utf-16-le")
        next_one = positions[id(following)] if following else FREE
        child = positions[id(entry.children[0])] if entry.children else FREE
        start = starts.get(id(entry), END)
        size = len(entry.data or b"")
        if number == 0:
            start, size = 0, len(small)
        directory += struct.pack(
            "<64sHBBIII16xI16xIQ", name, len(name), kind, 1, FREE, next_one, child, 0, start, size
        )
    parts = [bytes(small), directory, struct.pack(f"<{len(small_chains)}I", *small_chains)]
    chains: list[int] = []
    firsts: list[int] = []
    body = b""
    for part, filler in zip(parts, (b"\0", b"\0", b"\xff"), strict=True):
        count = -(-len(part) // SECTOR)
        firsts.append(len(chains))
        chains += [*range(len(chains) + 1, len(chains) + count), END]
        body += part.ljust(count * SECTOR, filler)
    table_sector = len(chains)
    assert table_sector < SECTOR // 4, "one sector of chains"
    table = struct.pack(f"<{table_sector + 1}I", *chains, FAT_SECTOR).ljust(SECTOR, b"\xff")
    header = struct.pack(
        "<8s16xHHHHH6xIIIIIIIIII", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6,
        0, 1, firsts[1], 0, 4096, firsts[2], -(-len(parts[2]) // SECTOR), END, 0, table_sector,
    )  # fmt: skip
    return header.ljust(SECTOR, b"\xff") + body + table


def _flat(root: Entry) -> Iterator[tuple[Entry, Entry | None]]:
    """Each entry with the one that stands beside it."""
    yield root, None
    yield from _flat_children(root)


def _flat_children(parent: Entry) -> Iterator[tuple[Entry, Entry | None]]:
    for number, child in enumerate(parent.children):
        following = parent.children[number + 1] if number + 1 < len(parent.children) else None
        yield child, following
        yield from _flat_children(child)
