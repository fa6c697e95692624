"""The files without pages: handbook, minutes, museum guide, cuttings, logs, letters."""

from __future__ import annotations

from samplecorpus.facts import FACTS
from samplecorpus.grammar import Grammar
from samplecorpus.pools import POOLS, STATIONS


def _join(parts: list[str]) -> str:
    return "\n\n".join(parts) + "\n"


def handbook() -> str:
    """Rules for keepers, by part of the day."""
    g = Grammar("handbook", POOLS)
    heads = (
        "Lighting up", "The middle watch", "Extinguishing", "The lens", "Burners and oil",
        "The fog signal", "Boats and landings", "The household", "Visitors", "The log",
        "Sickness", "Stores",
    )  # fmt: skip
    parts = ["# The Keeper's Handbook", "Issued by the Ellery Lights Board to every station."]
    for number, head in enumerate(heads, start=1):
        parts.append(f"## {number}. {head}")
        for sub in ("In ordinary weather", "When something is wrong"):
            parts.append(f"### {sub}")
            parts += [g.sentences("h_rule", "h_rule", "h_rule") for _ in range(2)]
            parts.append("\n".join(f"- {g.sentences('h_rule')}" for _ in range(4)))
        rows = [
            f"| {g.expand('{part}')} | {g.number(1, 14)} | {g.number(1, 9)} |" for _ in range(6)
        ]
        parts.append("\n".join(["| part | every (days) | cloths |", "| --- | --- | --- |", *rows]))
    return _join(parts)


def minutes() -> str:
    """Twenty-four meetings of the Trust in 1933."""
    g = Grammar("minutes", POOLS)
    parts = ["# Ellery Harbour Trust: Minutes, 1933"]
    for meeting in range(24):
        day = (4, 18)[meeting % 2] + meeting % 3
        parts.append(f"## Meeting of {day} {POOLS['month'][meeting // 2]} 1933")
        parts.append(g.expand("Present: {person} in the chair, {person}, {person}, {person}."))
        for item in range(1, 12):
            if meeting == 5 and item == 7:
                parts.append(f"{item}. {FACTS['tug-hired'].text}")
            elif meeting == 7 and item == 3:
                parts.append(
                    f"{item}. Resolved, that the tug Wayland Elm be thanked, by letter to her"
                    " owners, for standing by the dredger in the Upper Basin."
                )
            else:
                parts.append(f"{item}. {g.sentences('m_item')}")
        parts.append(g.expand("The meeting rose at {four|five|six}."))
    return _join(parts)


def museum() -> str:
    """A walk through nine rooms."""
    g = Grammar("museum", POOLS)
    rooms = ("Hall", "Rope", "Fish", "Coal", "Pilots", "Lights", "Ice", "Maps", "Children")
    parts = ["# A Guide to the Rooms of the Ellery Museum"]
    for number, room in enumerate(rooms, start=1):
        parts.append(f"## Room {number}: {room}")
        for case in range(1, 8):
            parts.append(f"### {number}.{case} {g.expand('{goods}')}")
            parts.append(g.sentences("x_item", "x_item", "x_item"))
    return _join(parts)


def courier() -> str:
    """Cuttings from a newspaper, 1929 to 1935."""
    g = Grammar("courier", POOLS)
    special = {
        63: FACTS["tern-byelaw"].text,
        88: "HARBOUR COURT. The mate of the coaster Northern Fern was fined under byelaw 16 for a"
        " hatch left open, and under byelaw 60 for a raft. He said that it was not his raft.",
        121: FACTS["medal-chart"].text,
        140: "HONOURS. The silver medal of the rowing club for 1934 went to Miss Netherby, who is"
        " the first to have won it in the dark.",
    }
    parts = ["THE ELLERY COURIER", "Cuttings kept in the reading room, 1929 to 1935"]
    for number in range(190):
        if number % 9 == 0:
            year, month = 1929 + number * 7 // 190, POOLS["month"][(number // 3) % 12]
            parts.append(f"{g.number(1, 28)} {month.upper()} {year}")
        parts.append(special.get(number) or g.sentences("n_item"))
    return _join(parts)


def log(station: str) -> str:
    """A year of a lighthouse's log, one entry a day."""
    g = Grammar(f"log-{station}", POOLS)
    lengths = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    parts = [f"{station.upper()} LIGHT. LOG FOR 1933"]
    for month, days in zip(POOLS["month"], lengths, strict=True):
        parts.append(month.upper())
        for day in range(1, days + 1):
            text = (
                f"{day} {month}. Wind {{wind}}; {{sky}}. Glass {{28..30}}.{{10..95}}. "
                f"Lit {{4..8}}.{{10..59}}. {{o_note}} {{o_note}} {{o_note}}"
            )
            parts.append(g.expand(text))
    return _join(parts)


def letters() -> str:
    """Letters from the Carrow islands."""
    g = Grammar("letters", POOLS)
    parts = ["LETTERS FROM THE CARROW ISLANDS"]
    for number in range(60):
        year = 1926 + number // 8
        parts.append(g.expand(f"Little Carrow, {{2..28}} {{month}} {year}"))
        parts.append(g.expand("Dear {given},"))
        parts.append(g.sentences(*["t_line"] * 4))
        station = STATIONS[number % 10]
        parts.append(f"We could see the light of {station} on two nights. " + g.sentences("t_line"))
        parts.append(g.expand("Your {brother|sister|friend|cousin}, {given}"))
    return _join(parts)
