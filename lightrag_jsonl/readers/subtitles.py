"""Reads subtitles and captions: the spoken words below times."""

import re
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.web import html_text
from lightrag_jsonl.text.patterns import pattern_of

TIMES = pattern_of(r"^\d+:\d\d:\d\d,\d{3}[ \t]*-->[ \t]*\d+:\d\d:\d\d,\d{3}", re.MULTILINE)
PAUSE = 4.0  # seconds without a word, after which a paragraph begins
STYLE = pattern_of(r"\{\\[^{}\n]*\}")  # of SubStation Alpha, which many .srt files have: {\an8}
STRETCH = 120.0  # seconds below one heading


def read_subtitles(data: bytes, meter: FileMeter) -> Document:
    """The words of SubRip or WebVTT as running text.

    A heading every two minutes ("0:02:00") gives citations the time. A named speaker begins a
    paragraph.
    """
    import webvtt

    source = meter.decode(data).replace("\r\n", "\n").strip()
    if TIMES.match(source):  # without numbers, which only captions of WebVTT may lack
        source = TIMES.sub(lambda times: times[0].replace(",", "."), source)
        source = f"WEBVTT\n\n{source}"
    kind = "vtt" if source.startswith("WEBVTT") else "srt"
    try:
        captions = webvtt.from_buffer(StringIO(source + "\n"), format=kind)
    except webvtt.errors.MalformedFileError as error:
        raise ConfigError(f"is not a valid .{kind} file: {error}") from error
    text = "\n\n".join(_cue_paragraphs(captions))
    meter.add_characters(len(text))
    return Document(text)


def _cue_paragraphs(captions: Any) -> Iterator[str]:
    words: list[str] = []
    speaker = ""
    last_end = 0.0
    next_heading = 0.0
    for caption in captions:
        start = caption.start_in_seconds
        new_speaker = caption.voice or ""
        is_new = start - last_end > PAUSE or new_speaker != speaker or start >= next_heading
        if is_new and words:
            yield " ".join(words)
            words = []
        if start >= next_heading:
            yield f"## {timedelta(seconds=int(start))}"
            next_heading = start - start % STRETCH + STRETCH
        if new_speaker and not words:
            words.append(f"{new_speaker}:")
        caption_text = STYLE.sub("", caption.text)
        words += html_text(f"<p>{caption_text}</p>").split()
        speaker = new_speaker
        last_end = caption.end_in_seconds
    if words:
        yield " ".join(words)
