"""An ontology: the classes and properties that records may use, and the check of records against it."""

import difflib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.names import name_key
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
    _names: dict[str, str] = field(default_factory=dict, repr=False)  # of classes, by folded name

    @classmethod
    def load(cls, source: Path | str | Mapping[str, Json]) -> "Ontology":
        """Read a JSON or YAML file, or a mapping; `ConfigError` says what is wrong and where.

        The keys are `classes`, `object_properties` and `datatype_properties` in any spelling
        (`objectProperties`), as mappings by name or as lists of names. This includes TrustGraph's
        layout, with `rdfs:label`, `rdfs:subClassOf`, `rdfs:domain` and `rdfs:range`.
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
            line = f"{name} < {', '.join(parents)}" if parents else name
            classes.append(line + (f" ({self.comments[name]})" if self.comments[name] else ""))
        return {
            "classes": classes,
            "object_properties": list(map(str, self.object_properties.values())),
            "datatype_properties": list(map(str, self.datatype_properties.values())),
        }

    def is_a(self, name: str, ancestor: str) -> bool:
        """Whether every member of the class `name` is a member of `ancestor`; both as declared."""
        seen = [name]
        for current in seen:  # grows on the way
            seen += [one for one in self.classes.get(current, ()) if one not in seen]
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
        stated = [text.get(f"{end}_type", "") for end in ends]
        for end, stated_class in zip(ends, stated, strict=True):
            if problem := self._class_problem(text.get(end, ""), stated_class, types):
                return problem
        classes = [self.class_of(one) or "" for one in stated]
        value = record.get("value")
        fits = self._fits(classes[1], found.range) if classes[1:] else _is_value(value, found.range)
        if fits and self._fits(classes[0], found.domain):
            return None
        return f"{classes[0]} -> {classes[1] if classes[1:] else repr(value)} does not fit {found}"

    def declared(self, record: Record) -> Record:
        """A record that fits, with classes and properties as the ontology spells them."""
        spelled = dict(record)
        for key in {"entity_type", "subject_type", "object_type"} & record.keys():
            spelled[key] = self.class_of(str(record[key])) or record[key]
        properties = {"relation": self.object_properties, "attribute": self.datatype_properties}
        for key in properties.keys() & record.keys():
            found = properties[key].get(_fold(_local(str(record[key]))))
            spelled[key] = found.name if found else record[key]
        return spelled

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
            for other in (*settings.get("label", ()), _local(name)):
                self._names.setdefault(_fold(other), name)
            self.comments[name] = _comment(settings)
        for where, name, settings in classes:
            self.classes[name] = self._ends(where, settings, "subclassof", "subclass_of")
        for section, known in (
            ("objectproperties", self.object_properties),
            ("datatypeproperties", self.datatype_properties),
        ):
            for where, name, settings in _entries(content, section):
                domain = self._ends(where, settings, "domain", "domain")
                if known is self.object_properties:
                    values = self._ends(where, settings, "range", "range")
                else:
                    values = tuple(map(_local, settings.get("range", ())))
                property = Property(name, domain, values, _comment(settings))
                known[_fold(_local(name))] = property

    def _ends(self, where: str, settings: Settings, key: str, shown: str) -> tuple[str, ...]:
        """The declared spelling of classes; none if one of the names accepts anything."""
        found = []
        for name in settings.get(key, ()):
            known = self.class_of(name)
            if known is None and _fold(_local(name)) in ANYTHING:
                return ()
            if known is None:
                near = _did_you_mean(name, self._names.values())
                raise ConfigError(f"{where}: {shown}: {name!r} is no class{near}")
            found.append(known)
        return tuple(found)


def _entries(
    content: Mapping[str, tuple[str, Json]], section: str
) -> Iterator[tuple[str, str, Settings]]:
    """Where it is, its name and its settings, for each entry of a section."""
    key, entries = content.get(section, (section, {}))
    if isinstance(entries, list) and all(isinstance(name, str) for name in entries):
        entries = {str(name): None for name in entries}
    if not isinstance(entries, Mapping):
        raise ConfigError(f"{key}: must be a list of names or a mapping")
    for name, item in entries.items():
        given = {"subclassof": item} if isinstance(item, str) else item or {}
        if not isinstance(given, Mapping):
            raise ConfigError(f"{key}.{name}: must be a mapping")
        settings = {_fold(key): _texts(value) for key, value in given.items()}
        yield f"{key}.{name}", str(name).strip(), settings


def _texts(value: Json) -> tuple[str, ...]:
    """The texts in a value: one text, a list, or `{value: text}`."""
    items = value if isinstance(value, list) else [value]
    texts = [item.get("value") if isinstance(item, Mapping) else item for item in items]
    return tuple(text.strip() for text in texts if isinstance(text, str) and text.strip())


def _file_content(path: Path) -> Mapping[str, Json]:
    """A file's mapping; JSON is YAML, too."""
    import yaml

    if path.exists() and not path.is_file():  # a pipe would be read for ever
        raise ConfigError(f"ontology {path}: is not a regular file")
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
