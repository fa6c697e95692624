from __future__ import annotations

import pytest

from docpager.documents.loaders import parse_bytes
from docpager.errors import DocumentError
from tests.documents.making import ONE_BAD_BYTE, mail
from tests.documents.reading import whole


def test_the_plain_one_of_two_alternatives_is_read() -> None:
    outlined = parse_bytes("a.eml", mail("Plain words.", html="<p>Rich words.</p>"))
    assert "Plain words." in whole(outlined) and "Rich words." not in whole(outlined)
    assert outlined.document.title == "The report"
    only = mail(" ", html="<p>Rich words.</p>")
    assert "Rich words." in whole(parse_bytes("a.eml", only))


@pytest.mark.parametrize(
    ("page", "warning"),
    [
        (ONE_BAD_BYTE, "1 bytes are not UTF-8."),
        (b"<frameset><frame src=nav.html></frameset>", "not followed: nav.html."),
    ],
)
def test_what_leaves_doubts_in_a_page_is_told_of_the_mail(page: bytes, warning: str) -> None:
    head = b"Subject: x\nMIME-Version: 1.0\nContent-Type: text/html\n"
    data = head + b"Content-Transfer-Encoding: 8bit\n\n" + page
    (told,) = parse_bytes("a.eml", data).document.warnings
    assert told.endswith(warning)


def test_attachments_come_with_their_names_and_bytes() -> None:
    inner = mail("Inner words.", [("deep.txt", b"Deep.")])
    data = mail(attachments=[("a.csv", b"x,y"), ("../../etc/passwd", b"x"), ("inner.eml", inner)])
    outlined = parse_bytes("a.eml", data)
    assert [one.name for one in outlined.attachments] == ["a.csv", "../../etc/passwd", "inner.eml"]
    assert outlined.attachments[2].data == inner


def test_a_forwarded_message_is_attached_and_pictures_are_not() -> None:
    text = (
        b"Subject: Fwd\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n"
        b"--x\nContent-Type: text/plain\n\nSee below.\n"
        b"--x\nContent-Type: image/png; name=logo.png\nContent-ID: <1>\n\nxx\n"
        b"--x\nContent-Type: message/rfc822\n\nSubject: A/B\nFrom: a@b\n\nOriginal.\n--x--\n"
    )
    (attachment,) = parse_bytes("a.eml", text).attachments
    assert attachment.name == "A-B.eml" and b"Original." in attachment.data


def test_headers_in_any_charset_are_decoded_and_broken_ones_are_no_end() -> None:
    text = (
        b"Subject: =?utf-8?b?R3LDvMOfZQ==?=\nFrom: =?x?y?z\nTo: <<<,;@>\nDate: yesterday\n\nWords."
    )
    outlined = parse_bytes("a.eml", text)
    assert outlined.document.title == "Grüße" and "Words." in whole(outlined)


def test_a_message_of_nothing_but_ciphers_is_encrypted() -> None:
    text = (
        b"Subject: x\nMIME-Version: 1.0\n"
        b"Content-Type: application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m\n"
        b"Content-Transfer-Encoding: base64\n\nAAAA\n"
    )
    with pytest.raises(DocumentError) as caught:
        parse_bytes("a.eml", text)
    assert caught.value.reason == "encrypted"
