"""Formulas of Office files on one line, as they are typed: `x^2`, `(a+b)/c`, `√(x)`."""

from __future__ import annotations

from lxml import etree

from docpager.documents.office.packages import attribute, child, local

_MARKS = {"sup": "^", "sub": "_", "lim": "_", "den": "/"}
_WRAPPED = frozenset({"num", "den", "sup", "sub", "lim"})
_BETWEEN = {"m": "; ", "eqArr": "; ", "mr": " "}
"""Between the rows of a matrix or of equations, and between the cells of a row."""
_DELETED = frozenset({"del", "moveFrom"})


def formula_text(element: etree._Element) -> str:
    """All that a formula (OMML) holds; what is more than one thing is put into brackets."""
    name = local(element)
    if name == "t":
        return element.text or ""
    if name == "d":
        return _bracketed(element)
    if name in _DELETED:
        return ""
    text = _BETWEEN.get(name, "").join(filter(None, map(formula_text, element)))
    if name in _WRAPPED and text and not text.isalnum():
        text = f"({text})"
    if name == "nary":
        return (_sign(element, "naryPr", "chr") or "∫") + text
    if name == "rad":
        degree = child(element, "deg")
        below = child(element, "e")
        root = "" if degree is None else formula_text(degree)
        return f"{root}√({'' if below is None else formula_text(below)})"
    if name == "fName" or (name == "f" and element.getnext() is not None):
        text += " "
    return _MARKS.get(name, "") + text if text else ""


def _bracketed(element: etree._Element) -> str:
    begin, end = _sign(element, "dPr", "begChr"), _sign(element, "dPr", "endChr")
    between = _sign(element, "dPr", "sepChr") or "|"
    inside = between.join(formula_text(one) for one in element if local(one) == "e")
    return f"{'(' if begin is None else begin}{inside}{')' if end is None else end}"


def _sign(element: etree._Element, properties: str, name: str) -> str | None:
    """A sign that is set in an element's properties; None where none is."""
    found = child(child(element, properties), name)
    return None if found is None else attribute(found, "val")
