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


def prompt_folder(language: str | Path) -> Path:
    """The folder of a language: a packaged one by its code ("en", "zh"), any other by its path."""
    if re.fullmatch(r"[A-Za-z]{2,3}", str(language)):
        for parent in _PARENTS:
            if (folder := parent / f"prompts_{language}").is_dir():
                return folder
    if str(language) and Path(language).is_dir():
        return Path(language)
    raise PromptError(
        f"no prompts for the language {str(language)!r}; there are: en, zh. To add one, copy the "
        "folder prompts_en, translate its files, run `lightrag-jsonl prompts check FOLDER`, and "
        "give the folder's path as the language"
    )


def prompt_paths(folder: Path) -> tuple[Path, ...]:
    """The prompt files of a folder, by name; `PromptError` if there are none."""
    paths = sorted(path for path in folder.glob("*.md") if path.stem.lower() != "readme")
    if not paths:
        raise PromptError(f"{folder}: holds no prompt file (*.md)")
    return tuple(paths)


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
    return make_prompt({**settings, **_parts(match["body"], origin)}, origin)


def _parts(body: str, origin: str) -> dict[str, str]:
    """The texts under `# system` and `# user`; other headings belong to the part they are in."""
    before, *parts = _HEADING.split(body)
    if parts[::2] not in (["user"], ["system", "user"]):
        raise PromptError(f"{origin}: needs one part `# user`, before it at most one `# system`")
    if before.strip():
        raise PromptError(f"{origin}: text before `# {parts[0]}` belongs to no part")
    return {"prompt": parts[-1].strip(), "system": parts[1].strip() if len(parts) > 2 else ""}
