"""A model behind a server that reads as `read_all` does."""

from __future__ import annotations

from dataclasses import replace

from lightrag_jsonl.core.types import Message
from lightrag_jsonl.testing import Request
from tests.servers import Reply, chat_reply
from tests.servers import Request as Posted
from tests.tools.test_merging import read_all


def answer(posted: Posted) -> Reply:
    turns = tuple(Message(one["role"], one["content"]) for one in posted.json["messages"])
    return replace(chat_reply(read_all(Request(turns, "text", None))), delay=0.05)
