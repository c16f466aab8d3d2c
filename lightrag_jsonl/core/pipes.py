"""Messages between two processes: a length, as eight bytes, and so many bytes."""

from typing import IO, Final

LENGTH: Final = 8  # bytes, before each message


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
