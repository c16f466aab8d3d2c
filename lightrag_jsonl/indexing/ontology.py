"""An ontology: the classes and properties that records may use, and the check of records against it."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.text import name_key
from lightrag_jsonl.core.types import Json, Record

NUMBERS = {"number", "integer", "int", "long", "short", "float", "double", "decimal"}
NUMBERS |= {"positiveinteger", "nonnegativeinteger"}
VALUES = {"string", "text", "literal", "langstring", "date", "datetime", "time", "year", "gyear"}
VALUES |= {"boolean", "bool", "uri", "anyuri", "quantity"} | NUMBERS
BOOLEANS = {"true", "false", "yes", "no", "是", "否", "有", "没有"}
ANYTHING = {"thing", "any", "entity", "resource"}
NAMES = ("name", "label", "id", "qid", "pid", "uri", "iri")  # what a class can be found by

Content: TypeAlias = dict[str, tuple[str, Json]]  # keys and values by folded key
Settings: TypeAlias = dict[str, tuple[str, ...]]  # texts by folded key


@dataclass(frozen=True, slots=True)
class Property:
    """A property and the classes it connects; an empty end accepts anything.

    For a datatype property `range` names types of values. A property declared several times becomes
    several of these; a record must fit one of them.
    """

    name: str
    domain: tuple[str, ...] = ()
    range: tuple[str, ...] = ()
    comment: str = ""

    def __str__(self) -> str:
        ends = f"{' | '.join(self.domain) or '*'} -> {' | '.join(self.range) or '*'}"
        return f"{self.name}: {ends}" + (f" ({self.comment})" if self.comment else "")


@dataclass(slots=True)
class Ontology:
    """Classes (each with its direct superclasses) and properties; load one with `Ontology.load`."""

    classes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    object_properties: list[Property] = field(default_factory=list)
    datatype_properties: list[Property] = field(default_factory=list)
    comments: dict[str, str] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def load(cls, source: Path | str | Mapping[str, Json]) -> Ontology:
        """Read a JSON or YAML file, or a mapping; `ConfigError` says what is wrong and where.

        The keys are `classes`, `object_properties` and `datatype_properties` in any spelling
        (`objectProperties`), as lists or as mappings by name. Alternatively `concepts` and
        `relations`: a relation's range tells whether it is an object or a datatype property
        (without one it is both), and it may name classes that are not declared.
        """
        path = None if isinstance(source, Mapping) else Path(source)
        content = source if isinstance(source, Mapping) else _file_content(Path(source))
        ontology = cls()
        try:
            ontology._read({_fold(key): (key, value) for key, value in content.items()})
        except ConfigError as error:
            raise ConfigError(f"{path.name if path else 'ontology'}: {error}") from error
        return ontology

    def variables(self) -> dict[str, list[str]]:
        """The variables of the prompt `extract-with-ontologies`: one line a class or property."""
        classes = []
        for name, parents in self.classes.items():
            comment = self.comments.get(name)
            line = f"{name} < {', '.join(parents)}" if parents else name
            classes.append(f"{line} ({comment})" if comment else line)
        objects, values = self.object_properties, self.datatype_properties
        return {
            "classes": classes,
            "object_properties": list(map(str, objects)),
            "datatype_properties": list(map(str, values)),
        }

    def is_a(self, name: str, ancestor: str) -> bool:
        """Whether every member of the class `name` is a member of `ancestor`; both as declared."""
        waiting, seen = [name], set()
        while waiting:
            current = waiting.pop()
            if current not in seen:
                seen.add(current)
                waiting.extend(self.classes.get(current, ()))
        return ancestor in seen

    def class_of(self, name: str) -> str | None:
        """The declared spelling of a class, found by name, label or the end of its URI."""
        return self._names.get(_fold(name)) or self._names.get(_fold(_local(name)))

    # ── checking ────────────────────────────────────────────────────────────────

    def check(self, record: Record, types: Mapping[str, str]) -> str | None:
        """How a record of `extract-with-ontologies` violates the ontology; None if it does not.

        `types` holds the classes of the entities declared so far, by name or by `name_key`. An end
        of a relation may have a class only if it is the declared one, or above or below it.
        """
        type = record.get("type")
        text = {key: value for key, value in record.items() if isinstance(value, str)}
        if type == "entity":
            return self._class_problem(text.get("entity_type", ""))
        if type not in ("relationship", "attribute"):
            return f"type: {type!r} is not entity, relationship or attribute"
        kind = "object" if type == "relationship" else "datatype"
        ends = ("subject", "object") if type == "relationship" else ("entity",)
        name = text.get("relation" if type == "relationship" else "attribute", "")
        known = self.object_properties if kind == "object" else self.datatype_properties
        signatures = [one for one in known if _fold(one.name) == _fold(name)]
        local = _fold(_local(name))
        signatures = signatures or [one for one in known if _fold(_local(one.name)) == local]
        if not signatures:
            near = _did_you_mean(name, [one.name for one in known])
            return f"{name!r} is no {kind} property of the ontology{near}"
        for end in ends:
            stated = text.get(f"{end}_type", "")
            if problem := self._end_problem(text.get(end, ""), stated, types):
                return problem
        classes = [self.class_of(text[f"{end}_type"]) or "" for end in ends]
        return self._mismatch(signatures, classes, record.get("value"))

    def _class_problem(self, name: str) -> str | None:
        if self.class_of(name) is not None:
            return None
        return f"{name!r} is no class of the ontology" + _did_you_mean(name, self.classes)

    def _end_problem(self, name: str, stated: str, types: Mapping[str, str]) -> str | None:
        """What is wrong with the class that a record states: unknown, or contradictory."""
        here, declared = self.class_of(stated), types.get(name) or types.get(name_key(name), "")
        before = self.class_of(declared)
        if here is None or before is None or self.is_a(before, here) or self.is_a(here, before):
            return self._class_problem(stated)
        return f"{name!r} was declared as {before}, here it is {here}"

    def _mismatch(self, signatures: list[Property], classes: list[str], value: Json) -> str | None:
        """None if one of the properties fits; `value` counts where there is only one class."""
        for one in signatures:
            fits = (
                self._fits(classes[-1], one.range) if classes[1:] else _is_value(value, one.range)
            )
            if fits and self._fits(classes[0], one.domain):
                return None
        shown = classes[1] if classes[1:] else repr(value)
        return f"{classes[0]} -> {shown} does not fit {' or '.join(map(str, signatures))}"

    def _fits(self, name: str, allowed: tuple[str, ...]) -> bool:
        return not allowed or any(self.is_a(name, other) for other in allowed)

    # ── reading ─────────────────────────────────────────────────────────────────

    def _read(self, content: Content) -> None:
        classes = list(_entries(content, "classes", "concepts"))
        if not classes:
            raise ConfigError("classes: an ontology needs at least one class")
        for _, name, settings in classes:
            self._add_class(name, settings)
        for where, name, settings in classes:
            parents = settings.get("subclassof", settings.get("parents", ()))
            parents = tuple(one for one in parents if _fold(_local(one)) not in ANYTHING)
            self.classes[name] = self._ends(parents, f"{where}: subclass_of")
        for where, name, settings in _entries(content, "objectproperties"):
            self._add_property(where, name, settings, values=False)
        for where, name, settings in _entries(content, "datatypeproperties", "dataproperties"):
            self._add_property(where, name, settings, values=True)
        for where, name, settings in _entries(content, "relations", "properties"):
            ends = settings.get("range", ())
            types = [end for end in ends if self.class_of(end) is None]
            has_values = bool(types) and all(_fold(_local(end)) in VALUES for end in types)
            for end in (*settings.get("domain", ()), *(() if has_values else types)):
                if self.class_of(end) is None and _fold(_local(end)) not in ANYTHING:
                    self._add_class(end, {})
            for values in sorted({has_values, has_values or not ends}):
                self._add_property(where, name, settings, values=values)

    def _add_class(self, name: str, settings: Settings) -> None:
        """Make a class findable by its name, and by its labels and ids unless these are taken."""
        self.classes[name] = ()
        self._names[_fold(name)] = name
        for other in (*(text for key in NAMES for text in settings.get(key, ())), _local(name)):
            self._names.setdefault(_fold(other), name)
        if comment := _comment(settings):
            self.comments[name] = comment

    def _add_property(self, where: str, name: str, settings: Settings, *, values: bool) -> None:
        domain, ends = settings.get("domain", ()), settings.get("range", ())
        domain = self._ends(domain, f"{where}: domain")
        ends = tuple(map(_local, ends)) if values else self._ends(ends, f"{where}: range")
        known = self.datatype_properties if values else self.object_properties
        known.append(Property(name, domain, ends, _comment(settings)))

    def _ends(self, names: tuple[str, ...], where: str) -> tuple[str, ...]:
        """The declared spelling of classes; none if one of the names accepts anything."""
        found = []
        for name in names:
            known = self.class_of(name)
            if known is None and _fold(_local(name)) in ANYTHING:
                return ()
            if known is None:
                near = _did_you_mean(name, self.classes)
                raise ConfigError(f"{where}: {name!r} is no class{near}")
            found.append(known)
        return tuple(found)


def _entries(content: Content, *keys: str) -> Iterator[tuple[str, str, Settings]]:
    """Where it is, its name and its settings, for each entry of the list or mapping under a key."""
    key, entries = next((content[key] for key in keys if key in content), (keys[0], {}))
    if isinstance(entries, Mapping):
        named = [(f"{key}.{name}", name, item) for name, item in entries.items()]
    elif isinstance(entries, list):
        named = [(f"{key}[{n}]", _entry_name(item), item) for n, item in enumerate(entries)]
    else:
        raise ConfigError(f"{key}: must be a list or a mapping")
    for where, name, item in named:
        if not name.strip():
            raise ConfigError(f"{where}: has no name")
        if isinstance(item, str) and isinstance(entries, Mapping):
            item = {"subclassof" if keys[0] == "classes" else "range": item}
        if not isinstance(item, Mapping | str | None):
            raise ConfigError(f"{where}: must be a mapping")
        yield where, name.strip(), _settings(item)


def _entry_name(item: Json) -> str:
    """The name that the model is to write: the label if the id is an opaque code, else the id."""
    settings = {"name": _texts(item)} if isinstance(item, str) else _settings(item)
    return next((settings[key][0] for key in NAMES if settings.get(key)), "")


def _settings(item: Json) -> Settings:
    if not isinstance(item, Mapping):
        return {}
    return {_fold(key): _texts(value) for key, value in item.items()}


def _texts(value: Json) -> tuple[str, ...]:
    """The texts in a value: one text, a list, or JSON-LD `{value}` or `{@id}`."""
    found = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, Mapping):
            item = item.get("value") or item.get("@value") or item.get("@id")
        if isinstance(item, str) and item.strip():
            found.append(item.strip())
    return tuple(found)


def _file_content(path: Path) -> Mapping[str, Json]:
    """A file's mapping; JSON is YAML, too."""
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise ConfigError(f"ontology {path}: cannot be read as JSON or YAML: {error}") from error
    if not isinstance(content, Mapping):
        raise ConfigError(f"ontology {path}: must be a mapping with `classes`")
    return content


# ── names and values ────────────────────────────────────────────────────────────


def _fold(name: object) -> str:
    """A name without prefix, case, `_`, `-` and spaces, for comparison."""
    bare = unicodedata.normalize("NFKC", str(name)).casefold()
    return re.sub(r"^(rdfs|rdf|owl|skos|xsd):|[\s_\-]+", "", bare)


def _local(name: str) -> str:
    """The end of a URI or of a prefixed name: `Food` of `fo/Food`, `fo:Food`, `http://…#Food`."""
    return re.split(r"[/#:]", name.rstrip("/#:"))[-1]


def _comment(settings: Settings) -> str:
    texts = (settings.get(key) for key in ("comment", "description", "definition"))
    return next((" ".join(found[0].split()) for found in texts if found), "")


def _is_value(value: Json, types: tuple[str, ...]) -> bool:
    """Whether a value can be of one of the types; numbers may come as text with a unit."""
    text = str(value).strip() if value is not None else ""
    for name in map(_fold, map(_local, types or ("string",))):
        if name in NUMBERS:
            fits = not isinstance(value, bool) and any(map(str.isnumeric, text))
        elif name in ("boolean", "bool"):
            fits = text.casefold() in BOOLEANS
        else:
            fits = text != ""
        if fits:
            return True
    return False


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""
