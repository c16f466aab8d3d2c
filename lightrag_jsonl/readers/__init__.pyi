"""What reads bytes without an index."""

from .formats import (
    read_document as read_document,
)
from .formats import (
    read_file as read_file,
)

__all__ = ["read_document", "read_file"]
