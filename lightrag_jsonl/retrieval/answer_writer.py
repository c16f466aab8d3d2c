"""Writes the answer to a question from its context: a model does, the user's answerer, or quotes are put together."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from msgspec import Struct, field

from lightrag_jsonl.core.answers import (
    Context,
    Dropped,
    PlacedQuote,
    QuotedAnswer,
    begins_to_answer,
    has_words,
)
from lightrag_jsonl.core.languages import FIXED_WORDS, known_language, written_in
from lightrag_jsonl.core.modes import MODES
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Answerer, Embedder
from lightrag_jsonl.core.types import Message
from lightrag_jsonl.core.user_code import write_answer
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.rules.answering import ExtractiveAnswerer
from lightrag_jsonl.storage.status import filter_outcome, unread_documents
from lightrag_jsonl.storage.store import Store, read

SHORT_BEGINNING = 1_000  # characters of an answer; a longer beginning is not read after each piece
ANSWER_FORM = "Multiple Paragraphs"  # where a user's prompt asks for a form and names none

WritePiece: TypeAlias = Callable[[str], Awaitable[None]]

log = logging.getLogger(__name__)


class Written(Struct, frozen=True):
    """Whether the model's limit, a filter or an error cut an answer off, and the quotes that it is made of."""

    cut_off: bool = False
    quotes: tuple[PlacedQuote, ...] = ()


class AnswerWriter(Struct, frozen=True, kw_only=True):
    """Writes answers from contexts; an `answerer` replaces the model. `history` is the conversation so far."""

    store: Store
    client: ModelClient
    embedder: Embedder
    answerer: Answerer | None
    language: str

    @property
    def is_model(self) -> bool:
        """Whether a model writes the answers."""
        return self.answerer is None and self.client.has_model("answer")

    def notice(self, context: Context) -> str:
        """Who selected the sentences of an answer, if no model wrote them; "" for a list from the graph."""
        if context.listing is not None or not isinstance(self.answerer, ExtractiveAnswerer):
            return ""
        return self.answerer.notice(context.question)

    async def write(
        self,
        context: Context,
        param: QueryParam,
        history: Sequence[Message],
        *,
        meter: UsageMeter,
        write_piece: WritePiece,
        streamed: bool,
    ) -> Written:
        """Write the answer, `streamed` in pieces as the model writes them."""
        searches = MODES[context.mode].searches
        if searches and context.empty:
            await write_piece(await self.no_answer(context, param))
            return Written()
        if searches and isinstance(self.answerer, ExtractiveAnswerer):
            quoted = await self.answerer.quoted_answer(context.question, context)
            await write_piece(quoted.text)
            return Written(quotes=quoted.quotes)
        if searches and self.answerer is not None:
            await write_piece(await write_answer(self.answerer, context.question, context))
            return Written()
        messages = self._messages(context, param, history)
        beginning = _Beginning(context.question, write_piece)
        reply = await self.client.chat(messages, meter, beginning.feed if streamed else None)
        is_cut_off = reply.cut_off or bool(reply.broken_off)
        if reply.broken_off:
            log.warning("the answer is not whole: %s", reply.broken_off)
        if beginning.is_written:
            return Written(is_cut_off)
        is_whole = searches and context.listing is None and not is_cut_off
        if is_whole and not has_words(reply.readable_text, context.question):
            await self.client.forget(reply)
            quoted = await self._passages_instead(context)
            await write_piece(quoted.text)
            return Written(quotes=quoted.quotes)
        await write_piece(reply.readable_text)
        return Written(is_cut_off)

    async def second_answer(
        self,
        context: Context,
        param: QueryParam,
        history: Sequence[Message],
        *,
        first_answer: str,
        unsupported_claims: Sequence[str],
        meter: UsageMeter,
    ) -> str:
        """The model's answer after being told which claims of its first answer are unsupported; "" if it is
        no whole answer.
        """
        variables = {"claims": [f"- {claim}" for claim in unsupported_claims]}
        messages = [
            *self._messages(context, param, history),
            Message("assistant", first_answer),
            *self.client.prompts.render("answer-again", variables),
        ]
        reply = await self.client.chat(messages, meter)
        is_whole = not (reply.cut_off or reply.broken_off)
        is_answer = is_whole and has_words(reply.readable_text, context.question)
        return reply.readable_text if is_answer else ""

    async def _passages_instead(self, context: Context) -> QuotedAnswer:
        """The text in place of an answer without words: a note, and what the passages say."""
        language = known_language(self.language)
        words = FIXED_WORDS[written_in(context.question, language)]
        quoted = await ExtractiveAnswerer(language, self.embedder).quoted_answer(
            context.question, context
        )
        return replace(quoted, text=f"{words.no_words}\n\n{quoted.text}")

    async def no_answer(self, context: Context, param: QueryParam) -> str:
        """What a reader is told of a context without anything: the budget holds nothing of what was found, nothing
        was found, no document passes the filter, or nothing was read at all.
        """
        if param.fail_response is not None:
            return param.fail_response
        if context.dropped != Dropped():
            words = FIXED_WORDS[known_language(self.language)]
            return words.over_budget.format(param.max_total_tokens)
        prompts = self.client.prompts
        unread = await read(self.store, unread_documents)
        if unread is None:
            outcome = await read(self.store, lambda view: filter_outcome(view, param.where))
            searched = {
                "as_of": param.as_of or "",
                "where": outcome.where,
                "documents": outcome.documents,
                "unknown_fields": outcome.unknown_fields,
                "fields": outcome.fields,
            }
            return prompts.render("no-context", searched)[-1].content.strip()
        variables = {
            "pending": unread.pending,
            "failed": unread.failed,
            "pending_reason": unread.pending_reason,
            "failed_reason": unread.failed_reason,
        }
        return prompts.render("nothing-indexed", variables)[-1].content.strip()

    def _messages(
        self, context: Context, param: QueryParam, history: Sequence[Message]
    ) -> Sequence[Message]:
        """The messages to the model: the mode's prompt, or else the conversation and the question."""
        mode = MODES[context.mode]
        prompts = self.client.prompts
        if not mode.searches:
            wishes = (Message("system", param.user_prompt),) if param.user_prompt else ()
            return (*wishes, *history, Message("user", context.question))
        form = param.response_type or prompts.terms(mode.prompt).get("response_type", ANSWER_FORM)
        variables = {
            "query": context.question,
            "context": context.prompt,
            "history": history,
            "response_type": form,
            "user_prompt": param.user_prompt,
        }
        return prompts.render(mode.prompt, variables)


class _Beginning(Struct):
    """The beginning of a streamed answer, held back until it is more than citations or the question."""

    question: str
    write_piece: WritePiece
    pieces: list[str] = field(default_factory=list)  # that are held back
    length: int = 0  # characters
    next_look: int = 0  # the length at which the beginning is read again
    is_written: bool = False

    async def feed(self, piece: str) -> None:
        """The next piece of the answer."""
        if self.is_written:
            await self.write_piece(piece)
            return
        self.pieces.append(piece)
        self.length += len(piece)
        if self.length < self.next_look:
            return
        text = "".join(self.pieces)
        if begins_to_answer(text, self.question):
            self.is_written = True
            await self.write_piece(text)
        elif self.length > SHORT_BEGINNING:
            self.next_look = self.length + self.length // 8
