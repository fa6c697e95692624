"""Electronic books: chapters in the order in which they are read."""

from __future__ import annotations

import posixpath

from lxml import etree

from docpager.documents.composing import Composer
from docpager.documents.office.packages import (
    UNPACKED_BYTES,
    Package,
    attribute,
    child,
    descendants,
    encrypted,
    local,
    resolve,
    text_of,
)
from docpager.documents.outline import OutlinedDocument
from docpager.documents.web.html import compose_html
from docpager.errors import DocumentError

_FONT_OBFUSCATION = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")


def read_epub(data: bytes, unpacked_bytes: int = UNPACKED_BYTES) -> OutlinedDocument:
    """A book in sections: at each file of its spine, and at its headings of level 1 and 2.

    Raises:
        DocumentError: it is `encrypted`, or has no list of its parts (`damaged`).
    """
    package = Package(data, unpacked_bytes)
    _refuse_locked(package)
    part = _package_part(package)
    root = package.tree(part)
    if root is None:
        raise DocumentError(
            "damaged", "The book has no list of its parts. Get it anew, or save it anew."
        )
    folder = posixpath.dirname(part)
    manifest = {
        attribute(item, "id"): (
            resolve(folder, attribute(item, "href")),
            attribute(item, "media-type"),
        )
        for item in descendants(root, "item")
    }
    labels = _labels(package, folder, root, manifest)
    composer = Composer("epub")
    missing = []
    doubts: dict[str, None] = {}
    for reference in descendants(root, "itemref"):
        target, kind = manifest.get(attribute(reference, "idref"), ("", ""))
        if target not in package:
            missing.append(target or attribute(reference, "idref"))
        elif "html" in kind or target.lower().endswith((".html", ".htm", ".xhtml")):
            composer.page(labels.get(target))
            _, more = compose_html(package.read(target), composer)
            doubts.update(dict.fromkeys(more))
    title = next(descendants(root, "title"), None)
    warnings = [f"{len(missing)} parts of the book are missing."] if missing else []
    return composer.document(title=text_of(title), warnings=[*warnings, *doubts])


def _refuse_locked(package: Package) -> None:
    root = package.tree("META-INF/encryption.xml")
    for method in () if root is None else descendants(root, "EncryptionMethod"):
        # Fonts are mangled in books that are otherwise free.
        if attribute(method, "Algorithm") not in _FONT_OBFUSCATION:
            raise encrypted()


def _package_part(package: Package) -> str:
    container = package.tree("META-INF/container.xml")
    for entry in () if container is None else descendants(container, "rootfile"):
        if attribute(entry, "full-path") in package:
            return attribute(entry, "full-path")
    return next((name for name in package.names if name.lower().endswith(".opf")), "")


def _labels(
    package: Package, folder: str, root: etree._Element, manifest: dict[str, tuple[str, str]]
) -> dict[str, str]:
    """What the table of contents calls each part: its first entry for it."""
    spine = child(root, "spine")
    listed = manifest.get(attribute(spine, "toc") if spine is not None else "", ("", ""))[0]
    contents = package.tree(listed) if listed in package else None
    found: dict[str, str] = {}
    for point in () if contents is None else descendants(contents, "navPoint"):
        source, label = child(point, "content"), child(point, "navLabel")
        if source is not None:
            target = resolve(posixpath.dirname(listed), attribute(source, "src"))
            found.setdefault(target, " ".join(text_of(label).split()))
    for item in descendants(root, "item"):
        if "nav" not in attribute(item, "properties").split():
            continue
        listed = resolve(folder, attribute(item, "href"))
        contents = package.tree(listed)
        for link in () if contents is None else descendants(contents, "a"):
            if attribute(link, "href") and local(link) == "a":
                target = resolve(posixpath.dirname(listed), attribute(link, "href"))
                found.setdefault(target, " ".join(text_of(link).split()))
    return found
