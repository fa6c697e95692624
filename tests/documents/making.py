"""Small files of every format, made on the spot."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from itertools import pairwise
from xml.sax.saxutils import escape

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
P = "http://schemas.openxmlformats.org/presentationml/2006/main"
S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
TABLE = "urn:oasis:names:tc:opendocument:xmlns:table:1.0"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
DRAW = "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"

Parts = Mapping[str, str | bytes]


def packed(parts: Parts) -> bytes:
    """A zip archive of these parts."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            how = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name), content, how)
    return file.getvalue()


def relations(targets: Mapping[str, tuple[str, str]]) -> str:
    """A part of relations: id to kind and target."""
    lines = "".join(
        f'<Relationship Id="{name}" Type="{R}/{kind}" Target="{target}"/>'
        for name, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{RELS}">{lines}</Relationships>'


def ooxml(kind: str, part: str, parts: Parts, targets: Mapping[str, tuple[str, str]]) -> bytes:
    """A package whose main part is `part` and leads to `targets`."""
    folder, _, name = part.rpartition("/")
    return packed(
        {
            "[Content_Types].xml": f'<Types main="{kind}"/>',
            "_rels/.rels": relations({"r1": ("officeDocument", part)}),
            f"{folder}/_rels/{name}.rels": relations(targets),
            **parts,
        }
    )


def paragraph(text: str, style: str = "", inside: str = "") -> str:
    """A paragraph of Word; `inside` is what stands in it behind the text."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{escape(text)}</w:t></w:r>{inside}</w:p>"


def word_table(rows: Sequence[Sequence[str]]) -> str:
    """A table of Word."""
    lines = (
        "<w:tr>" + "".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) + "</w:tr>"
        for row in rows
    )
    return f"<w:tbl>{''.join(lines)}</w:tbl>"


def docx(body: str, **parts: str | bytes) -> bytes:
    """A Word document of this body; further parts by their name without a suffix."""
    targets = {name: (name.rstrip("123"), f"{name}.xml") for name in parts}
    others = {
        f"word/{name}.xml": content
        if isinstance(content, bytes)
        else content.replace(">", f' xmlns:w="{W}">', 1)
        for name, content in parts.items()
    }
    main = f'<w:document xmlns:w="{W}" xmlns:r="{R}"><w:body>{body}</w:body></w:document>'
    return ooxml("word", "word/document.xml", {"word/document.xml": main, **others}, targets)


def shape(text: str, kind: str = "body") -> str:
    """A placeholder on a slide."""
    place = f'<p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>'
    lines = "".join(f"<a:p><a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in text.split("\n"))
    return f"<p:sp>{place}<p:txBody>{lines}</p:txBody></p:sp>"


def pptx(slides: Sequence[str], notes: Mapping[int, str] | None = None) -> bytes:
    """A presentation of slides, each a run of shapes; notes by slide, from 1."""
    names = f'xmlns:a="{A}" xmlns:p="{P}" xmlns:r="{R}"'
    parts: dict[str, str | bytes] = {}
    for number, content in enumerate(slides, start=1):
        # The files are numbered backwards: what counts is the list in the presentation.
        name = f"slide{len(slides) - number + 1}"
        parts[f"ppt/slides/{name}.xml"] = f"<p:sld {names}>{content}</p:sld>"
        if notes and number in notes:
            parts[f"ppt/notesSlides/{name}.xml"] = (
                f"<p:notes {names}>{shape(notes[number])}{shape('7', 'sldNum')}</p:notes>"
            )
            parts[f"ppt/slides/_rels/{name}.xml.rels"] = relations(
                {"n": ("notesSlide", f"../notesSlides/{name}.xml")}
            )
    count = len(slides)
    ids = "".join(f'<p:sldId id="{256 + n}" r:id="r{n}"/>' for n in range(1, count + 1))
    targets = {f"r{n}": ("slide", f"slides/slide{count - n + 1}.xml") for n in range(1, count + 1)}
    main = f"<p:presentation {names}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>"
    parts["ppt/presentation.xml"] = main
    return ooxml("ppt", "ppt/presentation.xml", parts, targets)


def sheet_cell(place: str, value: str | float, style: int = 0) -> str:
    """A cell: a text in line, or a number."""
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}" s="{style}"><v>{value}</v></c>'


def column(number: int) -> str:
    """The letters of a column, from 0."""
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def sheet(rows: Sequence[Sequence[str | float]], after: str = "") -> str:
    """A sheet; an empty text is no cell. `after` follows the rows."""
    lines = []
    for number, row in enumerate(rows, start=1):
        cells = "".join(
            sheet_cell(f"{column(place)}{number}", value)
            for place, value in enumerate(row)
            if value != ""
        )
        lines.append(f'<row r="{number}">{cells}</row>')
    return f'<worksheet xmlns="{S}"><sheetData>{"".join(lines)}</sheetData>{after}</worksheet>'


def xlsx(sheets: Mapping[str, str], **parts: str) -> bytes:
    """A workbook of sheets by name."""
    targets = {name: (name, f"{name}.xml") for name in parts}
    entries = ""
    content: dict[str, str | bytes] = {f"xl/{name}.xml": text for name, text in parts.items()}
    for number, (name, text) in enumerate(sheets.items(), start=1):
        entries += f'<sheet name="{escape(name)}" sheetId="{number}" r:id="s{number}"/>'
        targets[f"s{number}"] = ("worksheet", f"worksheets/sheet{number}.xml")
        content[f"xl/worksheets/sheet{number}.xml"] = text
    content["xl/workbook.xml"] = (
        f'<workbook xmlns="{S}" xmlns:r="{R}"><sheets>{entries}</sheets></workbook>'
    )
    return ooxml("xl", "xl/workbook.xml", content, targets)


def odf(kind: str, body: str, **parts: str) -> bytes:
    """An OpenDocument file: `text`, `spreadsheet` or `presentation`."""
    names = f'xmlns:office="{OFFICE}" xmlns:text="{TEXT}" xmlns:table="{TABLE}" xmlns:draw="{DRAW}"'
    content = (
        f"<office:document-content {names}><office:body><office:{kind}>{body}</office:{kind}>"
        "</office:body></office:document-content>"
    )
    return packed(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": content,
            **{f"{name}.xml": text for name, text in parts.items()},
        }
    )


def epub(chapters: Mapping[str, str | bytes], title: str = "A Book") -> bytes:
    """A book of chapters: their names in the table of contents, and their HTML."""
    items = refs = points = ""
    parts: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container><rootfile full-path="O/book.opf"/></container>',
    }
    for number, (name, content) in enumerate(chapters.items()):
        # The manifest is in another order than the spine.
        items = f'<item id="c{number}" href="c{number}.xhtml" media-type="text/html"/>{items}'
        refs += f'<itemref idref="c{number}"/>'
        points += (
            f"<navPoint><navLabel><text>{escape(name)}</text></navLabel>"
            f'<content src="c{number}.xhtml#top"/></navPoint>'
        )
        body = content.encode() if isinstance(content, str) else content
        parts[f"O/c{number}.xhtml"] = b"<html><body>" + body + b"</body></html>"
    parts["O/toc.ncx"] = f"<ncx><navMap>{points}</navMap></ncx>"
    parts["O/book.opf"] = (
        f"<package><metadata><title>{escape(title)}</title></metadata><manifest>{items}"
        f'<item id="toc" href="toc.ncx"/></manifest><spine toc="toc">{refs}</spine></package>'
    )
    return packed(parts)


ONE_BAD_BYTE = f"<p>{'Zoé à Genève. ' * 20}".encode() + b"\xff</p>"
"""A page of UTF-8 but for one byte."""


def mail(
    text: str = "Dear all, the report is attached.",
    attachments: Sequence[tuple[str, bytes]] = (),
    subject: str = "The report",
    html: str = "",
) -> bytes:
    """A message."""
    message = EmailMessage()
    message["From"] = "Ann Blake <ann@example.org>"
    message["To"] = "Cyril Dunn <cyril@example.org>"
    message["Date"] = "Mon, 02 Mar 2020 09:30:00 +0000"
    message["Subject"] = subject
    message.set_content(text)
    if html:
        message.add_alternative(html, subtype="html")
    for name, data in attachments:
        message.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    return message.as_bytes()


def ole(name: str, stream: bytes) -> bytes:
    """An OLE file of one stream, as the Office programs of before 2007 wrote."""
    stream = stream.ljust(4096, b"\0")
    stream += bytes(-len(stream) % 512)
    count = len(stream) // 512
    free, end, fat_mark = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
    chain = [fat_mark, end, *range(3, 2 + count), end]
    fat = struct.pack("<128I", *chain, *[free] * (128 - len(chain)))

    def entry(name: str, kind: int, child: int, start: int, size: int) -> bytes:
        coded = f"{name}\0".encode("utf-16-le")
        head = coded.ljust(64, b"\0") + struct.pack("<HBB", len(coded), kind, 1)
        links = struct.pack("<III", free, free, child) + bytes(36)
        return head + links + struct.pack("<IQ", start, size)

    directory = entry("Root Entry", 5, 1, end, 0) + entry(name, 2, free, 2, len(stream))
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    header += struct.pack(
        "<HHHHH6xIIIIIIIIII", 62, 3, 0xFFFE, 9, 6, 0, 1, 1, 0, 4096, end, 0, end, 0, 0
    )
    return header.ljust(512, b"\xff") + fat + directory.ljust(512, b"\0") + stream


Tree = Mapping[str, "bytes | Tree"]
_FREE, _END, _FAT_MARK = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def compound(tree: Tree) -> bytes:
    """An OLE file of storages and of streams shorter than 4096 bytes."""
    entries: list[bytes] = []
    small, small_chain = bytearray(), list[int]()

    def place(name: str, kind: int, child: int, start: int, size: int) -> int:
        coded = f"{name}\0".encode("utf-16-le")
        head = coded.ljust(64, b"\0") + struct.pack("<HBB", len(coded), kind, 1)
        links = struct.pack("<III", _FREE, _FREE, child) + bytes(36)
        entries.append(head + links + struct.pack("<IQ", start, size))
        return len(entries) - 1

    def beside(number: int, sibling: int) -> None:
        entry = entries[number]
        entries[number] = entry[:72] + struct.pack("<I", sibling) + entry[76:]

    def put(inside: Tree) -> int:
        """Place what is in a storage; returns the first, which leads to the others."""
        numbers = []
        for name in sorted(inside, key=lambda name: (len(name), name.upper())):
            content = inside[name]
            if isinstance(content, bytes):
                blocks = -(-len(content) // 64)
                first = len(small_chain)
                small_chain.extend([*range(first + 1, first + blocks), _END] if blocks else [])
                small.extend(content.ljust(64 * blocks, b"\0"))
                start = first if blocks else _END
                numbers.append(place(name, 2, _FREE, start, len(content)))
            else:
                numbers.append(place(name, 1, put(content), 0, 0))
        for number, sibling in pairwise(numbers):
            beside(number, sibling)
        return numbers[0] if numbers else _FREE

    first = put(tree)
    names = len(entries) // 4 + 1
    short = -(-len(small_chain) // 128)
    streams = -(-len(small) // 512)
    # The root has to be the first entry: the others move up by one.
    moved = [_moved_up(entry) for entry in entries]
    entries.clear()
    place("Root Entry", 5, first + 1, 1 + names + short, len(small))
    directory = b"".join(entries + moved).ljust(512 * names, b"\0")
    chains = (names, short, streams)
    fat, at = [_FAT_MARK], 1
    for count in chains:
        fat += [*range(at + 1, at + count), _END] if count else []
        at += count
    assert len(fat) <= 128
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    header += struct.pack(
        "<HHHHH6xIIIIIIIIII",
        *(62, 3, 0xFFFE, 9, 6, 0, 1, 1, 0, 4096, 1 + names, short, _END, 0, 0),
    )
    return (
        header.ljust(512, b"\xff")
        + struct.pack("<128I", *fat, *[_FREE] * (128 - len(fat)))
        + directory
        + struct.pack(f"<{len(small_chain)}I", *small_chain).ljust(512 * short, b"\xff")
        + bytes(small).ljust(512 * streams, b"\0")
    )


def _moved_up(entry: bytes) -> bytes:
    links = struct.unpack("<III", entry[68:80])
    moved = (link if link == _FREE else link + 1 for link in links)
    return entry[:68] + struct.pack("<III", *moved) + entry[80:]


def _properties(head: bytes, values: Mapping[int, str | bytes]) -> dict[str, bytes]:
    """Streams of the properties of a message, a recipient or an attachment."""
    streams, listed = dict[str, bytes](), head
    for number, value in values.items():
        kind = 0x1F if isinstance(value, str) else 0x102
        content = value.encode("utf-16-le") if isinstance(value, str) else value
        listed += struct.pack("<HHIII", kind, number, 6, len(content) + 2 * (kind == 0x1F), 0)
        streams[f"__substg1.0_{number:04X}{kind:04X}"] = content
    return {"__properties_version1.0": listed, **streams}


def msg(
    text: str = "Dear all, the report is attached.",
    attachments: Sequence[tuple[str, bytes]] = (),
    subject: str = "The report",
) -> bytes:
    """A message of Outlook, from Ann Blake to Cyril Dunn."""
    sender, recipient = "ann@example.org", "cyril@example.org"
    values = {
        0x1A: "IPM.Note",
        0x37: subject,
        0xC1A: "Ann Blake",
        0xC1F: sender,
        0x1000: text,
    }
    head = struct.pack("<8x4I8x", 1, len(attachments), 1, len(attachments))
    tree: dict[str, bytes | Tree] = {**_properties(head, values)}
    tree["__recip_version1.0_#00000000"] = _properties(
        bytes(8), {0x3001: "Cyril Dunn", 0x39FE: recipient}
    )
    for number, (name, data) in enumerate(attachments):
        tree[f"__attach_version1.0_#{number:08X}"] = _properties(
            bytes(8), {0x3701: data, 0x3707: name}
        )
    return compound(tree)


def xls(rows: Sequence[Sequence[str | float]]) -> bytes:
    """A workbook of Excel 5 with one sheet, `Lamps`."""

    def record(kind: int, content: bytes = b"") -> bytes:
        return struct.pack("<HH", kind, len(content)) + content

    def cell(row: int, place: int, value: str | float) -> bytes:
        where = struct.pack("<HHH", row, place, 0)
        if isinstance(value, str):
            return record(0x204, where + struct.pack("<H", len(value)) + value.encode("latin-1"))
        return record(0x203, where + struct.pack("<d", value))

    head = record(0x809, struct.pack("<HHHH", 0x500, 5, 0, 0))
    tail = record(0x0A)
    sheet_at = len(head) + 4 + 6 + 6 + len(tail)
    listed = record(0x85, struct.pack("<IHB", sheet_at, 0, 5) + b"Lamps")
    body = record(0x809, struct.pack("<HHHH", 0x500, 0x10, 0, 0))
    for number, row in enumerate(rows):
        body += b"".join(cell(number, place, value) for place, value in enumerate(row))
    return ole("Workbook", head + listed + tail + body + record(0x0A))


RTF = (
    rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0\fcharset0 Arial;}}{\info{\title Minutes}}"
    rb"\f0 The caf\'e9 opened in 1887.\par Second paragraph.\par "
    rb"\trowd\intbl Year\cell Lamps\cell\row\trowd\intbl 1887\cell 14\cell\row\pard End.\par}"
)
HTML = (
    b"<!doctype html><html><head><title>Lamps</title></head><body><h1>Lamps</h1>"
    b"<p>The lamp was lit in 1887.</p><ul><li>oil<li>gas</ul>"
    b"<table><tr><th>Year<th>Lamps<tr><td>1887<td>14</table></body></html>"
)


def examples() -> dict[str, bytes]:
    """One small, sound file of each format, by name."""
    rows = [["Year", "Lamps"], ["1887", "14"], ["1888", "15"]]
    csv = "\n".join(",".join(row) for row in rows)
    return {
        "a.docx": docx(paragraph("The lamp was lit in 1887.") + word_table(rows)),
        "a.pptx": pptx([shape("Lamps", "title") + shape("Lit in 1887.")], {1: "Say it slowly."}),
        "a.xlsx": xlsx({"Lamps": sheet(rows)}),
        "a.odt": odf("text", "<text:h>Lamps</text:h><text:p>The lamp was lit in 1887.</text:p>"),
        "a.ods": odf(
            "spreadsheet",
            '<table:table table:name="Lamps"><table:table-row><table:table-cell><text:p>1887'
            "</text:p></table:table-cell></table:table-row></table:table>",
        ),
        "a.epub": epub({"One": "<h1>One</h1><p>The lamp was lit in 1887.</p>"}),
        "a.rtf": RTF,
        "a.html": HTML,
        "a.eml": mail(attachments=[("rows.csv", csv.encode())]),
        "a.csv": csv.encode(),
        "a.tsv": csv.replace(",", "\t").encode(),
        "a.json": b'{"lamps": [{"year": 1887, "count": 14}], "lit": true}',
        "a.jsonl": b'{"year": 1887}\n{"year": 1888}\n',
        "a.xml": b"<log><lamp year='1887'>14</lamp><note>lit <b>at</b> dusk</note></log>",
        "a.txt": "The lamp was lit in 1887, in Zürich.".encode("utf-16"),
        "a.md": b"---\ntitle: Lamps\n---\n# Lamps\n\n| Year | Lamps |\n|---|---|\n| 1887 | 14 |\n",
    }
