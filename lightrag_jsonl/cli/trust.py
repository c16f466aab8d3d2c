"""Endpoints that the user has named: somebody else's folder cannot have the key sent elsewhere."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from urllib.parse import urlsplit

import click

from lightrag_jsonl.cli.options import Setup
from lightrag_jsonl.errors import ConfigError

FILE_NAME = "endpoints"  # one URL per line, in the user's own settings, not in the index's folder

log = logging.getLogger(__name__)


def named(*urls: str | None) -> None:
    """Remember endpoints that the user has just named on the command line."""
    new = {_plain(url) for url in urls if url and not _needs_no_word(url)} - _trusted()
    if not new:
        return
    path = _path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(f"{url}\n" for url in sorted(new))
    except OSError as error:
        log.warning("later commands will ask for %s again: %s", " and ".join(sorted(new)), error)


def check(url: str | None, setup: Setup, option: str) -> None:
    """Raise `ConfigError` for an endpoint of the folder's that the user has never named.

    It would receive questions, texts and OPENAI_API_KEY. Servers of the local network, which get no
    key, and OPENAI_BASE_URL and OpenAI, for which the key is meant, are always allowed.
    """
    if url and url not in (setup.base_url, setup.embedder_base_url) and not is_trusted(url):
        raise ConfigError(
            f"{setup.working_dir} is set up for the endpoint {url!r}, which you have never named: what "
            "you ask, and OPENAI_API_KEY, would be sent there. If you trust it, name it once with "
            f"{option} {url!r}"
        )


def is_trusted(url: str) -> bool:
    """Whether an endpoint is always allowed, or was named before."""
    return _needs_no_word(url) or _plain(url) in _trusted()


def _needs_no_word(url: str) -> bool:
    from lightrag_jsonl.adapters.endpoint import OPENAI_HOST, is_own

    usual = os.environ.get("OPENAI_BASE_URL") or f"https://{OPENAI_HOST}"
    try:
        parts = urlsplit(url)
        is_openai = parts.scheme == "https" and parts.hostname == OPENAI_HOST
        return is_openai or is_own(url) or _plain(url) == _plain(usual)
    except ValueError:  # not a URL
        return False


def _plain(url: str) -> str:
    return url.strip().rstrip("/")


def _path() -> Path:
    return Path(click.get_app_dir("lightrag-jsonl")) / FILE_NAME


def _trusted() -> set[str]:
    try:
        return set(map(_plain, _path().read_text(encoding="utf-8").splitlines()))
    except (OSError, ValueError):
        return set()
