"""Writes what was measured as Markdown, in English or Chinese."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.referee.ahead import (
    FLOOR,
    OURS,
    ahead_in_costs,
    ahead_in_coverage,
    ahead_in_faults,
    ahead_in_quality,
)
from benchmarks.referee.quality import BEST_BY, EVERYTHING, difference
from benchmarks.referee.words import COST_ROWS, FAULT_TITLES, SCRIPTED_WAYS, WORDS, Row
from benchmarks.tables import line

Figures = Mapping[str, Any]
BEGINNING = "beginning"  # of a whole text, which is no peer either
MEASURES = {"recall": "sets", "whole": "whole", "costs": "sizes", "faults": "faults"}  # by section


class Report:
    """The figures of a run in the words of a language."""

    def __init__(self, figures: Figures, language: str) -> None:
        self.figures = figures
        self.language = language
        self.words = WORDS[language]

    def ahead(self, *, level: int) -> str:
        """Where others are ahead, under a heading of this level."""
        return "\n".join([f"{'#' * level} {self.words['ahead']}", "", *self._ahead()])

    def markdown(self, *, level: int = 3, with_ahead: bool = True) -> str:
        """All sections, each under a heading of this level; where others are ahead comes first."""
        sections = {
            "ahead": self._ahead() if with_ahead else [],
            "recall": self._recall(),
            "whole": self._whole(),
            "costs": self._costs(),
            "faults": self._faults(),
            "failures": self._failures(),
            "unanswered": self._unanswered(),
            "versions": self._versions(),
        }
        parts = []
        for key, lines in sections.items():
            text = "\n".join(lines).strip()
            if text:
                parts.append(f"{'#' * level} {self.words[key]}")
                command = self.figures["commands"].get(MEASURES.get(key, ""))
                parts += [f"`{command}`"] if command else []
                parts.append(text)
        return "\n\n".join(parts)

    def title(self, contestant: str) -> str:
        """The name of a contestant with its version."""
        if contestant in (OURS, FLOOR, BEGINNING):
            return self.words[contestant]
        version = self.figures["versions"][contestant]
        return f"{version['title']} {version['version']}"

    def cost(self, row: Row, figures: Figures) -> str:
        """A figure in its unit, or why there is none."""
        if "error" in figures:
            return self.words["failed"]
        if row.key not in figures:
            return self.words["none"]
        value = figures[row.key] / row.divisor
        digits = f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"
        return f"{digits} {row.unit}".strip()

    # ── where others are ahead ──────────────────────────────────────────────────

    def _ahead(self) -> list[str]:
        figures = self.figures
        lines = [
            self._ahead_line(
                [name, self._metric(metric)], f"{self.title(peer)} ({way})", _signed(lead)
            )
            for name, metric, peer, way, lead in ahead_in_quality(figures["sets"])
        ]
        for row, size, peer, value, ours in ahead_in_costs(figures["sizes"]):
            lines.append(
                self._ahead_line(
                    [row.title(self.language), self.words["chunks"].format(size)],
                    self.title(peer),
                    self.cost(row, {row.key: value}),
                    here=self.cost(row, {row.key: ours}),
                )
            )
        for name, group, budget, peer, way, percent, ours in ahead_in_coverage(figures["whole"]):
            lines.append(
                self._ahead_line(
                    [name, self.words[group], self.words["budget"].format(f"{int(budget):,}")],
                    f"{self.title(peer)} ({way})",
                    f"{percent} %",
                    here=f"{ours} %",
                )
            )
        for fault, peer in ahead_in_faults(figures["faults"]):
            lines.append(
                self._ahead_line(
                    [self._fault_title(fault)],
                    self.title(peer),
                    self._fault(fault, figures["faults"][fault][peer]),
                    here=self._fault(fault, figures["faults"][fault][OURS]),
                )
            )
        return lines or [self.words["nobody"]]

    def _ahead_line(self, cell: Sequence[str], peer: str, figure: str, *, here: str = "") -> str:
        """A line of the list: what was measured, who is ahead with which figure, and the figure here."""
        comma = self.words["comma"]
        line_ = f"- {comma.join(cell)}{self.words['colon']}{peer} {figure}"
        return f"{line_}{comma}{self.words['ours']} {here}" if here else line_

    def _metric(self, metric: str) -> str:
        """The title of a metric, which is its name for most."""
        return {"answer": self.words["answer"], EVERYTHING: self.words["everything"]}.get(
            metric, metric
        )

    # ── what is found ───────────────────────────────────────────────────────────

    def _recall(self) -> Iterator[str]:
        for name, contestants in self.figures["sets"].items():
            count = max([_question_count(figures) for figures in contestants.values()], default=0)
            heads = ["recall@2 / @5 [95 %] / @10", "all@5", self.words["everything"]]
            heads += [self.words["tokens"], self.words["answer"], self.words["against"]]
            yield line([f"{name}, {count}", self.words["way"], *heads])
            yield line(["---"] * 8)
            for contestant, figures in contestants.items():
                yield from self._recall_lines(contestant, figures, contestants.get(OURS, {}))
            yield from self._published_lines(name)
            yield ""
        if self.figures["sets"]:
            yield self.words["scripted note"]

    def _recall_lines(self, contestant: str, figures: Figures, ours: Figures) -> Iterator[str]:
        if "error" in figures:
            yield line([self.title(contestant), "", self.words["failed"], *[""] * 5])
            return
        our_scores = ours["ways"][ours["default"]]["questions"] if "ways" in ours else None
        for way, scores in figures["ways"].items():
            means = scores["averages"]
            against = "–"
            is_default_of_ours = contestant == OURS and way == figures["default"]
            if our_scores is not None and not is_default_of_ours:
                against = _signed(difference(scores["questions"], our_scores, BEST_BY))
            answer = str(means["answer"][0]) if "answer" in means else "–"
            yield line(
                [
                    self.title(contestant),
                    self._way(contestant, way, figures),
                    _recall_cell(means),
                    str(means["all@5"][0]),
                    str(means[EVERYTHING][0]) if EVERYTHING in means else "–",
                    f"{scores['context_tokens']:,}",
                    answer,
                    against,
                ]
            )

    def _way(self, contestant: str, way: str, figures: Figures) -> str:
        marks = []
        if way == figures["default"]:
            marks.append(self.words["default"])
        if way == figures.get("best") and len(figures["ways"]) > 1:
            marks.append(self.words["best"])
        if (contestant, way) in SCRIPTED_WAYS:
            marks.append(self.words["scripted"])
        return f"{way} ({self.words['comma'].join(marks)})" if marks else way

    def _published_lines(self, name: str) -> Iterator[str]:
        for system, means in self.figures["published"].get(name, {}).items():
            cells = [system, self.words["published"], _recall_cell(means)]
            yield line([*cells, str(means["all@5"][0]), "–", "–", "–", "–"])

    def _whole(self) -> Iterator[str]:
        """One table for each group of questions: contestants and their ways, by text."""
        texts = self.figures["whole"]
        contestants = dict.fromkeys(name for by_name in texts.values() for name in by_name)
        for group in _groups(texts):
            yield line([self.words[group], self.words["way"], *texts, self.words["mean"]])
            yield line(["---", "---", *["---:"] * (len(texts) + 1)])
            for contestant in contestants:
                yield from self._whole_lines(group, contestant)
            yield ""
        if texts:
            yield self.words["whole note"]

    def _whole_lines(self, group: str, contestant: str) -> Iterator[str]:
        """The ways of a contestant with their coverage of each text at all budgets."""
        by_text = {
            name: contestants.get(contestant, {})
            for name, contestants in self.figures["whole"].items()
        }
        ways = {
            way: figures
            for figures in by_text.values()
            for way in figures.get("groups", {}).get(group, {})
        }
        for way, of_one_text in ways.items():
            rows = [
                figures.get("groups", {}).get(group, {}).get(way) for figures in by_text.values()
            ]
            cells = [_slashed(list(row.values())) if row else "–" for row in rows]
            measured = [list(row.values()) for row in rows if row]
            means = [sum(column) / len(column) for column in zip(*measured, strict=True)]
            cells.append(_slashed(means) if len(measured) == len(rows) else "–")
            yield line([self.title(contestant), self._way(contestant, way, of_one_text), *cells])

    # ── costs and faults ────────────────────────────────────────────────────────

    def _costs(self) -> Iterator[str]:
        for size, contestants in self.figures["sizes"].items():
            heads = [self.title(contestant) for contestant in contestants]
            yield line([self.words["chunks"].format(f"{int(size):,}"), *heads])
            yield line(["---", *["---:"] * len(heads)])
            for row in COST_ROWS:
                cells = [self.cost(row, figures) for figures in contestants.values()]
                yield line([row.title(self.language), *cells])
            yield ""

    def _faults(self) -> Iterator[str]:
        faults = self.figures["faults"]
        contestants = list(next(iter(faults.values()), {}))
        if not contestants:
            return
        yield line(["", *[self.title(contestant) for contestant in contestants]])
        yield line(["---", *["---:"] * len(contestants)])
        for fault, by_contestant in faults.items():
            cells = [self._fault(fault, by_contestant[contestant]) for contestant in contestants]
            yield line([self._fault_title(fault), *cells])

    def _fault_title(self, fault: str) -> str:
        return FAULT_TITLES[fault][self.language == "zh"]

    def _fault(self, fault: str, figures: Figures) -> str:
        if "error" in figures:
            return self.words["failed"]
        if "not offered" in figures:
            return self.words["none"]
        if fault == "deletion":
            return f"{figures['graph']} / {figures['contexts']} / {len(figures['files'])}"
        if fault == "cut answers":
            return f"{figures['entities_lost']} % / {figures['relations_lost']} %"
        if fault == "copied example":
            return str(figures["entities"])
        if fault == "equal file names":
            return f"{figures['indexed']} / {figures['of']}"
        if fault == "same insert":
            return f"{figures['calls']}; {self._state(figures['graph_changed'])}"
        repeated = f"{figures['calls_repeated']} / {figures['calls_undisturbed']}"
        return f"{repeated}; {self._state(figures['graph_differs'])}"

    def _state(self, is_changed: bool) -> str:
        return self.words["changed"] if is_changed else self.words["same"]

    # ── the rest ────────────────────────────────────────────────────────────────

    def _failures(self) -> Iterator[str]:
        for section in ("sets", "whole", "sizes", "faults"):
            for name, contestants in self.figures[section].items():
                for contestant, figures in contestants.items():
                    if "error" in figures:
                        yield f"- {self.title(contestant)}, {name}: {figures['error']}"
        for contestant, error in self.figures["not_installed"].items():
            yield f"- {self.title(contestant)}: {error}"

    def _unanswered(self) -> Iterator[str]:
        for contestant, count in self.figures["unanswered"].items():
            if count:
                yield f"- {self.title(contestant)}: {count}"

    def _versions(self) -> Iterator[str]:
        for contestant, version in self.figures["versions"].items():
            yield f"- {self.title(contestant)}: {version['settings']}"


def _recall_cell(means: Figures) -> str:
    """recall@2, recall@5 with its interval, and recall@10."""
    middle, low, high = means["recall@5"]
    return f"{means['recall@2'][0]} / {middle} [{low}, {high}] / {means['recall@10'][0]}"


def _question_count(figures: Figures) -> int:
    return max([len(way["questions"]) for way in figures.get("ways", {}).values()], default=0)


def _groups(texts: Figures) -> Sequence[str]:
    """The groups of questions about whole texts."""
    return list(
        dict.fromkeys(
            group
            for contestants in texts.values()
            for figures in contestants.values()
            for group in figures.get("groups", {})
        )
    )


def _slashed(percents: Sequence[float]) -> str:
    """The percents of all budgets in one cell."""
    return " / ".join([f"{percent:.1f}" for percent in percents])


def _signed(difference_: Sequence[float]) -> str:
    value, low, high = difference_
    return f"{value:+.1f} [{low:+.1f}, {high:+.1f}]"
