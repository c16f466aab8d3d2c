"""Prompt files: Markdown with YAML front matter, a file for each prompt, a folder for each language."""

from __future__ import annotations

import re
from pathlib import Path

from lightrag_jsonl.errors import MISREAD, PromptError
from lightrag_jsonl.indexfiles import check_not_of_index
from lightrag_jsonl.prompts.prompt import Prompt, prompt_from
from lightrag_jsonl.types import Json

_FILE = re.compile(
    r"\s*---[ \t]*\n(?P<settings>.*?)^---[ \t]*\n(?P<body>.*)", re.DOTALL | re.MULTILINE
)
_HEADING = re.compile(r"^# (?P<part>\w+)[ \t]*\n", re.MULTILINE)
_PARTS = ("system", "user")
_LONG = 10_000  # characters; deep nesting in longer texts overflows libyaml's stack, which kills the process


def packaged_folder(language: str | Path) -> Path | None:
    """The folder of a packaged language ("en", "zh"); in a checkout it is beside the package."""
    if not isinstance(language, str) or not re.fullmatch(r"[A-Za-z]{2,3}([-_]\w+)?", language):
        return None
    folders = (place / f"prompts_{language}" for place in _places())
    return next((folder for folder in folders if folder.is_dir()), None)


def prompt_folder(language: str | Path) -> Path:
    """The folder of a language: a packaged one by its code, any other by its path."""
    folder = packaged_folder(language)
    if folder is not None:
        return folder
    if str(language) and Path(language).is_dir():
        return Path(language)
    found = {path.name[8:] for place in _places() for path in place.glob("prompts_??")}
    raise PromptError(
        f"no prompts for the language {str(language)!r}; there are: {', '.join(sorted(found))}. "
        "To add one, copy the folder prompts_en, translate its files, run "
        "`lightrag-jsonl prompts check FOLDER`, and give the folder's path as the language"
    )


def folder_prompts(folder: Path) -> dict[str, Prompt]:
    """The prompts of a folder by id, not yet checked."""
    paths = prompt_paths(folder)
    if not paths:
        raise PromptError(f"{folder}: holds no prompt file (*.md)")
    return {path.stem: file_prompt(path) for path in paths}


def prompt_paths(folder: Path) -> tuple[Path, ...]:
    """The prompt files of a folder, by name."""
    return tuple(sorted(path for path in folder.glob("*.md") if path.stem.lower() != "readme"))


def file_prompt(path: Path) -> Prompt:
    """The prompt of one file, not yet checked; `PromptError` if the file has another form."""
    origin = f"{path.parent.name}/{path.name}"
    check_not_of_index(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"{origin}: cannot be read: {error}") from error
    match = _FILE.match(text if text.endswith("\n") else text + "\n")
    if match is None:
        raise PromptError(f"{origin}: must begin with YAML front matter between two lines of ---")
    settings = _settings(match["settings"], origin)
    parts = _parts(match["body"], origin)
    for key in ("prompt", "system"):
        if key in settings:
            raise PromptError(f"{origin}: {key}: belongs under `# system` or `# user`")
    system = parts.get("system", "")
    return prompt_from(settings, template=parts["user"], system=system, origin=origin)


def _places() -> tuple[Path, Path]:
    """Where packaged prompts may be: inside the package (in a wheel), or beside it (in a checkout)."""
    package = Path(__file__).resolve().parent.parent
    return package, package.parent


def _settings(text: str, origin: str) -> dict[str, Json]:
    import yaml

    fast = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader = fast if len(text) <= _LONG else yaml.SafeLoader
    try:
        settings = yaml.load(text, Loader=loader)
    except (yaml.YAMLError, RecursionError, *MISREAD) as error:  # as of `2024-13-45`, `!!int ""`
        raise PromptError(f"{origin}: front matter: {error}") from error
    if not isinstance(settings, dict):
        raise PromptError(f"{origin}: front matter: must hold `key: value` lines")
    return {str(key): value for key, value in settings.items()}


def _parts(body: str, origin: str) -> dict[str, str]:
    """The texts under `# system` and `# user`; other headings belong to the part they are in."""
    headings = [match for match in _HEADING.finditer(body) if match["part"] in _PARTS]
    names = [match["part"] for match in headings]
    if names not in (["user"], ["system", "user"]):
        raise PromptError(f"{origin}: needs one part `# user`, before it at most one `# system`")
    if body[: headings[0].start()].strip():
        raise PromptError(f"{origin}: text before `# {names[0]}` belongs to no part")
    ends = [match.start() for match in headings[1:]] + [len(body)]
    return {
        match["part"]: body[match.end() : end].strip()
        for match, end in zip(headings, ends, strict=True)
    }
