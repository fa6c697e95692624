"""Draw docs/architecture.svg from the imports: which room of the package stands on which.

    python tools/draw_architecture.py            write the picture
    python tools/draw_architecture.py --check    exit 1 if the picture is not the current one

Floors come from .importlinter, arrows from the imports themselves. An arrow that follows from
others (a path over further rooms) is left out, or there would be a hundred. The modules at the
bottom are imported by every room, so no arrows lead there.
"""

from __future__ import annotations

import configparser
import sys
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "architecture.svg"

CAPTIONS = {
    "__main__": "start, Ctrl-C",
    "testing": "scripted models, server",
    "cli": "parse, call, print",
    "render": "results to text and JSON",
    "archive": "Archive: what a user opens",
    "doctor": "is all of it fit?",
    "bench": "measurements for users",
    "wiring": "settings to objects",
    "batch": "many questions, scored",
    "agent": "the loop and its functions",
    "memory": "what a run holds",
    "ingest": "files become documents",
    "stores": "archival storage",
    "documents": "readers of every format",
    "models": "endpoints, embedders",
    "retrieval": "terms, BM25, fusion, pages",
}
COLUMNS = {
    **dict.fromkeys(("doctor", "models"), 0),
    **dict.fromkeys(
        ("__main__", "cli", "archive", "wiring", "batch", "agent", "memory", "stores", "retrieval"),
        1,
    ),
    **dict.fromkeys(("render", "bench", "ingest", "documents"), 2),
    "testing": 3,
}
WIDTH, HEIGHT = 186, 42
ACROSS, DOWN = 218, 66
MARGIN = 22

STYLE = """
    text { font-family: system-ui, sans-serif; fill: #14202b }
    .name { font-size: 14px; font-weight: 600 }
    .caption { font-size: 11.5px; fill: #46586a }
    .room { fill: #f4f7fa; stroke: #456 }
    .waist { fill: #eef1ea; stroke: #687a58 }
    .arrow { fill: none; stroke: #456; stroke-width: 1.4; marker-end: url(#head) }
    .back { fill: #fff }
    #head path { fill: #456 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e8eef4 } .caption { fill: #a9b8c7 } .back { fill: #10161c }
      .room { fill: #1b2630; stroke: #7f93a6 } .waist { fill: #20281c; stroke: #8da07c }
      .arrow { stroke: #9fb2c5 } #head path { fill: #9fb2c5 }
    }"""


def floors() -> list[list[str]]:
    """The layers of .importlinter, the highest first."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter", encoding="utf-8")
    lines = parser["importlinter:contract:layers"]["layers"].strip().splitlines()
    return [[name.strip() for name in line.split("|")] for line in lines]


def imports() -> dict[str, set[str]]:
    """For each room of the package, the rooms that it imports."""
    graph = grimp.build_graph("docpager", cache_dir=None)
    found: dict[str, set[str]] = {}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            room, other = _room(module), _room(imported)
            if room and other and room != other:
                found.setdefault(room, set()).add(other)
    return found


def _room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def reduced(edges: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The edges that no path over other rooms makes superfluous, sorted."""

    def reached(start: str, without: tuple[str, str]) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            room = waiting.pop()
            for other in edges.get(room, ()):
                if (room, other) != without and other not in seen:
                    seen.add(other)
                    waiting.append(other)
        return seen

    pairs = sorted((room, other) for room, others in edges.items() for other in others)
    return [(room, other) for room, other in pairs if other not in reached(room, (room, other))]


def picture() -> str:
    """The SVG, the same for the same imports.

    Raises:
        SystemExit: a room has no caption or no column yet.
    """
    rows = floors()
    rooms = [name for row in rows for name in row if name in CAPTIONS]
    waist = [name for row in rows for name in row if name not in CAPTIONS]
    missing = [name for name in waist if (ROOT / "docpager" / name).is_dir()]
    if missing or set(CAPTIONS) != set(COLUMNS) or set(CAPTIONS) != set(rooms):
        raise SystemExit(f"Give these rooms a caption and a column: {missing or CAPTIONS.keys()}")
    floor_of = {name: at for at, row in enumerate(rows) for name in row}
    edges = {
        room: {other for other in others if other in CAPTIONS}
        for room, others in imports().items()
        if room in CAPTIONS
    }
    bottom = max(floor_of[name] for name in rooms) + 1
    width = 2 * MARGIN + 3 * ACROSS + WIDTH
    height = 2 * MARGIN + bottom * DOWN + HEIGHT + 18
    arrows = [_arrow(_place(a, floor_of), _place(b, floor_of)) for a, b in reduced(edges)]
    boxes = [_box(name, *_place(name, floor_of)) for name in rooms]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
            ' aria-label="The rooms of docpager and what each of them imports">',
            f"  <style>{STYLE}\n  </style>",
            '  <defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
            ' markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>',
            f'  <rect class="back" width="{width}" height="{height}"/>',
            *arrows,
            *boxes,
            *_waist(waist, MARGIN + bottom * DOWN, width),
            "</svg>",
            "",
        ]
    )


def _place(name: str, floor_of: dict[str, int]) -> tuple[int, int]:
    """The upper left corner of a room's box."""
    return MARGIN + COLUMNS[name] * ACROSS, MARGIN + floor_of[name] * DOWN


def _box(name: str, x: int, y: int) -> str:
    return (
        f'  <rect class="room" x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>\n'
        f'  <text class="name" x="{x + 10}" y="{y + 18}">{escape(name)}</text>\n'
        f'  <text class="caption" x="{x + 10}" y="{y + 34}">{escape(CAPTIONS[name])}</text>'
    )


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    """Straight down within a column; else across and down, or down and across into the spine."""
    (x1, y1), (x2, y2) = start, end
    if x1 == x2:
        middle = x1 + WIDTH // 2
        return f'  <path class="arrow" d="M{middle} {y1 + HEIGHT} V{y2 - 2}"/>'
    spine = MARGIN + ACROSS
    if x2 == spine:
        side = x2 - 2 if x1 < x2 else x2 + WIDTH + 2
        bend = f"V{y2 + HEIGHT // 2 - 9} H{side}"
        return f'  <path class="arrow" d="M{x1 + WIDTH // 2} {y1 + HEIGHT} {bend}"/>'
    side = x1 + WIDTH if x2 > x1 else x1
    bend = f"H{x2 + WIDTH // 2} V{y2 - 2}"
    return f'  <path class="arrow" d="M{side} {y1 + HEIGHT // 2 + 9} {bend}"/>'


def _waist(names: list[str], y: int, width: int) -> list[str]:
    text = " · ".join(names)
    return [
        f'  <rect class="waist" x="{MARGIN}" y="{y}" width="{width - 2 * MARGIN}"'
        f' height="{HEIGHT + 14}" rx="6"/>',
        f'  <text class="caption" x="{MARGIN + 10}" y="{y + 20}">imported by every room, each'
        " by those before it:</text>",
        f'  <text class="name" x="{MARGIN + 10}" y="{y + 42}">{escape(text)}</text>',
    ]


def main() -> int:
    """Write the picture, or compare it."""
    drawn = picture()
    if sys.argv[1:] == ["--check"]:
        return 0 if PICTURE.read_text(encoding="utf-8") == drawn else 1
    PICTURE.write_text(drawn, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
