"""The seven English books: reports, register, byelaws, biography, expedition, catalogue."""

from __future__ import annotations

from samplecorpus.facts import FACTS
from samplecorpus.grammar import Grammar
from samplecorpus.layout import A4, Block, Book, Heading, Look, Para, Table
from samplecorpus.pools import POOLS, STATIONS


def planted(fact: str, *notes: str) -> Para:
    """The passage of a fact, as it stands in the table of facts."""
    return Para(FACTS[fact].text, notes=notes, fact=fact)


# What the report of 1931 says of each station's making; the rest of that year's text is filler.
_HISTORY = {
    "Gannet Rock": "Gannet Rock. Built in four seasons by Henrietta Colme, who lost one mason and"
    " never spoke of it. The optic is by Dargan Brothers and turns once in forty seconds.",
    "Long Nab": "Long Nab. The oldest masonry in the Board's care, to the design of Peter Ossory,"
    " first lit in 1847. The lens came from the Lumley Glass Company.",
    "Merrow Head": "Merrow Head. Abel Trantham's tower, of 1863, stands too low, and has been"
    " called so in eleven reports. The present lens is by Dargan Brothers.",
    "Pillar Skerry": "Pillar Skerry. Josiah Wrenfield's second tower, first lit in 1877. The"
    " granite was cut at Ravenswyke and each course was tried on land before it was shipped.",
    "Kettle Point": "Kettle Point. A concrete tower of 1903, the first of its kind on the coast,"
    " by Cornelius Blaydon. Its lens was the gift of the Lumley Glass Company.",
    "Bracken Holm": "Bracken Holm. The tower is by Abel Trantham, with a dwelling added by Ruth"
    " Oldacre. The old catoptric lamps are kept in the store in good order.",
    "Hollow Ness": "Hollow Ness. Henrietta Colme's only brick tower, first lit in 1855, when she"
    " was not yet thirty. The optic is by Dargan Brothers and was overhauled last year.",
}

_SIGNALS_1934 = {
    "Hollow Ness": "At Hollow Ness the siren was re-tuned and went back into service on 4 September"
    " 1934. It sounds three blasts in each two minutes.",
    "Skarholm": "At Skarholm the explosive signal was given up, to the relief of the hens, and an"
    " air horn was begun on 12 March 1934.",
    "Pillar Skerry": "At Pillar Skerry the bell was recast, and was rung again for the first time"
    " on 23 June 1934.",
}


def report(year: int) -> Book:
    """A Board's annual report; two years share their form, which makes them easy to confuse."""
    g = Grammar(f"report-{year}", POOLS)
    early = year == 1931
    body: list[Block] = [Heading(1, "1. The year in general")]
    body += [Para(g.sentences("r_policy", "r_policy", "r_relief", "r_policy")) for _ in range(5)]
    body.append(
        Para(
            g.sentences("r_policy", "r_policy") + "[*]",
            notes=("The Board's year runs from 1 January to 31 December.",),
        )
    )
    if early:
        body += [Heading(2, "1.1 Rewards"), Para(g.sentences("r_policy", "r_keepers"))]
        body += [planted("isabeau-medal")]
        body += [
            Para(
                "A bronze medal was voted to Edwin Marsham, boatman of Eastlow, who put out twice"
                " to the ketch Lady Isolde, and a letter of thanks to the crew of the Oak"
                " Apple.[*]",
                notes=("The ketch was afterwards refloated without great damage.",),
            )
        ]
    else:
        body += [Heading(2, "1.1 Appointments"), Para(g.sentences("r_policy", "r_keepers"))]
        body += [
            planted("harkaway-post"),
            Para(
                "At Hollow Ness the post of principal keeper went to Edwin Marsham, and at Eastlow"
                " to Josephine Arkle, the first woman to draw the full wage.[*]",
                notes=("See the minute of 9 April, by which the scale was made one for all.",),
            ),
        ]
    for number, station in enumerate(STATIONS, start=2):
        body += _station(g, number, station, early)
    body += _accounts(g, year)
    return Book(
        Look(
            f"Annual Report of the Ellery Lights Board for {year}",
            "Ellery Lights Board",
            f"Ellery Lights Board: Annual Report, {year}",
            size=A4,
            body=11.0,
        ),
        (f"The {'forty-fourth' if early else 'forty-seventh'} report", "Port Ellery"),
        (Heading(1, "To the Commissioners"), Para(g.sentences("r_policy", "r_policy", "r_policy"))),
        tuple(body),
    )


def _station(g: Grammar, number: int, station: str, early: bool) -> list[Block]:
    blocks: list[Block] = [Heading(1, f"{number}. {station}")]
    if early:
        fact = {"Thornsand": "thornsand-designer", "Skarholm": "skarholm-optic"}.get(
            station, "eastlow-lit"
        )
        known = station in ("Thornsand", "Skarholm", "Eastlow")
        blocks.append(planted(fact) if known else Para(_HISTORY[station]))
    elif station in _SIGNALS_1934:
        blocks.append(Para(_SIGNALS_1934[station]))
    blocks += [
        Heading(2, f"{number}.1 State of the station"),
        Para(g.sentences("r_state", "r_state", "r_state", "r_state")),
        Para(
            g.sentences("r_state", "r_state", "r_state") + "[*]",
            notes=(g.expand("Voted in {month}; {person} dissenting."),),
        ),
    ]
    if not early:
        fact_1934 = {"Kettle Point": "kettle-signal", "Merrow Head": "merrow-carrier"}
        if station in fact_1934:
            blocks.append(planted(fact_1934[station]))
    blocks += [
        Heading(2, f"{number}.2 Keepers"),
        Para(g.sentences("r_keepers", "r_keepers", "r_keepers", "r_keepers")),
        Heading(2, f"{number}.3 Reliefs and stores"),
    ]
    if not early and station == "Gannet Rock":
        blocks.append(planted("gannet-boat"))
    elif not early:
        blocks.append(Para(g.expand("The reliefs were made by the {ship}, on the usual terms.")))
    blocks.append(Para(g.sentences("r_relief", "r_relief", "r_relief")))
    stores = [
        (
            g.expand("{goods}"),
            str(g.number(2, 90)),
            str(g.number(2, 90)),
            str(g.number(1, 60)),
            f"{g.number(4, 190)}.{g.number(10, 95)}",
        )
        for _ in range(17)
    ]
    blocks.append(
        Table(
            f"Table {number}. Stores at {station}",
            ("Article", "In hand", "Received", "Used", "Cost, crowns"),
            stores,
            (3, 1.2, 1.2, 1.2, 1.6),
        )
    )
    return blocks


def _accounts(g: Grammar, year: int) -> list[Block]:
    rows = [
        (
            station,
            *(f"{g.number(100, 999)}.{g.number(10, 99)}" for _ in range(4)),
        )
        for station in STATIONS
    ]
    weeks = [
        (
            f"Week {week}",
            g.expand("{wind}"),
            str(g.number(0, 61)),
            str(g.number(0, 44)),
            str(g.number(3, 88)),
        )
        for week in range(1, 53)
    ]
    return [
        Heading(1, "12. Accounts and returns"),
        Para(
            "The outlay on each station is given below, in crowns and hundredths.[*]",
            notes=("Wages of occasional keepers are under Labour.",),
        ),
        Table(
            f"Table 12. Outlay in {year}",
            ("Station", "Wages", "Oil", "Repairs", "Boats"),
            rows,
            (2, 1, 1, 1, 1),
        ),
        Heading(2, "12.1 Weekly return of fog and traffic"),
        Table(
            f"Table 13. Prevailing wind, hours of fog, vessels hailed and letters landed, {year}",
            ("Week", "Wind", "Fog", "Vessels", "Letters"),
            weeks,
            (1, 3, 1, 1, 1),
        ),
    ]


# -- register ---------------------------------------------------------------------------

_FIRST = (
    "Agnes", "Beacon", "Clara", "Dauntless", "Ebba", "Forward", "Gloria", "Hilda", "Iris",
    "Jessie", "Kestrel", "Lapwing", "Mabel", "Nimrod", "Olive", "Pansy", "Rhoda", "Stormcock",
    "Teal", "Una", "Violet", "Wayland", "Zephyr",
)  # fmt: skip
_SECOND = (
    "Bay",
    "Croft",
    "Dale",
    "Elm",
    "Ferry",
    "Glen",
    "Hope",
    "Isle",
    "Knoll",
    "Lea",
    "Mere",
    "Ness",
)
_BUILDERS = (
    "Hallett Bros",
    "Stour Yard",
    "Orde & Son",
    "Pinder",
    "Tolsey Slip",
    "Marram Yard",
    "Crane Co",
)
_RIGS = ("ketch", "smack", "steam tug", "lighter", "schooner", "motor boat", "steam trawler")

_REGISTRARS = (
    ("Port Ellery", "Constance Urquill", "Custom House, first floor", "14"),
    ("Saltby", "Barnaby Treadgold", "Slip Office", "6"),
    ("Aldersea", "Matthias Crewe", "Exchange Buildings", "11"),
    ("Hexmouth", "Eleanor Vane-Tempany", "Old Battery", "4"),
    ("Ormsgate", "Matthew Crowle", "Bank House", "9"),
    ("Birkhaven", "Silvanus Peake", "Lifeboat House", "3"),
    ("Ravenswyke", "Dorothea Limm", "Quarry Office", "5"),
)


def register() -> Book:
    """Two hundred rows in Part Two, a few dozen remarks in Part Three, in which the facts are."""
    g = Grammar("register", POOLS)
    rows, facts = _vessels(g)
    remarks = _remarks(g)
    body: list[Block] = [
        Heading(1, "Part One. Ports and registrars"),
        Para(
            "Business is done with the registrar of the port to which a vessel belongs. Hours are"
            " from ten to four, and fees are taken in coin.[*]",
            notes=("On Saturdays from ten to noon.",),
        ),
        Table(
            "Table I. Registrars",
            ("Port", "Registrar", "Office", "Fee"),
            _REGISTRARS,
            (1.3, 2, 2.2, 0.6),
            {2: "aldersea-registrar"},
        ),
        Para(
            "A change of owner, name, rig or engine is to be declared within thirty days. What is"
            " not declared is presumed not to have happened."
        ),
        Heading(1, "Part Two. Vessels entered without remark"),
        Para("The order is that of names. Tons are gross, and feet are over all."),
        Table(
            "Table II. Vessels",
            ("Name", "Number", "Kind", "Built", "Builder", "Tons", "Feet"),
            rows,
            (2.2, 1.2, 1.7, 0.9, 1.8, 0.8, 0.8),
            facts,
        ),
        Heading(1, "Part Three. Vessels entered with remarks"),
        Para(
            "What follows has been added since the last edition, in the order of entry.[*]",
            notes=("Vessels named here are left out of Part Two.",),
        ),
        *remarks,
    ]
    return Book(
        Look("Register of Vessels of the Ellery Coast", "Custom House", "Register of Vessels"),
        ("Ninth edition", "Printed for the Custom House, Port Ellery, 1934"),
        (
            Heading(1, "Note to the ninth edition"),
            Para("The list has been compared with the books of each port and is believed exact."),
        ),
        tuple(body),
    )


def _vessels(g: Grammar) -> tuple[list[tuple[str, ...]], dict[int, str]]:
    rows: list[tuple[str, ...]] = []
    names = [f"{first} {second}" for first in _FIRST for second in _SECOND] + ["Wayland Oak"]
    facts: dict[int, str] = {}
    for count, name in enumerate(sorted(names)):
        kind, built = g.pick(_RIGS), str(g.number(1908, 1932))
        if name == "Wayland Oak":
            kind, built, facts = (
                "steam tug",
                FACTS["wayland-built"].value,
                {len(rows): "wayland-built"},
            )
        elif name == "Wayland Elm":
            kind, built = "steam tug", "1909"
        tons = g.number(18, 390)
        rows.append(
            (
                name, f"{38 + count // 40},{100 + (count * 37) % 900}", kind, built,
                g.pick(_BUILDERS), str(tons), str(round(21 * tons ** (1 / 3)) + g.number(-6, 9)),
            )
        )  # fmt: skip
    return rows, facts


def _remarks(g: Grammar) -> list[Block]:
    blocks: list[Block] = []
    order = {4: "gudrun-builder", 13: "saltire-tons", 22: "finch-owner", 33: "petrel-berth"}
    heads = ("Lighters and barges", "Passenger vessels", "Vessels for ice", "Small craft", "Others")
    names = [f"{a} {b}" for b in ("Anne", "Maid", "Prince") for a in _FIRST[1:18]]
    owners = ("Ormsgate Coal Company", "Pellow Lime Company", "Widow Gaskarth & Sons")
    for index in range(46):
        if index % 10 == 0:
            blocks.append(Heading(2, heads[index // 10]))
        if index in order:
            blocks.append(planted(order[index]))
            continue
        name = names[index % len(names)]
        text = (
            f"{name}, {{ketch|smack|motor boat|barge|steamer}}, official number"
            f" 4{g.number(4, 6)},{g.number(100, 999)}. "
            "{Launched at {town} in {month} {1909..1930}|Bought from {town} in {1919..1931}|"
            "Lengthened by {six|nine|twelve} feet at {town} in {1921..1931}}. "
            f"{{Owned by the {g.pick(owners)}|In the hands of {{person}}|Shares held by {{person}}"
            " and {person}}. "
            "{Berths at {spot}|Lies at {spot} in winter|Has a licence for {spot}}. "
            f"{{{g.number(20, 79)}|1{g.number(10, 79)}|2{g.number(10, 79)}}} tons gross. "
            "{Carried away her mast in {weather}, since made good|Engine of two cylinders, by a"
            " maker at {town}|Mortgaged to {person}, discharged|Her certificate was endorsed in"
            " {month}}."
        )
        note = (g.expand("Certificate seen by {person}."),) if index % 9 == 5 else ()
        blocks.append(Para(g.expand(text) + ("[*]" if note else ""), notes=note))
    return blocks


# -- byelaws ----------------------------------------------------------------------------

_BRIDGES = (
    ("Tannery Bridge", "62 feet", "11 feet 9 inches", "fixed"),
    ("Chandlers' Bridge", "48 feet", "9 feet 3 inches", "fixed"),
    ("Wicket Bridge", "71 feet", "14 feet 6 inches", "fixed"),
    ("Quarry Bridge", "55 feet", "16 feet", "lifting"),
    ("Thicket Bridge", "66 feet", "12 feet 4 inches", "swing"),
    ("Malthouse Bridge", "39 feet", "8 feet 6 inches", "fixed"),
)
_QUAYS = (
    "Exchange Quay. The longest vessel that may be taken is one of 240 feet over all, and the"
    " draught at low water is not to pass 15 feet.",
    "Tar Quay. A limit of 85 feet is set on account of the bend. No fire of any kind.",
    "",
    "Gasholder Wharf. Lighters only, of not more than 70 feet, and none overnight.",
    "Lime Quay. Vessels up to 115 feet, dry cargo, with hatches closed while it rains.",
    "Corn Quay. Vessels up to 160 feet, if light; 145 feet, if laden.",
)


_WORDS = (
    "Fairway means so much of the river as is marked by buoys, and nothing that is not.",
    "Master means the person who has charge for the time being, whether or not he admits it.",
    "Goods means everything that is landed, shipped, dropped or left, except persons and their"
    " luggage.",
    "Night means the time between the lighting and the extinguishing of the Mole Light.",
    "Quay includes its steps, ladders, fenders, rails and bollards, and the water within a boat's"
    " length of it.",
    "Trust means the Ellery Harbour Trust, and, where the Trust has so resolved, any committee of"
    " not fewer than three of its members.",
    "Harbour Court means the court that sits on the first and third Tuesdays in the Weigh House, of"
    " which the Clerk of the Trust is not a member.",
    "Over all, when said of length, takes in the bowsprit if it is fixed and leaves it out if it is"
    " not.[*]",
    "Where a distance is given it is measured on the ground; where a time is given it is that of"
    " the Custom House clock, right or wrong.",
)


def byelaws() -> Book:
    """A hundred and twelve byelaws in parts, then two schedules."""
    g = Grammar("byelaws", POOLS)
    parts = (
        (1, "Part I. Of moorings and anchorage"), (20, "Part II. Of the cleanness of the river"),
        (38, "Part III. Of quays and sheds"), (58, "Part IV. Of the movement of vessels"),
        (76, "Part V. Of cranes, carts and tramways"), (95, "Part VI. Of licences and persons"),
    )  # fmt: skip
    special = {
        24: "24. Where oil, or water in which oil floats, is pumped into the Upper Basin, the"
        " master and the engineer shall each forfeit forty crowns.",
        60: "60. No raft shall be moved after sunset, nor by fewer than two men, nor without a"
        " lamp at each end of it.",
        62: "62. In the Upper Basin no sail shall be carried, and a boat under oars gives way to"
        " one that is towing.",
    }
    body: list[Block] = []
    starts = dict(parts)
    for number in range(1, 113):
        if number in starts:
            body.append(Heading(1, starts[number]))
        if number in (23, 61):
            body.append(planted({23: "ashes-penalty", 61: "byelaw-61"}[number]))
        elif number in special:
            body.append(Para(special[number]))
        else:
            text = f"{number}. {{b_who}} who {{b_act}}, or who {{b_act}}, {{b_penalty}} {{b_more}}"
            if number % 3 == 0:
                text += " {b_more}"
            note = (
                (g.expand("Amended on {2..27} {month} {1919..1930}."),) if number % 7 == 0 else ()
            )
            body.append(Para(g.expand(text) + ("[*]" if note else ""), notes=note))
    body += [
        Heading(1, "First Schedule. Bridges"),
        Para("Headroom is measured at high water of ordinary springs, under the crown."),
        Table(
            "Schedule 1. Bridges over the river",
            ("Bridge", "Span", "Headroom", "Kind"),
            _BRIDGES,
            (2, 1, 1.6, 1),
            {2: "wicket-headroom"},
        ),
        Heading(1, "Second Schedule. Quays"),
        *(Para(text) if text else planted("gasworks-length") for text in _QUAYS),
        Heading(1, "Third Schedule. Dues on goods"),
        Table(
            "Schedule 3. Dues, in crowns and hundredths",
            ("Goods", "Measure", "Inward", "Outward", "Rent, a week"),
            [
                (
                    goods, g.pick(("ton", "load", "barrel", "hundred")),
                    *(f"{g.number(0, 3)}.{g.number(10, 95)}" for _ in range(3)),
                )
                for goods in POOLS["goods"] * 2
            ],
            (2, 1, 1, 1, 1.2),
        ),
    ]  # fmt: skip
    return Book(
        Look("Byelaws of the Harbour of Port Ellery", "Ellery Harbour Trust", "Harbour Byelaws"),
        ("Made under the Harbour Act, with schedules", "Reprinted 1930"),
        (
            Heading(1, "Of the meaning of words"),
            *(
                Para(text, notes=("Added in 1922, after a dispute.",) if "[*]" in text else ())
                for text in _WORDS
            ),
        ),
        tuple(body),
    )


# -- biography --------------------------------------------------------------------------

_CHAPTERS = (
    ("Salt and slate", ("maravell-birth", "bracken-lit")),
    ("The level and the staff", ()),
    ("An office in Fish Street", ("sallow-apprentice",)),
    ("Piles", ()),
    ("Family matters", ("helmsgrove-bridge",)),
    ("The Board and its engineer", ()),
    ("Pupils", ("scarfe-lodging",)),
    ("Concrete", ()),
    ("The long winter", ("nephew",)),
    ("Arbitrations", ()),
    ("The house on the hill", ()),
    ("What stands", ()),
)
_NEAR = {
    "Pupils": (
        "Of the others, Edith Prowse lodged at 41 Rope Walk and gave up in a year; Walter Scarff"
        " had two rooms in Bell Yard, and drew ships in the margins.",
        "Four pupils in all served their full articles. Each was given a scale rule on the last"
        " day, and told to lose it honourably.",
    ),
    "Family matters": (
        "The other brother-in-law, Silas Penhollow, who built Chandlers' Bridge, never showed his"
        " sums to anyone. It is the bridge that hums.",
    ),
    "An office in Fish Street": (
        "Gareth Sallis, whom some writers confuse with Sallow, had been apprenticed to a clockmaker"
        " at Hexmouth and was a much smaller man.",
    ),
}


def biography() -> Book:
    """Twelve chapters of a life; six hold a fact or two among much that is only life."""
    g = Grammar("biography", POOLS)
    body: list[Block] = []
    for number, (title, facts) in enumerate(_CHAPTERS, start=1):
        body.append(Heading(1, f"{number}. {title}"))
        queue: list[Para] = [planted(fact) for fact in facts]
        queue += [Para(text) for text in _NEAR.get(title, ())]
        for index in range(14):
            if index in (6, 11):
                body.append(Heading(2, g.expand("{town}" if index == 6 else "{spot}")))
            if queue and index in (1, 4, 8):
                body.append(queue.pop(0))
            text = g.sentences("l_open", "l_work", "l_human", "l_quote", "l_work", "l_close")
            note = (g.expand("Letter to {person}, {3..27} {month} {1901..1929}."),)
            noted = index % 5 == 2
            body.append(Para(text + ("[*]" if noted else ""), notes=note if noted else ()))
    rows = [
        (str(year), g.expand("{town}"), g.expand("{part}"), str(g.number(120, 4200)))
        for year in range(1899, 1931)
    ]
    body += [
        Heading(1, "Appendix. Works by year"),
        Para("Only works of which the drawings or the account survive are listed."),
        Table("List of works", ("Year", "Place", "Work", "Crowns"), rows, (1, 2, 3, 1)),
    ]
    return Book(
        Look(
            "The Life of Hester Maravell, Engineer", "Prudence Ayscombe",
            "The Life of Hester Maravell",
        ),
        ("by Prudence Ayscombe", "With an appendix of works"),
        (Heading(1, "Preface"), *(Para(g.sentences("l_human", "l_quote")) for _ in range(6))),
        tuple(body),
    )  # fmt: skip


# -- expedition -------------------------------------------------------------------------

_LEGS = (
    ("The ship and her company", ("corriemore-tons", "thorne-bottle")),
    ("From Port Ellery to the Bank", ()),
    ("The first season of soundings", ()),
    ("The Cauldron", ("deepest-station", "sounding-machine")),
    ("In the ice of the strait", ("relief-ship",)),
    ("The second season", ()),
    ("The chart", ("chart-drawer",)),
    ("Temperature and salt", ()),
)
_BOTTLES = (
    "Rosamund Thornley, who kept the trawl book, had the care of the Colby insulated bottle, which"
    " was broken in the ninth week and not replaced.",
    "The shallow casts were made with the hand lead and with the Ballard tube, which is quick, and"
    " which nobody likes.",
)


def expedition() -> Book:
    """A report of a voyage, with a table of 118 stations."""
    g = Grammar("expedition", POOLS)
    body: list[Block] = []
    for number, (title, facts) in enumerate(_LEGS, start=1):
        body.append(Heading(1, f"Chapter {number}. {title}"))
        queue = [planted(fact) for fact in facts]
        if number in (1, 4):
            queue.append(Para(_BOTTLES[number // 4]))
        for index in range(12):
            if index in (4, 9):
                body.append(
                    Heading(2, ("Narrative continued", "Remarks")[index // 9] + f", {number}")
                )
            if queue and index % 3 == 1:
                body.append(queue.pop(0))
            text = g.sentences("e_day", "e_day", "e_day", "e_think", "e_day", "e_day")
            noted = index % 4 == 3
            note = (g.expand("Deck log, {2..28} {month}; the hour is that of the ship."),)
            body.append(Para(text + ("[*]" if noted else ""), notes=note if noted else ()))
    body += [
        Heading(1, "Table of stations"),
        Para(
            "Positions are by account when no sight was had. Casts that failed are left out, and"
            " those of over 2,000 fathoms are given in the text alone."
        ),
        Table(
            "Stations of the first and second seasons",
            ("Station", "Latitude", "Longitude", "Fathoms", "Bottom", "Deg. C"),
            [
                (
                    str(n), f"{61 + n // 40}° {(n * 17) % 60:02d}' N",
                    f"{9 + n // 30}° {(n * 23) % 60:02d}' W", str(g.number(38, 1990)),
                    g.pick(("mud", "sand", "shell", "clay", "ooze", "stones", "gravel")),
                    f"{g.number(0, 7)}.{g.number(10, 99)}",
                )
                for n in range(1, 119)
                if n != 47
            ],
            (1, 1.6, 1.6, 1.1, 1.2, 1),
        ),
    ]  # fmt: skip
    return Book(
        Look(
            "Report of the Vantor Bank Expedition", "Ilse Wandsbrook",
            "Report of the Vantor Bank Expedition",
        ),
        ("1930 to 1932", "by Ilse Wandsbrook, leader of the expedition"),
        (Heading(1, "Acknowledgements"), *(Para(g.sentences("e_think")) for _ in range(4))),
        tuple(body),
    )  # fmt: skip


# -- catalogue --------------------------------------------------------------------------

_GOODS_NEAR = {
    217: "No. 217. The Lisbeth hand machine, for depths to 300 fathoms, after the pattern of Edgar"
    " Mowbray. One drum, counter in metres: 145 crowns.",
    219: "No. 219. The Corran wire machine, for depths to 900 fathoms; invented by Theodora Vance."
    " Single drum, screw brake: 310 crowns.",
    263: "No. 263. The Colby insulated bottle, for shallow water. Ebonite jacket; capacity 2.5"
    " litres: 71 crowns.",
    265: "No. 265. The Barrow stop-cock bottle, for harbours. Copper body; capacity 0.75 litre: 34"
    " crowns.",
    304: "No. 304. Recording tide gauge with one-day drum, in a pine case, for works of short"
    " duration: 128 crowns.",
    306: "No. 306. Tide pole of pitch pine, 6 metres, figured in red and black: 19 crowns.",
}
_PLANTED_GOODS = {218: "lisle-inventor", 264: "bottle-volume", 305: "tide-gauge-price"}
_CLASSES = (
    (100, "Class A. Instruments for the chart table"), (135, "Class B. Compasses and bearings"),
    (170, "Class C. Weather"), (205, "Class D. Sounding"), (245, "Class E. Sampling"),
    (285, "Class F. Tides and currents"),
)  # fmt: skip


def catalogue() -> Book:
    """Some 130 entries in six classes, then price lists of parts."""
    g = Grammar("catalogue", POOLS)
    body: list[Block] = [
        Heading(1, "The works"),
        planted("pell-town"),
        Para(
            "Orders are filled in turn. Repairs to instruments of other makers are undertaken"
            " without remark on the makers.[*]",
            notes=("Carriage is paid one way.",),
        ),
    ]
    for start, title in _CLASSES:
        body.append(Heading(1, title))
        for number in range(start, start + 24):
            if number in _PLANTED_GOODS:
                body.append(planted(_PLANTED_GOODS[number]))
            elif number in _GOODS_NEAR:
                body.append(Para(_GOODS_NEAR[number]))
            else:
                if (number - start) % 8 == 0:
                    body.append(Heading(2, f"Patterns {number} to {number + 7}"))
                noted = number % 9 == 4
                text = (
                    f"No. {number}. {{c_item}}, {{c_detail}}, {{c_detail}}: {g.number(9, 170)}"
                    " crowns. {c_praise} {c_praise} {c_praise}"
                )
                note = (g.expand("Price since {month}; older lists are withdrawn."),)
                body.append(
                    Para(g.expand(text) + ("[*]" if noted else ""), notes=note if noted else ())
                )
    body += [
        Heading(1, "Parts and renewals"),
        Table(
            "List of parts",
            ("Part", "For", "Metal", "Crowns"),
            [
                (
                    g.pick(("Pivot", "Glass", "Spring", "Lid", "Strap", "Screw", "Scale", "Key")),
                    g.expand("{c_item}"), g.pick(("brass", "steel", "silver", "bronze")),
                    f"{g.number(0, 8)}.{g.number(10, 95)}",
                )
                for _ in range(90)
            ],
            (1.2, 2, 1, 1),
        ),
    ]  # fmt: skip
    return Book(
        Look(
            "Fenstrand & Pell: Instruments for the Sea", "Fenstrand & Pell",
            "Fenstrand & Pell: Instruments for the Sea", size=A4, body=11.0, sans=True,
        ),
        ("General catalogue", "Sixteenth issue, 1933"),
        (Heading(1, "Terms"), Para(g.sentences("c_praise", "c_praise", "c_praise"))),
        tuple(body),
    )  # fmt: skip
