"""Reads messages of electronic mail."""

import codecs
import email
import email.policy
import re
from email.message import EmailMessage, MIMEPart
from email.utils import parsedate_to_datetime

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.readers.web import declared_encoding, html_text

ADDRESS_FIELDS = ("From", "To", "Cc")
_HEADER = re.compile(rb"\A(?:From [^\n]*\n)?[!-9;-~]+[ \t]*:")


def read_mail(data: bytes, meter: FileMeter) -> Document:
    """The text of a message below its people and subject; its attachments are named at the end.

    The subject is the title; the metadata are the people and the message's id. The plain part is
    preferred; without it, the text of the HTML part is read.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # as some programs save it
        data = data.decode("utf-16", "replace").encode("utf-8")
    data = data.removeprefix(codecs.BOM_UTF8)
    if not _HEADER.match(data.lstrip()):
        raise ConfigError("is not a message: it does not begin with headers such as From:")
    message = email.message_from_bytes(data.lstrip(), policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    people = {name: text for name in ADDRESS_FIELDS if (text := _header(message, name))}
    subject = _header(message, "Subject")
    head = [f"{name}: {text}" for name, text in people.items()]
    if subject:
        head.append(f"Subject: {subject}")
    attachments = [name for part in message.iter_attachments() if (name := _attachment_name(part))]
    blocks = ["\n".join(head), _body(message, meter)]
    if attachments:
        blocks.append(f"Attachments: {', '.join(attachments)}")
    text = "\n\n".join(block for block in blocks if block)
    meter.add_characters(len(text))
    metadata = {name.lower(): address for name, address in people.items()}
    if message_id := _header(message, "Message-ID"):
        metadata["message_id"] = message_id
    return Document(text, title=subject or None, date=_date(message), metadata=metadata)


def _header(message: EmailMessage, name: str) -> str:
    """The decoded text of a header, or nothing; a malformed one is none."""
    try:
        return " ".join(str(message.get(name, "")).split())
    except (
        ValueError,
        LookupError,
        AttributeError,
        IndexError,
    ):  # of the standard library's parser
        return ""


def _date(message: EmailMessage) -> str | None:
    try:
        return parsedate_to_datetime(_header(message, "Date")).date().isoformat()
    except (ValueError, TypeError):
        return None


def _attachment_name(part: EmailMessage) -> str:
    """The name of an attached file, or the subject of an attached message."""
    try:
        name = part.get_filename()
    except (ValueError, LookupError):
        name = None
    if not name and part.get_content_type() == "message/rfc822":
        messages = part.get_payload()
        if isinstance(messages, list) and isinstance(messages[0], EmailMessage):
            name = _header(messages[0], "Subject")
    return " ".join((name or "").split())


def _body(message: EmailMessage, meter: FileMeter) -> str:
    """The text of the plain part, or else of the HTML part."""
    plain = _mime_part_text(message.get_body(("plain",)), meter)
    if plain.strip():
        return plain.strip()
    page = _mime_part_text(message.get_body(("html",)), meter)
    return html_text(page).strip() if page else ""


def _mime_part_text(part: MIMEPart | None, meter: FileMeter) -> str:
    """The decoded text of a part, in the encoding that it or its page declares."""
    content = part.get_payload(decode=True) if part is not None else None
    if part is None or not isinstance(content, bytes):
        return ""
    declared = str(part.get_param("charset") or declared_encoding(content))
    return meter.decode(content, declared=declared).replace("\r\n", "\n")
