"""Reads messages of electronic mail, and web pages saved in the form of messages."""

import codecs
import email
import email.policy
import re
from collections.abc import Iterable, Iterator, Mapping
from email.header import decode_header, make_header
from email.message import EmailMessage, MIMEPart
from email.utils import parsedate_to_datetime
from io import BytesIO

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.web import declared_encoding, html_text, read_html
from lightrag_jsonl.text.strings import single_spaced

DEEPEST_MESSAGE = 10  # of messages that are attached to each other
ADDRESS_FIELDS = ("From", "To", "Cc")
PAGE_TYPES = ("text/html", "application/xhtml+xml")
_FROM_LINE = re.compile(
    rb"^From (?P<sender_and_time>[^\n]*)\n(?=>?[!-9;-~]+[ \t]*:|\r?\n|\Z)", re.MULTILINE
)
_TIME_AND_YEAR = re.compile(rb"\d\d:\d\d.*\d{4}\s*$")
_BLANK_LINES = (b"\n\n", b"\r\n\r\n")
_NAME_BEHIND = re.compile(r"(?P<address>[^\s<>(),\"]+(?:@| at )[^\s<>(),\"]+) \((?P<name>[^()]+)\)")
_QUOTED_FROM = re.compile(rb"^>From ", re.MULTILINE)
_BOUNDARY = re.compile(rb"^--([^\s\"]{6,70})[ \t]*\r?\n(?=Content-)", re.MULTILINE)
_FIELD = re.compile(rb"^[!-9;-~]+:[^\n]*\n(?:[ \t]+[^\s][^\n]*\n)*", re.MULTILINE)
_OWN_FIELDS = (b"content-type:", b"content-transfer-encoding:")
_HEADER = re.compile(rb"\A(?:From [^\n]*\n)?[!-9;-~]+[ \t]*:")


def read_mail(data: bytes, meter: FileMeter) -> Document:
    """The text of a message below people and subject; the names of attachments come last.

    The subject is the title; the metadata are the people and the message's id. Plain text is
    preferred to the same text in HTML. Texts around pictures and attached messages are read in
    place.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # as some programs save it
        data = data.decode("utf-16", "replace").encode("utf-8")
    data = data.removeprefix(codecs.BOM_UTF8)
    if not _HEADER.match(data.lstrip()):
        raise ConfigError("is not a message: it does not begin with headers such as From:")
    message = parsed_message(data.lstrip())
    text = _message_text(message, meter, depth=1)
    meter.add_characters(len(text))
    metadata = {name.lower(): address for name, address in _people(message).items()}
    if message_id := _header(message, "Message-ID"):
        metadata["message_id"] = message_id
    title = _header(message, "Subject") or None
    return Document(text, title=title, date=_mail_date(message), metadata=metadata)


def read_outlook_mail(data: bytes, meter: FileMeter) -> Document:
    """The text of a message saved by Outlook (.msg), in the form of an .eml file's."""
    import oxmsg

    try:
        message = oxmsg.Message.load(BytesIO(data))
    except (OSError, ValueError) as error:
        raise ConfigError("is not a message of Outlook") from error
    recipients = [recipient.name or recipient.email_address for recipient in message.recipients]
    addressees = ", ".join(filter(None, recipients))
    people = {"From": message.sender or "", "To": addressees}
    subject = single_spaced(message.subject)
    body = (message.body or "").replace("\r\n", "\n").strip()
    if not body and message.html_body:
        body = html_text(message.html_body)
    names = [attachment.file_name or "" for attachment in message.attachments]
    text = _with_head({**people, "Subject": subject}, [body], names)
    meter.add_characters(len(text))
    time = message.sent_date
    date = time.date().isoformat() if time else None
    metadata = {name.lower(): person for name, person in people.items() if person}
    return Document(text, title=subject or None, date=date, metadata=metadata)


def read_web_archive(data: bytes, meter: FileMeter) -> Document:
    """The main text of a page saved by a browser in a single file (.mht)."""
    message = parsed_message(data.lstrip())
    for part in message.walk():
        content = part.get_payload(decode=True)
        if part.get_content_type() in PAGE_TYPES and isinstance(content, bytes):
            page = _decoded_part(part, content, meter)
            return read_html(page.encode("utf-8"), meter)
    raise ConfigError("holds no page of HTML")


def mailbox_files(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The messages of a mailbox (mbox), each as a file, named by the number of the message."""
    starts = [line.start() for line in _FROM_LINE.finditer(data) if _begins_message(line)]
    if not starts or data[: starts[0]].strip():
        raise ConfigError(
            "is not a mailbox: it does not begin with a line such as From ada@example.org"
        )
    ends = [*starts[1:], len(data)]
    spans = zip(starts, ends, strict=True)
    for number, (start, end) in enumerate(spans, 1):
        _, _, message = data[start:end].partition(b"\n")
        if message.strip():
            yield f"{number}.eml", _QUOTED_FROM.sub(b"From ", message)


def _begins_message(line: re.Match[bytes]) -> bool:
    """Whether a line before headers, such as "From ada@example.org Mon Jan 1 10:00:00 2024", is none of a text:
    it ends with a time and a year, or has only an address or a name and no text right before.
    """
    sender_and_time = line["sender_and_time"]
    if _TIME_AND_YEAR.search(sender_and_time):
        return True
    start = line.start()
    before = line.string[max(0, start - 4) : start]
    if before and not before.endswith(_BLANK_LINES):
        return False
    return b"@" in sender_and_time or len(sender_and_time.split()) < 2


def parsed_message(data: bytes) -> EmailMessage:
    """The message in bytes that begin with headers, in parts even if it names another boundary."""
    message = email.message_from_bytes(data, policy=email.policy.default)
    boundary = _BOUNDARY.search(data)
    if message.is_multipart() or boundary is None:
        return message
    head = data[: boundary.start()]
    body = data[boundary.start() :]
    kind = "alternative" if message.get_content_subtype() == "alternative" else "mixed"
    content_type = b'Content-Type: multipart/%s; boundary="%s"' % (kind.encode(), boundary[1])
    fields = [field for field in _FIELD.findall(head) if not field.lower().startswith(_OWN_FIELDS)]
    whole = b"".join([*fields, content_type, b"\n\n", body])
    return email.message_from_bytes(whole, policy=email.policy.default)


def _message_text(message: EmailMessage, meter: FileMeter, *, depth: int) -> str:
    """People, subject and texts of a message, and the names of attached files."""
    head = _people(message)
    if depth > 1:  # the document's own date stands beside its text
        head["Date"] = _mail_date(message) or ""
    head["Subject"] = _header(message, "Subject")
    texts = list(_part_texts(message, meter, depth))
    return _with_head(head, texts, map(_attachment_name, _leaves(message)))


def _with_head(head: Mapping[str, str], texts: Iterable[str], files: Iterable[str]) -> str:
    """Texts below the lines of a head, and above the names of files."""
    lines = [f"{name}: {text}" for name, text in head.items() if text]
    paragraphs = ["\n".join(lines), *texts]
    names = ", ".join(filter(None, files))
    if names:
        paragraphs.append(f"Attachments: {names}")
    return "\n\n".join(filter(None, paragraphs))


def _people(message: EmailMessage) -> dict[str, str]:
    fields: dict[str, str] = {}
    for name in ADDRESS_FIELDS:
        if address := _header(message, name):
            fields[name] = address
    for name, text in message.raw_items():
        field = name.title()
        person = _NAME_BEHIND.fullmatch(single_spaced(text))
        if field in fields and person:
            name_in_words = make_header(decode_header(person["name"]))
            fields[field] = f"{name_in_words} <{person['address']}>"
    return fields


def _part_texts(part: MIMEPart, meter: FileMeter, depth: int) -> Iterator[str]:
    """The texts of a part in the order shown by a mail program."""
    kind = part.get_content_type()
    if kind == "message/rfc822":
        if depth < DEEPEST_MESSAGE:
            for message in _mail_parts(part):
                yield _message_text(message, meter, depth=depth + 1)
        else:
            meter.add_note(f"messages below {DEEPEST_MESSAGE} others are left out")
    elif kind == "multipart/alternative":
        forms = [list(_part_texts(form, meter, depth)) for form in _mail_parts(part)]
        yield from next((texts for texts in forms if any(texts)), [])  # the plainest comes first
    elif kind == "multipart/related":
        for root in _mail_parts(part)[:1]:
            yield from _part_texts(root, meter, depth)
    elif part.is_multipart():
        for piece in _mail_parts(part):
            yield from _part_texts(piece, meter, depth)
    elif not _attachment_name(part) and part.get_content_maintype() == "text":
        text = _mime_part_text(part, meter)
        if text and kind == "text/html":
            text = html_text(text)
        yield text.strip()


def _mail_parts(part: MIMEPart) -> list[EmailMessage]:
    """The nested parts of a part, without malformed parts."""
    payload = part.get_payload()
    if not isinstance(payload, list):
        return []
    return [piece for piece in payload if isinstance(piece, EmailMessage)]


def _leaves(part: MIMEPart) -> Iterator[MIMEPart]:
    """The parts without nested parts, except the parts of attached messages."""
    for piece in _mail_parts(part):
        if piece.get_content_type() == "message/rfc822":
            continue
        if piece.is_multipart():
            yield from _leaves(piece)
        else:
            yield piece


def _header(message: EmailMessage, name: str) -> str:
    """The decoded text of a header; "" for a missing or malformed header."""
    try:
        return single_spaced(str(message.get(name, "")))
    except (
        ValueError,
        LookupError,
        AttributeError,
        IndexError,
    ):  # of the standard library's parser
        return ""


def _mail_date(message: EmailMessage) -> str | None:
    try:
        time = parsedate_to_datetime(_header(message, "Date"))
    except (ValueError, TypeError):
        return None
    return time.date().isoformat()


def _attachment_name(part: MIMEPart) -> str:
    """The name of an attached file; "" for a text in the message itself, named or not."""
    if part.get_content_maintype() == "text" and part.get_content_disposition() != "attachment":
        return ""
    try:
        name = part.get_filename()
    except (ValueError, LookupError):
        name = None
    return single_spaced(name)


def _mime_part_text(part: MIMEPart, meter: FileMeter) -> str:
    """The text of a part; "" for a part without bytes."""
    content = part.get_payload(decode=True)
    if not isinstance(content, bytes):
        return ""
    return _decoded_part(part, content, meter).replace("\r\n", "\n")


def _decoded_part(part: MIMEPart, content: bytes, meter: FileMeter) -> str:
    """The content of a part in the encoding declared by the part or the page."""
    charset = str(part.get_param("charset") or declared_encoding(content))
    return meter.decode(content, declared=charset)
