"""Pictures in files for a model that sees: scanned pages, and pictures on pages."""

from collections import Counter
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any, NamedTuple

from lightrag_jsonl.core.types import Picture
from lightrag_jsonl.readers.limits import FileMeter

POINTS_PER_INCH = 72
DOTS_PER_INCH = 150  # of a scanned page: small print is 15 pixels high
JPEG_QUALITY = 85  # print stays sharp
LONGEST_SIDE = 2_000  # pixels; models make larger pictures smaller
SMALLEST_SIDE = 40.0  # points; smaller pictures are signs and rules
SMALLEST_SHARE = 0.02  # of the page
LOGO_PAGES = 3  # pages with the same picture at the same place, such as a logo
PACKAGED_TYPES = frozenset(("image/jpeg", "image/png", "image/webp"))  # that models read


class Box(NamedTuple):
    """A rectangle on a page, in points from its lower left corner."""

    left: float
    bottom: float
    right: float
    top: float


def scanned_page(page: Any, number: int) -> Picture:
    """A page of a PDF file as a picture."""
    width, height = page.get_size()
    return _rendered(page, number, Box(0.0, 0.0, width, height), whole_page=True)


def pictures_on_page(page: Any, number: int) -> list[Picture]:
    """The pictures on a page of a PDF file that has text, too, from top to bottom."""
    areas = sorted(picture_areas(page), key=lambda area: (-area.top, area.left))
    return [_rendered(page, number, area, whole_page=False) for area in areas]


def picture_areas(page: Any) -> list[Box]:
    """The areas of pictures of some size; pieces of a single picture are joined."""
    import pypdfium2.raw as pdfium

    whole = Box(*page.get_bbox())
    areas: list[Box] = []
    for item in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3):
        area = _common_part(Box(*item.get_bounds()), whole)
        if area.left < area.right and area.bottom < area.top:
            areas.append(area)
    least_size = SMALLEST_SHARE * (whole.right - whole.left) * (whole.top - whole.bottom)
    large_areas: list[Box] = []
    for area in _joined_areas(areas):
        width = area.right - area.left
        height = area.top - area.bottom
        if min(width, height) >= SMALLEST_SIDE and width * height >= least_size:
            large_areas.append(area)
    return large_areas


def without_repeated(pictures: Iterable[Picture]) -> list[Picture]:
    """The pictures without pictures at the same place of several pages."""
    pictures = list(pictures)
    places = Counter(tuple(map(round, picture.box)) for picture in pictures)
    return [
        picture
        for picture in pictures
        if picture.whole_page or places[tuple(map(round, picture.box))] < LOGO_PAGES
    ]


def slide_pictures(shapes: Iterable[Any], number: int, height: float) -> list[Picture]:
    """The pictures on a slide of a height in points, also in groups."""
    pictures: list[Picture] = []
    for shape in shapes:
        if hasattr(shape, "shapes"):
            pictures += slide_pictures(shape.shapes, number, height)
        elif hasattr(shape, "image"):
            picture = _slide_picture(shape, number, height)
            if picture is not None:
                pictures.append(picture)
    return pictures


def add_pictures(meter: FileMeter, pictures: Sequence[Picture]) -> tuple[Picture, ...]:
    """The pictures within the meter's room; a note counts the rest."""
    fitting = [picture for picture in pictures if meter.has_room(len(picture.data))]
    missing = len(pictures) - len(fitting)
    if missing:
        meter.add_note(f"{missing:,} pictures are not looked at: the file has too many")
    return tuple(fitting)


def _joined_areas(areas: Sequence[Box]) -> list[Box]:
    """Areas, with touching or overlapping areas joined: programs may cut a picture into strips."""
    joined: list[Box] = []
    for area in areas:
        whole = area
        apart: list[Box] = []
        for earlier in joined:
            if _touch(whole, earlier):
                whole = _around_both(whole, earlier)
            else:
                apart.append(earlier)
        joined = [*apart, whole]
    return joined


def _common_part(area: Box, whole: Box) -> Box:
    return Box(
        left=max(whole.left, area.left),
        bottom=max(whole.bottom, area.bottom),
        right=min(whole.right, area.right),
        top=min(whole.top, area.top),
    )


def _around_both(area: Box, neighbour: Box) -> Box:
    return Box(
        left=min(area.left, neighbour.left),
        bottom=min(area.bottom, neighbour.bottom),
        right=max(area.right, neighbour.right),
        top=max(area.top, neighbour.top),
    )


def _touch(area: Box, neighbour: Box) -> bool:
    return (
        area.left <= neighbour.right + 1
        and neighbour.left <= area.right + 1
        and area.bottom <= neighbour.top + 1
        and neighbour.bottom <= area.top + 1
    )


def _rendered(page: Any, number: int, area: Box, *, whole_page: bool) -> Picture:
    """A part of a page, drawn."""
    width, height = page.get_size()
    longest_side = max(area.right - area.left, area.top - area.bottom)
    scale = min(DOTS_PER_INCH / POINTS_PER_INCH, LONGEST_SIDE / max(longest_side, 1.0))
    margins = (0.0, 0.0, 0.0, 0.0)
    if not whole_page:
        right = max(width - area.right, 0)
        top = max(height - area.top, 0)
        margins = (area.left, area.bottom, right, top)
    bitmap = page.render(scale=scale, crop=margins)
    try:
        image = bitmap.to_pil().convert("RGB")
    finally:
        bitmap.close()
    target = BytesIO()
    image.save(target, "JPEG", quality=JPEG_QUALITY)
    return Picture(
        page=number,
        box=_rounded(area),
        data=target.getvalue(),
        media_type="image/jpeg",
        whole_page=whole_page,
    )


def _slide_picture(shape: Any, number: int, height: float) -> Picture | None:
    """A picture of a slide as packed; None for a small or missing picture, or an unknown format."""
    try:
        image = shape.image
    except (AttributeError, KeyError, ValueError):  # linked, or of a format without a name
        return None
    lengths = (shape.left, shape.top, shape.width, shape.height)
    x, y, shape_width, shape_height = [length.pt if length else 0.0 for length in lengths]
    is_small = min(shape_width, shape_height) < SMALLEST_SIDE
    if is_small or image.content_type not in PACKAGED_TYPES:
        return None
    top = height - y
    area = Box(x, top - shape_height, x + shape_width, top)
    return Picture(page=number, box=_rounded(area), data=image.blob, media_type=image.content_type)


def _rounded(area: Box) -> tuple[float, float, float, float]:
    return (
        round(area.left, 1),
        round(area.bottom, 1),
        round(area.right, 1),
        round(area.top, 1),
    )
