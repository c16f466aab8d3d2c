"""An ontology: the classes and properties that records may use, and the check of records."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import Json, Record
from lightrag_jsonl.text.names import name_key

NUMBER_TYPES = {"number", "integer", "int", "long", "float", "double", "decimal"}
NUMBER_TYPES |= {"positiveinteger", "nonnegativeinteger"}
BOOLEAN_TYPES = {"boolean", "bool"}
BOOLEANS = {"true", "false", "yes", "no", "是", "否", "有", "没有"}
ANYTHING = {"thing", "any", "entity", "resource"}

Settings: TypeAlias = dict[str, tuple[str, ...]]  # texts by folded key
Entry: TypeAlias = tuple[str, str, Settings]  # of a section: the place in the file, and the name


class OntologyProperty(Struct, frozen=True):
    """A property and the classes at its ends; an empty end accepts anything.

    For a datatype property `range` names types of values.
    """

    name: str
    domain: tuple[str, ...]
    range: tuple[str, ...]
    comment: str

    def __str__(self) -> str:
        domain = " | ".join(self.domain) or "*"
        range = " | ".join(self.range) or "*"
        comment = f" ({self.comment})" if self.comment else ""
        return f"{self.name}: {domain} -> {range}{comment}"


@dataclass(slots=True)
class Ontology:
    """Classes (each with the direct superclasses) and properties; `Ontology.load` reads a file."""

    classes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    object_properties: dict[str, OntologyProperty] = field(default_factory=dict)  # by folded name
    datatype_properties: dict[str, OntologyProperty] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    functional_kinds: list[str] = field(default_factory=list)  # as in `IndexOptions`
    _names: dict[str, str] = field(default_factory=dict, repr=False)  # of classes, by folded name

    @classmethod
    def load(cls, source: Path | str | Mapping[str, Json]) -> "Ontology":
        """Read a JSON or YAML file, or a mapping; `ConfigError` names the problem and the place.

        The keys are `classes`, `object_properties` and `datatype_properties` in any spelling
        (`objectProperties`), as mappings by name or as lists of names. This includes TrustGraph's
        layout, with `rdfs:label`, `rdfs:subClassOf`, `rdfs:domain` and `rdfs:range`.
        """
        if isinstance(source, Mapping):
            name = "ontology"
            content = source
        else:
            name = Path(source).name
            content = _file_content(Path(source))
        ontology = cls()
        try:
            ontology._read({_folded(key): (key, value) for key, value in content.items()})
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from error
        return ontology

    def variables(self) -> dict[str, list[str]]:
        """The variables of the prompt `extract-with-ontologies`: a line for each class or property."""
        return {
            "classes": list(map(self._class_line, self.classes)),
            "object_properties": list(map(str, self.object_properties.values())),
            "datatype_properties": list(map(str, self.datatype_properties.values())),
        }

    def is_a(self, name: str, ancestor: str) -> bool:
        """Whether every member of the class `name` is a member of `ancestor`; both as declared."""
        classes = [name]
        for current in classes:  # grows on the way
            parents = self.classes.get(current, ())
            classes += [parent for parent in parents if parent not in classes]
        return ancestor in classes

    def class_of(self, name: str) -> str | None:
        """The declared spelling of a class, by name, label or the end of a URI."""
        return self._names.get(_folded(name)) or self._names.get(_local_key(name))

    def _class_line(self, name: str) -> str:
        parents = ", ".join(self.classes[name])
        comment = self.comments[name]
        line = f"{name} < {parents}" if parents else name
        return f"{line} ({comment})" if comment else line

    # ── checking ────────────────────────────────────────────────────────────────

    def check(self, record: Record, types: Mapping[str, str]) -> str | None:
        """The violation of the ontology by a record of `extract-with-ontologies`, or None.

        `types` holds the classes of the entities declared so far, by `name_key`. An end of a
        relation may have only the declared class, or a class above or below the declared class.
        """
        type = record.get("type")
        texts = {key: value for key, value in record.items() if isinstance(value, str)}
        if type == "entity":
            return self._class_problem("", texts.get("entity_type", ""), {})
        if type == "relationship":
            return self._relation_problem(texts, types)
        if type == "attribute":
            return self._attribute_problem(texts, record.get("value"), types)
        return f"type: {type!r} is not entity, relationship or attribute"

    def declared(self, record: Record) -> Record:
        """A fitting record, with classes and properties as the ontology spells them."""
        spelled = dict(record)
        for key in {"entity_type", "subject_type", "object_type"} & record.keys():
            spelled[key] = self.class_of(str(record[key])) or record[key]
        properties = {"relation": self.object_properties, "attribute": self.datatype_properties}
        for key in properties.keys() & record.keys():
            property = properties[key].get(_local_key(str(record[key])))
            spelled[key] = property.name if property else record[key]
        return spelled

    def _relation_problem(self, texts: Mapping[str, str], types: Mapping[str, str]) -> str | None:
        name = texts.get("relation", "")
        property = self.object_properties.get(_local_key(name))
        if property is None:
            return _no_property(name, "object", self.object_properties)
        classes: list[str] = []
        for end in ("subject", "object"):
            stated_class = texts.get(f"{end}_type", "")
            if problem := self._class_problem(texts.get(end, ""), stated_class, types):
                return problem
            classes.append(self.class_of(stated_class) or "")
        if self._fits(classes[0], property.domain) and self._fits(classes[1], property.range):
            return None
        return f"{classes[0]} -> {classes[1]} does not fit {property}"

    def _attribute_problem(
        self, texts: Mapping[str, str], value: Json, types: Mapping[str, str]
    ) -> str | None:
        name = texts.get("attribute", "")
        property = self.datatype_properties.get(_local_key(name))
        if property is None:
            return _no_property(name, "datatype", self.datatype_properties)
        stated_class = texts.get("entity_type", "")
        if problem := self._class_problem(texts.get("entity", ""), stated_class, types):
            return problem
        entity_class = self.class_of(stated_class) or ""
        if self._fits(entity_class, property.domain) and _is_value(value, property.range):
            return None
        return f"{entity_class} -> {value!r} does not fit {property}"

    def _class_problem(self, name: str, stated_class: str, types: Mapping[str, str]) -> str | None:
        """The problem of a class in a record: unknown, or in contradiction to an earlier class."""
        here = self.class_of(stated_class)
        before = self.class_of(types.get(name_key(name), ""))
        if here is None:
            suggestion = _did_you_mean(stated_class, self.classes)
            return f"{stated_class!r} is no class of the ontology{suggestion}"
        if before is None or self.is_a(before, here) or self.is_a(here, before):
            return None
        return f"{name!r} was declared as {before}, here it is {here}"

    def _fits(self, name: str, allowed: tuple[str, ...]) -> bool:
        return not allowed or any(self.is_a(name, ancestor) for ancestor in allowed)

    # ── reading ─────────────────────────────────────────────────────────────────

    def _read(self, content: Mapping[str, tuple[str, Json]]) -> None:
        """Read the sections, by folded key, each with the key as it was written."""
        self._read_classes(list(_entries(content, "classes")))
        for place, name, settings in _entries(content, "objectproperties"):
            domain = self._ends(place, settings, "domain", spelling="domain")
            values = self._ends(place, settings, "range", spelling="range")
            property = OntologyProperty(
                name=name, domain=domain, range=values, comment=_comment(settings)
            )
            self.object_properties[_local_key(name)] = property
            self.functional_kinds += _functional_kinds(name, settings)
        for place, name, settings in _entries(content, "datatypeproperties"):
            domain = self._ends(place, settings, "domain", spelling="domain")
            values = tuple(map(_local, settings.get("range", ())))
            property = OntologyProperty(
                name=name, domain=domain, range=values, comment=_comment(settings)
            )
            self.datatype_properties[_local_key(name)] = property
            self.functional_kinds += _functional_kinds(name, settings)

    def _read_classes(self, classes: Sequence[Entry]) -> None:
        if not classes:
            raise ConfigError("classes: an ontology needs at least one class")
        for _, name, settings in classes:
            self._names[_folded(name)] = name
            for label in (*settings.get("label", ()), _local(name)):
                self._names.setdefault(_folded(label), name)
            self.comments[name] = _comment(settings)
        for place, name, settings in classes:
            parents = self._ends(place, settings, "subclassof", spelling="subclass_of")
            self.classes[name] = parents

    def _ends(self, place: str, settings: Settings, key: str, *, spelling: str) -> tuple[str, ...]:
        """The declared spelling of classes; none if a name stands for anything."""
        classes: list[str] = []
        for name in settings.get(key, ()):
            declared_name = self.class_of(name)
            if declared_name is None and _local_key(name) in ANYTHING:
                return ()
            if declared_name is None:
                suggestion = _did_you_mean(name, self._names.values())
                raise ConfigError(f"{place}: {spelling}: {name!r} is no class{suggestion}")
            classes.append(declared_name)
        return tuple(classes)


def _entries(content: Mapping[str, tuple[str, Json]], section: str) -> Iterator[Entry]:
    """The entries of a section, each with its place, name and settings."""
    key, entries = content.get(section, (section, {}))
    if isinstance(entries, list) and all(isinstance(name, str) for name in entries):
        entries = {str(name): None for name in entries}
    if not isinstance(entries, Mapping):
        raise ConfigError(f"{key}: must be a list of names or a mapping")
    for name, item in entries.items():
        values = {"subclassof": item} if isinstance(item, str) else item or {}
        if not isinstance(values, Mapping):
            raise ConfigError(f"{key}.{name}: must be a mapping")
        settings = {_folded(field): _listed_texts(value) for field, value in values.items()}
        yield f"{key}.{name}", str(name).strip(), settings


def _functional_kinds(name: str, settings: Settings) -> list[str]:
    """A property of the type FunctionalProperty (a subject has one value at a time), or "^" and its name
    for InverseFunctionalProperty; a name counts without its namespace.
    """
    types = {_local_key(type) for type in settings.get("type", ())}
    kinds = {"functionalproperty": "", "inversefunctionalproperty": "^"}
    return [f"{mark}{_local(name)}" for type, mark in kinds.items() if type in types]


def _listed_texts(value: Json) -> tuple[str, ...]:
    """The texts in a value: a single text, a list, or `{value: text}`."""
    items = value if isinstance(value, list) else [value]
    texts: list[str] = []
    for item in items:
        text = item.get("value") if isinstance(item, Mapping) else item
        if isinstance(text, str) and text.strip():
            texts.append(text.strip())
    return tuple(texts)


def _file_content(path: Path) -> Mapping[str, Json]:
    """The mapping in a file; JSON is YAML, too."""
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


def _folded(name: object) -> str:
    """A name without prefix, case, `_`, `-` and spaces, for comparison."""
    bare = unicodedata.normalize("NFKC", str(name)).casefold()
    return re.sub(r"^(rdfs|rdf|owl|skos|xsd):|[\s_\-]+", "", bare)


def _local_key(name: str) -> str:
    return _folded(_local(name))


def _local(name: str) -> str:
    """The end of a URI or of a prefixed name: `Food` of `fo/Food`, `fo:Food`, `http://…#Food`."""
    return re.split(r"[/#:]", name.rstrip("/#:"))[-1]


def _comment(settings: Settings) -> str:
    texts = settings.get("comment") or settings.get("description") or ("",)
    return " ".join(texts[0].split())


def _is_value(value: Json, types: tuple[str, ...]) -> bool:
    """Whether a value can be of an accepted type; numbers may come as text with a unit."""
    text = "" if value is None else str(value).strip()
    names = set(map(_folded, types or ("string",)))
    is_number = not isinstance(value, bool) and any(map(str.isnumeric, text))
    is_boolean = text.casefold() in BOOLEANS
    if is_number and names & NUMBER_TYPES:
        return True
    if is_boolean and names & BOOLEAN_TYPES:
        return True
    return bool(text and names - NUMBER_TYPES - BOOLEAN_TYPES)


def _no_property(name: str, kind: str, properties: Iterable[str]) -> str:
    suggestion = _did_you_mean(name, properties)
    return f"{name!r} is no {kind} property of the ontology{suggestion}"


def _did_you_mean(name: str, names: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, sorted(names), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""
