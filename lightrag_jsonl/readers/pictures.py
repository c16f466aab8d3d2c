"""Pictures for a vision model: scanned pages, pictures in other files, and files of pictures."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from io import BytesIO
from typing import Any, NamedTuple

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document, Picture
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.text.strings import counted

POINTS_PER_INCH = 72
DOTS_PER_INCH = 150  # of a scanned page: small print is 15 pixels high
JPEG_QUALITY = 85  # print stays sharp
LONGEST_SIDE = 2_000  # pixels; models make larger pictures smaller
SMALLEST_SIDE = 40.0  # points; smaller pictures are signs and rules
SMALLEST_SHARE = 0.02  # of the page
LOGO_PAGES = 3  # pages with the same picture at the same place, such as a logo
MEDIA_TYPES = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}  # that models read
READABLE_FORMATS = (*MEDIA_TYPES, "BMP", "GIF", "TIFF")  # the last ones are converted
ORIENTATION = 0x0112  # the field of EXIF: how the camera was held; 1 is upright
SEEING_ADVICE = "name a vision model (models: see)"


class Box(NamedTuple):
    """A rectangle on a page, in points from the lower left corner."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """From bottom to top."""
        return self.top - self.bottom

    @property
    def area(self) -> float:
        """In square points."""
        return self.width * self.height

    def holds(self, box: "Box") -> bool:
        """Whether the middle of a box is inside."""
        x = (box.left + box.right) / 2
        y = (box.bottom + box.top) / 2
        return self.left <= x <= self.right and self.bottom <= y <= self.top


def around(boxes: Sequence[Box]) -> Box:
    """The smallest rectangle around the boxes."""
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return Box(min(lefts), min(bottoms), max(rights), max(tops))


def read_picture_file(data: bytes, meter: FileMeter) -> Document:
    """A picture as a document of one page; a TIFF file, such as a fax, has a page for each picture.

    The box of a page is in pixels. `ConfigError` for broken files, and without a vision model.
    """
    from PIL import Image, ImageSequence

    if not meter.sees:
        raise ConfigError(f"is a picture: {SEEING_ADVICE}")
    pictures: list[Picture] = []
    try:
        with Image.open(BytesIO(data), formats=READABLE_FORMATS) as image:
            frames = ImageSequence.Iterator(image) if image.format == "TIFF" else [image]
            for number, frame in enumerate(frames, 1):
                meter.add_pages(1)
                box = (0.0, 0.0, float(frame.width), float(frame.height))
                packed, media_type = _packed(frame, data)
                pictures.append(Picture(number, box, packed, media_type, whole_page=True))
    except OSError as error:
        raise ConfigError(f"is damaged, or none of {', '.join(READABLE_FORMATS)}") from error
    return Document("", pages=("",) * len(pictures), pictures=add_pictures(meter, pictures))


def packaged_picture(data: bytes, meter: FileMeter) -> tuple[bytes, str] | None:
    """A picture in a package of Office, in a format for models, and the media type.

    None, and a note, for a damaged picture or an unreadable format, such as EMF.
    """
    from PIL import Image

    try:
        with Image.open(BytesIO(data), formats=READABLE_FORMATS) as image:
            return _packed(image, data)
    except (OSError, ValueError, Image.DecompressionBombError):
        meter.add_note("a picture is not looked at: it is damaged, or neither PNG nor JPEG")
        return None


def scanned_page(page: Any, number: int) -> Picture:
    """A page of a PDF file as a picture."""
    width, height = page.get_size()
    return _rendered(page, number, Box(0.0, 0.0, width, height), whole_page=True)


def pictures_on_page(page: Any, number: int, charts: Iterable[Box]) -> list[Picture]:
    """The pictures and drawn charts on a page of a PDF file with text, from top to bottom."""
    areas = sorted(picture_areas(page, charts), key=lambda area: (-area.top, area.left))
    return [_rendered(page, number, area, whole_page=False) for area in areas]


def picture_areas(page: Any, charts: Iterable[Box]) -> list[Box]:
    """The areas of pictures and charts of some size; pieces of a single picture are joined."""
    import pypdfium2.raw as pdfium

    whole = Box(*page.get_bbox())
    areas: list[Box] = []
    images = page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3)
    for box in (*charts, *map(object_box, images)):
        part = _common_part(box, whole)
        if part.left < part.right and part.bottom < part.top:
            areas.append(part)
    least_area = SMALLEST_SHARE * whole.area
    large_areas: list[Box] = []
    for area in joined_areas(areas):
        shorter_side = min(area.width, area.height)
        if shorter_side >= SMALLEST_SIDE and area.area >= least_area:
            large_areas.append(area)
    return large_areas


def object_box(item: Any) -> Box:
    """The place of an object on the page, also of an object inside a form of the page."""
    box = Box(*item.get_bounds())
    container = getattr(item, "container", None)
    while container is not None:
        box = Box(*container.get_matrix().on_rect(*box))
        container = container.container
    return box


def without_logos(
    pictures: Sequence[Picture], identity: Callable[[Picture], Hashable]
) -> list[Picture]:
    """The pictures without logos: pictures on several pages, told by an `identity`."""
    counts = Counter(map(identity, pictures))
    return [
        picture
        for picture in pictures
        if picture.whole_page or counts[identity(picture)] < LOGO_PAGES
    ]


def picture_bytes(picture: Picture) -> bytes:
    """The identity of a picture by content, for pictures stored unchanged."""
    return picture.data


def picture_place(picture: Picture) -> tuple[int, ...]:
    """The identity of a picture by place, for pictures drawn with text, such as page numbers."""
    return tuple(map(round, picture.box))


def slide_pictures(
    shapes: Iterable[Any], number: int, height: float, meter: FileMeter
) -> list[Picture]:
    """The pictures on a slide of a height in points, also in groups."""
    pictures: list[Picture] = []
    for shape in shapes:
        if hasattr(shape, "shapes"):
            pictures += slide_pictures(shape.shapes, number, height, meter)
        elif hasattr(shape, "image"):
            picture = _slide_picture(shape, number, height, meter)
            if picture is not None:
                pictures.append(picture)
    return pictures


def add_pictures(meter: FileMeter, pictures: Sequence[Picture]) -> tuple[Picture, ...]:
    """The pictures within the meter's room; a note counts the rest."""
    fitting = [picture for picture in pictures if meter.has_room(len(picture.data))]
    missing = len(pictures) - len(fitting)
    if missing:
        meter.add_note(f"{counted(missing, 'pictures')} not looked at: the file has too many")
    return tuple(fitting)


def joined_areas(areas: Sequence[Box]) -> list[Box]:
    """Areas, with touching or overlapping areas joined: programs may cut a picture into strips."""
    joined: list[Box] = []
    for area in areas:
        whole = area
        apart: list[Box] = []
        for earlier in joined:
            if _touch(whole, earlier):
                whole = around([whole, earlier])
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


def _touch(area: Box, neighbour: Box) -> bool:
    return (
        area.left <= neighbour.right + 1
        and neighbour.left <= area.right + 1
        and area.bottom <= neighbour.top + 1
        and neighbour.bottom <= area.top + 1
    )


def _rendered(page: Any, number: int, area: Box, *, whole_page: bool) -> Picture:
    """A part of a page, drawn."""
    longest_side = max(area.width, area.height, 1.0)
    scale = min(DOTS_PER_INCH / POINTS_PER_INCH, LONGEST_SIDE / longest_side)
    margins = (0.0, 0.0, 0.0, 0.0)
    if not whole_page:
        page_area = Box(*page.get_bbox())
        margins = (
            max(area.left - page_area.left, 0),
            max(area.bottom - page_area.bottom, 0),
            max(page_area.right - area.right, 0),
            max(page_area.top - area.top, 0),
        )
    rotation = page.get_rotation()
    page.set_rotation(0)  # margins are those of the page as it was made
    try:
        bitmap = page.render(scale=scale, crop=margins)
        image = bitmap.to_pil().rotate(-rotation, expand=True)
        bitmap.close()
    finally:
        page.set_rotation(rotation)
    return Picture(
        page=number,
        box=_rounded(area),
        data=_jpeg(image),
        media_type="image/jpeg",
        whole_page=whole_page,
    )


def _packed(image: Any, data: bytes) -> tuple[bytes, str]:
    """An image, upright, in a format and size for models, and the media type."""
    from PIL import ImageOps

    media_type = MEDIA_TYPES.get(image.format, "")
    is_upright = image.getexif().get(ORIENTATION, 1) == 1
    if media_type and is_upright and max(image.size) <= LONGEST_SIDE:
        image.load()  # a damaged picture is found here, not by the model
        return data, media_type
    image.draft(
        "RGB", (LONGEST_SIDE, LONGEST_SIDE)
    )  # a large JPEG is decoded at a lower resolution
    upright = ImageOps.exif_transpose(image)
    upright.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    return _jpeg(upright), "image/jpeg"


def _jpeg(image: Any) -> bytes:
    """The bytes of an image as JPEG; transparent areas become white."""
    from PIL import Image

    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        ground = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(ground, image)
    target = BytesIO()
    image.convert("RGB").save(target, "JPEG", quality=JPEG_QUALITY)
    return target.getvalue()


def _slide_picture(shape: Any, number: int, height: float, meter: FileMeter) -> Picture | None:
    """A picture of a slide as packed; None for a small, missing or unreadable picture."""
    try:
        data = shape.image.blob
    except (AttributeError, KeyError, ValueError):  # linked, or of a format without a name
        return None
    lengths = (shape.left, shape.top, shape.width, shape.height)
    x, y, shape_width, shape_height = [length.pt if length else 0.0 for length in lengths]
    if min(shape_width, shape_height) < SMALLEST_SIDE:
        return None
    packed = packaged_picture(data, meter)
    if packed is None:
        return None
    top = height - y
    area = Box(x, top - shape_height, x + shape_width, top)
    return Picture(page=number, box=_rounded(area), data=packed[0], media_type=packed[1])


def _rounded(area: Box) -> Box:
    return Box(*[round(side, 1) for side in area])
