"""An ontology: the classes and properties that records may use, and the check of records against it."""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lightrag_jsonl.errors import MISREAD, ConfigError
from lightrag_jsonl.indexfiles import check_not_of_index
from lightrag_jsonl.text import name_key
from lightrag_jsonl.types import Json, Record

_NUMBERS = {"number", "integer", "int", "long", "short", "float", "double", "decimal"}
_NUMBERS |= {"positiveinteger", "nonnegativeinteger"}
_VALUES = {"string", "text", "literal", "langstring", "date", "datetime", "time", "year", "gyear"}
_VALUES |= {"boolean", "bool", "uri", "anyuri", "quantity"}
_BOOLEANS = {"true", "false", "yes", "no", "是", "否", "有", "没有"}
_ANYTHING = {"thing", "any", "entity", "resource"}
_CLASSES = ("classes", "concepts")
_OBJECTS = ("objectproperties",)
_DATA = ("datatypeproperties", "dataproperties")
_MIXED = ("relations", "properties")


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


@dataclass(frozen=True, slots=True)
class Ontology:
    """Classes (each with its direct superclasses) and properties; load one with `Ontology.load`."""

    classes: Mapping[str, tuple[str, ...]]
    object_properties: tuple[Property, ...] = ()
    datatype_properties: tuple[Property, ...] = ()
    comments: Mapping[str, str] = field(default_factory=dict)
    _names: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def load(cls, source: Path | str | Mapping[str, Json]) -> Ontology:
        """Read a JSON or YAML file, or a mapping; `ConfigError` says what is wrong and where.

        The keys are `classes`, `object_properties` and `datatype_properties` in any spelling
        (`objectProperties`), as lists or as mappings by name. Alternatively `concepts` and
        `relations`: a relation's range tells whether it is an object or a datatype property
        (without one it is both), and it may name classes that are not declared.
        """
        if isinstance(source, Mapping):
            return _Reader("ontology", source).ontology()
        return _Reader(Path(source).name, _file_content(Path(source))).ontology()

    def variables(self) -> dict[str, list[str]]:
        """The variables of the prompt `extract-with-ontologies`: one line a class or property."""
        lines = []
        for name, parents in self.classes.items():
            line = f"{name} < {', '.join(parents)}" if parents else name
            comment = self.comments.get(name)
            lines.append(f"{line} ({comment})" if comment else line)
        return {
            "classes": lines,
            "object_properties": [str(item) for item in self.object_properties],
            "datatype_properties": [str(item) for item in self.datatype_properties],
        }

    def is_a(self, name: str, ancestor: str) -> bool:
        """Whether every member of the class `name` is a member of `ancestor`; both as declared."""
        waiting, seen = [name], set()
        while waiting:
            current = waiting.pop()
            if current == ancestor:
                return True
            if current not in seen:
                seen.add(current)
                waiting.extend(self.classes.get(current, ()))
        return False

    def check(self, record: Record, types: Mapping[str, str]) -> str | None:
        """How a record of `extract-with-ontologies` violates the ontology; None if it does not.

        `types` holds the classes of the entities declared so far, by name or by `name_key`. An end
        of a relation may state a class only if it is the declared one, or above or below it.
        """
        kind = record.get("type")
        if kind == "entity":
            return self._class_trouble(_said(record, "entity_type"))
        if kind == "relationship":
            return self._relationship_trouble(record, types)
        if kind == "attribute":
            return self._attribute_trouble(record, types)
        return f"type: {kind!r} is not entity, relationship or attribute"

    def class_of(self, name: str) -> str | None:
        """The declared spelling of a class, found by name, label or the end of its URI."""
        return _found(self._names, name)

    def _class_trouble(self, name: str) -> str | None:
        if self.class_of(name) is not None:
            return None
        return f"{name!r} is no class of the ontology" + _near(name, self.classes)

    def _relationship_trouble(self, record: Record, types: Mapping[str, str]) -> str | None:
        relation = _said(record, "relation")
        signatures = _named(self.object_properties, relation)
        if not signatures:
            known = {item.name for item in self.object_properties}
            return f"{relation!r} is no object property of the ontology" + _near(relation, known)
        ends = []
        for end in ("subject", "object"):
            said = _said(record, f"{end}_type")
            if trouble := self._end_trouble(_said(record, end), said, types):
                return trouble
            ends.append(self.class_of(said) or "")
        subject, target = ends
        if any(self._fits(subject, i.domain) and self._fits(target, i.range) for i in signatures):
            return None
        return f"{subject} -> {target} does not fit {' or '.join(map(str, signatures))}"

    def _attribute_trouble(self, record: Record, types: Mapping[str, str]) -> str | None:
        attribute, said = _said(record, "attribute"), _said(record, "entity_type")
        signatures = _named(self.datatype_properties, attribute)
        if not signatures:
            known = {item.name for item in self.datatype_properties}
            trouble = f"{attribute!r} is no datatype property of the ontology"
            return trouble + _near(attribute, known)
        if problem := self._end_trouble(_said(record, "entity"), said, types):
            return problem
        owner, value = self.class_of(said) or "", record.get("value")
        if any(self._fits(owner, i.domain) and _is_value(value, i.range) for i in signatures):
            return None
        return f"{owner} -> {value!r} does not fit {' or '.join(map(str, signatures))}"

    def _end_trouble(self, name: str, said: str, types: Mapping[str, str]) -> str | None:
        """What is wrong with the class that a record states for an entity: unknown, or contradictory."""
        if trouble := self._class_trouble(said):
            return trouble
        here = self.class_of(said) or ""
        seen = types.get(name) or types.get(name_key(name))
        declared = None if seen is None else self.class_of(seen)
        if declared is None or self.is_a(declared, here) or self.is_a(here, declared):
            return None
        return f"{name!r} was declared as {declared}, here it is {here}"

    def _fits(self, name: str, allowed: tuple[str, ...]) -> bool:
        return not allowed or any(self.is_a(name, other) for other in allowed)


class _Reader:
    """Parses an ontology; `origin` names it in errors."""

    def __init__(self, origin: str, content: Mapping[str, Json]) -> None:
        self.origin = origin
        self.content = {_fold(key): value for key, value in content.items()}
        self.classes: dict[str, tuple[str, ...]] = {}
        self.comments: dict[str, str] = {}
        self.names: dict[str, str] = {}

    def ontology(self) -> Ontology:
        self._read_classes()
        objects = list(self._properties(_OBJECTS, "object_properties"))
        data = list(self._properties(_DATA, "datatype_properties"))
        for item in self._properties(_MIXED, "relations"):
            if not item.range or not _has_values(item, self.names):
                objects.append(item)
            if not item.range or _has_values(item, self.names):
                data.append(item)
        return Ontology(
            self.classes,
            tuple(self._with_classes(item, "object_properties", ranges=True) for item in objects),
            tuple(self._with_classes(item, "datatype_properties", ranges=False) for item in data),
            self.comments,
            self.names,
        )

    def _read_classes(self) -> None:
        entries = list(self._entries(_CLASSES, "classes"))
        if not entries:
            raise ConfigError(f"{self.origin}: classes: an ontology needs at least one class")
        for name, settings in entries:
            self.classes[name] = ()
            self.comments[name] = _comment(settings)
            _remember(self.names, name, settings)
        for name, settings in entries:
            parents = _listed(settings, "subclassof", "parent", "parents")
            self.classes[name] = tuple(
                self._class(parent, f"classes.{name}: subclass_of")
                for parent in parents
                if not _is_anything(parent)
            )
        self.comments = {name: text for name, text in self.comments.items() if text}

    def _properties(self, keys: Sequence[str], title: str) -> Iterator[Property]:
        for name, settings in self._entries(keys, title):
            domain = _listed(settings, "domain")
            ends = _listed(settings, "range")
            yield Property(name, domain, ends, _comment(settings))

    def _with_classes(self, item: Property, title: str, *, ranges: bool) -> Property:
        """The property with its classes in their declared spelling."""
        where = f"{title}.{item.name}"
        domain = self._ends(item.domain, f"{where}: domain")
        if ranges:
            return Property(
                item.name, domain, self._ends(item.range, f"{where}: range"), item.comment
            )
        values = tuple(_local(value) for value in item.range)
        return Property(item.name, domain, values, item.comment)

    def _ends(self, names: Iterable[str], where: str) -> tuple[str, ...]:
        names = tuple(names)
        if any(_is_anything(name) and _found(self.names, name) is None for name in names):
            return ()
        return tuple(self._class(name, where) for name in names)

    def _class(self, name: str, where: str) -> str:
        """The declared class of this name; in an ontology with `relations`, using a class declares it."""
        found = _found(self.names, name)
        if found is None and any(key in self.content for key in _MIXED):
            self.classes[name] = ()
            _remember(self.names, name, {})
            found = name
        if found is None:
            near = _near(name, self.classes)
            raise ConfigError(f"{self.origin}: {where}: {name!r} is no class{near}")
        return found

    def _entries(self, keys: Sequence[str], title: str) -> Iterator[tuple[str, dict[str, Json]]]:
        """Each name and its settings, from a list or a mapping under the first key that is there."""
        value = next((self.content[key] for key in keys if key in self.content), None)
        if isinstance(value, Mapping):
            for name, settings in value.items():
                yield self._entry(name, settings, f"{title}.{name}")
        elif isinstance(value, list):
            for number, settings in enumerate(value):
                where = f"{title}[{number}]"
                if isinstance(settings, Mapping):
                    yield self._entry(_name(settings), settings, where)
                else:
                    yield self._entry(settings, None, where)
        elif value is not None:
            raise ConfigError(f"{self.origin}: {title}: must be a list or a mapping")

    def _entry(self, name: Json, settings: Json, where: str) -> tuple[str, dict[str, Json]]:
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(f"{self.origin}: {where}: has no name")
        if isinstance(settings, str):
            settings = (
                {"subclass_of": settings} if where.startswith("classes") else {"range": settings}
            )
        if settings is not None and not isinstance(settings, Mapping):
            raise ConfigError(f"{self.origin}: {where}: must be a mapping")
        return name.strip(), {_fold(key): value for key, value in (settings or {}).items()}


def _file_content(path: Path) -> Mapping[str, Json]:
    """A file's mapping; YAML is read where the text is no JSON."""
    check_not_of_index(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"ontology {path}: cannot be read: {error}") from error
    content: object
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = _yaml(text, path)
    if not isinstance(content, Mapping):
        raise ConfigError(f"ontology {path}: must be a mapping with `classes`")
    return content


def _yaml(text: str, path: Path) -> object:
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, *MISREAD) as error:
        raise ConfigError(f"ontology {path}: neither JSON nor YAML: {error}") from error


def _fold(name: str) -> str:
    """A name without prefix, case, `_`, `-` and spaces, for comparison."""
    bare = unicodedata.normalize("NFKC", str(name)).casefold()
    if bare.startswith(("rdfs:", "rdf:", "owl:", "skos:", "xsd:")):
        bare = bare.partition(":")[2]
    return re.sub(r"[\s_\-]+", "", bare)


def _local(name: str) -> str:
    """The end of a URI or of a prefixed name: `Food` of `fo/Food`, `fo:Food`, `http://…#Food`."""
    return re.split(r"[/#:]", name.rstrip("/#:"))[-1]


def _remember(names: dict[str, str], name: str, settings: Mapping[str, Json]) -> None:
    """Make a class findable by its name, and by its labels and ids unless these are taken."""
    names[_fold(name)] = name
    for key in ("label", "qid", "id", "uri", "iri", "name"):
        for other in _listed(settings, key):
            names.setdefault(_fold(other), name)
    names.setdefault(_fold(_local(name)), name)


def _found(names: Mapping[str, str], name: str) -> str | None:
    return names.get(_fold(name)) or names.get(_fold(_local(name)))


def _named(properties: Iterable[Property], name: str) -> tuple[Property, ...]:
    items = tuple(properties)
    exact = tuple(item for item in items if _fold(item.name) == _fold(name))
    return exact or tuple(item for item in items if _fold(_local(item.name)) == _fold(_local(name)))


def _listed(settings: Mapping[str, Json], *keys: str) -> tuple[str, ...]:
    """The texts under the first key present: one text, a list, or JSON-LD `{value}` or `{@id}`."""
    value = next((settings[key] for key in keys if key in settings), None)
    found = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, Mapping):
            item = item.get("value") or item.get("@value") or item.get("@id")
        if isinstance(item, str) and item.strip():
            found.append(item.strip())
    return tuple(found)


def _name(settings: Mapping[str, Json]) -> Json:
    """The name that the model is to write: the label if the id is an opaque code, else the id."""
    folded = {_fold(key): value for key, value in settings.items()}
    for key in ("name", "label", "id", "qid", "pid", "uri"):
        if texts := _listed(folded, key):
            return texts[0]
    return None


def _comment(settings: Mapping[str, Json]) -> str:
    texts = _listed(settings, "comment", "description", "definition")
    return " ".join(texts[0].split()) if texts else ""


def _is_anything(name: str) -> bool:
    return _fold(_local(name)) in _ANYTHING


def _has_values(item: Property, classes: Mapping[str, str]) -> bool:
    """Whether a relation's range names types of values and no class."""
    ends = [end for end in item.range if _found(classes, end) is None]
    return bool(ends) and all(_fold(_local(end)) in _NUMBERS | _VALUES for end in ends)


def _is_value(value: Json, types: tuple[str, ...]) -> bool:
    """Whether a value can be of one of the types; numbers may come as text with a unit."""
    return any(_is_of_type(value, _fold(_local(name))) for name in types or ("string",))


def _is_of_type(value: Json, name: str) -> bool:
    if name in _NUMBERS:
        if isinstance(value, str):
            return any(unicodedata.category(char) in ("Nd", "Nl", "No") for char in value)
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if name in ("boolean", "bool"):
        return isinstance(value, bool) or str(value).strip().casefold() in _BOOLEANS
    return value is not None and str(value).strip() != ""


def _said(record: Record, key: str) -> str:
    value = record.get(key)
    return value if isinstance(value, str) else ""


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""
