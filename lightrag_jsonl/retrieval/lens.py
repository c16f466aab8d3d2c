"""Lenses: what a question may want beside its search. Search and prompt know these doors, and no lens."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from msgspec import Struct

from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.languages import FIXED_WORDS, known_language
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.retrieval.task import SearchResult, SearchTask
from lightrag_jsonl.storage.views import StoreView

LINE_TOKENS = 6  # around a line of a section: number, bullet and line break


class Section(Struct, frozen=True):
    """A section of the prompt after the items: a heading, and the lines below.

    `share` of the total budget is kept from the items for the section, at most.
    """

    heading: str
    lines: Sequence[str]
    share: float = 0.0


class Lens:
    """A promise beside the search. Each door does nothing unless a lens opens it; the doors behind `find`
    are opened for questions where `find` returned a result.
    """

    def view(self, view: StoreView, param: QueryParam) -> StoreView:
        """The view that citations and sources are read from."""
        return view

    def narrow(self, task: SearchTask) -> SearchTask:
        """The task before anything is ranked."""
        return task

    def overview(self, task: SearchTask, context: Context) -> SearchResult | None:
        """The findings on a question about everything, in place of a search's."""
        return None

    def find(self, task: SearchTask, result: SearchResult) -> SearchResult | None:
        """The result with the findings of the lens, in `Context.findings`; None if there are none."""
        return None

    def fitted(self, context: Context) -> Context:
        """A context within the budget, with what the remaining items leave of the findings."""
        return context

    def section(self, context: Context) -> Section | None:
        """The words of the prompt beside the items of a context."""
        return None

    def appended(self, context: Context, text: str, cited: Collection[int]) -> str:
        """The end of an answer with this text and these cited numbers."""
        return ""


def fit_with_sections(
    fit: Callable[[QueryParam], Context],
    lenses: Sequence[Lens],
    context: Context,
    *,
    param: QueryParam,
    tokenizer: Tokenizer,
    mark: str,
) -> Context:
    """A context, fitted into the budgets by `fit`, with the sections of lenses after the items."""
    reserved_tokens = kept_tokens(sections_of(lenses, context), param, tokenizer, mark)
    room = max(param.max_total_tokens - reserved_tokens, 1)
    fitted = fit(replace(param, max_total_tokens=room) if reserved_tokens else param)
    for lens in lenses:
        fitted = lens.fitted(fitted)
    return with_sections(fitted, sections_of(lenses, fitted), param, tokenizer, mark)


def sections_of(lenses: Iterable[Lens], context: Context) -> list[Section]:
    """The sections of all lenses, in their order."""
    sections = [lens.section(context) for lens in lenses]
    return [section for section in sections if section is not None]


def kept_tokens(
    sections: Iterable[Section], param: QueryParam, tokenizer: Tokenizer, mark: str
) -> int:
    """The tokens of the total budget that items leave to sections."""
    return sum(
        min(
            tokenizer.count("\n".join([f"\n\n{mark} {section.heading}", *section.lines])),
            int(param.max_total_tokens * section.share),
        )
        for section in sections
        if section.share
    )


def with_sections(
    context: Context,
    sections: Iterable[Section],
    param: QueryParam,
    tokenizer: Tokenizer,
    mark: str,
) -> Context:
    """A fitted context with the sections after the items, each with as many lines as fit into the total
    budget.
    """
    words = FIXED_WORDS[known_language(context.language)]
    limit = int(param.max_total_tokens * (1.0 - float(getattr(tokenizer, "error", 0.0))))
    for section in sections:
        opening = context.prompt or f"{words.first_line}{mark}"
        beginning = f"{opening}\n\n{mark} {section.heading}"
        room = limit - tokenizer.count(beginning)
        visible_lines: list[str] = []
        for line in section.lines:
            room -= tokenizer.count(line) + LINE_TOKENS
            if room < 0:
                break
            visible_lines.append(line)
        prompt = "\n".join([beginning, *visible_lines])
        tokens = tokenizer.count(prompt)
        if visible_lines and tokens <= limit:
            context = replace(context, prompt=prompt, tokens=tokens)
    return context
