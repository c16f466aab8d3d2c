"""Has a model read the pictures of documents, before the documents are cut into chunks."""

from dataclasses import replace

from lightrag_jsonl.core.aio import finish_all
from lightrag_jsonl.core.errors import BudgetError, LLMError
from lightrag_jsonl.core.pictures import with_id, with_texts
from lightrag_jsonl.core.types import Picture
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.storage.rows import PendingDocument
from lightrag_jsonl.text.strings import sanitize

NOTHING = "NOTHING"  # the answer about a picture without content


async def read_pictures(
    pending: PendingDocument, client: ModelClient, meter: UsageMeter
) -> tuple[PendingDocument, list[str]]:
    """The document with the texts of the pictures, and a note on each unread picture.

    `BudgetError` if the budget of the insert is used up.
    """
    document = with_id(pending.document)
    priority = client.next_priority()

    async def read_picture(picture: Picture) -> tuple[str, str]:
        """The text, or the reason why there is none."""
        try:
            reply = await client.see(picture, priority=priority, document=document.id, meter=meter)
        except BudgetError:
            raise
        except LLMError as error:
            return "", str(error)
        text = sanitize(reply.readable_text).replace("\r", "").replace("\f", "\n").strip()
        return ("" if text == NOTHING else text), reply.broken_off

    readings = await finish_all(map(read_picture, document.pictures))
    notes = [
        f"the picture on page {picture.page} was not read: {reason}"
        for picture, (_, reason) in zip(document.pictures, readings, strict=True)
        if reason
    ]
    document, seen_pictures = with_texts(document, [text for text, _ in readings])
    return replace(pending, document=document, seen_pictures=seen_pictures), notes
