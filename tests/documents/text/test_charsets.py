"""Text of any language is read in the charset it was written in, however it is laid out."""

from __future__ import annotations

import json
import time

import pytest

from docpager.documents.text.charsets import IMPLAUSIBLE, ranked
from docpager.documents.text.reader import decode

WEST = "cp1252 iso8859-1 iso8859-15"
CENTRE = "cp1250 iso8859-2"
TEXTS = {
    "French": (
        WEST + " mac-roman cp850",
        "Le comité a été créé à Genève en décembre. Sa première tâche était d'évaluer la qualité "
        "des eaux du lac, où l'on a relevé des métaux lourds. Les résultats ont déjà été publiés; "
        "ils montrent que la situation s'améliore grâce aux mesures prises par les communes.",
    ),
    "German": (
        WEST + " mac-roman cp850",
        "Die Gäste müssen für das Frühstück zusätzlich zahlen. Außerdem schließt die Küche schon "
        "um zehn Uhr, weshalb größere Gruppen früher bestellen sollten. Über die Straße führt "
        "eine Brücke zum Schloss, das täglich geöffnet ist.",
    ),
    "Spanish": (
        WEST + " mac-roman cp850",
        "La reunión de la comisión se celebró en Cádiz el último miércoles. ¿Cuántos años tenía el "
        "señor Núñez? Según él, la situación económica del país mejoró después de la "
        "última elección, y así lo explicó también en la televisión pública.",
    ),
    "Portuguese": (
        WEST,
        "A direção não informou quantos funcionários serão afetados pela mudança. Segundo o "
        "relatório, a produção de café caiu, e as exportações também. Até amanhã haverá uma "
        "decisão sobre os preços; três regiões já pediram ajuda.",
    ),
    "Italian": (
        WEST,
        "La città è più bella di sera, perché c'è meno traffico. Però bisogna prenotare già a "
        "metà settimana, poiché la qualità dei ristoranti è nota e la disponibilità è poca. "
        "Così martedì andrò là; di più non so dire.",
    ),
    "Swedish": (
        WEST,
        "På hösten är det ofta kallt på öarna. Båten går från hamnen varje timme, men när det "
        "blåser får man vänta. Några av gästerna åkte därför hem tidigare än de hade tänkt.",
    ),
    "Danish": (
        WEST,
        "På søndag kører færgen først klokken ti, så vi må vente på øen. Børnene kan lære at "
        "sejle, og de ældre får mad på kroen. Prisen er højere end sidste år.",
    ),
    "Finnish": (
        WEST,
        "Pöydällä on päivän lehti. Tämän jälkeen käyttäjä näkee kentän, johon hän syöttää "
        "nimensä. Mitään muuta ei tarvitse tehdä, sillä järjestelmä lähettää viestin itse.",
    ),
    "Polish": (
        CENTRE,
        "Wszyscy uczestnicy zgłosili się na czas, choć pociąg spóźnił się o godzinę. Później "
        "odbyło się przyjęcie, na którym można było spróbować różnych potraw. Pieniądze zostaną "
        "zwrócone w ciągu miesiąca, jeśli państwo o to poproszą.",
    ),
    "Czech": (
        CENTRE + " cp852",
        "Příští týden začne v Praze výstava, kterou připravilo město společně s několika školami. "
        "Vstupné je nižší než loni, děti mají vstup zdarma. Přesné údaje o otevírací době najdete "
        "na stránkách úřadu, kde si můžete také koupit lístky.",
    ),
    "Hungarian": (
        CENTRE,
        "A következő ülést októberben tartják, amikor a felújított épület elkészül. Az előadók "
        "között lesznek külföldi tudósok is. A résztvevőktől azt kérjük, hogy időben "
        "jelentkezzenek, mert a férőhelyek száma szűkös.",
    ),
    "Croatian": (
        CENTRE,
        "Sljedeći sastanak održat će se u četvrtak. Građani mogu poslati svoje prijedloge do kraja "
        "tjedna, a odgovori će biti objavljeni na službenim stranicama. Ulaz je slobodan, no "
        "broj mjesta je ograničen pa treba doći ranije.",
    ),
    "Turkish": (
        "cp1254",
        "Toplantı önümüzdeki çarşamba günü yapılacak. Katılmak isteyenlerin başvurularını "
        "ağustos ayının sonuna kadar göndermeleri gerekiyor. İlk oturumda geçen yılın sonuçları "
        "görüşülecek, sonra öğle yemeği için ara verilecek.",
    ),
    "Russian": (
        "cp1251 koi8-r cp866 iso8859-5",
        "Следующее заседание состоится в четверг. Желающие выступить должны прислать свои "
        "предложения до конца месяца. Результаты прошлого года будут опубликованы на сайте, "
        "где можно найти и другие сведения о работе комиссии.",
    ),
    "Ukrainian": (
        "cp1251 koi8-u",
        "Наступне засідання відбудеться у четвер. Охочі виступити мають надіслати свої "
        "пропозиції до кінця місяця. Результати минулого року буде оприлюднено на сайті, де "
        "можна знайти й інші відомості.",
    ),
    "Greek": (
        "cp1253 iso8859-7",
        "Η επόμενη συνεδρίαση θα γίνει την Πέμπτη. Όσοι θέλουν να μιλήσουν πρέπει να στείλουν "
        "τις προτάσεις τους μέχρι το τέλος του μήνα. Τα αποτελέσματα θα δημοσιευτούν αργότερα.",
    ),
    "Hebrew": (
        "cp1255",
        "הישיבה הבאה תתקיים ביום חמישי. מי שרוצה לדבר צריך לשלוח את ההצעה שלו עד סוף החודש.",
    ),
    "Chinese": (
        "gb18030 gbk",
        "下一次会议将在星期四举行。希望发言的人应当在月底以前提交建议。去年的结果会公布在网站上，"
        "大家也可以在那里找到关于委员会工作的其他资料。",
    ),
    "Chinese of Taiwan": (
        "big5",
        "下一次會議將在星期四舉行。希望發言的人應當在月底以前提出建議。去年的結果會公布在網站上，"
        "大家也可以在那裡找到關於委員會工作的其他資料。",
    ),
    "Japanese": (
        "shift_jis euc_jp iso2022_jp",
        "次の会議は木曜日に行われます。発言を希望する人は、月末までに提案を送ってください。昨年の結果は"
        "ウェブサイトで公開され、委員会の活動についての資料も見ることができます。",
    ),
    "Korean": (
        "euc_kr cp949",
        "다음 회의는 목요일에 열립니다. 발언을 원하는 사람은 월말까지 제안을 보내야 합니다. "
        "지난해의 결과는 홈페이지에 공개되며 위원회의 활동에 관한 자료도 볼 수 있습니다.",
    ),
}
CASES = [
    (language, charset)
    for language, (charsets, _) in TEXTS.items()
    for charset in [*charsets.split(), "utf-8", "utf-16", "utf-16-le", "utf-16-be"]
]


def _layouts(text: str) -> dict[str, str]:
    words = text.split(" ") if text.count(" ") > 5 else text.replace("。", "。 ").split(" ")
    quarter = max(1, len(words) // 4)
    parts = [" ".join(words[at : at + quarter]) for at in range(0, len(words), quarter)]
    records = [{"id": at, "name": part, "price": 9.5} for at, part in enumerate(parts)]
    return {
        "prose": text,
        "long": f"{text}\n" * (3000 // len(text)),
        "csv": "id;name;price\n" + "".join(f"{at};{part};9,50\n" for at, part in enumerate(parts)),
        "json": json.dumps(records, ensure_ascii=False, indent=1),
        "markdown": f"# {parts[0]}\n\n" + "\n".join(f"- **{part}**" for part in parts[1:]) + "\n",
        "late": "plain words in ASCII\n" * 9000 + text,
    }


@pytest.mark.parametrize(("language", "charset"), CASES)
def test_text_is_read_as_it_was_written(language: str, charset: str) -> None:
    for layout, text in _layouts(TEXTS[language][1]).items():
        if charset.startswith("utf-16-"):
            text = text[-3000:] + "\n"  # without any, UTF-16 of ideographs has no zeros
        assert decode(text.encode(charset)) == (text, ()), layout


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("cp1252", "name;price\nCafé;3,50 €\nCrème brûlée;7,20 €\n"),
        ("iso8859-15", "name;price\nCafé;3,50 €\nCrème brûlée;7,20 €\n"),
        ("cp1252", '{"name": "Müller", "city": "Köln"}'),
        ("cp1252", "It’s a “test” – nothing more…"),
        ("cp1252", "“A” or “B”"),
        ("cp1252", "§ 7 costs 5 £ at 20 °C"),
        ("cp1252", "zu ö"),
        ("cp1252", "El niño"),
        ("cp1250", "Łódź, Gdańsk"),
        ("cp1251", "Привет, мир"),
        ("koi8-r", "Привет, мир"),
        ("cp1253", "Άκυρη ένδειξη;729,06\nΆγνωστο πρότυπο;8"),
        ("shift_jis", "ユ−ザの一覧を表示します"),
    ],
)
def test_a_few_words_are_enough(charset: str, text: str) -> None:
    assert decode(text.encode(charset)) == (text, ())


def test_bytes_of_no_language_are_implausible() -> None:
    noise = bytes(range(128, 256)) * 20
    assert ranked(noise)[0][1] > IMPLAUSIBLE / 2
    assert ranked("naïve".encode("cp1252"))[0][1] < IMPLAUSIBLE


def test_a_broken_pair_costs_one_character_and_is_told() -> None:
    text = TEXTS["Chinese"][1]
    read, warnings = decode(text.encode("gb18030") + b"\xff\n")
    assert read.startswith(text) and len(warnings) == 1


@pytest.mark.parametrize(
    "line", [b"a" * 5_000_000 + b"\xe9", b"\xe9" * 5_000_000, b"\xe9\n" * 2_500_000]
)
def test_the_charset_of_a_long_file_is_found_in_its_beginning(line: bytes) -> None:
    began = time.perf_counter()
    ranked(line)
    assert time.perf_counter() - began < 2
