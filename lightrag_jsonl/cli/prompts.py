"""`prompts list | show | check`: the packaged prompt sets, and the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lightrag_jsonl.cli.options import as_json, has_prompts
from lightrag_jsonl.cli.options import prompts as overrides
from lightrag_jsonl.cli.output import Reply, counted, emit_json, replying, table

if TYPE_CHECKING:
    from lightrag_jsonl.prompts import Prompt, PromptManager

PACKAGED = ("en", "zh")
language = click.option(
    "-l",
    "--language",
    default="en",
    show_default=True,
    callback=has_prompts,
    help="en, zh, or a folder of prompts.",
)


@click.group()
def prompts() -> None:
    """Show the prompts; check a folder of your own.

    To change a prompt: write the output of `show` to a file of the same name in a folder, edit
    it, `check` the folder, and pass it to other commands with --prompts.
    """


@prompts.command("list")
@language
@overrides
@replying
def list_(language: str, prompts: Path | None) -> Reply:
    """List the prompts: id, form of the answer, revision, variables, aliases."""
    manager = _load(language, prompts)
    rows = [(id, manager.prompt(id)) for id in manager.ids]
    plain = [_summary(id, prompt) for id, prompt in rows]
    header = ("id", "answer", "revision", "variables", "also called")
    return Reply(plain, table([_row(id, prompt) for id, prompt in rows], header))


@prompts.command()
@click.argument("id")
@language
@overrides
@as_json
def show(id: str, language: str, prompts: Path | None, as_json: bool) -> None:
    """Print the file of the prompt ID, which may be an alias.

    \b
    Example:
      lightrag-jsonl prompts show extract-graph --language zh > mine/extract-graph.md
    """
    from lightrag_jsonl.prompts.files import prompt_folder

    manager = _load(language, prompts)
    prompt = manager.prompt(id)
    real = next(name for name in manager.ids if manager.prompt(name) is prompt)
    folders = [*([prompts] if prompts else []), prompt_folder(language)]
    name = Path(prompt.origin).name  # `id` may be an alias
    path = next(path for folder in folders if (path := folder / name).is_file())
    if not as_json:
        click.echo(path.read_text(encoding="utf-8-sig"), nl=False)
        return
    system, user = prompt.text
    schema = prompt.schema.source if prompt.schema else None
    parts = {"system": system, "user": user, "schema": schema, "file": path}
    emit_json({**_summary(real, prompt), **parts, "examples": prompt.examples})


@prompts.command()
@click.argument("folder", required=False, type=click.Path(exists=True, path_type=Path))
@replying
def check(folder: Path | None) -> Reply:
    """Check the prompt files of FOLDER, or the packaged ones; exit 1 if something is wrong.

    This checks templates, declared variables, schemas, and every example against its schema,
    and lists the files that replace no packaged prompt.
    """
    from lightrag_jsonl.prompts import check_set, strangers
    from lightrag_jsonl.prompts.files import prompt_folder

    folders = [folder] if folder else [prompt_folder(code) for code in PACKAGED]
    checked = [(str(one), check_set(one), strangers(one)) for one in folders]
    lines = []
    for name, problems, notes in checked:
        lines.append(f"{name}: {counted(len(problems), 'problem') if problems else 'sound'}")
        lines += [f"  {told}" for told in (*problems, *(f"note: {note}" for note in notes))]
    plain = [{"folder": name, "problems": p, "notes": n} for name, p, n in checked]
    failed = any(problems for _, problems, _ in checked)
    return Reply(plain, "\n".join(lines), 1 if failed else 0)


def _load(language: str, overrides: Path | None) -> PromptManager:
    from lightrag_jsonl.prompts import PromptManager

    return PromptManager.load(language, overrides)


def _row(id: str, prompt: Prompt) -> tuple[str, ...]:
    variables, aliases = ", ".join(prompt.inputs), ", ".join(prompt.aliases)
    return (id, prompt.response_type, prompt.revision, variables, aliases)


def _summary(id: str, prompt: Prompt) -> dict[str, object]:
    return {
        "id": id,
        "response_type": prompt.response_type,
        "revision": prompt.revision,
        "inputs": prompt.inputs,
        "aliases": prompt.aliases,
    }
