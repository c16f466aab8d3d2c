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

NUMBERS = {"number", "integer", "int", "long", "float", "double", "decimal"}
NUMBERS |= {"positiveinteger", "nonnegativeinteger"}
BOOLEANS = {"true", "false", "yes", "no", "是", "否", "有", "没有"}
ANYTHING = {"thing", "any", "entity", "resource"}

Settings: TypeAlias = dict[str, tuple[str, ...]]  # texts by folded key


@dataclass(frozen=True, slots=True)
class Property:
    """A property and the classes it connects; an empty end accepts anything.

    For a datatype property `range` names types of values.
    """

    name: str
    domain: tuple[str, ...]
    range: tuple[str, ...]
    comment: str

    def __str__(self) -> str:
        ends = f"{' | '.join(self.domain) or '*'} -> {' | '.join(self.range) or '*'}"
        return f"{self.name}: {ends}" + (f" ({self.comment})" if self.comment else "")


@dataclass(slots=True)
class Ontology:
    """Classes (each with its direct superclasses) and properties; load one with `Ontology.load`."""

    classes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    object_properties: dict[str, Property] = field(default_factory=dict)  # by folded name
    datatype_properties: dict[str, Property] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def load(cls, source: Path | str | Mapping[str, Json]) -> Ontology:
        """Read a JSON or YAML file, or a mapping; `ConfigError` says what is wrong and where.

        The keys are `classes`, `object_properties` and `datatype_properties` in any spelling
        (`objectProperties`), as mappings by name or as lists. This includes TrustGraph's layout,
        with `rdfs:label`, `rdfs:subClassOf`, `rdfs:domain` and `rdfs:range`.
        """
        name = "ontology" if isinstance(source, Mapping) else Path(source).name
        content = source if isinstance(source, Mapping) else _file_content(Path(source))
        ontology = cls()
        try:
            ontology._read({_fold(key): (key, value) for key, value in content.items()})
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from error
        return ontology

    def variables(self) -> dict[str, list[str]]:
        """The variables of the prompt `extract-with-ontologies`: one line a class or property."""
        classes = []
        for name, parents in self.classes.items():
            comment = self.comments.get(name)
            line = f"{name} < {', '.join(parents)}" if parents else name
            classes.append(f"{line} ({comment})" if comment else line)
        return {
            "classes": classes,
            "object_properties": list(map(str, self.object_properties.values())),
            "datatype_properties": list(map(str, self.datatype_properties.values())),
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

        `types` holds the classes of the entities declared so far, by `name_key`. An end of a
        relation may have a class only if it is the declared one, or above or below it.
        """
        type = record.get("type")
        text = {key: value for key, value in record.items() if isinstance(value, str)}
        if type == "entity":
            return self._class_problem("", text.get("entity_type", ""), {})
        if type == "relationship":
            name, kind, known = text.get("relation", ""), "object", self.object_properties
            ends = ["subject", "object"]
        elif type == "attribute":
            name, kind, known = text.get("attribute", ""), "datatype", self.datatype_properties
            ends = ["entity"]
        else:
            return f"type: {type!r} is not entity, relationship or attribute"
        found = known.get(_fold(_local(name)))
        if found is None:
            return f"{name!r} is no {kind} property of the ontology" + _did_you_mean(name, known)
        for end in ends:
            if problem := self._class_problem(
                text.get(end, ""), text.get(f"{end}_type", ""), types
            ):
                return problem
        classes = [self.class_of(text[f"{end}_type"]) or "" for end in ends]
        value = record.get("value")
        fits = self._fits(classes[1], found.range) if classes[1:] else _is_value(value, found.range)
        if fits and self._fits(classes[0], found.domain):
            return None
        return f"{classes[0]} -> {classes[1] if classes[1:] else repr(value)} does not fit {found}"

    def _class_problem(self, name: str, stated: str, types: Mapping[str, str]) -> str | None:
        """What is wrong with the class that a record states: unknown, or contradictory."""
        here, before = self.class_of(stated), self.class_of(types.get(name_key(name), ""))
        if here is None:
            return f"{stated!r} is no class of the ontology" + _did_you_mean(stated, self.classes)
        if before is None or self.is_a(before, here) or self.is_a(here, before):
            return None
        return f"{name!r} was declared as {before}, here it is {here}"

    def _fits(self, name: str, allowed: tuple[str, ...]) -> bool:
        return not allowed or any(self.is_a(name, other) for other in allowed)

    # ── reading ─────────────────────────────────────────────────────────────────

    def _read(self, content: Mapping[str, tuple[str, Json]]) -> None:
        """Read the sections, given by folded key, each with its key as it was written."""
        classes = list(_entries(content, "classes"))
        if not classes:
            raise ConfigError("classes: an ontology needs at least one class")
        for _, name, settings in classes:
            self._names[_fold(name)] = name
            for other in (*settings.get("label", ()), *settings.get("uri", ()), _local(name)):
                self._names.setdefault(_fold(other), name)
            if comment := _comment(settings):
                self.comments[name] = comment
        for where, name, settings in classes:
            self.classes[name] = self._ends(settings, "subclassof", f"{where}: subclass_of")
        for where, name, settings in _entries(content, "objectproperties"):
            domain = self._ends(settings, "domain", f"{where}: domain")
            ends = self._ends(settings, "range", f"{where}: range")
            found = Property(name, domain, ends, _comment(settings))
            self.object_properties[_fold(_local(name))] = found
        for where, name, settings in _entries(content, "datatypeproperties"):
            domain = self._ends(settings, "domain", f"{where}: domain")
            ends = tuple(map(_local, settings.get("range", ())))
            found = Property(name, domain, ends, _comment(settings))
            self.datatype_properties[_fold(_local(name))] = found

    def _ends(self, settings: Settings, key: str, where: str) -> tuple[str, ...]:
        """The declared spelling of classes; none if one of the names accepts anything."""
        found = []
        for name in settings.get(key, ()):
            known = self.class_of(name)
            if known is None and _fold(_local(name)) in ANYTHING:
                return ()
            if known is None:
                near = _did_you_mean(name, self._names.values())
                raise ConfigError(f"{where}: {name!r} is no class{near}")
            found.append(known)
        return tuple(found)


def _entries(
    content: Mapping[str, tuple[str, Json]], section: str
) -> Iterator[tuple[str, str, Settings]]:
    """Where it is, its name and its settings, for each entry of a section."""
    key, entries = content.get(section, (section, {}))
    named: list[tuple[str, Json, Json]] = []
    if isinstance(entries, list):
        for number, item in enumerate(entries):
            name = item.get("name") if isinstance(item, dict) else item
            named.append((f"{key}[{number}]", name, item if isinstance(item, dict) else None))
    elif isinstance(entries, Mapping):
        named += ((f"{key}.{name}", name, item) for name, item in entries.items())
    else:
        raise ConfigError(f"{key}: must be a list or a mapping")
    for where, name, item in named:
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(f"{where}: has no name")
        given = {"subclassof": item} if isinstance(item, str) else item or {}
        if not isinstance(given, Mapping):
            raise ConfigError(f"{where}: must be a mapping")
        yield where, name.strip(), {_fold(key): _texts(value) for key, value in given.items()}


def _texts(value: Json) -> tuple[str, ...]:
    """The texts in a value: one text, a list, or `{value: text}`."""
    items = value if isinstance(value, list) else [value]
    texts = [item.get("value") if isinstance(item, Mapping) else item for item in items]
    return tuple(text.strip() for text in texts if isinstance(text, str) and text.strip())


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


def _fold(name: object) -> str:
    """A name without prefix, case, `_`, `-` and spaces, for comparison."""
    bare = unicodedata.normalize("NFKC", str(name)).casefold()
    return re.sub(r"^(rdfs|rdf|owl|skos|xsd):|[\s_\-]+", "", bare)


def _local(name: str) -> str:
    """The end of a URI or of a prefixed name: `Food` of `fo/Food`, `fo:Food`, `http://…#Food`."""
    return re.split(r"[/#:]", name.rstrip("/#:"))[-1]


def _comment(settings: Settings) -> str:
    texts = settings.get("comment") or settings.get("description") or ("",)
    return " ".join(texts[0].split())


def _is_value(value: Json, types: tuple[str, ...]) -> bool:
    """Whether a value can be of one of the types; numbers may come as text with a unit."""
    text = "" if value is None else str(value).strip()
    names = set(map(_fold, types or ("string",)))
    is_number = not isinstance(value, bool) and any(map(str.isnumeric, text))
    is_boolean = text.casefold() in BOOLEANS
    others = names - NUMBERS - {"boolean", "bool"}
    return bool(
        (is_number and names & NUMBERS)
        or (is_boolean and names & {"boolean", "bool"})
        or (text and others)
    )


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""
