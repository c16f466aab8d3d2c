"""Finds what takes a text: functions, classes and patterns of the package, none of them listed by hand."""

import ast
import asyncio
import importlib
import inspect
import pkgutil
import re
import typing
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, Literal

from msgspec import Struct

import lightrag_jsonl
from lightrag_jsonl import Context, FileLimits
from lightrag_jsonl.readers.limits import FileMeter
from lightrag_jsonl.text.patterns import LatePattern
from lightrag_jsonl.text.sentences import sentence_spans
from tests.kit import TOKENIZER

PACKAGE = lightrag_jsonl.__name__
# Parameters that name a place, a person's choice or a row: no text comes there.
NO_TEXT = re.compile(
    r"(?:.*_)?(?:path|folder|file|dir|url|uri|address|host|command|environment|prefix|flags|secret|mark|id|key)"
)
# What writes or connects there is not called at all.
PLACE = re.compile(r"(?:.*_)?(?:path|folder|file|dir|url|uri|address|host|command)")
# What takes a text and is left out, with the reason.
EXCEPTIONS: Mapping[str, str] = {
    "readers.rst.read_rst": "docutils looks for addresses in a quadratic way; files are read in a process with a limit of time",
    "readers.tex.read_tex": "pylatexenc joins white space in a quadratic way; a megabyte of nothing else takes 15 s, within that limit",
    "core.child_process.start_python": "runs the text as a program",
    "text.patterns.pattern_of": "takes a pattern of the package's own, which is compiled at first use",
    "text.patterns.LatePattern": "takes such a pattern",
    "cli.documents.matching_files": "takes a pattern of the user's own shell, and asks the file system",
}
PIECE = 3  # characters of a text that is fed in pieces


class NotMade(Exception):
    """No value of a type can be made without more than a text."""


@dataclass(frozen=True, slots=True)
class Target:
    """What takes a text: a dotted name in the package, and a call with the text."""

    name: str
    call: Callable[[str], object]


@cache
def modules() -> tuple[ModuleType, ...]:
    """The modules of the package, but for commands and those whose extra is not installed."""
    loaded = []
    for module in pkgutil.walk_packages(lightrag_jsonl.__path__, f"{PACKAGE}."):
        if module.name.endswith("__main__"):
            continue
        try:
            loaded.append(importlib.import_module(module.name))
        except ModuleNotFoundError:
            continue
    return tuple(loaded)


def short_name(module: ModuleType) -> str:
    """The name of a module in the package."""
    return module.__name__.removeprefix(f"{PACKAGE}.")


# ── functions ────────────────────────────────────────────────────────────────────


def function_targets(module: ModuleType) -> Iterator[Target]:
    """The public functions and classes of a module that take a text and nothing that cannot be made."""
    for name, member in vars(module).items():
        if name.startswith("_") or getattr(member, "__module__", None) != module.__name__:
            continue
        full_name = f"{short_name(module)}.{name}"
        if full_name in EXCEPTIONS:
            continue
        if inspect.isclass(member):
            yield from _class_targets(full_name, member)
        elif callable(member) and inspect.isfunction(inspect.unwrap(member)):
            yield from _call_targets(full_name, inspect.unwrap(member))


def _call_targets(name: str, function: Callable[..., object]) -> Iterator[Target]:
    """A target for each parameter that takes a text; the others are short."""
    try:
        needed = _needed(function)
        for text_name in _text_parameters(needed):
            arguments = partial(_arguments, needed, text_name)
            arguments("text")
            label = name if len(_text_parameters(needed)) == 1 else f"{name}({text_name}=)"
            yield Target(label, partial(_called, function, arguments))
    except NotMade:
        return


def _called(
    function: Callable[..., object], arguments: Callable[[str], dict[str, object]], text: str
) -> None:
    returned = function(**arguments(text))
    if inspect.iscoroutine(returned):
        asyncio.run(returned)
    elif isinstance(returned, Iterator):
        for _ in returned:
            pass


def _class_targets(name: str, made: type) -> Iterator[Target]:
    """A class made of a text, with what it says of it; and its methods, fed with a text in pieces."""
    if issubclass(made, BaseException) or getattr(made, "_is_protocol", False):
        return
    try:
        needed = _needed(made)
        if any(typing.get_origin(kind) is Callable for kind in needed.values()):
            return  # it calls back, maybe from a thread of its own
        for text_name in _text_parameters(needed):
            arguments = partial(_arguments, needed, text_name)
            arguments("text")
            label = name if len(_text_parameters(needed)) == 1 else f"{name}({text_name}=)"
            yield Target(label, partial(_described, made, arguments))
        make = partial(_make_object, made, needed)
        make()
    except Exception:  # noqa: BLE001 - it takes more than a text
        return
    for method_name, method in inspect.getmembers(made, inspect.isfunction):
        if method_name.startswith("_") or inspect.iscoroutinefunction(method):
            continue
        try:
            needed = {key: kind for key, kind in _needed(method).items() if key != "self"}
            for text_name in _text_parameters(needed):
                arguments = partial(_arguments, needed, text_name)
                arguments("text")
                yield Target(f"{name}.{method_name}", partial(_fed, make, method_name, arguments))
        except NotMade:
            continue


def _make_object(made: type, needed: Mapping[str, object]) -> object:
    if any(PLACE.fullmatch(key) for key in needed):
        raise NotMade(made.__name__)
    return made(**{key: _made(key, kind, "Ann Lee") for key, kind in needed.items()})


def _described(made: type, arguments: Callable[[str], dict[str, object]], text: str) -> None:
    """An object of a text, and its properties and words."""
    value = made(**arguments(text))
    for name, member in inspect.getmembers(made):
        if isinstance(member, property | cached_property) and not name.startswith("_"):
            getattr(value, name)
    str(value)
    if hasattr(value, "_repr_html_"):
        value._repr_html_()


def _fed(
    make: Callable[[], object],
    method: str,
    arguments: Callable[[str], dict[str, object]],
    text: str,
) -> None:
    value = make()
    for start in range(0, len(text), PIECE):
        returned = getattr(value, method)(**arguments(text[start : start + PIECE]))
        if isinstance(returned, Iterator):
            for _ in returned:
                pass


def _needed(function: Callable[..., object]) -> dict[str, object]:
    """The types of the parameters that a call needs, by name."""
    try:
        hints = typing.get_type_hints(function.__init__ if isinstance(function, type) else function)  # type: ignore[misc]
        signature = inspect.signature(function)
    except (NameError, TypeError, ValueError) as error:
        raise NotMade from error
    if any(
        parameter.kind is parameter.POSITIONAL_ONLY for parameter in signature.parameters.values()
    ):
        raise NotMade
    return {
        parameter.name: hints.get(parameter.name, object)
        for parameter in signature.parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }


def _text_parameters(needed: Mapping[str, object]) -> list[str]:
    return [
        name
        for name, kind in needed.items()
        if kind in (str, bytes) and not NO_TEXT.fullmatch(name)
    ]


def _arguments(needed: Mapping[str, object], text_name: str, text: str) -> dict[str, object]:
    """The arguments of a call: the text for one parameter, short values for the others."""
    if any(PLACE.fullmatch(name) for name in needed):
        raise NotMade(text_name)
    arguments: dict[str, object] = {}
    for name, kind in needed.items():
        if name == text_name:
            arguments[name] = text if kind is str else text.encode("utf-8", "surrogatepass")
        elif name == "spans":
            arguments[name] = sentence_spans(text)
        else:
            arguments[name] = _made(name, kind, text)
    return arguments


_MADE: Mapping[object, Callable[[], object]] = {
    str: lambda: "Ann Lee",
    bytes: lambda: b"Ann Lee",
    int: lambda: 100,
    float: lambda: 1.0,
    bool: lambda: False,
    object: lambda: "Ann Lee",
    Any: lambda: "Ann Lee",
    Context: Context,
    FileMeter: lambda: FileMeter(FileLimits()),
    re.Pattern: lambda: re.compile("Ann"),
    re.Pattern[str]: lambda: re.compile("Ann"),
}


def _made(name: str, kind: object, text: str) -> object:
    """A short value of a type; `NotMade` for what holds an index, a model or a connection."""
    if kind in _MADE:
        return _MADE[kind]()
    origin = typing.get_origin(kind)
    options = typing.get_args(kind)
    if origin is Literal:
        return options[0]
    if origin in (typing.Union, UnionType):
        return None if type(None) in options else _made(name, options[0], text)
    if origin is Callable or kind is Callable:
        return lambda *values: values[0] if values else None
    if origin is not None and isinstance(origin, type):
        return _made_collection(name, origin, options, text)
    if getattr(kind, "__name__", "") == "Tokenizer":
        return TOKENIZER
    if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, Struct)):
        return _make_object(kind, _needed(kind))
    raise NotMade(f"{name}: {kind}")


def _made_collection(name: str, origin: type, options: Sequence[object], text: str) -> object:
    if issubclass(origin, Mapping):
        return {}
    item_kind = options[0] if options else str
    if origin is tuple and Ellipsis not in options:
        return tuple([_made(name, option, text) for option in options])
    items = ["Ann Lee", "李明"] if item_kind is str else [_made(name, item_kind, text)]
    if issubclass(origin, set | frozenset):
        return frozenset(items)
    return tuple(items) if origin is tuple else items


# ── patterns ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class FoundPattern:
    """A pattern of a module, with the methods of `re` by which the package uses it."""

    module: ModuleType
    name: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]


@cache
def patterns() -> tuple[FoundPattern, ...]:
    """Every compiled pattern of the package, also in tables and objects, and those written where they are used."""
    uses = _uses()
    by_pattern: dict[re.Pattern[Any], FoundPattern] = {}
    for module in modules():
        for name, value in vars(module).items():
            for path, pattern in _patterns_in(f"{short_name(module)}.{name}", value, depth=3):
                last_name = path.rpartition(".")[2]
                used = frozenset(uses.get(last_name, ())) or frozenset(
                    {"finditer", "match", "fullmatch"}
                )
                by_pattern.setdefault(pattern, FoundPattern(module, path, pattern, used))
        for place, pattern, method in _written_patterns(module):
            by_pattern.setdefault(
                pattern, FoundPattern(module, place, pattern, frozenset({method}))
            )
    return tuple(by_pattern.values())


def pattern_targets(module: ModuleType) -> Iterator[Target]:
    """The patterns of a module, as they are used; a search goes on until the end of the text."""
    for pattern in patterns():
        if pattern.module is module:
            for method in sorted(pattern.methods):
                yield Target(
                    f"{pattern.name} ({method})", partial(_matched, pattern.pattern, method)
                )


def _matched(pattern: re.Pattern[Any], method: str, text: str) -> None:
    subject = text.encode("utf-8", "surrogatepass") if isinstance(pattern.pattern, bytes) else text
    if method in ("match", "fullmatch", "search"):
        getattr(pattern, method)(subject)
    else:
        for _ in pattern.finditer(subject):
            pass


def _patterns_in(path: str, value: object, depth: int) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if isinstance(value, LatePattern):
        yield path, value.compiled
    elif isinstance(value, re.Pattern):
        yield path, value
    elif depth and isinstance(value, tuple | list | set | frozenset):
        for number, item in enumerate(value):
            yield from _patterns_in(f"{path}[{number}]", item, depth - 1)
    elif depth and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _patterns_in(f"{path}[{key!r}]", item, depth - 1)
    elif depth and is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _patterns_in(
                f"{path}.{field.name}", getattr(value, field.name, None), depth - 1
            )
    elif depth and isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from _patterns_in(f"{path}.{name}", getattr(value, name), depth - 1)


_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")


@cache
def _uses() -> dict[str, set[str]]:
    """The methods of `re` by the names of the variables that the package calls them on."""
    uses: dict[str, set[str]] = defaultdict(set)
    for module in modules():
        for node in ast.walk(_tree(module)):
            if isinstance(node, ast.Attribute) and node.attr in _METHODS:
                if isinstance(node.value, ast.Name):
                    uses[node.value.id].add(node.attr)
                elif isinstance(node.value, ast.Attribute):
                    uses[node.value.attr].add(node.attr)
    return uses


def _written_patterns(module: ModuleType) -> Iterator[tuple[str, re.Pattern[Any], str]]:
    """The patterns of calls such as `re.sub("…", …)`, with their places."""
    for node in ast.walk(_tree(module)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        is_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
        if is_re and node.func.attr in _METHODS and isinstance(node.args[0], ast.Constant):
            place = f"{short_name(module)}.{node.func.attr} in line {node.lineno}"
            yield place, re.compile(node.args[0].value), node.func.attr


def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
