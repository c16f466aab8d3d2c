"""Prompt files: Markdown with YAML front matter, a file for each prompt, a folder for each language."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from lightrag_jsonl.core.errors import PromptError
from lightrag_jsonl.llm.prompt import Prompt, make_prompt

_FILE = re.compile(
    r"\s*---[ \t]*\n(?P<settings>.*?)^---[ \t]*\n(?P<body>.*)", re.DOTALL | re.MULTILINE
)
_HEADING = re.compile(r"^# (system|user)[ \t]*\n", re.MULTILINE)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PACKAGE = Path(__file__).resolve().parents[1]
_PARENTS = (_PACKAGE, _PACKAGE.parent)  # of prompt folders, in a wheel and in a checkout


def packaged_folder(language: str | Path) -> Path | None:
    """The folder of a packaged language ("en", "zh"); None for any other."""
    if not re.fullmatch(r"[A-Za-z]{2,3}([-_]\w+)?", str(language)):
        return None
    folders = (parent / f"prompts_{language}" for parent in _PARENTS)
    return next((folder for folder in folders if folder.is_dir()), None)


def prompt_folder(language: str | Path) -> Path:
    """The folder of a language: a packaged one by its code, any other by its path."""
    folder = packaged_folder(language)
    if folder is None and str(language) and Path(language).is_dir():
        folder = Path(language)
    if folder is None:
        found = {path.name[8:] for parent in _PARENTS for path in parent.glob("prompts_??")}
        raise PromptError(
            f"no prompts for the language {str(language)!r}; there are: "
            f"{', '.join(sorted(found))}. To add one, copy the folder prompts_en, translate its "
            "files, run `lightrag-jsonl prompts check FOLDER`, and give the folder's path as the "
            "language"
        )
    return folder


def prompt_paths(folder: Path) -> tuple[Path, ...]:
    """The prompt files of a folder, by name; `PromptError` if there are none."""
    paths = sorted(path for path in folder.glob("*.md") if path.stem.lower() != "readme")
    if not paths:
        raise PromptError(f"{folder}: holds no prompt file (*.md)")
    return tuple(paths)


def folder_prompts(folder: Path) -> dict[str, Prompt]:
    """The prompts of a folder by id, not yet checked."""
    return {path.stem: read_prompt(path) for path in prompt_paths(folder)}


def read_prompt(path: Path) -> Prompt:
    """The prompt of one file, not yet checked; `PromptError` if the file has another form."""
    origin = str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"{origin}: cannot be read: {error}") from error
    match = _FILE.match(text if text.endswith("\n") else text + "\n")
    if match is None:
        raise PromptError(f"{origin}: must begin with YAML front matter between two lines of ---")
    try:
        settings = yaml.load(match["settings"], Loader=_LOADER)
    except (yaml.YAMLError, ValueError, IndexError, RecursionError) as error:  # as of `2024-13-45`
        raise PromptError(f"{origin}: front matter: {error}") from error
    if not isinstance(settings, dict) or {"prompt", "system"} & settings.keys():
        raise PromptError(
            f"{origin}: front matter: must hold `key: value` lines; `prompt` and `system` are parts"
        )
    settings = {str(key): value for key, value in settings.items()}
    return make_prompt({**settings, **_parts(match["body"], origin)}, origin)


def _parts(body: str, origin: str) -> dict[str, str]:
    """The texts under `# system` and `# user`; other headings belong to the part they are in."""
    before, *parts = _HEADING.split(body)
    if parts[::2] not in (["user"], ["system", "user"]):
        raise PromptError(f"{origin}: needs one part `# user`, before it at most one `# system`")
    if before.strip():
        raise PromptError(f"{origin}: text before `# {parts[0]}` belongs to no part")
    return {"prompt": parts[-1].strip(), "system": parts[1].strip() if len(parts) > 2 else ""}
