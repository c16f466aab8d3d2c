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
    is_closed = text.startswith("(") and text.find(")") == len(text) - 1
    return f"({text})" if FORMULA_OPERATORS.intersection(text[1:]) and not is_closed else text


def _fraction(element: Any) -> str:
    return f"{_grouped(_formula_part(element, 'num'))}/{_grouped(_formula_part(element, 'den'))}"


def _scripts(element: Any) -> str:
    """A base with subscript and superscript: x_1^2."""
    return _formula_part(element, "e") + _low_and_high(element)


def _low_and_high(element: Any) -> str:
    low = _formula_part(element, "sub")
    high = _formula_part(element, "sup")
    return (f"_{_grouped(low)}" if low else "") + (f"^{_grouped(high)}" if high else "")


def _root(element: Any) -> str:
    degree = _formula_part(element, "deg")
    radicand = _formula_part(element, "e")
    return f"root({degree}, {radicand})" if degree else f"sqrt({radicand})"


def _large_operator(element: Any) -> str:
    """A sum or an integral with limits: ∑_(i=1)^n x."""
    sign = _property(element, "chr", "∫")
    return f"{sign}{_low_and_high(element)} {_formula_part(element, 'e')}"


def _brackets(element: Any) -> str:
    parts = [formula_text(child) for child in element if local_name(child) == "e"]
    inner = _property(element, "sepChr", "|").join(parts)
    return f"{_property(element, 'begChr', '(')}{inner}{_property(element, 'endChr', ')')}"


def _function(element: Any) -> str:
    return f"{_formula_part(element, 'fName')} {_formula_part(element, 'e')}"


def _matrix(element: Any) -> str:
    rows = [child for child in element if local_name(child) == "mr"]
    return "; ".join(", ".join(map(formula_text, row)) for row in rows)


def _equations(element: Any) -> str:
    return "; ".join(formula_text(child) for child in element if local_name(child) == "e")


def _property(element: Any, name: str, default: str) -> str:
    """A sign named in the properties of a part; "" for no sign."""
    for child in element.iter():
        if local_name(child) == name:
            return next((value for key, value in child.attrib.items() if key.endswith("}val")), "")
        if local_name(child) == "e":
            break
    return default


FORMULA_WRITERS = {
    "f": _fraction, "sSub": _scripts, "sSup": _scripts, "sSubSup": _scripts, "sPre": _scripts, "rad": _root,
    "nary": _large_operator, "d": _brackets, "func": _function, "m": _matrix, "eqArr": _equations,
}  # fmt: skip
