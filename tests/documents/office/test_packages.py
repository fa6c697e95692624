from __future__ import annotations

import io
import tracemalloc
import zipfile

import pytest

from docpager.documents.formats import identify
from docpager.documents.loaders import parse_bytes
from docpager.errors import DocumentError
from tests.documents.making import docx, packed, paragraph
from tests.documents.reading import whole


def reason(name: str, data: bytes) -> str:
    with pytest.raises(DocumentError) as caught:
        parse_bytes(name, data)
    return caught.value.reason


def test_what_only_a_password_opens_is_encrypted() -> None:
    locked_office = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    locked_office += "EncryptedPackage".encode("utf-16-le") + bytes(64)
    manifest = "<m><file-entry><encryption-data/></file-entry></m>"
    rights = '<e><EncryptedData><EncryptionMethod Algorithm="urn:x"/></EncryptedData></e>'
    assert reason("a.docx", locked_office) == "encrypted"
    assert reason("a.xlsx", locked_office) == "encrypted"
    parts = {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": "x"}
    assert reason("a.odt", packed({**parts, "META-INF/manifest.xml": manifest})) == "encrypted"
    book = {"mimetype": "application/epub+zip", "META-INF/encryption.xml": rights}
    assert reason("a.epub", packed(book)) == "encrypted"


def test_an_archive_that_unpacks_to_too_much_is_too_large() -> None:
    bomb = docx(paragraph("x"), media1=bytes(129 << 20), styles=bytes(129 << 20))
    assert len(bomb) < 1 << 20
    with pytest.raises(DocumentError, match=r"unpacks to 129 MB, 128 MB is the limit") as caught:
        parse_bytes("a.docx", bomb)
    assert caught.value.reason == "too_large"


def test_what_an_archive_is_is_told_without_unpacking_it() -> None:
    media = b"application/vnd.oasis.opendocument.text".ljust(32 << 20)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", media)
    bomb = made.getvalue()
    assert len(bomb) < 1 << 17
    tracemalloc.start()
    try:
        assert identify("a.odt", bomb).format == "odf"
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["a.docx", "a.xlsx", "a.pptx", "a.odt", "a.epub"])
def test_a_broken_archive_is_damaged_and_none_is_no_document(name: str) -> None:
    sound = docx(paragraph("words " * 400))
    assert reason(name, sound[: len(sound) // 2]) == "damaged"
    assert reason(name, b"These are words.") == "not_a_document"
    assert reason(name, packed({"notes.txt": "words"})) == "not_a_document"


def test_entities_are_not_resolved_and_deep_nesting_is_damage() -> None:
    bomb = '<!DOCTYPE w [<!ENTITY a "lol"><!ENTITY b "&a;&a;">]>'
    body = "<w:p><w:r><w:t>x</w:t></w:r></w:p>"
    deep = "<w:sdt>" * 5_000 + body + "</w:sdt>" * 5_000
    assert reason("a.docx", docx(deep)) == "damaged"
    parts = {
        "word/document.xml": f'{bomb}<w:document xmlns:w="u"><w:body><w:p><w:r><w:t>&b;fine</w:t>'
        "</w:r></w:p></w:body></w:document>"
    }
    assert "lollol" not in whole(parse_bytes("a.docx", packed(parts)))
