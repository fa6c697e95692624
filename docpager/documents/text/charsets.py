"""Which charset the bytes of a text are in: the one that makes the most plausible words of them.

charset-normalizer is asked where nothing here fits. By itself it reads 63 of the 112 beginnings, of
60 and 300 characters, of the texts in tests/documents/test_charsets.py; with this before it, all.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

_SAMPLE_BYTES = 4096
"""As much of the lines that are not ASCII is looked at."""
_LINE_BYTES = 512
"""Of a line at most so much before its first byte that is not ASCII."""
IMPLAUSIBLE = 0.6
"""From this cost on, what comes out is no text of a language that is known here."""

_HIGH = re.compile(rb"[\x80-\xff]")


@dataclass(frozen=True, slots=True)
class _Script:
    """How texts of one language, or of some that share their letters, are written."""

    charsets: str
    """The most frequent ones first."""
    letters: Mapping[str, float]
    """Letters that are not ASCII, each with what it costs: nothing the most frequent one."""
    seldom: str = ""
    """Letters of ASCII that the language has in names alone."""
    pair: float = 0.0
    """What two neighbours that are not ASCII cost."""
    mixed: float = 0.0
    """What a letter costs that stands beside a letter of ASCII, or alone."""
    prior: float = 0.0
    """What is added to the cost: less likely from the start."""


def ranked(data: bytes) -> list[tuple[str, float]]:
    """Charsets with the cost of reading the bytes in each, the most plausible first.

    A cost is about 0 where all characters are letters of one language in words as it has them, 1
    where each is out of place, and at least `IMPLAUSIBLE` where the charset is hardly the true one.
    """
    sample, is_cut = _sample(data)
    costs: dict[str, float] = {}
    for charset in _CHARSETS:
        looks = _Looks(_decoded(sample, charset, is_cut))
        costs[charset] = min(
            looks.cost(script) for script in _SCRIPTS if charset in script.charsets.split()
        )
    return sorted(costs.items(), key=lambda item: round(item[1], 3))


def _sample(data: bytes) -> tuple[bytes, bool]:
    """The first lines that are not ASCII, and whether the last of them is cut."""
    parts: list[bytes] = []
    size = 0
    is_cut = False
    found = _HIGH.search(data)
    while found and size < _SAMPLE_BYTES:
        near = max(0, found.start() - _LINE_BYTES)
        start = data.rfind(b"\n", near, found.start()) + 1 or near
        most = found.start() + _SAMPLE_BYTES - size
        end = data.find(b"\n", found.start(), most)
        is_cut = end < 0 and most < len(data)
        end = min(most, len(data)) if end < 0 else end
        parts.append(data[start:end])
        size += end - start
        found = _HIGH.search(data, end)
    return b"\n".join(parts), is_cut


def _decoded(sample: bytes, charset: str, is_cut: bool) -> str:
    # A character that the end of the sample cuts is left out.
    return codecs.getincrementaldecoder(charset)("replace").decode(sample, not is_cut)


class _Looks:
    """What is counted once in a decoded text, whatever its language."""

    def __init__(self, text: str) -> None:
        kinds = text.translate(_KINDS)
        self._letters: Counter[str] = Counter()
        self._ascii: Counter[str] = Counter()
        for character, times in Counter(text).items():
            if character.isascii():
                self._ascii[character.lower()] += times * character.isalpha()
            elif _KINDS[ord(character)] in "luo":
                self._letters["i" if character == "İ" else character.lower()] += times
        self._ascii_letters = max(1, self._ascii.total())
        self._count = sum(map(kinds.count, "luoqpnbsx"))
        self._ink = (
            0.03 * kinds.count("p")
            + 0.1 * kinds.count("n")
            + 0.1 * kinds.count("q")
            + 0.5 * kinds.count("b")
            + kinds.count("s")
            + 3 * kinds.count("x")
            + _count(_SYMBOL_IN_WORD, kinds)
            + _count(_CAPITAL_IN_WORD, kinds)
            + 0.12 * _count(_CAPITAL_ALONE, kinds)
            + 0.15 * _count(_CAPITAL_AFTER_CAPITAL, kinds)
        )
        self._pairs = _count(_PAIR, kinds)
        self._mixed = _count(_MIXED, kinds)

    def cost(self, script: _Script) -> float:
        """Per character that is not ASCII."""
        if not self._count:
            return 3.0
        cost = self._ink + script.pair * self._pairs + script.mixed * self._mixed
        cost += sum(
            times * script.letters.get(letter, 1.0) for letter, times in self._letters.items()
        )
        seldom = sum(self._ascii[letter] for letter in script.seldom)
        return cost / self._count + seldom / self._ascii_letters + script.prior


class _Kinds(dict[int, str]):
    """A character as its kind: a text of kinds is searched for what words do not have."""

    def __missing__(self, code: int) -> str:
        kind = self[code] = _kind(chr(code))
        return kind


def _kind(character: str) -> str:
    if character.isascii():
        if character.isalpha():
            return "a" if character.islower() else "A"
        return " " if character.isprintable() or character.isspace() else "x"
    if character in _JOINING:
        return "q"
    if character in _PUNCTUATION:
        return "p"
    if character == "\xa0":
        return "n"
    category = unicodedata.category(character)
    if category in {"Ll", "Lu"}:
        return "l" if category == "Ll" else "u"
    if category[0] in "LM":
        return "o"
    if character == "\ufffd" or category[0] == "C":
        return "x"
    return "b" if "\u2500" <= character <= "\u259f" else "s"


def _count(pattern: re.Pattern[str], kinds: str) -> int:
    return sum(1 for _ in pattern.finditer(kinds))


_JOINING = "’—…\xad"
"""What stands between letters, too."""
_PUNCTUATION = (
    "\u200c\u200d\u200e\u200f“”„‘‚«»‹›–€£§°·•©®™¿¡²³½¼¾×±µºª№"
    "…、。，「」『』（）：；！？《》・〜～─　％／＋－−‖∥¢"
)
_KINDS = _Kinds()
_SYMBOL_IN_WORD = re.compile("(?<=[aAluo])[psb]+(?=[aAluo])")
_CAPITAL_IN_WORD = re.compile("(?<=[al])u|(?<=l)A")
_CAPITAL_ALONE = re.compile("(?<![aAluoq])u(?![aAluoq])")
_CAPITAL_AFTER_CAPITAL = re.compile("(?<=[Au])u")
_PAIR = re.compile("(?<=[lu])[lu]")
_MIXED = re.compile("(?<=[aA])[luo]|[luo](?=[aA])|(?<![luo])[luo](?![luo])")

_RARE = 0.3


def _graded(letters: str, rare: str = "") -> dict[str, float]:
    """Costs of letters in the order of their frequency, and of those that are much rarer."""
    costs = dict.fromkeys(rare, _RARE)
    for rank, letter in enumerate(letters):
        costs[letter] = 0.1 * rank / max(10, len(letters))
    return costs


def _latin(
    charsets: str, letters: str, rare: str = "", seldom: str = "", prior: float = 0.0
) -> _Script:
    return _Script(charsets, _graded(letters, rare), seldom, pair=0.25, prior=prior)


def _other(charsets: str, letters: str, rare: str = "", prior: float = 0.0) -> _Script:
    return _Script(charsets, _graded(letters, rare), mixed=0.75, prior=prior)


def _ideographs(charsets: str, frequent: str, first: int, last: int, table: str = "") -> _Script:
    """The characters of the lead bytes that a charset of two bytes keeps for the usual ones."""
    tails = (*range(0x40, 0x7F), *range(0x80, 0xFF))
    pairs = (bytes((lead, tail)) for lead in range(first, last + 1) for tail in tails)
    usual = "".join(pair.decode(table or charsets.split()[0], "ignore") for pair in pairs)
    costs = dict.fromkeys(usual, 0.15) | dict.fromkeys(frequent, 0.0)
    return _Script(charsets, costs, mixed=0.5)


def _span(first: str, last: str) -> str:
    return "".join(map(chr, range(ord(first), ord(last) + 1)))


_WEST = "cp1252 iso8859-15"
_CENTRE = "cp1250 iso8859-2"
_BALTIC = "cp1257 iso8859-13"
_DOS = "cp850 cp437"
_ACCENTED = "àáâãäåæçèéêëìíîïñòóôõöøœùúûüýÿßðþšž"
_RUSSIAN = "оаеинтсрвлкмдпуяыьгзбч"
_GREEK = "ατοειςνσηρπκίμλόυάέγδωήθχ"
_HANZI = (
    "的一是不了在人有我他这這中大来來上个個国國到说說们們为為子和你地出道也时時年得就那要下以生会會自着去之过過家学學对對可她里後后小么心多天而能好都然没沒日于於起还還发發成事只作当當想"
    "看文无無开開手十用主行方又如前所本见見经經头面公同三已老从從动動两兩长長知民样樣现現分将將外但身些与與高意进進把法此实實回二理美点點月明其种種全工己话話者向情部正名定问問力机機给給"
    "等几很业業最间間新什打便位因重被电電第门相次使教再平真信少关關并内加化由代产產入先水万市体體别處总才场書比员性通目报立数數件安表原应應路期常提更反合放做系计計或利受果及务制解各任至"
    "物记記接它许特直服题建南度统統色字请請交让认算论義元社结結指思非流每管资資条變联言往展该領传近保达办運必完区求品量空程告语式写识極令收未持取设設始版商容改形单據导失网專若读組造视切"
    "选選项項输輸文件错錯误誤"
)
_HANGUL = (
    "이다는을의에가를은로한하고지기사도리어자니서인시대해있그나스일아부정수들라만전과제으장보여주것습무면적성상게국년공원유구할비치까요우오동안위경된합간진생미방관없했문용트마드신음와중"
    "조내화회모소세려거물발되"
)
_LESS = 0.03
"""For charsets that are met less often than those of the West."""
_OLD = 0.15
"""For charsets of the time before Windows, and those of the Macintosh."""

_SCRIPTS = (
    _latin(_WEST, "éèàêçùîôâû", "œëïüÿæñ", "kw"),  # French
    _latin(_WEST, "üäöß", "éàèçñ"),  # German
    _latin(_WEST, "óáíñéúüºª", "çàèïòñ", "kw"),  # Spanish, Catalan
    _latin(_WEST, "ãçáíéóúõêâàôºª", "üèñ", "kwy"),  # Portuguese
    _latin(_WEST, "èàùòéì", "îóúí", "jkwxy"),  # Italian
    _latin(_WEST, "éëïó", "èöüáêçíàâôûñä", "qx"),  # Dutch
    _latin(_WEST, "äöåé", "üøæàšž", "qwxz"),  # Swedish, Finnish
    _latin(_WEST, "øåæé", "óòôèêäöü", "cqwxz"),  # Danish, Norwegian
    _latin(_WEST, "íáðöóéúþæý", "", "cqwxz"),  # Icelandic
    _latin(_WEST, "", _ACCENTED),  # names of all countries
    _latin(_CENTRE, "łżąęćśóńź", "", "qvx", _LESS),  # Polish
    _latin(_CENTRE, "íáčřýéžěšůúóňťď", "öüä", "qwx", _LESS),  # Czech
    _latin(_CENTRE, "áíčýúéžťšľôóňäď", "öüěřĺŕ", "qwx", _LESS),  # Slovak
    _latin(_CENTRE, "áéóíöőüúű", "", "qwx", _LESS),  # Hungarian
    _latin(_CENTRE, "čšćžđ", "éáöü", "qwxy", _LESS),  # Croatian, Slovene, Bosnian
    _latin(_CENTRE, "ăîşţâ", "", "kqwy", _LESS),  # Romanian
    _latin("cp1254 iso8859-9", "ıüşçöği", "âîû", "qwx", _LESS),  # Turkish
    _latin(_BALTIC, "šėųžįąūčę", "", "qwx", 2 * _LESS),  # Lithuanian
    _latin(_BALTIC, "āīēšūļņžķģčŗ", "", "qwxy", 2 * _LESS),  # Latvian
    _latin(_BALTIC, "äõöüšž", "", "cqwxyz", 3 * _LESS),  # Estonian
    _Script(
        "cp1258",
        dict.fromkeys("đôươâêăáàéèóúùíìãõýò\u0300\u0301\u0303\u0309\u0323", 0.05),
        "fjwz",
    ),
    _other("cp1251 koi8-r iso8859-5", _RUSSIAN, "йхжшюцщэфъё"),
    _other("cp866", _RUSSIAN, "йхжшюцщэфъё", _LESS),
    _other("cp1251", "аиоентсрвлкдпъмзгябу", "йхжшюцщчфь"),  # Bulgarian
    _other("cp1251 koi8-u iso8859-5", "оанитеірвслкдумпязьгб", "ийхжшюцщчфїєґ"),  # Ukrainian
    _other("cp1251 iso8859-5", "аиоентрсвулкдмпјзгбчш", "љжњхцђћфџ"),  # Serbian
    _other("cp1253 iso8859-7", _GREEK, "ύώφβξζψϊϋΐΰ"),
    _other("cp737", _GREEK, "ύώφβξζψϊϋΐΰ", _OLD),
    _other("cp1255", "יוהלארתבמשנעדקחפכםסטצגזן", "ףךץ" + _span("\u05b0", "\u05c2")),
    _other("cp1256", "اليمنترودبةعفكسهقحأجشصطىخ", _span("ء", "ْ") + "پچژگکی"),
    _other("cp874", "านรอกเงมยลวดทสตะปบค่หแจ้พชขใไโผณศำถซิีึืุู์ัธ็ญ", _span("ก", "๛"), 0.03),
    _latin(_DOS, "éèàêçùîôâûäöüß", _ACCENTED, "", _OLD),
    _latin(_DOS, "óáíñéúüåøæãõç", _ACCENTED, "", _OLD),
    _latin("mac-roman", "éèàêçùîôâûäöüß", _ACCENTED, "", _OLD),
    _latin("mac-roman", "óáíñéúüåøæãõç", _ACCENTED, "", _OLD),
    _latin("cp852", "łżąęćśóńź", "", "qvx", _OLD),
    _latin("cp852", "íáčřýéžěšůúóňťďľôä", "ĺŕ", "qwx", _OLD),
    _latin("cp852", "áéóíöőüúű", "", "qwx", _OLD),
    _ideographs("shift_jis cp932", _span("ぁ", "ヿ") + "々ー", 0x88, 0x98),
    _ideographs("euc_jp", _span("ぁ", "ヿ") + "々ー", 0xB0, 0xCF),
    _ideographs("cp949", _HANGUL, 0xB0, 0xC8, "euc_kr"),
    _ideographs("gb18030", _HANZI, 0xB0, 0xD7, "gb2312"),
    _ideographs("big5 cp950", _HANZI, 0xA4, 0xC6),
)
_CHARSETS = tuple(
    dict.fromkeys(charset for script in _SCRIPTS for charset in script.charsets.split())
)
