"""Writes formulas of Office in a line, as typed by people: (a+b)/2, x^2, sqrt(y)."""

from typing import Any

from lightrag_jsonl.readers.xml_elements import local_name

PROPERTIES = ("Pr", "ctrlPr")  # ends of the names of elements without text
FORMULA_OPERATORS = frozenset("+-−±×·÷/= ,<>≤≥")


def formula_text(element: Any) -> str:
    """The text of a formula or of a part."""
    name = local_name(element)
    if not name:  # a comment
        return ""
    if name == "t":
        return str(element.text or "")
    if name.endswith(PROPERTIES):
        return ""
    write = FORMULA_WRITERS.get(name)
    return write(element) if write else "".join(map(formula_text, element))


def _formula_part(element: Any, name: str) -> str:
    """The text of a named part of a formula."""
    return "".join(formula_text(child) for child in element if local_name(child) == name)


def _grouped(text: str) -> str:
    """The text, in brackets if there are several terms."""
    if FORMULA_OPERATORS.isdisjoint(text[1:]):
        return text
    is_closed = text.startswith("(") and text.find(")") == len(text) - 1
    return text if is_closed else f"({text})"


def _fraction(element: Any) -> str:
    numerator = _grouped(_formula_part(element, "num"))
    denominator = _grouped(_formula_part(element, "den"))
    return f"{numerator}/{denominator}"


def _scripts(element: Any) -> str:
    """A base with subscript and superscript: x_1^2."""
    return _formula_part(element, "e") + _low_and_high(element)


def _low_and_high(element: Any) -> str:
    """The subscript and the superscript of an element, if any: _1^2."""
    text = ""
    if low := _formula_part(element, "sub"):
        text += f"_{_grouped(low)}"
    if high := _formula_part(element, "sup"):
        text += f"^{_grouped(high)}"
    return text


def _root(element: Any) -> str:
    degree = _formula_part(element, "deg")
    radicand = _formula_part(element, "e")
    if degree:
        return f"root({degree}, {radicand})"
    return f"sqrt({radicand})"


def _large_operator(element: Any) -> str:
    """A sum or an integral with limits: ∑_(i=1)^n x."""
    sign = _property(element, "chr", "∫")
    limits = _low_and_high(element)
    term = _formula_part(element, "e")
    return f"{sign}{limits} {term}"


def _brackets(element: Any) -> str:
    opening = _property(element, "begChr", "(")
    separator = _property(element, "sepChr", "|")
    closing = _property(element, "endChr", ")")
    return opening + separator.join(_formula_terms(element)) + closing


def _function(element: Any) -> str:
    return f"{_formula_part(element, 'fName')} {_formula_part(element, 'e')}"


def _matrix(element: Any) -> str:
    rows = [child for child in element if local_name(child) == "mr"]
    return "; ".join(", ".join(map(formula_text, row)) for row in rows)


def _equations(element: Any) -> str:
    return "; ".join(_formula_terms(element))


def _formula_terms(element: Any) -> list[str]:
    """The texts of the terms in brackets, or of the lines of a system."""
    return [formula_text(child) for child in element if local_name(child) == "e"]


def _property(element: Any, name: str, default: str) -> str:
    """A sign named in the properties of a part; "" for no sign."""
    for child in element.iter():
        if local_name(child) == name:
            signs = (sign for key, sign in child.attrib.items() if key.endswith("}val"))
            return next(signs, "")
        if local_name(child) == "e":
            break
    return default


FORMULA_WRITERS = {
    "f": _fraction, "sSub": _scripts, "sSup": _scripts, "sSubSup": _scripts, "sPre": _scripts, "rad": _root,
    "nary": _large_operator, "d": _brackets, "func": _function, "m": _matrix, "eqArr": _equations,
}  # fmt: skip
