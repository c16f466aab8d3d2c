"""Checks claims against the sentences near them by a checker that can tell, once a yardstick admits it.

Words never call a claim supported. A checker may: a model ("judge"), a cross-encoder ("st:NAME") or a
function of the user, if it marks most of the yardstick's false claims and few of its true ones.
"""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

from msgspec import Struct

from lightrag_jsonl.core.answers import Cited, JudgedClaim
from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.llm.pair_review import PairReview
from lightrag_jsonl.text.citation_markers import without_citations
from lightrag_jsonl.text.strings import digest

LEAST_CAUGHT = 0.8  # of the false claims of the yardstick
MOST_WRONGLY_MARKED = 0.05  # of its true claims
CHECKER_SETTING = "checker."  # before the name of a checker, the setting with its figures
CHECK_PROMPT = "check-claims"
CHECK = PairReview(CHECK_PROMPT, answer="supported")

# Whether a window of sentences says what a claim says; None if that cannot be told.
Opinion: TypeAlias = bool | None
AnyClaim = TypeVar("AnyClaim", bound=JudgedClaim)
Pair: TypeAlias = tuple[str, str]  # a claim and its window
CheckFunction: TypeAlias = Callable[[str, str], Opinion | Awaitable[Opinion]]


class Checker(Protocol):
    """Tells of claims whether the sentences near them say the same."""

    @property
    def name(self) -> str:
        """The name by which the checker is admitted."""

    async def check(self, pairs: Sequence[Pair], meter: UsageMeter) -> list[Opinion]:
        """What the checker tells of each pair; calls of a model are counted by `meter`."""


class ModelChecker(Struct, frozen=True):
    """Asks the model for the task "judge": one call for all claims of an answer."""

    client: ModelClient

    @property
    def name(self) -> str:
        """The name of the model with the prompt, since another prompt is another checker."""
        prompt = self.client.prompts.text
        return f"judge {self.client.model('judge').name} {digest(prompt)[:8]}"

    async def check(self, pairs: Sequence[Pair], meter: UsageMeter) -> list[Opinion]:
        """One line of the model for each pair; unreadable lines tell nothing."""
        fields = [{"claim": claim, "text": window} for claim, window in pairs]
        records, _ = await CHECK.judge(fields, self.client, meter=meter, at_once=len(pairs))
        return [None if record is None else bool(record["supported"]) for record in records]


class FunctionChecker(Struct, frozen=True):
    """A function of the user, from claim and window to True, False or None; or a coroutine function."""

    function: CheckFunction

    @property
    def name(self) -> str:
        """The name of the function."""
        function = self.function
        return str(getattr(function, "name", "") or getattr(function, "__qualname__", function))

    async def check(self, pairs: Sequence[Pair], meter: UsageMeter) -> list[Opinion]:
        """The function's result for each pair."""
        return [await self._told(claim, window) for claim, window in pairs]

    async def _told(self, claim: str, window: str) -> Opinion:
        opinion = await asyncio.to_thread(self.function, claim, window)
        if inspect.isawaitable(opinion):
            opinion = await opinion
        if opinion is not None and not isinstance(opinion, bool):
            raise ConfigError(
                f"the checker {self.name} returned {opinion!r}: it must return True, False or None"
            )
        return opinion


async def checked(checker: Checker, text: str, cited: Cited, meter: UsageMeter) -> Cited:
    """The claims of an answer with what a checker tells of them.

    A claim that is `missing` a fact stays so: a number that does not stand there is no matter of
    opinion.
    """
    claims: list[JudgedClaim] = [*cited.claims, *cited.uncited]
    pairs: dict[tuple[int, int], Pair] = {}
    for claim, window in zip(claims, cited.windows, strict=True):
        if claim.verdict != "missing" and window:
            written = " ".join(without_citations(text[claim.start : claim.end]).split())
            pairs[claim.start, claim.end] = (written, window)
    opinions: dict[tuple[int, int], Opinion] = {}
    if pairs:
        checker_opinions = await checker.check(list(pairs.values()), meter)
        opinions = dict(zip(pairs, checker_opinions, strict=True))
    return replace(
        cited,
        claims=tuple([_with_verdict(claim, opinions) for claim in cited.claims]),
        uncited=tuple([_with_verdict(claim, opinions) for claim in cited.uncited]),
    )


def _with_verdict(claim: AnyClaim, opinions: dict[tuple[int, int], Opinion]) -> AnyClaim:
    opinion = opinions.get((claim.start, claim.end))
    if opinion is None:
        return claim
    if opinion:
        return replace(claim, verdict="supported", reason="", differing=(), instead=())
    return replace(claim, verdict="unsupported")


# ── the yardstick ───────────────────────────────────────────────────────────────


class LabelledClaim(Struct, frozen=True):
    """A claim of the yardstick with its window, and whether the window says it."""

    claim: str
    window: str
    is_true: bool
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckerFigures:
    """How a checker did on the yardstick: false claims that it marked, of how many; true claims that it
    marked, of how many; false claims that it called supported.
    """

    checker: str
    caught: int
    false: int
    wrongly_marked: int
    true: int
    missed: int
    yardstick: str

    @property
    def is_admitted(self) -> bool:
        """Whether the checker marks at least 80 % of false claims and at most 5 % of true ones."""
        enough = self.caught >= LEAST_CAUGHT * self.false
        return enough and self.wrongly_marked <= MOST_WRONGLY_MARKED * self.true

    def __str__(self) -> str:
        verdict = "admitted" if self.is_admitted else "refused"
        return (
            f"{self.checker}: {verdict}: {self.caught} of {self.false} false claims marked "
            f"(at least {LEAST_CAUGHT:.0%}), {self.wrongly_marked} of {self.true} true ones marked "
            f"(at most {MOST_WRONGLY_MARKED:.0%}), {self.missed} false ones called supported{self._part}"
        )

    @property
    def _part(self) -> str:
        """How many claims were asked about, if these were enough for a refusal."""
        asked_claims = self.false + self.true
        return (
            f"; after {asked_claims} of {len(yardstick())} claims"
            if asked_claims < len(yardstick())
            else ""
        )

    def to_json(self) -> str:
        """The figures as a text to be stored."""
        return json.dumps(asdict(self), ensure_ascii=False)


@cache
def yardstick() -> tuple[LabelledClaim, ...]:
    """The labelled claims of the package, in English and Chinese, written for this purpose."""
    text = Path(__file__).with_name("yardstick.jsonl").read_text(encoding="utf-8")
    return tuple(
        LabelledClaim(claim=row["claim"], window=row["text"], is_true=row["true"], kind=row["kind"])
        for row in map(json.loads, text.strip().split("\n"))
    )


def yardstick_digest() -> str:
    """A digest of the yardstick: figures are of one version."""
    return digest(*[f"{row.claim}\0{row.window}\0{row.is_true}" for row in yardstick()])[:8]


async def measured(checker: Checker, meter: UsageMeter) -> CheckerFigures:
    """The figures of a checker on the yardstick, ten claims at a time, as of an answer; of the first
    claims only if it can no longer be admitted after them: the other calls are saved.
    """
    claims = yardstick()
    most_missed = len([claim for claim in claims if not claim.is_true]) * (1 - LEAST_CAUGHT)
    most_wrong = len([claim for claim in claims if claim.is_true]) * MOST_WRONGLY_MARKED
    opinions: list[Opinion] = []
    for start in range(0, len(claims), 10):
        pairs = [(labelled.claim, labelled.window) for labelled in claims[start : start + 10]]
        opinions += await checker.check(pairs, meter)
        figures = _figures(checker.name, claims[: len(opinions)], opinions)
        if figures.false - figures.caught > most_missed or figures.wrongly_marked > most_wrong:
            break
    return figures


def _figures(
    name: str, claims: Sequence[LabelledClaim], opinions: Sequence[Opinion]
) -> CheckerFigures:
    by_label: dict[bool, list[Opinion]] = {True: [], False: []}
    for labelled, opinion in zip(claims, opinions, strict=True):
        by_label[labelled.is_true].append(opinion)
    return CheckerFigures(
        checker=name,
        caught=by_label[False].count(False),
        false=len(by_label[False]),
        wrongly_marked=by_label[True].count(False),
        true=len(by_label[True]),
        missed=by_label[False].count(True),
        yardstick=yardstick_digest(),
    )


def admitted_figures(text: str | None, checker: str) -> CheckerFigures:
    """The stored figures of a checker that may judge; `ConfigError` for any other one."""
    figures = CheckerFigures(**json.loads(text)) if text else None
    if figures is None or figures.yardstick != yardstick_digest() or figures.checker != checker:
        raise ConfigError(
            f"the checker {checker} was not measured with this index: run lightrag-jsonl doctor "
            "--claims with the same --check, or rag.admin.measure_checker(), before it may judge claims"
        )
    if not figures.is_admitted:
        raise ConfigError(f"this checker may not judge claims. {figures}")
    return figures
