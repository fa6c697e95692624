"""Symbols that a document names by a font and a place in it."""

from __future__ import annotations

_PRIVATE = range(0xF000, 0xF100)
"""Where the places in fonts of symbols are counted from, beside 0."""
_GREEK = dict(
    zip(
        "ABGDEZHQIKLMNXOPRSTUFCYWabgdezhqiklmnxoprstufcywVjJv",
        "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩαβγδεζηθικλμνξοπρστυφχψωςϕϑϖ",
        strict=True,
    )
)
_SYMBOL = {
    0xA3: "≤",
    0xA5: "∞",
    0xAB: "↔",
    0xAC: "←",
    0xAD: "↑",
    0xAE: "→",
    0xAF: "↓",
    0xB0: "°",
    0xB1: "±",
    0xB3: "≥",
    0xB4: "×",
    0xB6: "∂",
    0xB7: "•",
    0xB8: "÷",
    0xB9: "≠",
    0xBA: "≡",
    0xBB: "≈",
    0xBC: "…",
    0xCE: "∈",
    0xD0: "∠",
    0xD2: "®",
    0xD3: "©",
    0xD4: "™",
    0xD5: "∏",
    0xD6: "√",
    0xDE: "⇒",
    0xE5: "∑",
    0xF2: "∫",
}
_WINGDINGS = {
    0x6C: "●",
    0x6E: "■",
    0x6F: "☐",
    0xA7: "▪",
    0xA8: "☐",
    0xD8: "➢",
    0xDF: "←",
    0xE0: "→",
    0xFB: "✗",
    0xFC: "✓",
    0xFD: "☒",
    0xFE: "☑",
}
_WINGDINGS_2 = {0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0xA3: "☐"}
_FONTS = {"symbol": _SYMBOL, "wingdings": _WINGDINGS, "wingdings 2": _WINGDINGS_2}


def symbol(font: str, place: str) -> str:
    """The character at a place (hexadecimal) in a font; empty where Unicode has none known here."""
    try:
        number = int(place, 16)
    except ValueError:
        return ""
    signs = _FONTS.get(font.lower())
    if number in _PRIVATE:
        number -= _PRIVATE.start
    elif signs is None or number > 0xFF:
        return chr(number) if 0x20 <= number < 0xD800 or 0xF900 <= number < 0x10FFFF else ""
    if signs is None:
        return ""
    if number in signs:
        return signs[number]
    if signs is _SYMBOL and 0x20 <= number < 0x7F:
        return _GREEK.get(chr(number), "" if chr(number).isalpha() else chr(number))
    return ""
