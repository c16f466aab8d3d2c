"""Reads calendars (.ics): each event is a paragraph with time, place, people and description."""

import re
from collections.abc import Iterator
from typing import Any

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import counted, single_spaced

COMPONENTS = ("VEVENT", "VTODO", "VJOURNAL")
_COMPONENT = pattern_of(
    r"^BEGIN:(?P<name>VEVENT|VTODO|VJOURNAL)[ \t]*\n(?:(?!^BEGIN:(?P=name)).)*?^END:(?P=name)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
EVENT_FIELDS = {
    "DTSTART": "Start", "DTEND": "End", "DUE": "Due", "LOCATION": "Location", "ORGANIZER": "Organizer",
    "ATTENDEE": "Attendees", "STATUS": "Status", "RRULE": "Repeats", "DESCRIPTION": "Description",
}  # fmt: skip


def read_calendar(data: bytes, meter: FileMeter) -> Document:
    """The events, tasks and journals of a calendar, by beginning."""
    import icalendar

    text = meter.decode(data)
    try:
        calendars = icalendar.Calendar.from_ical(text, multiple=True)
    except ValueError as error:
        calendars = list(_readable_components(text, meter))
        if not calendars:
            raise ConfigError(f"is not a valid .ics file: {error}") from error
    items = [item for calendar in calendars for item in calendar.walk() if item.name in COMPONENTS]
    items.sort(key=lambda item: _time(item.get("DTSTART")))
    paragraphs = ["; ".join(_event_parts(item)) for item in items]
    if not all(paragraphs):
        unreadable = counted(paragraphs.count(""), "events")
        meter.add_note(f"{unreadable} without readable words left out")
    text = "\n\n".join(filter(None, paragraphs))
    meter.add_characters(len(text))
    title = ""
    if calendars:
        title = str(calendars[0].get("X-WR-CALNAME", ""))
    return Document(text, title=title or None)


def _readable_components(text: str, meter: FileMeter) -> Iterator[Any]:
    """The events of a calendar that cannot be read as a whole; those that cannot be read are noted."""
    import icalendar

    for match in _COMPONENT.finditer(text.replace("\r\n", "\n")):
        try:
            yield icalendar.Component.from_ical(match[0])
        except ValueError as error:
            meter.add_note(f"an event cannot be read: {error}")


def _event_parts(item: Any) -> Iterator[str]:
    """An event as "Launch", "Start: 2026-05-06 09:00", "Location: Leith" and so on."""
    if summary := single_spaced(str(item.get("SUMMARY", ""))):
        yield summary
    for name, word in EVENT_FIELDS.items():
        values = item.get(name)
        if not isinstance(values, list):
            values = [values]
        texts = ", ".join(filter(None, map(_event_text, values)))
        if texts:
            yield f"{word}: {texts}"


def _event_text(value: Any) -> str:
    if value is None:
        return ""
    if text := _time(value):
        return text
    if isinstance(value, dict):  # a rule of repetition
        return "; ".join(f"{key}={_text_of_rule(parts)}" for key, parts in value.items())
    name = None
    if hasattr(value, "params"):
        name = value.params.get("CN")
    person = str(name or value).removeprefix("mailto:")
    return single_spaced(person)


def _text_of_rule(parts: Any) -> str:
    if isinstance(parts, list):
        return ",".join(map(str, parts))
    return str(parts)


def _time(value: Any) -> str:
    """A day, or a time to the minute with the zone, if any; "" for any other value."""
    try:
        moment = getattr(value, "dt", None)
    except ValueError:  # a property that is broken
        return ""
    if moment is None:
        return ""
    text = str(moment)
    if hasattr(moment, "hour"):
        text = text[:16] + text[19:]  # without the seconds
    return text
