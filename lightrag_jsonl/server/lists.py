"""Parts of long lists, and the values in parameters of the routes."""

from typing import Annotated, Generic, TypeVar

from msgspec import Meta, Struct

ListItem = TypeVar("ListItem")
Limit = Annotated[int, Meta(ge=1, le=500)]
Offset = Annotated[int, Meta(ge=0, le=1 << 40)]
ShortText = Annotated[str, Meta(max_length=255)]
NonEmptyText = Annotated[str, Meta(min_length=1)]
EntityName = Annotated[str, Meta(min_length=1, max_length=2_000)]


class ListParams(Struct, forbid_unknown_fields=True):
    """A part of a list."""

    offset: Offset = 0
    limit: Limit = 50


class ListPart(Struct, Generic[ListItem]):
    """A part of a list, and the length of the whole list."""

    total: int
    items: list[ListItem]


def list_part(items: list[ListItem], params: ListParams) -> ListPart[ListItem]:
    """The part of a list asked for by the parameters."""
    end = params.offset + params.limit
    return ListPart(total=len(items), items=items[params.offset : end])
