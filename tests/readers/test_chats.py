"""Promises of exports of chats: one document a conversation, a line for who said what and when."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.kit import loaded
from tests.readers.files import read


def node(parent: str | None, role: str, words: list[Any], seconds: float) -> dict[str, Any]:
    """A node of a conversation of ChatGPT."""
    content = {"content_type": "text", "parts": words}
    message = {"author": {"role": role}, "content": content, "create_time": seconds}
    return {"parent": parent, "children": [], "message": message}


def conversation(id: str, title: str) -> dict[str, Any]:
    mapping = {
        "root": {"parent": None, "children": ["q"], "message": None},
        "hidden": node("root", "system", ["You help."], 1.7e9),
        "q": node("hidden", "user", ["Who keeps the lock of Leith?"], 1.7e9),
        "old": node("q", "assistant", ["Bob Crane."], 1.7e9),
        "new": node("q", "assistant", ["Dora Finch.", {"content_type": "image"}], 1.7e9 + 86_400),
    }
    return {
        "id": id,
        "title": title,
        "create_time": 1.7e9,
        "mapping": mapping,
        "current_node": "new",
    }


def test_each_conversation_of_chatgpt_is_a_document(tmp_path: Path) -> None:
    """By structure, not by name; without hidden messages, and without answers that were asked again."""
    path = tmp_path / "export-2023.json"
    path.write_text(json.dumps([conversation("a-1", "Lock"), conversation("b-2", "码头")]))
    first, second = loaded(path).documents

    assert (first.title, second.title) == ("Lock", "码头")
    assert first.id == f"{path.resolve()}#/a-1.json"
    assert first.date == "2023-11-15"
    assert first.text == (
        "2023-11-14 22:13 user: Who keeps the lock of Leith?\n2023-11-15 22:13 assistant: Dora Finch."
    )


def test_conversations_of_claude_are_read() -> None:
    """Sender, text and time of each message."""
    messages = [
        {"sender": "human", "text": "Where is the quay?", "created_at": "2024-03-02T10:00:00Z"},
        {"sender": "assistant", "text": "In Leith.", "created_at": "2024-03-02T10:01:00Z"},
    ]
    data = json.dumps({"uuid": "x", "name": "Quay", "chat_messages": messages}).encode()
    document = read(data, "one.json")

    assert document.title == "Quay"
    assert document.text == (
        "2024-03-02 10:00 human: Where is the quay?\n2024-03-02 10:01 assistant: In Leith."
    )


def telegram(name: str) -> dict[str, Any]:
    messages = [
        {"id": 1, "type": "service", "date": "2022-05-01T08:00:00", "action": "create", "text": ""},
        {
            "id": 2,
            "type": "message",
            "date": "2022-05-01T08:01:00",
            "from": "林晚秋",
            "text": "潮汐表好了",
        },
        {
            "id": 3,
            "type": "message",
            "date": "2022-05-03T09:30:00",
            "from": "Ada",
            "text": ["See ", {"type": "bold", "text": "the new lock"}, "!"],
        },
        {"id": 4, "type": "message", "date": "2022-05-03T09:31:00", "from": "Ada", "text": ""},
    ]
    return {"name": name, "type": "personal_chat", "id": 7, "messages": messages}


def test_chats_of_telegram_are_read_alone_and_together(tmp_path: Path) -> None:
    """A file of one chat is one document, one of all chats a document a chat; styled words are words."""
    text = "2022-05-01 08:01 林晚秋: 潮汐表好了\n2022-05-03 09:30 Ada: See the new lock!"
    alone, together = tmp_path / "result.json", tmp_path / "all.json"
    alone.write_text(json.dumps(telegram("Lock")))
    together.write_text(
        json.dumps({"chats": {"list": [telegram("Lock"), telegram("Quay") | {"id": 8}]}})
    )

    assert [(item.text, item.date) for item in loaded(alone).documents] == [(text, "2022-05-03")]
    assert [item.title for item in loaded(together).documents] == ["Lock", "Quay"]
    assert {item.text for item in loaded(together).documents} == {text}
    assert loaded(alone).documents[0].metadata["people"] == ["林晚秋", "Ada"]


def test_days_of_slack_are_read_in_an_archive(tmp_path: Path) -> None:
    """Names of people in place of ids, links as their words, and signs as they were typed."""
    messages = [
        {
            "type": "message",
            "user": "U1",
            "ts": "1700000000.1",
            "text": "<@U2> the <https://x.example|plan> &amp; more",
            "user_profile": {"real_name": "Ada Brook"},
        },
        {
            "type": "message",
            "user": "U2",
            "ts": "1700000060.1",
            "text": "ok",
            "user_profile": {"real_name": "Bob Crane"},
        },
    ]
    path = tmp_path / "slack.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("general/2023-11-14.json", json.dumps(messages))
    (document,) = loaded(path).documents

    assert document.date == "2023-11-14"
    assert document.text == (
        "2023-11-14 22:13 Ada Brook: @Bob Crane the plan & more\n2023-11-14 22:14 Bob Crane: ok"
    )


SLACK_EXPORT: dict[str, Any] = {
    "users.json": [
        {"id": "U1", "name": "ada", "profile": {"real_name": "Ada Brook", "email": "a@x.example"}},
        {"id": "U2", "name": "xiaolin", "profile": {"real_name": "", "display_name": "林晚秋"}},
        {"id": "U3", "name": "cid", "profile": {}},
    ],
    "channels.json": [{"id": "C1", "name": "quay", "members": ["U1"], "purpose": {"value": "Lamps"}}],
    "quay/2023-11-14.json": [
        {"type": "message", "subtype": "channel_join", "user": "U2", "ts": "1.7e9", "text": "<@U2> has joined"},
        {"type": "message", "user": "U1", "ts": "1700000000.1", "thread_ts": "1700000000.1", "text": "<!here> <@U3>?"},
        {"type": "message", "user": "U2", "ts": "1700000060.1", "thread_ts": "1700000000.1", "text": "在 <#C1|quay>",
         "files": [{"name": "plan.pdf", "title": "Plan of the quay"}], "edited": {"user": "U2", "ts": "1"}},
        {"type": "message", "subtype": "bot_message", "username": "Tide", "ts": "1700000120.1", "text": "",
         "attachments": [{"title": "High water", "text": "at 21:15", "fallback": "x"}]},
        {"type": "message", "user": "U3", "ts": "1700000180.1", "text": "", "blocks": [{"type": "rich_text",
         "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "I am late."}]}]}]},
        {"type": "message", "subtype": "tombstone", "user": "U1", "ts": "1700000240.1", "text": "This was deleted."},
    ],
}  # fmt: skip
SLACK_TEXT = """2023-11-14 22:13 Ada Brook: !here @cid?
2023-11-14 22:14 林晚秋: (to Ada Brook) 在 #quay [attached: Plan of the quay]
2023-11-14 22:15 Tide: High water
at 21:15
2023-11-14 22:16 cid: I am late."""


def test_an_export_of_slack_has_the_names_of_its_lists(tmp_path: Path) -> None:
    """As a folder and as an archive: who said what in which channel, without joins and deleted messages."""
    folder, packed = tmp_path / "export", tmp_path / "export.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for name, value in SLACK_EXPORT.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(value), encoding="utf-8")
            archive.writestr(f"export/{name}", json.dumps(value))
    for source in (folder, packed):
        (document,) = loaded(source).documents
        assert document.text == SLACK_TEXT
        assert (document.title, document.date) == ("#quay", "2023-11-14")
        assert document.metadata["people"] == ["Ada Brook", "林晚秋", "Tide", "cid"]
    skipped = [Path(file.path).name for file in loaded(folder).skipped]
    assert {*skipped} == {"users.json", "channels.json"}


def test_replies_forwards_and_files_of_telegram_are_told() -> None:
    """A file and a poll by name, a photo as one."""
    common = {"type": "message", "date": "2022-05-01T08:01:00"}
    messages = [
        {**common, "id": 1, "from": "Ada", "text": "Who has the key?"},
        {**common, "id": 2, "from": "林晚秋", "text": "我有", "reply_to_message_id": 1},
        {**common, "id": 3, "from": None, "text": "", "photo": "photos/1.jpg"},
        {**common, "id": 4, "from": "Ada", "text": "Old news", "forwarded_from": "Bob Crane"},
        {**common, "id": 5, "from": "Ada", "text": "", "poll": {"question": "Monday?"}},
    ]
    data = json.dumps({"name": "Lock", "messages": messages}).encode()
    assert read(data, "result.json").text.split("\n") == [
        "2022-05-01 08:01 Ada: Who has the key?",
        "2022-05-01 08:01 林晚秋: (to Ada) 我有",
        "2022-05-01 08:01 ?: [attached: photo]",
        "2022-05-01 08:01 Ada: (from Bob Crane) Old news",
        "2022-05-01 08:01 Ada: [attached: Monday?]",
    ]


def test_spoken_and_hidden_messages_of_chatgpt_and_files_of_claude() -> None:
    """A message that was spoken has its words; settings that ChatGPT writes as the user's are none."""
    value = conversation("a-1", "Lock")
    value["mapping"]["q"]["message"]["content"]["parts"] = [
        {"content_type": "audio_transcription", "text": "Who keeps it?"},
        {"content_type": "image_asset_pointer", "asset_pointer": "x"},
    ]
    value["mapping"]["hidden"] = node("root", "user", ["I am a smith."], 1.7e9)
    value["mapping"]["hidden"]["message"]["metadata"] = {
        "is_visually_hidden_from_conversation": True
    }
    text = read(json.dumps(value), "a.json").text
    assert text == "2023-11-14 22:13 user: Who keeps it?\n2023-11-15 22:13 assistant: Dora Finch."
    message = {
        "sender": "human",
        "text": "",
        "content": [{"type": "text", "text": "See"}, {"type": "thinking", "thinking": "hm"}],
        "attachments": [{"file_name": "log.txt", "extracted_content": "..."}],
    }
    data = json.dumps({"name": "Q", "chat_messages": [message]}).encode()
    assert read(data, "a.json").text == "human: See [attached: log.txt]"


@pytest.mark.parametrize(
    ("first", "date"),
    [
        ("13.05.23, 21:15 - {}: ", "2023-05-13"),
        ("[13.05.23, 21:15:03] {}: ", "2023-05-13"),
        ("5/13/23, 9:15\u202fPM - {}: ", "2023-05-13"),
        ("13/05/2023 21:15 - {}: ", "2023-05-13"),
        ("13/5/23, 9:15 p. m. - {}: ", "2023-05-13"),
        ("2023/5/13 下午9:15 - {}: ", "2023-05-13"),
        ("[2023/5/13 下午9:15:03] {}: ", "2023-05-13"),
        ("2023-05-13, 21:15 - {}: ", "2023-05-13"),
        ("2023년 5월 13일 오후 9:15, {} : ", "2023-05-13"),
        ("13/05/2023 à 21:15 - {}: ", "2023-05-13"),
    ],
)
def test_whatsapp_writes_times_by_locale(first: str, date: str) -> None:
    """Day, month and half of the day in the order of the country; lines of the program name nobody."""
    start = first.partition("{}")[0]
    lines = [
        f"{start}Messages are end-to-end encrypted.",
        f"{first.format('Ada')}Is the lock shut?",
        f"{first.format('小林')}关了",
        f"{first.format('+49 151 0000')}<Media omitted>",
        f"{first.format('Ada')}Good: done. <This message was edited>",
    ]
    document = read("\n".join(lines), "chat.txt")
    assert document.metadata["people"] == ["Ada", "小林", "+49 151 0000"]
    assert document.date == date


def test_a_text_of_whatsapp_has_its_people_and_its_day() -> None:
    """The day where the numbers tell days from months, and none where they do not."""
    told = "13/05/2023, 21:15 - Ada: Is the lock shut?\n14/05/2023, 07:02 - 小林: 关了\nsince six\n"
    doubtful = "[3/4/23, 9:15:03 PM] Ada: one\n[3/4/23, 9:16:03 PM] Bo: two\n[3/5/23, 9:17:03 PM] Bo: three\n"
    told += "14/05/2023, 07:03 - Ada: Good.\n"
    document = read(told, "chat.txt")

    assert document.text == told
    assert document.date == "2023-05-14"
    assert document.metadata["people"] == ["Ada", "小林"]
    assert read(doubtful, "chat.txt").date is None
    assert read(doubtful, "chat.txt").metadata["people"] == ["Ada", "Bo"]


def test_other_files_are_no_chats(tmp_path: Path) -> None:
    """Data with fields of such names, and texts with times, are read as before."""
    values = [
        {"mapping": "x", "current_node": 1},
        {"chats": [], "list": 2},
        [{"mapping": {"a": 1}, "current_node": 3}, 7],
        {"messages": ["a", "b"]},
        [{"ts": 1, "type": "event"}],
    ]
    for value in values:
        path = tmp_path / "data.json"
        path.write_text(json.dumps(value))
        assert "people" not in loaded(path).documents[0].metadata
    log = "12.03.2023 21:15 started\n12.03.2023 21:16 ended: ok\n" * 5
    assert read(log, "a.txt").metadata == {}
