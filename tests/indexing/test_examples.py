"""Copies of a prompt's example stay out of the index, true records stay in it; how long answers may be."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lightrag_jsonl import Chunk, Completion, IndexOptions, PromptManager
from lightrag_jsonl.indexing.examples import Examples, TextWords
from lightrag_jsonl.indexing.extraction import (
    ANSWER_PER_TOKEN,
    LEAST_ANSWER,
    LLMExtractor,
    answer_limit,
)
from lightrag_jsonl.indexing.ontology import Ontology
from lightrag_jsonl.llm.client import ModelClient
from lightrag_jsonl.llm.context_window import ContextWindow
from lightrag_jsonl.llm.field_aliases import normalize_graph_record
from lightrag_jsonl.testing import Script, ScriptedLLM
from tests.kit import Record, entity, jsonl, prompts, relation
from tests.llm.test_client import MemoryCache

TEXTS = {
    "en": "Since 1978 Tobias Reed has run the Harbour Bakery in Whitby, where his sister Ann sells "
    "bread. She has kept a notebook since 1931.",
    "zh": "沈昭自1931年起在苏州经营茶馆，其女沈宁任掌柜，起居简朴，一直如此。",
}
TRUE = {
    "en": [
        entity("Tobias Reed", "Tobias Reed has run a bakery since 1978."),
        entity("Ann", "Ann has kept a notebook since 1931."),
        entity("Trade", "An abstraction that no word of the passage names."),
        relation("Tobias Reed", "Ann", "Ann is the sister of Tobias Reed."),
    ],
    "zh": [
        entity("沈昭", "沈昭自1931年起经营茶馆。"),
        entity("沈宁", "沈宁任掌柜。"),
        entity("Suzhou", "A city in which tea is served."),
        relation("沈昭", "沈宁", "沈宁是沈昭之女。"),
    ],
}
SHIPS = Ontology.load(
    {
        "classes": ["Ship", "Port", "船", "港口"],
        "object_properties": {"sails_to": None, "驶往": None},
        "datatype_properties": {"length": {"range": "number"}, "长度": {"range": "number"}},
    }
)


async def extract(
    script: Script,
    text: str,
    *,
    language: str = "en",
    title: str = "",
    tokens: int = 40,
    prompt_set: PromptManager | None = None,
    **settings: Any,
) -> tuple[Any, ScriptedLLM]:
    """What a scripted model's answers give for one chunk."""
    llm = ScriptedLLM(script)
    client = ModelClient(
        llm, prompt_set or prompts(language), MemoryCache(), max_concurrent_calls=1
    )
    options = IndexOptions(max_gleanings=0, **settings)
    extractor = LLMExtractor(
        client,
        options,
        language=language,
        window=ContextWindow(None, len),
        ontology=SHIPS if options.extraction == "extract-with-ontologies" else None,
    )
    chunk = Chunk(
        id="c",
        document_id="d",
        index=0,
        page=0,
        start=0,
        end=len(text),
        text=text,
        tokens=tokens,
        title=title,
    )
    return await extractor.extract(chunk), llm


def names(extraction: Any) -> set[str]:
    return {mention.name for mention in extraction.entities}


def reasons(extraction: Any) -> Counter[str]:
    return Counter(rejection.reason for rejection in extraction.rejections)


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_an_echo_of_the_example_leaves_nothing_and_true_records_stay(language: str) -> None:
    """None of the example's entities, relations and keywords, each refused by itself. What a text
    states in other words, or in another language, is true, also if the example has one of its words.
    """
    example = [json.loads(line) for line in prompts(language).prompt("extract-graph").example_lines]
    answer = jsonl(*TRUE[language], *example)

    extraction, _ = await extract([answer], TEXTS[language], language=language)

    assert names(extraction) == {record["name"] for record in TRUE[language] if "name" in record}
    assert len(extraction.relations) == 1
    copies = sum(record["type"] != "done" for record in example)
    assert copies == 4 and reasons(extraction) == {"example": copies}


@pytest.mark.parametrize(
    ("language", "theme", "copied"),
    [("en", "bread in Whitby", ["lighthouse"]), ("zh", "经营茶馆", ["灯塔"])],
)
async def test_themes_of_the_example_are_left_out(
    language: str, theme: str, copied: list[str]
) -> None:
    """Of a list of themes that has others, too; what the text speaks of stays."""
    record = {"type": "content_keywords", "keywords": [theme, *copied]}
    answer = jsonl(*TRUE[language], record)

    extraction, _ = await extract([answer], TEXTS[language], language=language)
    assert extraction.content_keywords == (theme,)

    text = f"{TEXTS[language]} {copied[0]}"
    extraction, _ = await extract([answer], text, language=language)
    assert set(extraction.content_keywords) == {theme, copied[0]}


@pytest.mark.parametrize(("language", "name"), [("en", "Tobias Reed"), ("zh", "沈昭")])
async def test_keywords_of_the_example_are_left_out(language: str, name: str) -> None:
    """Of a relation that is true otherwise; keywords that the text has stay, an example's or not."""
    example = [json.loads(line) for line in prompts(language).prompt("extract-graph").example_lines]
    (copied,) = next(record["keywords"] for record in example if record["type"] == "relationship")
    other = next(
        record["name"] for record in TRUE[language] if record.get("name") not in (None, name)
    )
    true_relation = {**relation(name, other, f"{name} {other}"), "keywords": [copied, "sells"]}

    extraction, _ = await extract([jsonl(true_relation)], TEXTS[language], language=language)
    assert [edge.keywords for edge in extraction.relations] == [("sells",)]

    text = f"{TEXTS[language]} {copied}."
    extraction, _ = await extract([jsonl(true_relation)], text, language=language)
    assert [edge.keywords for edge in extraction.relations] == [(copied, "sells")]


@pytest.mark.parametrize(
    ("language", "copies"),
    [
        (
            "en",
            [
                entity("Tobias Reed", "Tobias Reed has been a lighthouse keeper since 1931."),
                entity("Mei Lin", "Mei Lin is a person who has a sister and sells bread."),
                entity("Lighthouse", "A lighthouse."),
                relation("Tobias Reed", "Gull Point", "Tobias Reed sells bread at Gull Point."),
                relation("Ann", "Whitby", "Ann sells a notebook to Mei Lin in Whitby."),
            ],
        ),
        (
            "zh",
            [
                entity("沈昭", "沈昭自1931年起看守灯塔。"),
                entity("林梅", "林梅在苏州。"),
                entity("灯塔", "鸥角有一座灯塔。"),
                relation("沈昭", "鸥角", "沈昭在鸥角经营茶馆。"),
                relation("沈宁", "苏州", "沈宁任掌柜，在苏州起居简朴，常请林梅来喝茶。"),
            ],
        ),
    ],
)
async def test_what_mixes_text_and_example_is_refused(language: str, copies: list[Record]) -> None:
    """Somebody of the text who does what the example says, somebody of the example in the text's
    places, a relation that leads from one to the other, somebody of the example between two of the
    text; even if single words are in the text.
    """
    answer = jsonl(*TRUE[language], *copies)

    extraction, _ = await extract([answer], TEXTS[language], language=language)

    assert reasons(extraction) == {"example": len(copies)}
    assert len(names(extraction)) == 3 and len(extraction.relations) == 1


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_text_about_the_same_things_as_the_example_is_read(language: str) -> None:
    """A document on lighthouses, or on the example's own people, loses nothing; its title counts."""
    texts = {
        "en": "The lighthouse at Skerry was kept by Tom from 1931. Mei called him its keeper. Lin came "
        "later.",
        "zh": "自1931年起，汤姆看守斯凯里的灯塔。林梅后来也到了那里。",
    }
    records = {
        "en": [
            entity("Tom", "Tom has been a lighthouse keeper since 1931."),
            entity("Mei Lin", "Mei Lin came later."),
            entity("Gull Point", "Gull Point has a lighthouse."),
        ],
        "zh": [
            entity("汤姆", "汤姆自1931年起看守灯塔。"),
            entity("林梅", "林梅后来看守灯塔。"),
            entity("鸥角", "鸥角与斯凯里各有灯塔。"),
        ],
    }
    title = {"en": "Gull Point and Skerry", "zh": "鸥角与斯凯里"}[language]

    extraction, _ = await extract(
        [jsonl(*records[language])], texts[language], language=language, title=title
    )

    assert len(extraction.entities) == 3 and not extraction.rejections


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("prompt", ["agent-kg-extract", "extract-with-ontologies"])
async def test_the_examples_of_all_extraction_prompts_are_known(prompt: str, language: str) -> None:
    """Their echo leaves nothing; where the text speaks of the same things, it is no echo."""
    example = prompts(language).prompt(prompt)
    echo = "\n".join(example.example_lines)
    spoken_of = " ".join(
        str(value) for line in example.example_lines for value in json.loads(line).values()
    )

    copied, _ = await extract([echo], TEXTS[language], language=language, extraction=prompt)
    true, _ = await extract([echo], spoken_of, language=language, extraction=prompt)

    assert not copied.entities and not copied.relations
    assert reasons(copied) == {"example": len(example.example_lines)}
    assert true.entities and true.relations and not true.rejections


async def test_a_length_that_an_ontology_names_is_no_copy() -> None:
    """Its terms and a number are in many texts, in other words."""
    records: list[Record] = [
        {"type": "entity", "entity": "Aurora", "entity_type": "Ship"},
        {
            "type": "attribute",
            "entity": "Aurora",
            "entity_type": "Ship",
            "attribute": "length",
            "value": 30,
        },
        {
            "type": "relationship",
            "subject": "Aurora",
            "subject_type": "Ship",
            "relation": "sails_to",
            "object": "Oslo",
            "object_type": "Port",
        },
    ]

    extraction, _ = await extract(
        [jsonl(*records)],
        "The Aurora, thirty metres from stem to stern, is bound for Oslo.",
        extraction="extract-with-ontologies",
    )

    assert names(extraction) == {"Aurora", "Oslo"} and not extraction.rejections


@pytest.mark.parametrize("place", ["examples", "within the text"])
async def test_a_prompt_of_ones_own_has_its_own_example(tmp_path: Path, place: str) -> None:
    """It is found wherever the prompt holds it; the package's example is nothing special then."""
    line = jsonl(entity("Zorblax", "Zorblax grows blue pumpkins.", aliases=["Zed"]))
    examples = f"examples: |\n  {line}\n" if place == "examples" else ""
    example = "{{ examples }}" if place == "examples" else f"For instance: {line}"
    (tmp_path / "extract-graph.md").write_text(
        f"---\nresponse-type: jsonl\ninputs: [text]\n{examples}---\n# user\n\n{example}\n\n{{{{ text }}}}\n",
        encoding="utf-8",
    )
    own = PromptManager.load("en", tmp_path)
    records = [
        entity("Zorblax", "Zorblax lives here."),
        entity("Ann", "Ann grows blue pumpkins."),
        entity("Gull Point", "Gull Point has a lighthouse."),
    ]

    extraction, _ = await extract([jsonl(*records)], TEXTS["en"], prompt_set=own)

    assert names(extraction) == {"Gull Point"} and reasons(extraction) == {"example": 2}


# ── how long an answer may be ───────────────────────────────────────────────────


def test_an_answer_is_limited_by_its_chunk() -> None:
    """In proportion, with a least number for short chunks and the user's own limit above all."""
    assert answer_limit(1, ceiling=None) == LEAST_ANSWER
    assert answer_limit(1_200, ceiling=None) == 1_200 * ANSWER_PER_TOKEN
    assert answer_limit(1_200, ceiling=500) == answer_limit(1, ceiling=500) == 500


async def test_every_call_about_a_chunk_is_limited() -> None:
    """The first, what resumes it, and the look for more; a model that thinks until the limit gets the
    whole of the user's limit at its second try.
    """
    whole = jsonl(entity("Ann"))
    _, llm = await extract([Completion(whole, "length"), whole], TEXTS["en"], tokens=1_000)
    assert [request.max_tokens for request in llm.requests] == [4_000, 4_000]
    thought = Completion("<think>Let me see", "length")
    extraction, llm = await extract([thought, whole], TEXTS["en"], max_extract_tokens=9_000)
    assert [request.max_tokens for request in llm.requests] == [LEAST_ANSWER, 9_000]
    assert names(extraction) == {"Ann"} and not extraction.error


async def test_a_loop_is_not_resumed() -> None:
    """The model would only go on with it; what it wrote before is kept, and the chunk is partial."""
    looping = Completion(jsonl(entity("Ann"), *[entity("Tobias Reed")] * 400), "length")

    extraction, llm = await extract([looping] * 3, TEXTS["en"])

    assert len(llm.requests) == 1 and names(extraction) == {"Ann", "Tobias Reed"}
    assert extraction.state == "partial" and reasons(extraction) == {"repeated": 1}


def test_a_copy_in_another_spelling_is_refused() -> None:
    """Traditional characters and full-width digits do not hide a copy of the example."""
    messages = prompts("zh").render(
        "extract-graph",
        {"entity_types": ["人物"], "language": "中文", "text": "", "background": ""},
    )
    examples = Examples.of(messages, normalize_graph_record)
    source = TextWords(TEXTS["zh"])
    copies = [entity("林梅婆", "１９３１年起看守鷗角的燈塔。"), entity("燈塔", "一座燈塔。")]
    assert all(examples.checked(copy, source) is None for copy in copies)
    assert all(examples.checked(record, source) for record in TRUE["zh"])
