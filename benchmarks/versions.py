"""Whether questions as of a date are answered from the right version, and contradictions are found.

`python -m benchmarks.versions` makes two hundred short documents, half in each language, with known truth:
staff, prices, rules, and offices of the Three Kingdoms, each in three versions. It inserts them as records
and as texts that rules read, and prints one JSON object: the share of questions answered from the right
version, the contexts with a claim of another version, precision and recall of contradictions, and whether
deleting the newest documents gives the old contexts back.

Staff: each document says since when. Prices: only the date of the document says when. Rules and offices:
documents without a date that say from when to when, offices of the Three Kingdoms in Chinese by eras.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lightrag_jsonl import Context, Document, LightRAG
from lightrag_jsonl.core.types import Record
from lightrag_jsonl.testing import HashEmbedder

SUBJECTS = 6  # of each topic
VERSIONS = 3
AGREEING = 5  # subjects of each topic with a second document that says the same
CONTRADICTED = 2  # subjects of each topic with a document that says otherwise of the same time


@dataclass(frozen=True, kw_only=True)
class Topic:
    """What a subject has one of at a time, and how texts of one language say so.

    `open_statement` has the fields subject, value and start, `closed_statement` also end. Without
    `closed_statement` a document has the date of the start and knows no end. `kind` is the predicate of the
    records, which leads from the value to the subject, or, if `is_attribute`, the name of an attribute.
    """

    language: str
    kind: str
    question: str
    open_statement: str
    closed_statement: str = ""
    report: str
    subjects: Sequence[str]
    values: Sequence[str]
    first_year: int
    year_names: Sequence[str] = ()
    is_attribute: bool = False

    def year(self, number: int) -> str:
        """A year in the words of the topic."""
        if self.year_names:
            return self.year_names[number - self.first_year]
        return str(number)


@dataclass(frozen=True, kw_only=True)
class Names:
    """The names in the documents: places, people and institutions of both languages."""

    towns: Sequence[str]
    chinese_towns: Sequence[str]
    people: Sequence[str]
    chinese_people: Sequence[str]
    institution: str
    chinese_institution: str
    head: str
    chinese_head: str
    kingdom_people: Sequence[str]
    offices: Sequence[str]
    english_kingdom_people: Sequence[str]
    provinces: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Version:
    """A document: the value of a subject from one year to another; the last version has no end."""

    topic: Topic
    subject: str
    value: str
    start: int
    end: int | None
    id: str
    is_report: bool = False

    @property
    def text(self) -> str:
        """The text of the document."""
        topic = self.topic
        is_closed = self.end is not None and topic.closed_statement
        statement = (topic.closed_statement if is_closed else topic.open_statement).format(
            subject=self.subject,
            value=self.value,
            start=topic.year(self.start),
            end=topic.year(self.end) if self.end is not None else "",
        )
        return topic.report.format(statement) if self.is_report else statement

    @property
    def document(self) -> Document:
        """The document, with a date if its text may not know the future."""
        date = None if self.topic.closed_statement else f"{self.start:04}"
        return Document(self.text, id=self.id, date=date)

    @property
    def records(self) -> list[Record]:
        """The records of the document, as a model would write them."""
        topic = self.topic
        dates: Record = {"valid_from": f"{self.start:04}"}
        if self.end is not None and topic.closed_statement:
            dates["valid_to"] = f"{self.end:04}"
        if topic.is_attribute:
            entity: Record = {
                "type": "entity",
                "name": self.subject,
                "entity_type": "place",
                "description": self.text,
                "attribute": [topic.kind, self.value],
            }
            return [entity | dates]
        relation: Record = {
            "type": "relationship",
            "source": self.value,
            "target": self.subject,
            "keywords": [topic.kind],
            "description": self.text,
            "strength": 5,
        }
        return [relation | dates]


NAMES = Names(
    towns=("Ashford", "Brampton", "Carlow", "Denholm", "Eastport", "Fairfield"),
    chinese_towns=("青山", "白水", "长桥", "东湖", "南岭", "西河"),
    people=[
        f"{given} {family}"
        for family in ("Albrecht", "Bergman", "Castello", "Dahlberg")
        for given in ("Anna", "Bruno", "Clara", "David", "Elena", "Felix")
    ],
    chinese_people=[
        family + given for given in ("建国", "丽华", "志强", "秀英") for family in "王李张刘陈杨"
    ],
    institution="Museum",
    chinese_institution="博物馆",
    head="director",
    chinese_head="馆长",
    kingdom_people=[
        "荀彧",
        "郭嘉",
        "程昱",
        "贾诩",
        "张辽",
        "徐晃",
        "诸葛亮",
        "关羽",
        "张飞",
        "赵云",
        "法正",
        "庞统",
        "蒋琬",
        "费祎",
        "姜维",
        "周瑜",
        "鲁肃",
        "吕蒙",
        "陆逊",
        "张昭",
        "顾雍",
        "黄盖",
        "刘备",
        "孙权",
    ],
    offices=("益州牧", "荆州牧", "徐州牧", "豫州牧", "冀州牧", "青州牧"),
    english_kingdom_people=[
        f"{family} {given}"
        for family in ("Cao", "Liu", "Sun", "Zhang")
        for given in ("Ren", "Bei", "Quan", "Liao", "Fei", "Zhao")
    ],
    provinces=("Yi", "Jing", "Xu", "Yu", "Ji", "Qing"),
)
HELD_OUT_NAMES = Names(  # on which no rule was tried before
    towns=("Granby", "Hartwell", "Inverleith", "Kelsey", "Longmoor", "Mapleton"),
    chinese_towns=("江南", "海滨", "石门", "平原", "清溪", "云台"),
    people=[
        f"{given} {family}"
        for family in ("Okafor", "Lindqvist", "Moreau", "Tanaka")
        for given in ("Grace", "Henrik", "Irene", "Jonas", "Kenji", "Lucia")
    ],
    chinese_people=[
        family + given for given in ("文博", "海燕", "国庆", "雨欣") for family in "赵何周孙马许"
    ],
    institution="Library",
    chinese_institution="印书馆",
    head="head",
    chinese_head="社长",
    kingdom_people=[
        "夏侯惇",
        "夏侯渊",
        "曹仁",
        "于禁",
        "乐进",
        "李典",
        "张郃",
        "典韦",
        "许褚",
        "司马懿",
        "邓艾",
        "钟会",
        "马超",
        "黄忠",
        "魏延",
        "糜竺",
        "孙乾",
        "简雍",
        "董允",
        "甘宁",
        "太史慈",
        "程普",
        "韩当",
        "周泰",
    ],
    offices=("会稽太守", "北海太守", "兖州刺史", "扬州刺史", "征西将军", "镇南将军"),
    english_kingdom_people=[
        f"{family} {given}"
        for family in ("Deng", "Guan", "Huang", "Wei")
        for given in ("Ai", "Ping", "Gai", "Yan", "Zhong", "Yu")
    ],
    provinces=("Yang", "Liang", "Bing", "You", "Jiao", "Yong"),
)
CHINESE_NUMBERS = "元二三四五六七八九十"
ERA_YEARS = [
    f"建安{number}年" for number in (*CHINESE_NUMBERS, "十一", "十二", "十三", "十四", "十五")
]


def all_topics(names: Names) -> tuple[Topic, ...]:
    """The subjects of the documents, in both languages."""
    return (*_english_topics(names), *_chinese_topics(names))


def _english_topics(names: Names) -> tuple[Topic, ...]:
    return (
        Topic(
            language="en",
            kind=f"{names.head} of",
            question=f"Who is the {names.head} of the {{}}?",
            open_statement=f"Since {{start}} {{value}} has been {names.head} of the {{subject}}.",
            report="The yearbook reports: {}",
            subjects=[f"{town} {names.institution}" for town in names.towns],
            values=names.people,
            first_year=1990,
        ),
        Topic(
            language="en",
            kind="ticket price",
            question="How much is a ticket for the {}?",
            open_statement="A ticket for the {subject} costs {value}.",
            report="{} So says the brochure.",
            subjects=[f"{town} Tower" for town in names.towns],
            values=[f"{number} euros" for number in range(11, 40)],
            first_year=1990,
            is_attribute=True,
        ),
        Topic(
            language="en",
            kind="speed limit",
            question="What is the speed limit on {}?",
            open_statement="Since {start} the speed limit on {subject} has been {value}.",
            closed_statement="From {start} to {end} the speed limit on {subject} was {value}.",
            report="{} So says the register.",
            subjects=[f"{town} Bridge" for town in names.towns],
            values=[f"{number} km/h" for number in range(31, 60)],
            first_year=1990,
            is_attribute=True,
        ),
        Topic(
            language="en",
            kind="governor of",
            question="Who was the governor of {}?",
            open_statement="Since AD {start} {value} has been governor of {subject}.",
            closed_statement="From AD {start} to AD {end} {value} was governor of {subject}.",
            report="{} So says the chronicle.",
            subjects=[f"{name} Province" for name in names.provinces],
            values=names.english_kingdom_people,
            first_year=196,
        ),
    )


def _chinese_topics(names: Names) -> tuple[Topic, ...]:
    return (
        Topic(
            language="zh",
            kind=names.chinese_head,
            question=f"谁是{{}}的{names.chinese_head}？",
            open_statement=f"自{{start}}年起，{{value}}担任{{subject}}的{names.chinese_head}。",
            report="据年鉴记载，{}",
            subjects=[f"{town}{names.chinese_institution}" for town in names.chinese_towns],
            values=names.chinese_people,
            first_year=1990,
        ),
        Topic(
            language="zh",
            kind="票价",
            question="{}的票价是多少？",
            open_statement="{subject}的票价为{value}。",
            report="{}手册如此记载。",
            subjects=[f"{town}公园" for town in names.chinese_towns],
            values=[f"{number}元" for number in range(11, 40)],
            first_year=1990,
            is_attribute=True,
        ),
        Topic(
            language="zh",
            kind="限速",
            question="{}限速多少？",
            open_statement="{start}年起，{subject}限速{value}。",
            closed_statement="{start}年至{end}年，{subject}限速{value}。",
            report="{}公告如此记载。",
            subjects=[f"{town}大桥" for town in names.chinese_towns],
            values=[f"{number}公里" for number in range(31, 60)],
            first_year=1990,
            is_attribute=True,
        ),
        Topic(
            language="zh",
            kind="任",
            question="谁任{}？",
            open_statement="{start}起，{value}任{subject}。",
            closed_statement="{start}至{end}，{value}任{subject}。",
            report="{}史书如此记载。",
            subjects=names.offices,
            values=names.kingdom_people,
            first_year=196,
            year_names=ERA_YEARS,
        ),
    )


def versions(topic: Topic) -> Iterator[Version]:
    """The documents of a topic that are right: three versions of each subject, and reports that agree."""
    for number, subject in enumerate(topic.subjects):
        for version in range(VERSIONS):
            start = topic.first_year + 4 * version + number % 3
            right = Version(
                topic=topic,
                subject=subject,
                value=topic.values[number * VERSIONS + version],
                start=start,
                end=start + 3 if version + 1 < VERSIONS else None,
                id=f"{topic.kind} {subject} {version}",
            )
            yield right
            if version == 1 and number < AGREEING:
                yield replace(right, id=f"{right.id} report", is_report=True)


def contradictions(topic: Topic) -> Iterator[Version]:
    """The documents of a topic that say otherwise of the time of a first version."""
    spare_values = topic.values[SUBJECTS * VERSIONS :]
    for number, subject in enumerate(topic.subjects[-CONTRADICTED:]):
        first = next(version for version in versions(topic) if version.subject == subject)
        yield replace(first, value=spare_values[number], id=f"{first.id} wrong", is_report=True)


# ── what is measured ────────────────────────────────────────────────────────────


@dataclass
class Tally:
    """Questions as of a date: how many, how many answered from the right version alone, and how many
    contexts have a claim of another version.
    """

    questions: int = 0
    right: int = 0
    leaking: int = 0


def insert(rag: LightRAG, documents: Sequence[Version], *, by_rules: bool) -> None:
    """Insert documents as records, or as texts for the rules."""
    if by_rules:
        rag.insert([version.document for version in documents], progress=False)
        return
    for version in documents:
        rag.insert_records(version.document, version.records)


def ask(rag: LightRAG, topic: Topic, right: Sequence[Version], tally: Tally) -> None:
    """Ask for each subject as of a year of each version."""
    for version in right:
        if version.is_report:
            continue
        year = f"{version.start + 1:04}"
        answer = rag.query(topic.question.format(version.subject), as_of=year)
        others = {
            further.value
            for further in right
            if further.subject == version.subject and further.value != version.value
        }
        tally.questions += 1
        is_right = version.value in answer.text and not any(
            value in answer.text for value in others
        )
        tally.right += is_right
        tally.leaking += any(value in shown_text(answer.context) for value in others)
        if not is_right and os.environ.get("SHOW"):
            print(year, topic.question.format(version.subject), version.value, "|", answer.text)


def shown_text(context: Context) -> str:
    """Everything that a context shows."""
    return f"{context.prompt}\n{context.entities}\n{context.relations}\n{context.chunks}"


def state(rag: LightRAG, topics: Sequence[Topic]) -> list[tuple[object, ...]]:
    """The contexts of all questions as of the last year, without their scores."""
    contexts: list[tuple[object, ...]] = []
    for topic in topics:
        for subject in topic.subjects:
            year = f"{topic.first_year + 14:04}"
            context = rag.retrieve(topic.question.format(subject), as_of=year)
            contexts.append((context.entities, context.relations, context.chunks))
    return contexts


def measure(language: str, names: Names, *, by_rules: bool) -> dict[str, object]:
    """The figures for the documents of one language."""
    topics = [topic for topic in all_topics(names) if topic.language == language]
    right = {topic.kind: list(versions(topic)) for topic in topics}
    wrong = [version for topic in topics for version in contradictions(topic)]
    older = [
        version for topic in topics for version in right[topic.kind] if version.end is not None
    ]
    newest = [version for topic in topics for version in right[topic.kind] if version.end is None]
    tally = Tally()
    with (
        tempfile.TemporaryDirectory() as folder,
        LightRAG(folder, embedder=HashEmbedder(), language=language, clock=lambda: 1.0) as rag,
    ):
        insert(rag, older, by_rules=by_rules)
        before = state(rag, topics)
        insert(rag, newest, by_rules=by_rules)
        for topic in topics:
            ask(rag, topic, right[topic.kind], tally)
        rag.delete(*[version.id for version in newest])
        is_undone = state(rag, topics) == before
        insert(rag, [*newest, *wrong], by_rules=by_rules)
        precision, recall = judge_conflicts(rag, wrong)
    return {
        "documents": len(older) + len(newest) + len(wrong),
        "questions": tally.questions,
        "right": tally.right,
        "leaking": tally.leaking,
        "undone": is_undone,
        "precision": precision,
        "recall": recall,
    }


def judge_conflicts(rag: LightRAG, wrong: Sequence[Version]) -> tuple[float, float]:
    """Precision and recall of the contradictions that time does not explain."""
    wrong_ids = {version.id for version in wrong}
    pairs = [
        {conflict.first.document_id, conflict.second.document_id}
        for conflict in rag.conflicts(limit=None)
    ]
    true_pairs = [pair for pair in pairs if pair & wrong_ids]
    listed_ids = {id for pair in true_pairs for id in pair & wrong_ids}
    precision = len(true_pairs) / len(pairs) if pairs else 0.0
    return round(precision, 3), round(len(listed_ids) / len(wrong_ids), 3)


def main() -> None:
    """Print the figures of both languages, by records and by rules."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--languages", nargs="+", default=("en", "zh"), choices=("en", "zh"))
    parser.add_argument(
        "--by", nargs="+", default=("records", "rules"), choices=("records", "rules")
    )
    parser.add_argument("--held-out", action="store_true", help="other names of all kinds")
    arguments = parser.parse_args()
    names = HELD_OUT_NAMES if arguments.held_out else NAMES
    figures = {
        f"{language} by {way}": measure(language, names, by_rules=way == "rules")
        for way in arguments.by
        for language in arguments.languages
    }
    print(json.dumps({"benchmark": "versions", "figures": figures}, indent=2))


if __name__ == "__main__":
    main()
