"""Reads exports of chats: who said what, and when, a line for each message.

Recognized by structure: conversations of ChatGPT and Claude, chats of Telegram, days of channels of
Slack, and texts of WhatsApp.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, NamedTuple, TypeGuard

from lightrag_jsonl.core.types import Document
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.text.patterns import pattern_of

# In the bytes of an export of several conversations; other files of JSON are not parsed for it
_MARKS_OF_COLLECTIONS = (
    (b'"mapping"', b'"current_node"'),
    (b'"chat_messages"',),
    (b'"chats"', b'"list"'),
)
_WHATSAPP_LINE = pattern_of(  # the half of the day stands before the time in Chinese and Korean
    r"^\u200e?\[?(?P<first>\d{1,4})(?:[./-]|년 )(?P<second>\d{1,2})(?:[./-]|월 )(?P<third>\d{1,4})(?:일|\.)?,? "
    r"(?:[^\d\s\]-]{1,6} ?)?\d{1,2}[:.]\d{2}[^\]\n-]{0,12}?(?:\] | [-–] |, )\u200e?(?P<name>[^:\n]{1,60}?) ?: ",
    re.MULTILINE,
)
_LEAST_MESSAGES = 3  # of a text of WhatsApp
_LEAST_SHARE = 0.3  # of its lines that begin a message; others go on with one
_SLACK_MARK = pattern_of(r"<(?P<kind>[@#!]?)(?P<target>[^<>|]+)(?:\|(?P<words>[^<>]*))?>")
_UNSEEN_ROLES = ("system", "tool")
_SLACK_DAY = pattern_of(r"\d{4}-\d\d-\d\d\.json")  # the name of a file of a channel
_SLACK_PEOPLE = "users.json"
_SLACK_LISTS = (
    _SLACK_PEOPLE,
    "channels.json",
    "groups.json",
    "dms.json",
    "mpims.json",
    "integration_logs.json",
)
_UNTOLD_KINDS = ("channel_join", "channel_leave", "group_join", "group_leave", "tombstone")


class ToldMessage(NamedTuple):
    """A speaker, the words, and the time in ISO form, if known."""

    name: str
    text: str
    time: str = ""


def conversation_files(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The conversations of an export as files, by name in the export; empty for other JSON."""
    is_collection = any(all(mark in data for mark in marks) for marks in _MARKS_OF_COLLECTIONS)
    if not is_collection:
        return
    try:
        conversations = _conversations(json.loads(data))
    except (ValueError, RecursionError):  # the reader of JSON says why
        return
    for number, conversation in enumerate(conversations, 1):
        id = str(conversation.get("id") or conversation.get("uuid") or number)
        name = re.sub(r"[^\w-]", "-", id)
        yield f"{name}.json", json.dumps(conversation, ensure_ascii=False).encode()


class SlackExports:
    """The exports of Slack among files: each a list of people, and a file for each day of a channel.

    `read` gives the bytes of a file, None if there is none.
    """

    def __init__(self, read: Callable[[PurePath], bytes | None]) -> None:
        self._read = read
        self._names_by_folder: dict[PurePath, Mapping[str, str]] = {}

    def is_list(self, path: PurePath) -> bool:
        """Whether a file lists the people or channels of an export, whose days have the names."""
        return path.name in _SLACK_LISTS and bool(self._names(path.parent))

    def with_names(self, data: bytes, path: PurePath) -> bytes:
        """A day of a channel as a file with the channel and the names of people; other files are unchanged."""
        if not _SLACK_DAY.fullmatch(path.name):
            return data
        channel = path.parent
        names = self._names(channel.parent)
        messages = _json(data) if names else None
        if not _are_objects_in(messages, "ts", "type"):
            return data
        day = {"channel": channel.name, "names": names, "messages": messages}
        return json.dumps(day, ensure_ascii=False).encode()

    def _names(self, folder: PurePath) -> Mapping[str, str]:
        """The names of the people of an export by id; empty for another folder. Each list is read once."""
        if folder not in self._names_by_folder:
            names: dict[str, str] = {}
            people = _json(self._read(folder / _SLACK_PEOPLE) or b"")
            if _are_objects_in(people, "id", "profile"):
                for person in people:
                    id = str(person.get("id"))
                    names[id] = _name_in_profile(person, person.get("profile"))
            self._names_by_folder[folder] = names
        return self._names_by_folder[folder]


def _json(data: bytes) -> Any:
    """The value of a file; None if it is no JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def chat_document(value: Any, meter: FileMeter) -> Document | None:
    """The document of a parsed file, if the file is a conversation: a line for each message with words.

    The date of the last message is the document's.
    """
    title, told_messages = _conversation(value)
    if told_messages is None:
        return None
    messages = [message for message in told_messages if message.text.strip()]
    lines: list[str] = []
    for message in messages:
        time = message.time[:16].replace("T", " ")
        speaker = " ".join(filter(None, (time, message.name)))
        line = f"{speaker}: {message.text.strip()}"
        meter.add_characters(len(line))
        lines.append(line)
    dates = [message.time[:10] for message in messages if message.time]
    people = list(dict.fromkeys(message.name for message in messages))
    return Document(
        meter.without_embedded_data("\n".join(lines)),
        title=_told(title) or None,
        date=max(dates, default=None),
        metadata={"people": people},
    )


def _conversation(value: Any) -> tuple[Any, Iterator[ToldMessage] | None]:
    """The title and the messages of a conversation; None for other JSON."""
    if _are_objects_in(value, "ts", "type") and any(item["type"] == "message" for item in value):
        return None, _slack_messages(value, {})
    if not isinstance(value, dict):
        return None, None
    if isinstance(value.get("mapping"), dict):
        return value.get("title"), _chatgpt_messages(value)
    if _are_objects_in(value.get("chat_messages"), "sender"):
        return value.get("name"), _claude_messages(value["chat_messages"])
    if _are_objects_in(value.get("messages"), "date", "type", "text"):
        return value.get("name"), _telegram_messages(value["messages"])
    if {"channel", "names", "messages"} == value.keys():
        return f"#{value['channel']}", _slack_messages(value["messages"], value["names"])
    return None, None


def whatsapp_document(text: str) -> Document | None:
    """The document of a text exported by WhatsApp, with the lines unchanged."""
    matches = list(_WHATSAPP_LINE.finditer(text))
    lines = text.count("\n") + 1
    if len(matches) < max(_LEAST_MESSAGES, _LEAST_SHARE * lines):
        return None
    names = dict.fromkeys(match["name"].strip() for match in matches)
    return Document(text, date=_last_day(matches), metadata={"people": list(names)})


def _conversations(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict) and isinstance(value.get("chats"), dict):
        chats = value["chats"].get("list")
        return chats if _are_objects_in(chats, "messages") else []
    if _are_objects_in(value, "mapping"):
        return value
    if _are_objects_in(value, "chat_messages"):
        return value
    return []


def _are_objects_in(value: Any, *fields: str) -> TypeGuard[list[dict[str, Any]]]:
    """Whether a value is a list of objects, with these fields in the first object."""
    if not isinstance(value, list) or not value:
        return False
    if not all(isinstance(item, dict) for item in value):
        return False
    return all(field in value[0] for field in fields)


def _chatgpt_messages(conversation: Mapping[str, Any]) -> Iterator[ToldMessage]:
    """The messages on the way to the last one, without answers replaced by a second try."""
    nodes = conversation["mapping"]
    way: list[Mapping[str, Any]] = []
    key = conversation.get("current_node") or next(reversed(nodes), None)
    for _ in nodes:  # at most: a prepared file can go around
        node = nodes.get(key) if isinstance(key, str) else None
        if not isinstance(node, dict):
            break
        way.append(node)
        key = node.get("parent")
    for node in reversed(way):
        message = node.get("message")
        if not isinstance(message, dict):
            continue
        author = message.get("author") or {}
        content = message.get("content") or {}
        metadata = message.get("metadata") or {}
        role = str(author.get("role", ""))
        parts = content.get("parts") or []
        texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
        words = "\n".join([text for text in texts if isinstance(text, str)])
        is_hidden = metadata.get("is_visually_hidden_from_conversation")
        if role not in _UNSEEN_ROLES and not is_hidden:
            time = _time_of_seconds(message.get("create_time"))
            yield ToldMessage(role, words, time)


def _claude_messages(messages: Iterable[Mapping[str, Any]]) -> Iterator[ToldMessage]:
    for message in messages:
        name = str(message.get("sender", ""))
        time = str(message.get("created_at") or "")
        spoken = [
            str(block.get("text") or "")
            for block in _objects_in(message.get("content"))
            if block.get("type") == "text"
        ]
        words = str(message.get("text") or "") or "\n".join(spoken)
        files = _objects_in(message.get("attachments")) + _objects_in(message.get("files"))
        names = dict.fromkeys(file.get("file_name") for file in files)
        yield ToldMessage(name, _with_files(words, names), time)


def _telegram_messages(messages: Iterable[Mapping[str, Any]]) -> Iterator[ToldMessage]:
    writers: dict[Any, str] = {}
    for message in messages:
        if message.get("type") != "message":
            continue
        name = str(message.get("from") or "?")
        writers[message.get("id")] = name
        text = _with_files(_telegram_words(message), [_telegram_file(message)])
        if forwarded := message.get("forwarded_from"):
            text = f"(from {forwarded}) {text}"
        answered_writer = writers.get(message.get("reply_to_message_id"))
        text = _as_reply(text, answered_writer)
        yield ToldMessage(name, text, str(message.get("date", "")))


def _telegram_words(message: Mapping[str, Any]) -> str:
    """The words of a message, also of links and other marked pieces."""
    text = message.get("text", "")
    pieces = text if isinstance(text, list) else [text]
    words = [piece.get("text", "") if isinstance(piece, dict) else piece for piece in pieces]
    return "".join(map(str, words))


def _telegram_file(message: Mapping[str, Any]) -> Any:
    """The name or the kind of what is attached to a message."""
    poll = message.get("poll")
    if isinstance(poll, dict):
        return poll.get("question")
    kind = "photo" if message.get("photo") else message.get("media_type")
    return message.get("file_name") or kind


def _slack_messages(
    messages: list[dict[str, Any]], names_in_export: Mapping[str, str]
) -> Iterator[ToldMessage]:
    names: dict[str, str] = {}
    for message in messages:
        user = message.get("user")
        profile = message.get("user_profile")
        if profile:
            names[str(user)] = _name_in_profile({"id": user}, profile)
    names.update(names_in_export)

    writers: dict[Any, str] = {}
    for message in messages:
        if message.get("type") != "message" or message.get("subtype") in _UNTOLD_KINDS:
            continue
        name = _slack_writer(message, names)
        seconds = message.get("ts")
        thread = message.get("thread_ts")
        writers.setdefault(seconds, name)
        files = _objects_in(message.get("files"))
        file_names = [file.get("title") or file.get("name") for file in files]
        text = _with_files(_slack_text(message, names), file_names)
        if thread != seconds:
            text = _as_reply(text, writers.get(thread))
        yield ToldMessage(name, text, _time_of_seconds(seconds))


def _slack_writer(message: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """The name of a person, or of a program without an account."""
    user = str(message.get("user") or message.get("bot_id") or "?")
    if user in names:
        return names[user]
    program = message.get("username")
    bot = message.get("bot_profile")
    if not program and isinstance(bot, dict):
        program = bot.get("name")
    return str(program or user)


def _slack_text(message: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """The words of a message and of its cards, with people and channels by name."""
    texts = [str(message.get("text") or "") or "\n".join(_slack_texts(message.get("blocks")))]
    for card in _objects_in(message.get("attachments")):  # of links and of programs
        texts.append(_told(card.get("title")))
        texts.append(_told(card.get("text") or card.get("fallback")))

    def words_of(match: re.Match[str]) -> str:
        words = match["words"] or match["target"]
        if match["kind"] == "@":
            words = names.get(match["target"], words)
        return match["kind"] + words

    text = _SLACK_MARK.sub(words_of, "\n".join(filter(None, texts)))
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _slack_texts(blocks: Any) -> Iterator[str]:
    """The texts in the blocks of a message without a text of its own."""
    for block in _objects_in(blocks):
        text = block.get("text")
        if isinstance(text, dict):
            yield from _slack_texts([text])
            continue
        if isinstance(text, str):
            yield text
        yield from _slack_texts(block.get("elements"))


def _name_in_profile(person: Mapping[str, Any], profile: Any) -> str:
    if not isinstance(profile, dict):
        profile = {}
    name = (
        profile.get("real_name")
        or profile.get("display_name")
        or person.get("real_name")
        or person.get("name")
        or person.get("id")
        or "?"
    )
    return str(name)


def _objects_in(value: Any) -> list[Mapping[str, Any]]:
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, dict)]


def _told(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _with_files(text: str, names: Iterable[Any]) -> str:
    """A message with the names of its files."""
    files = ", ".join(filter(None, map(_told, names)))
    return f"{text} [attached: {files}]".strip() if files else text


def _as_reply(text: str, writer: str | None) -> str:
    """A message with the writer of the message that it answers, if known."""
    return f"(to {writer}) {text}" if writer and text.strip() else text


def _time_of_seconds(seconds: Any) -> str:
    """The time in UTC; "" for anything but seconds since 1970."""
    try:
        return datetime.fromtimestamp(float(seconds), UTC).isoformat()
    except (TypeError, ValueError, OverflowError, OSError):
        return ""


def _last_day(matches: list[re.Match[str]]) -> str | None:
    """The day of the last message, if the numbers of the export tell days from months."""
    first = [int(match["first"]) for match in matches]
    second = [int(match["second"]) for match in matches]
    third = int(matches[-1]["third"])
    year = third + 2000 if third < 100 else third
    if max(first) > 31:
        numbers = (first[-1], second[-1], third)
    elif max(first) > 12 >= max(second):
        numbers = (year, second[-1], first[-1])
    elif max(second) > 12 >= max(first):
        numbers = (year, first[-1], second[-1])
    else:
        return None
    try:
        return datetime(*numbers, tzinfo=UTC).date().isoformat()
    except ValueError:
        return None
