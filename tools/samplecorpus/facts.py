"""What the corpus states once and only once, and the questions that ask for it.

Each fact is planted in one passage of one document. `names` and `value` stand together on that
page and on no other page of the corpus: the builder refuses a corpus in which they do.
"""

from __future__ import annotations

from dataclasses import dataclass

REPORT_1931 = "reports/lights-board-annual-report-1931.pdf"
REPORT_1934 = "reports/lights-board-annual-report-1934.pdf"
REGISTER = "registers/register-of-vessels.pdf"
BYELAWS = "statutes/harbour-byelaws.pdf"
BIOGRAPHY = "books/life-of-hester-maravell.pdf"
EXPEDITION = "expedition/vantor-bank-expedition.pdf"
CATALOGUE = "catalogues/fenstrand-and-pell-catalogue.pdf"
YEARBOOK = "zh/qingjia-port-yearbook.pdf"
HANDBOOK = "handbook/keepers-handbook.md"
MINUTES = "minutes/harbour-trust-minutes-1933.md"
MUSEUM = "museum/guide-to-the-rooms.md"
LETTERS_ZH = "zh/letters-from-qingjia.md"
COURIER = "news/ellery-courier-cuttings.txt"
LOG_SKARHOLM = "logs/skarholm-light-1933.txt"
LOG_GANNET = "logs/gannet-rock-light-1933.txt"
LETTERS = "letters/carrow-letters.txt"


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement. `text` is empty where it is planted as a table row."""

    document: str
    names: tuple[str, ...]
    value: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the accepted answers, and the facts it needs in the order they are needed."""

    id: str
    kind: str
    text: str
    expected: tuple[str, ...] = ()
    hops: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    """For what the corpus does not answer: words that stand nowhere in it."""


FACTS: dict[str, Fact] = {
    # -- single facts -------------------------------------------------------------------
    "saltire-tons": Fact(
        REGISTER, ("Saltire Queen",), "438",
        "Saltire Queen, passenger steamer, official number 40,117. Entered in 1911 at 412 tons"
        " gross. On the resurvey of March 1927, after the promenade deck had been closed in, the"
        " surveyor corrected the figure to 438 tons gross, at which she has stood ever since.",
    ),
    "ashes-penalty": Fact(
        BYELAWS, ("ashes, clinker",), "seventy-five crowns",
        "23. The master of a vessel from which ballast, ashes, clinker or galley refuse is thrown"
        " into the fairway between the Bar Buoy and Tannery Bridge shall forfeit for each"
        " occasion the sum of seventy-five crowns, and shall bear the cost of sweeping the bed.",
    ),
    "kettle-signal": Fact(
        REPORT_1934, ("Kettle Point", "diaphone"), "17 October 1934",
        "The old reed horn at Kettle Point has been taken down. Its successor, a diaphone worked"
        " by two oil engines, was handed over by the contractors in September and went into"
        " regular service on 17 October 1934. It gives two blasts in each minute and a half.",
    ),
    "deepest-station": Fact(
        EXPEDITION, ("3,214 fathoms",), "Station 47",
        "The lead was longest in falling at Station 47, on the northern lip of the Cauldron,"
        " where bottom was reached at 3,214 fathoms and a little blue clay came up in the cup. No"
        " other cast of the voyage came within four hundred fathoms of it.",
    ),
    "tide-gauge-price": Fact(
        CATALOGUE, ("tide gauge", "eight-day drum"), "186 crowns",
        "No. 305. Recording tide gauge with eight-day drum, copper float and 12 metres of bronze"
        " tape, in a teak case with two locks. Complete with one year's paper and ink: 186 crowns."
        " Spare drums can be had at any time.",
    ),
    "maravell-birth": Fact(
        BIOGRAPHY, ("chandler's shop",), "Dunmarsh",
        "Hester Maravell was born on 9 March 1871 in two rooms over a chandler's shop at Dunmarsh,"
        " where the road from the hills comes down to the saltings. She was the third child and"
        " the first to be taught the use of a level.",
    ),
    # -- two hops -----------------------------------------------------------------------
    "thornsand-designer": Fact(
        REPORT_1931, ("Thornsand",), "Garrick Sallow",
        "Thornsand. The tower on the sand was built to the design of Garrick Sallow, who gave it"
        " the flared foot that has been so much copied. It stands on forty-two piles of jarrah"
        " and carries a lantern from the Lumley Glass Company.",
    ),
    "sallow-apprentice": Fact(
        BIOGRAPHY, ("Garrick Sallow",), "Beckford Foundry",
        "Garrick Sallow came to dine on Thursdays. He had learned his trade as a boy at the"
        " Beckford Foundry, pouring stove plates, and liked to say that seven years among hot"
        " iron had taught him more of foundations than any professor could.",
    ),
    "merrow-carrier": Fact(
        REPORT_1934, ("Merrow Head",), "Gudrun Vale",
        "The second-order optic for Merrow Head was shipped in nineteen cases. It was carried"
        " round from the roads by the lighter Gudrun Vale, in two trips and flat calm, and not a"
        " prism was chipped.",
    ),
    "gudrun-builder": Fact(
        REGISTER, ("Gudrun Vale",), "Hallam & Orde",
        "Gudrun Vale, dumb lighter, official number 41,902. Launched in May 1913 from the slip of"
        " Hallam & Orde at Saltby. Iron frames, elm bottom. Burden 95 tons. Her sister was broken"
        " up in 1924.",
    ),
    "tug-hired": Fact(
        MINUTES, ("dredging of the Swatchway",), "Wayland Oak",
        "The Harbour Master reported that the Trust's own tug would be in dock until May. Resolved,"
        " that the tug Wayland Oak be hired by the month for the dredging of the Swatchway, at a"
        " rate to be settled by the Chairman.",
    ),
    "wayland-built": Fact(REGISTER, ("Wayland Oak",), "1907"),
    "sounding-machine": Fact(
        EXPEDITION, ("Station 47",), "Lisle wire machine",
        "For the great cast of Station 47 the hemp line was put aside and the Lisle wire machine"
        " was used, with the heavier of its two drums. It took one hour and fifty-one minutes to"
        " run out and a little over three hours to wind in.",
    ),
    "lisle-inventor": Fact(
        CATALOGUE, ("Lisle wire machine",), "Marguerite Tolland",
        "No. 218. The Lisle wire machine, for depths to 4,000 fathoms. Named after the river on"
        " which it was tried; the invention is that of Marguerite Tolland, under whose patent we"
        " make it alone. Two drums, friction brake, counter in fathoms: 640 crowns.",
    ),
    "tern-byelaw": Fact(
        COURIER, ("Northern Tern",), "byelaw 61",
        "HARBOUR COURT. The master of the coaster Northern Tern, who did not appear, was found to"
        " have offended against byelaw 61 on the ebb of the 4th instant, to the alarm of several"
        " persons in rowing boats. He was fined and ordered to pay costs.",
    ),
    "byelaw-61": Fact(
        BYELAWS, ("61. ",), "six knots",
        "61. No vessel under power shall proceed through the water, between the Mole Light and the"
        " Custom House steps, at more than six knots, save in going to the help of life. It"
        " shall be no defence that the tide was contrary.",
    ),
    "isabeau-medal": Fact(
        REPORT_1931, ("Lady Isabeau",), "Nils Harkaway",
        "The Board's silver medal was voted to Nils Harkaway, assistant keeper at Pillar Skerry,"
        " who swam out with a line on the night of 11 February to the barque Lady Isabeau and"
        " brought nine persons to the landing.",
    ),
    "harkaway-post": Fact(
        REPORT_1934, ("Nils Harkaway",), "Long Nab",
        "On the retirement of Mr Dunnage the vacancy for a principal keeper at Long Nab was filled"
        " by Nils Harkaway, who took over the stores on 1 May. The Board notes that he is the"
        " youngest to hold such a post.",
    ),
    "helmsgrove-bridge": Fact(
        BIOGRAPHY, ("Caspar Helmsgrove",), "Wicket Bridge",
        "Her sister Agnes had married Caspar Helmsgrove, a cheerful and untidy man, who in those"
        " years was building Wicket Bridge. Hester checked his sums on Sundays and found, by his"
        " own account, one error worth the finding.",
    ),
    "wicket-headroom": Fact(BYELAWS, ("Wicket Bridge",), "14 feet 6 inches"),
    "relief-ship": Fact(
        EXPEDITION, ("Stormgat Bay",), "Aurelia Finch",
        "Smoke was seen to the south on 3 February, and by noon the Aurelia Finch had dropped"
        " anchor beside us in Stormgat Bay with coal, potatoes and eleven weeks of letters. She"
        " had been sent to look for us, and found us mending nets.",
    ),
    "finch-owner": Fact(
        REGISTER, ("Aurelia Finch",), "Pomfrey Whaling Company",
        "Aurelia Finch, auxiliary barquentine, official number 42,355. Strengthened for ice."
        " The sixty-four shares are held by the Pomfrey Whaling Company. 584 tons gross. May be"
        " chartered in the winter months.",
    ),
    # -- three hops ---------------------------------------------------------------------
    "skarholm-optic": Fact(
        REPORT_1931, ("Skarholm",), "Fenstrand & Pell",
        "Skarholm. The senior station of the Board, begun by Josiah Wrenfield and twice raised"
        " since. The optic now in use is the work of Fenstrand & Pell, and floats on eleven"
        " hundredweight of mercury.",
    ),
    "pell-town": Fact(
        CATALOGUE, ("Fenstrand & Pell",), "Aldersea",
        "Since the fire of 1919 the works of Fenstrand & Pell have stood in Coopers' Row,"
        " Aldersea, five minutes from the station. Visitors are welcome on the first Monday of"
        " the month and are asked to leave magnets at the lodge.",
    ),
    "aldersea-registrar": Fact(REGISTER, ("Aldersea",), "Matthias Crewe"),
    "medal-chart": Fact(
        COURIER, ("gold medal",), "chart of the Vantor Bank",
        "HONOURS. At the dinner of the Harbour Trust the Chairman announced that the gold medal"
        " for 1933 had been awarded for the chart of the Vantor Bank, which he called the finest"
        " sheet of paper that ever kept a keel off the ground.",
    ),
    "chart-drawer": Fact(
        EXPEDITION, ("chart of the Vantor Bank",), "Wilhelmina Scarfe",
        "The chart of the Vantor Bank which accompanies this volume was plotted and drawn by"
        " Wilhelmina Scarfe from some nine thousand soundings. She inked the last contour on the"
        " day that we raised the land.",
    ),
    "scarfe-lodging": Fact(
        BIOGRAPHY, ("Wilhelmina Scarfe",), "14 Rope Walk",
        "The ablest of the pupils was Wilhelmina Scarfe, a collier's daughter. For the three years"
        " of her articles she had a room at 14 Rope Walk, over the sailmaker, and came to the"
        " drawing office before the lamps were lit.",
    ),
    "gannet-boat": Fact(
        REPORT_1934, ("Gannet Rock",), "Petrel Anne",
        "The reliefs of Gannet Rock have been made throughout the year by the motor boat Petrel"
        " Anne, on hire. Of twenty-four attempts nineteen succeeded at the first trial.",
    ),
    "petrel-berth": Fact(
        REGISTER, ("Petrel Anne",), "Gasworks Quay",
        "Petrel Anne, motor boat, official number 43,060. Converted from a pilot cutter in 1928."
        " Her regular berth is at Gasworks Quay, on the inner face. 21 tons gross. No"
        " charges upon her.",
    ),
    "gasworks-length": Fact(
        BYELAWS, ("Gasworks Quay",), "130 feet",
        "Gasworks Quay. Vessels of more than 130 feet over all shall not lie here. Two berths on"
        " the outer face are kept for colliers, and fires on board are to be drawn before"
        " mooring.",
    ),
    "nephew": Fact(
        BIOGRAPHY, ("nephew",), "Lucian Thorne",
        "It was she who found a place in the Vantor Bank expedition for her nephew Lucian Thorne,"
        " then twenty-two and of no fixed intention. She gave him her own sea boots and told him"
        " to write on Sundays.",
    ),
    "thorne-bottle": Fact(
        EXPEDITION, ("Lucian Thorne",), "Harrow reversing bottle",
        "Lucian Thorne joined as a supernumerary. The Harrow reversing bottle was put in his"
        " charge from the fourth week, and he let nobody else grease its valves. Of the samples"
        " that he took only three were spoiled.",
    ),
    "bottle-volume": Fact(
        CATALOGUE, ("Harrow reversing bottle",), "1.25 litres",
        "No. 264. The Harrow reversing bottle, for bringing up sea water from any depth. Gun-metal"
        " body, tinned within; capacity 1.25 litres; frame for two thermometers: 88 crowns.",
    ),
    # -- comparison ---------------------------------------------------------------------
    "eastlow-lit": Fact(
        REPORT_1931, ("Eastlow",), "1868",
        "Eastlow. A light has been shown here since 1868, at first from a timber frame. The"
        " present brick tower, by Ruth Oldacre, has a fixed white light with a red sector over"
        " the Hards, and an optic from Dargan Brothers.",
    ),
    "bracken-lit": Fact(
        BIOGRAPHY, ("Bracken Holm",), "1874",
        "As a child she had been rowed out to Bracken Holm, where the lamps were first kindled in"
        " 1874, and had been allowed to wind the clockwork. She was sick in the boat going and"
        " coming, and asked to be taken again.",
    ),
    "corriemore-tons": Fact(
        EXPEDITION, ("Corriemore",), "611 tons",
        "The Corriemore, lent for the purpose by the Fishery Office, is a steam trawler of 611 tons"
        " gross with a strengthened bow. A laboratory was built on her after deck, and the fish"
        " hold was fitted with shelves for bottles.",
    ),
    "finch-tons": Fact(REGISTER, ("Aurelia Finch",), "584 tons"),
    # -- Chinese ------------------------------------------------------------------------
    "breakwater": Fact(
        YEARBOOK, ("东外堤",), "沈砚秋",
        "东外堤于一九二六年春动工，历时五载始告完成，全长一千一百四十米。自勘测、采石以至合龙，"
        "工程全由沈砚秋一人总揽。堤头设绿灯一座，夜间可为进港船只指引方向。",
    ),
    "lin-post": Fact(
        LETTERS_ZH, ("林慕舟",), "鹤嘴灯塔",
        "家里人都问起林慕舟的近况。他自去年秋天起调到鹤嘴灯塔当主任，岛上只有四个人和一头驴，"
        "他却说比在城里清静得多，还养了两箱蜜蜂。",
    ),
    "heron-range": Fact(
        YEARBOOK, ("鹤嘴灯塔",), "十八海里",
        "鹤嘴灯塔立于港口西南的礁岛上，塔身以花岗石砌成，漆作黑白横纹。灯高出水面五十二米，"
        "晴夜光照可达十八海里。雾天每三十秒鸣笛一次。",
    ),
}  # fmt: skip

QUESTIONS: tuple[Question, ...] = (
    Question(
        "single-1", "single",
        "After the Saltire Queen was measured again, what gross tonnage did she have?",
        ("438 tons", "438", "438 tons gross"), ("saltire-tons",),
    ),
    Question(
        "single-2", "single",
        "How big is the fine under the harbour byelaws for dumping ashes in the shipping channel"
        " below Tannery Bridge?",
        ("75 crowns", "seventy-five crowns"), ("ashes-penalty",),
    ),
    Question(
        "single-3", "single",
        "On what date did the new diaphone fog signal at Kettle Point begin to operate?",
        ("17 October 1934", "October 17, 1934"), ("kettle-signal",),
    ),
    Question(
        "single-4", "single",
        "At which station did the Vantor Bank expedition find the deepest water?",
        ("Station 47", "47"), ("deepest-station",),
    ),
    Question(
        "single-5", "single",
        "How much does the Fenstrand & Pell catalogue charge for a recording tide gauge whose drum"
        " runs eight days?",
        ("186 crowns", "186"), ("tide-gauge-price",),
    ),
    Question(
        "single-6", "single",
        "What is the birthplace of the engineer Hester Maravell?",
        ("Dunmarsh",), ("maravell-birth",),
    ),
    Question(
        "two-hop-1", "two-hop",
        "Where did the man who designed the Thornsand lighthouse serve his apprenticeship?",
        ("Beckford Foundry", "the Beckford Foundry"), ("thornsand-designer", "sallow-apprentice"),
    ),
    Question(
        "two-hop-2", "two-hop",
        "Which shipyard built the lighter that brought the new lens to Merrow Head?",
        ("Hallam & Orde", "Hallam and Orde", "Hallam & Orde at Saltby"),
        ("merrow-carrier", "gudrun-builder"),
    ),
    Question(
        "two-hop-3", "two-hop",
        "In what year was the tug built that the Harbour Trust rented to deepen the Swatchway?",
        ("1907",), ("tug-hired", "wayland-built"),
    ),
    Question(
        "two-hop-4", "two-hop",
        "Who invented the apparatus with which the Vantor Bank expedition made its sounding at"
        " Station 47?",
        ("Marguerite Tolland", "Tolland"), ("sounding-machine", "lisle-inventor"),
    ),
    Question(
        "two-hop-5", "two-hop",
        "What is the speed limit in the harbour byelaw that the captain of the Northern Tern was"
        " convicted of breaking?",
        ("six knots", "6 knots"), ("tern-byelaw", "byelaw-61"),
    ),
    Question(
        "two-hop-6", "two-hop",
        "At which lighthouse did the rescuer of the Lady Isabeau's crew later become principal"
        " keeper?",
        ("Long Nab",), ("isabeau-medal", "harkaway-post"),
    ),
    Question(
        "two-hop-7", "two-hop",
        "How much headroom does the bridge constructed by Caspar Helmsgrove leave at high water?",
        ("14 feet 6 inches", "14 ft 6 in"), ("helmsgrove-bridge", "wicket-headroom"),
    ),
    Question(
        "two-hop-8", "two-hop",
        "Which company owned the ship that came to the Vantor Bank expedition's relief at Stormgat"
        " Bay?",
        ("Pomfrey Whaling Company", "the Pomfrey Whaling Company"), ("relief-ship", "finch-owner"),
    ),
    Question(
        "three-hop-1", "three-hop",
        "Who is the registrar of shipping in the town where the makers of the Skarholm lighthouse"
        " optic have their factory?",
        ("Matthias Crewe", "Crewe"), ("skarholm-optic", "pell-town", "aldersea-registrar"),
    ),
    Question(
        "three-hop-2", "three-hop",
        "What was the address of the cartographer whose chart won the Harbour Trust's 1933 gold"
        " medal, when she was a pupil of Hester Maravell?",
        ("14 Rope Walk",), ("medal-chart", "chart-drawer", "scarfe-lodging"),
    ),
    Question(
        "three-hop-3", "three-hop",
        "What is the maximum length of ship permitted at the quay where the boat that served as"
        " tender to Gannet Rock in 1934 is usually moored?",
        ("130 feet", "130 ft"), ("gannet-boat", "petrel-berth", "gasworks-length"),
    ),
    Question(
        "three-hop-4", "three-hop",
        "How much water does the sampling device hold that Hester Maravell's nephew looked after on"
        " the Vantor Bank expedition?",
        ("1.25 litres", "1.25 liters", "1.25 l"), ("nephew", "thorne-bottle", "bottle-volume"),
    ),
    Question(
        "comparison-1", "comparison",
        "Which lighthouse is older, Eastlow or Bracken Holm?",
        ("Eastlow",), ("bracken-lit", "eastlow-lit"),
    ),
    Question(
        "comparison-2", "comparison",
        "Which ship is larger by gross tonnage, the Corriemore or the Aurelia Finch?",
        ("Corriemore", "the Corriemore"), ("finch-tons", "corriemore-tons"),
    ),
    Question(
        "chinese-1", "chinese",
        "青岬港东面的那道防波堤，是由哪位工程师负责修建的？",
        ("沈砚秋",), ("breakwater",),
    ),
    Question(
        "chinese-2", "chinese",
        "林慕舟担任主任的那座灯塔，灯光最远能照多少海里？",
        ("十八海里", "18海里", "18 海里"), ("lin-post", "heron-range"),
    ),
    Question(
        "unanswerable-1", "unanswerable",
        "In which year was the lighthouse on Cormorant Stack first lit?",
        absent=("Cormorant Stack", "Cormorant"),
    ),
    Question(
        "unanswerable-2", "unanswerable",
        "Who composed the anthem that was sung at the opening of Wicket Bridge?",
        absent=("anthem", "composer", "composed", "opening of Wicket", "sang", "sung"),
    ),
)  # fmt: skip
