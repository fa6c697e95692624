"""Words for filler. No name here is a name of `facts`, so filler cannot contradict a fact."""

from __future__ import annotations

STATIONS = (
    "Skarholm", "Gannet Rock", "Long Nab", "Merrow Head", "Thornsand", "Pillar Skerry",
    "Kettle Point", "Eastlow", "Bracken Holm", "Hollow Ness",
)  # fmt: skip

POOLS: dict[str, tuple[str, ...]] = {
    "surname": (
        "Abelard", "Bexcombe", "Corrigall", "Dovery", "Elverson", "Fothersby", "Gaskarth",
        "Hebblewick", "Inglethorpe", "Jessamy", "Kirkbright", "Lanyard", "Mossop", "Netherby",
        "Oxenbold", "Pargeter", "Quillfeather", "Rainscar", "Stallybrook", "Tordoff", "Underhay",
        "Vellacott", "Winterflood", "Yarrowdale", "Applegarth", "Brocklesea", "Cudworthy",
        "Dunmallet", "Eskrigge", "Fennelow", "Garthside", "Hopcraft",
    ),
    "given": (
        "Arthur", "Beatrix", "Cecil", "Dora", "Ernest", "Flora", "George", "Harriet", "Ivor",
        "Janet", "Kenneth", "Lydia", "Martin", "Nora", "Oswin", "Phoebe", "Ralph", "Selina",
        "Thomas", "Ursula", "Victor", "Winifred",
    ),
    "person": tuple(
        f"{title} {name}"
        for title, name in zip(
            ("Mr", "Mrs", "Miss", "Captain", "Mr", "Dr", "Mr", "Miss") * 4,
            (
                "Abelard", "Bexcombe", "Corrigall", "Dovery", "Elverson", "Fothersby", "Gaskarth",
                "Hebblewick", "Inglethorpe", "Jessamy", "Kirkbright", "Lanyard", "Mossop",
                "Netherby", "Oxenbold", "Pargeter", "Quillfeather", "Rainscar", "Stallybrook",
                "Tordoff", "Underhay", "Vellacott", "Winterflood", "Yarrowdale", "Applegarth",
                "Brocklesea", "Cudworthy", "Dunmallet", "Eskrigge", "Fennelow", "Garthside",
                "Hopcraft",
            ),
            strict=True,
        )
    ),
    "town": (
        "Saltby", "Hexmouth", "Ormsgate", "Pellow", "Wharram", "Stour Magna", "Netherholm",
        "Birkhaven", "Tolsey", "Ravenswyke", "Little Carrow", "Cold Linton", "Mellingham",
    ),
    "spot": (
        "Tar Lane", "the Long Strand", "Custom House steps", "the Upper Basin", "Mussel Hard",
        "the Cinder Path", "Fish Street", "the Old Slip", "Bollard Row", "the timber pond",
        "Saint Bride's landing", "the Watch House", "the Weigh Beam", "the coal drops",
    ),
    "ship": (
        "Amber Lass", "Brother Hugh", "Copper Bell", "Dunlin", "Evening Primrose", "Fair Rosalind",
        "Grey Goose", "Hopeful Martha", "Industry", "Jackdaw", "Kittiwake", "Linnet of Tolsey",
        "Mayflower Jane", "Northern Fern", "Oak Apple", "Peregrine", "Quickstep", "Rose of Pellow",
        "Saltire King", "Three Sisters", "Wayland Ash", "Gudrun Dale", "Aurelia Fisk",
    ),
    "month": (
        "January", "February", "March", "April", "May", "June", "July", "August", "September",
        "October", "November", "December",
    ),
    "weather": (
        "a hard frost", "three weeks of easterly wind", "thick weather",
        "a gale from the south-west",
        "the equinoctial springs", "a wet summer", "an uncommon calm", "drifting ice in the river",
        "a heavy ground swell", "sleet and short days", "a week of sea fog", "a falling glass",
    ),
    "wind": (
        "south-west, strong", "north-east, moderate", "light airs, variable", "west, fresh",
        "north-west, gale in squalls", "south, moderate, backing", "calm till noon, then east",
        "south-east, fresh", "north, light", "west-north-west, strong", "south-west, veering west",
    ),
    "sky": (
        "overcast", "clear", "passing showers", "haze to seaward", "fog banks", "broken cloud",
        "rain all day", "fine", "sleet", "mist at dawn", "bright and cold", "dull",
    ),
    "part": (
        "the lantern glazing", "the balcony rail", "the clockwork", "the lower gallery door",
        "the boat winch", "the fog-signal house roof", "the oil store", "the landing ladder",
        "the wireless mast", "the rain-water tank", "the keepers' stove", "the lightning rod",
        "the weight tube", "the vapour burner", "the signal yard", "the weather door",
    ),
    "repair": (
        "was scraped and given two coats of red lead", "was taken down, cleaned and put back",
        "was renewed in teak", "was found sound and left alone", "was mended by the keepers",
        "gave trouble in the cold and was adjusted", "was replaced from store",
        "was condemned and is to be renewed next season", "was packed with new felt",
        "was tested in the presence of the inspector", "was re-leaded on the weather side",
    ),
    "goods": (
        "slates", "pit props", "barrelled herring", "china clay", "oats", "bricks", "deals",
        "cement", "seed potatoes", "guano", "coke", "salt", "wool", "granite setts", "barley",
        "paraffin", "rope", "tinplate", "cheese", "hides",
    ),
    # -- annual report ------------------------------------------------------------------
    "r_state": (
        "{part} {repair}, and {part} {repair}.",
        "During {weather} some harm was done to {part}, and it was {month} before all was"
        " in order.",
        "The {spring|autumn|summer} inspection was made by {person}, who found {part} in"
        " {good|fair|very good|indifferent} order and asked that {part} be looked to.",
        "It is to be recorded that {part} {repair} at a cost of {11..94} crowns.",
        "{person} reported in {month} that {part} {repair}.",
        "Little was needed here beyond paint and patience: {part} {repair}.",
        "A party of {three|four|five|six} men under {person} was at the station for {nine|twelve|"
        "fifteen|twenty} days, in which time {part} {repair}.",
        "The estimate for {part} was exceeded by {3..28} crowns because of {weather}.",
        "No complaint of the light was received from any master during the year.",
        "One complaint was received, from the master of the {ship}, and was found to concern"
        " another Board's light.",
    ),
    "r_keepers": (
        "The keepers were in good health, save for {a sprained wrist|a heavy cold|toothache|an"
        " inflamed eye} in {month}.",
        "Leave was taken in turn, {person} acting as occasional keeper for {9..41} days.",
        "The garden gave {cabbages|leeks|potatoes|kale} enough for the mess, and the hens laid"
        " well until {month}.",
        "The library box was changed {three|four|five} times, and a request for {books on"
        " wireless|sea stories|a dictionary|a hymn book} was met.",
        "{person} left the service in {month} and the vacancy was filled from the list.",
        "Visitors in the season numbered {41..388}, and the usual box collected {7..31} crowns for"
        " the widows' fund.",
        "The schooling of the children was inspected by {person} and found {creditable|satisfactory"
        "|a little behind in arithmetic}.",
        "A fire drill was held in {month}, with buckets, and water reached the lantern in {four|"
        "five|six} minutes.",
    ),
    "r_relief": (
        "Reliefs were delayed {twice|three times|on four occasions} by {weather}, the longest"
        " delay being of {5..16} days.",
        "The landing was possible on {117..264} days of the year.",
        "Stores were landed in {month} and {month}, among them {goods}, {goods} and {goods}.",
        "The boat was lifted for painting in {month} and was back in the water within the"
        " fortnight.",
        "In {month} the {ship} anchored too near the cable and was asked, civilly, to shift.",
        "Coal was put ashore by the {ship}, {14..55} tons in all, without loss.",
        "The new derrick has shortened the work of a relief by about {twenty|thirty|forty}"
        " minutes.",
    ),
    "r_policy": (
        "The Board considered at three meetings whether {part} of every station should be of one"
        " pattern, and deferred the matter.",
        "Representations from the fishermen of {town} were heard with attention.",
        "The cost of oil rose by {two|three|four} parts in the hundred, and that of {goods} fell.",
        "A deputation from {town}, led by {person}, asked for a second lamp on the pierhead.",
        "The accounts have been examined by {person} and agree with the vouchers.",
        "The Board records its thanks to {person}, who has retired after {twenty-one|thirty|"
        "thirty-four} years' service.",
        "Wireless telephony was tried between two stations, and could be understood in all but"
        " {weather}.",
        "The superannuation fund stands at {2,140|2,385|2,417|2,566} crowns.",
    ),
    # -- byelaws ------------------------------------------------------------------------
    "b_who": (
        "The master of a vessel", "The owner or agent of a vessel", "A pilot", "A carter",
        "A lighterman", "The person in charge of a crane", "A waterman", "A fish salesman",
        "The mate having charge of the deck", "Any person", "A wharfinger", "The holder of a"
        " licence under these byelaws",
    ),
    "b_act": (
        "makes fast to any buoy of the Trust without leave", "leaves a hatch uncovered after dark",
        "boils pitch or tar otherwise than in the place set apart", "dries nets upon the rails of"
        " a quay", "keeps a fire alight on board during the discharge of spirits", "leaves a cart"
        " unattended upon the tramway", "places {goods} within two yards of the quay's edge",
        "refuses to shift berth when asked by a dockman", "uses a hook in the handling of {goods}",
        "sells from a boat without a badge", "anchors across the ferry line", "fails to show a"
        " riding light", "obstructs the reading of the tide board", "moors three abreast at"
        " {spot}", "takes sand or stones from the foreshore", "lets a rope lie across a passage"
        " where persons walk", "runs an engine under test while moored at {spot}", "draws water"
        " from the fire main", "hoists a signal that is not in the book", "works {goods} on a day"
        " of public holiday", "leaves a boat on the steps at {spot}", "marks, cuts or defaces a"
        " bollard", "brings a dog within the sheds", "discharges {goods} elsewhere than at {spot}",
        "alters the trim of a vessel by shifting {goods} while in the lock", "stacks {goods}"
        " higher than nine feet", "fails to report the loss of an anchor within the day",
        "employs a child under fourteen at a winch", "weighs {goods} on an unstamped beam",
        "enters the Upper Basin while the ball is hoisted",
    ),
    "b_penalty": (
        "shall be liable to a fine of {four|eight|twelve|fifteen|twenty|thirty|forty} crowns.",
        "forfeits {five|ten|eighteen|twenty-five|thirty-five} crowns for each offence.",
        "shall pay {six|nine|eleven|sixteen} crowns, and half as much for each day that the"
        " offence goes on.",
        "may be fined up to {twenty-two|forty-five|fifty|sixty} crowns by the Harbour Court.",
    ),
    "b_more": (
        "The Harbour Master may give leave in writing, which shall be shown when asked for.",
        "Nothing in this byelaw touches vessels of the Board or of the Customs.",
        "The burden of showing that leave was given lies upon the person charged.",
        "This byelaw does not apply during {weather} if the Harbour Master so orders.",
        "It is a defence that the act was done for the saving of life.",
        "Goods so left may be removed to {spot} and held until the cost is paid.",
        "A notice to this effect shall be kept painted at {spot}.",
        "For the purpose of this byelaw the word vessel includes a raft.",
        "Where the offender is not found, the charge falls upon the goods.",
        "One half of what is recovered shall go to the widows' fund of the pilots.",
    ),
    # -- biography ----------------------------------------------------------------------
    "l_open": (
        "In the {spring|summer|autumn|winter} of that year she was much at {town}.",
        "The work at {town} took longer than the Board had been promised.",
        "There is a gap in the diaries here, and one must go by the account books.",
        "{weather} kept the boats in, and she used the days to write up her levels.",
        "A letter of {month}, to {person}, gives the best picture of these months.",
        "By {month} the drawings were done, and she was impatient to be out of doors.",
        "She had by now a reputation for going to see.",
        "The office in {town} had two windows, one lamp and no key.",
        "It was {person} who sent for her.",
        "Of the quarrel with {person} a good deal has been said, most of it by people who were"
        " not there.",
        "She never cared for {town}, and {town} returned the feeling.",
        "Money was short in the office that {spring|winter|autumn}.",
    ),
    "l_work": (
        "She walked the line of the wall with a boy to hold the staff, and took {40..190} levels"
        " before dinner.",
        "The contractor had offered {goods} where the specification said granite, and she made him"
        " carry every piece of it away.",
        "Her reports were short: the first page said what was wrong, the second what it would"
        " cost, and there was no third.",
        "She had the model tried in a horse trough, with {a kettle|a plank|a coal shovel} for the"
        " sea, and altered the slope by one in twelve.",
        "The piles went in at the rate of {three|four|five|seven} a tide, when they went in at"
        " all.",
        "For {part} she drew a detail that was still in use when the station was closed.",
        "She asked for {11..75} barrels of cement and was given half, and built half, and said so"
        " in print.",
        "{person} kept the time book, and it shows her on the works at five in the morning on"
        " {19..88} days.",
        "She insisted that {part} be within reach of a short man with cold hands.",
        "A fault in {part} was traced to a drawing of her own, and she wrote across it the word"
        " Mine.",
        "The figures for the tides at {town} had been copied wrongly for years, and it was she who"
        " went back to the first book.",
    ),
    "l_human": (
        "She read aloud in the evenings, badly, and was listened to out of respect.",
        "{person} remembered her as a tall woman in a wet coat who never sat down first.",
        "She liked strong tea, old maps and being contradicted by people who knew.",
        "There was a dog in these years, called Plumb, which bit two commissioners.",
        "Her mother's letters from this time are full of {socks|recipes|marriages|hens}, and hers"
        " of foundations.",
        "She paid the boys herself when the Board was late, and did not ask for it back.",
        "When {person} fell ill she took on the second set of books without a word.",
        "She kept a barometer by the bed and tapped it before she put on her spectacles.",
        "{person} proposed marriage on the ferry, and was asked to mind the theodolite.",
        "She disliked speeches, and the one she gave at {town} lasted four minutes.",
        "Sundays were for mending, walking and the sums of others.",
        "She would not have her likeness taken, and the one that exists was made from behind a"
        " door.",
    ),
    "l_quote": (
        "“I have looked at {part},” she wrote to {person}, “and I would rather be paid less and do"
        " it twice.”",
        "“The sea,” she told the students at {town}, “reads no drawings.”",
        "“Tell {person} that the wall is where I left it,” runs a postcard of {month}.",
        "“We had {weather},” says the diary, “and nothing to show for it but appetite.”",
        "“An estimate is a promise made by somebody else,” she noted in the margin.",
        "“He builds as if he were never coming back,” she said of one contractor.",
        "“I am told I am difficult,” she wrote, “by men whose work I have measured.”",
        "“Send {goods}, and send a man who can count them,” she telegraphed from {town}.",
    ),
    "l_close": (
        "The thing was finished in {month}, and she was not at the dinner.",
        "It stood, and nothing more need be said of a wall.",
        "The Board thanked her in a sentence of eleven words.",
        "She had learned something, and wrote down what it was.",
        "Nobody at {town} now remembers the argument, but the steps are still there.",
        "After that the letters to {person} are warmer.",
        "It was the last time that she trusted a tender.",
        "The drawings are lost; the masonry is not.",
        "Within the year {person} was quoting her figures as his own.",
        "She went home by the carrier's cart, asleep among the {goods}.",
    ),
    # -- expedition ---------------------------------------------------------------------
    "e_day": (
        "{weather} held us for {two|three|four} days, and the time went in splicing.",
        "We ran {22..96} miles to the {north|south|east|west} and took {four|five|six|nine} casts"
        " on the way.",
        "The swell was too long for the winch, and {person} proposed that we wait, which we did.",
        "At {four|five|six} in the morning the trawl came up with {14..90} pounds of ooze and one"
        " indignant skate.",
        "The thermometers were compared against the standard and agreed within {two|three|four}"
        " hundredths.",
        "{person} was sick, recovered, and was sick again.",
        "A cast was lost with {90..410} fathoms of line when the splice drew.",
        "The cook gave us {duff|pea soup|salt beef|a species of pie}, and there was applause.",
        "We spoke the {ship}, bound for {town} with {goods}, and gave her our letters.",
        "Bottom was {grey mud|coarse sand|broken shell|stiff clay|globigerina ooze|small stones},"
        " and the depth less than had been hoped.",
        "The sun was not seen for {three|four|five|six} days, and the reckoning was a matter of"
        " opinion.",
        "Two petrels came aboard at night and were shown the way off in the morning.",
        "The steam winch broke a pawl, which {person} made again out of a shovel.",
        "We lay to under the trysail and wrote up the books with one hand.",
        "The samples were washed, labelled and stowed in sawdust.",
        "A line of soundings was run across the head of the gully at intervals of a mile.",
    ),
    "e_think": (
        "It seems likely that the sand is carried here by the {ebb|flood} and not by waves.",
        "The cold layer was met again at about {60..140} fathoms, and cannot be a fault of the"
        " instrument.",
        "We make no claim for these few values, but they are the only ones.",
        "The older chart shows a bank in this place, of which we found no sign.",
        "The difference between the two series is within the error of the line.",
        "{person} is of the opinion that the ridge is continuous; I am not.",
        "Stones of the size of a fist lie on the southern side, and none on the northern.",
        "The salinity rises towards the {east|west}, as would be expected of a current.",
    ),
    # -- catalogue ----------------------------------------------------------------------
    "c_item": (
        "Aneroid barometer", "Azimuth circle", "Boat compass", "Brass dividers", "Clinometer",
        "Course protractor", "Current meter", "Day telescope", "Deck watch", "Dip circle",
        "Drawing compass", "Gimballed lamp", "Hand lead", "Heliograph", "Hydrometer", "Level staff",
        "Marine barograph", "Mooring swivel gauge", "Night glass", "Parallel rules", "Pelorus",
        "Pocket sextant", "Rain gauge", "Range finder", "Sand glass", "Sea thermometer",
        "Signal lamp", "Sounding sextant", "Spirit level", "Station pointer", "Sun recorder",
        "Surveyor's chain", "Taffrail log", "Theodolite", "Wind vane", "Wet and dry bulb",
    ),
    "c_detail": (
        "in lacquered brass, with a case of {mahogany|teak|cedar|oak}",
        "of gun-metal, with a silvered scale divided to {half degrees|ten minutes|millimetres}",
        "with {two|three|four} eyepieces and a shade of smoked glass",
        "in the heavy pattern supplied to pilots", "of the light pattern, for boats",
        "with spare {spring|needle|pivot|glass} and key", "bronzed, on a {round|square} foot",
        "with leather strap and lock", "of German silver, hand divided",
        "for use in wet gloves, with large heads to the screws",
    ),
    "c_praise": (
        "Used by the pilots of {town} for {six|nine|eleven} years without repair.",
        "We do not make a cheaper one and advise against buying it elsewhere.",
        "Each is compared in our own tank before it is packed.",
        "The certificate of trial is under the lid.",
        "{person} writes: “It fell down the hold and was none the worse.”",
        "Allow {three|four|five} weeks in the season.",
        "Old ones are taken in part exchange.",
        "Not suited to the tropics.",
        "The divisions are cut, not printed.",
        "A cover of oiled silk is {2..6} crowns more.",
        "May be hired by the month on deposit.",
        "Drawings are sent on application.",
    ),
    # -- minutes, news, letters, museum, handbook ---------------------------------------
    "m_item": (
        "Read a letter from {person} about {goods} left at {spot}. Resolved, that they be removed"
        " within the week.",
        "The Engineer reported that the wall at {spot} had settled by {two|three|four} inches."
        " Resolved, that it be watched.",
        "A claim of {12..140} crowns from the owners of the {ship}, for a fender, was"
        " {refused|met in half|allowed|left to the solicitor}.",
        "{person} moved, and {person} seconded, that the dues on {goods} be lowered. Lost by"
        " {five|six|seven} votes to four.",
        "The Treasurer laid the account for the month: receipts {1,204|1,377|1,418|1,530|1,291}"
        " crowns, payments {1,106|1,150|1,322|1,276} crowns.",
        "Resolved, that the crane at {spot} be tested to {five|six|eight} tons in the presence of"
        " {person}.",
        "The Harbour Master complained of boys at {spot}. The Clerk was asked to write to the"
        " school.",
        "Tenders for {goods} were opened. That of a firm at {town}, being lowest, was accepted.",
        "The request of the rowing club for the use of {spot} on a Saturday in {month} was"
        " granted.",
        "Considered, the lighting of {spot}. {person} thought four lamps enough; {person} thought"
        " six. Five were agreed.",
        "The drawing of a proposed shed at {spot} was laid on the table and lay there.",
        "Noted with regret, the death of {person}, for many years a member.",
        "A report on the silting near {spot} was received; {4,200|5,100|6,350|7,800} cubic yards"
        " had been lifted since the last meeting.",
    ),
    "n_item": (
        "SHIPPING. The {ship} arrived on {Monday|Tuesday|Thursday|Friday} from {town} with {goods}"
        " and went to {spot}. The {ship}, for {town}, is waiting for water.",
        "ACCIDENT. A lad employed by {person} fell from a ladder at {spot} and broke his arm. He"
        " is doing well.",
        "SALE. At the Weigh House, {person} sold {20..180} tons of {goods}, some of it damaged by"
        " water. Bidding was slow, on account of {weather}.",
        "LETTER. Sir, will nobody do anything about {spot}? I have fallen there twice since"
        " {month}. Yours, {RATEPAYER|PEDESTRIAN|A MOTHER|ONE WHO LIMPS}.",
        "LECTURE. {person} spoke at the Institute on {the cold sea|harbours old and new|bees|the"
        " habits of the eel} to an audience of {19..140}. A vote of thanks was moved by {person}.",
        "FISHERIES. Boats from {town} report {few|many|no} herring and {weather}. Prices at {spot}"
        " were {firm|weak|better}.",
        "COUNCIL. A motion by {person} that {spot} be paved was adjourned for the third time.",
        "WEATHER. After {weather} the glass rose on {Wednesday|Saturday|Sunday}, and the {ship}"
        " was able to leave for {town}.",
        "REGATTA. The cup for four-oared boats went to {town} by a length; {person} gave the"
        " prizes. Rain fell.",
        "THEFT. Two coils of rope and a quantity of {goods} were taken from a shed near {spot}. A"
        " man is being looked for in {town}.",
        "SALVAGE. The {ship} took the {ship} in tow off the Bar on the night of the {5..27}th and"
        " brought her in. Terms were not stated.",
        "CONCERT. The band played at {spot} in {weather}. {person} conducted, and the cornet was"
        " much applauded.",
        "FIRE. A store of {goods} near {spot} was burnt to the ground on the night of the"
        " {3..27}th. {person} was insured.",
        "OBITUARY. {person}, for {thirty|forty|fifty} years a dealer in {goods} at {town}, has died"
        " after a short illness.",
        "ICE. Owing to {weather} no vessel but the {ship} has left {spot} since {Monday|Thursday}.",
        "WEDDING. {person} and {person} were married at {town}. The {ship} was dressed with flags.",
        "SCHOOLS. Prizes were given by {person}. The essay on {goods} was read aloud, in part.",
        "POLICE. A sailor of the {ship} was found asleep in a cart of {goods} and was cautioned.",
        "NOTICE. The ferry will not run on {month} {2..27}, as {the chain|the boiler|the"
        " landing} is to be renewed.",
    ),
    "x_item": (
        "The {model|half model|figurehead|painting} of the {ship} was given by {person} in"
        " {1921|1922|1924|1926|1927}.",
        "The {case by the window|long case|wall case|upright case} holds tools of the {cooper|rope"
        " maker|sail maker|block maker|pilot} from {spot}.",
        "Visitors often ask about the {bell|lamp|anchor|wheel}. It was dredged up near {spot} and"
        " nobody knows whose it was.",
        "The drawer below may be opened. It holds {tickets|tallies|seals|buttons} found when"
        " {spot} was paved.",
        "The panorama shows the river at {town} on a market day, and the artist has put himself"
        " in, with {a dog|an umbrella|a ham}.",
        "The scales weighed {goods} for {forty|fifty|sixty} years and still do, on Saturdays, for"
        " children.",
        "Of the two portraits the left one is {person}; the other is said to be a relation.",
        "The ledger is open at a page which lists {goods}, {goods} and {goods}, all unpaid.",
        "A bundle of letters from {town} asks, in eleven different hands, for the same {barrel|"
        "rope|kettle}.",
        "The knots on the board were tied by {person} at the age of {eight|nine|seventy|eighty},"
        " and two of them are wrong.",
        "This {clock|compass|spyglass|tide board} hung at {spot} until {month} {1908..1927}.",
        "The photograph shows {spot} before the fire; the man with the {barrow|dog|ladder} is not"
        " known.",
        "Children may ring the {fog|ferry|market} bell once, which they do.",
        "The sample jars hold {goods} and {goods} as they were when landed from the {ship}.",
        "In the corner stands a {crane hook|rudder|cask|hand pump} that weighs {41..390} pounds;"
        " the floor was strengthened for it by {person}.",
        "The label in an old hand says {town}, but the workmanship is that of {town}.",
        "{person} bequeathed this {chair|chest|hat|dinner service} on condition that it be dusted.",
        "The bill on the wall offers {5..60} crowns for news of the {ship}, overdue with {goods}.",
        "A drawer of {pipes|spoons|buckles|needles} was found under the boards at {spot}.",
        "The model crane works. It was made by {person} from {goods} boxes in one winter.",
    ),
    "h_rule": (
        "Before lighting up, see that {part} is clear and that the cloths are dry.",
        "Never oil {part} while it is in motion; stop it, note the time, and oil it then.",
        "If {part} fails in the night, work it by hand, ring for the second keeper, and write it"
        " in the log before you sleep.",
        "After {weather}, go round every window with a lamp and then with your hand.",
        "Keep {part} free of salt with fresh water only; acids have ruined more brass than the"
        " sea has.",
        "The log is written in ink, at the time, by the keeper on watch, and is not improved"
        " afterwards.",
        "Stores are used in the order in which they came, and nothing stands on the floor.",
        "A keeper who is unwell says so at once. Nobody is thought the worse of.",
        "Visitors are shown {part} and the gallery, and are counted up and counted down.",
        "In fog the signal is begun when the {nearer|outer} mark cannot be seen, not when it"
        " cannot be seen well.",
        "When the relief is late, put the household on three quarters and say it is for the"
        " figure.",
        "Birds that strike the lantern are entered by kind and number, and not eaten.",
        "Clean {part} with the grain and not across it, and change the cloth before it is black.",
        "The inspector may come at any hour. There is no need to be found working; there is a need"
        " for {part} to be found clean.",
        "When {goods} or {goods} are landed, count before you sign, and sign what you counted.",
        "Set the clock by the noon signal, and say in the log by how much it was wrong.",
        "No spirit, oil or turpentine is carried past {part} without a lid.",
        "A lamp that smokes is telling you of a draught; look first at {part}.",
        "In {month} and {month} have {part} examined twice, since that is when it fails.",
        "Write for what you need before it is gone: a letter may wait for {weather} to end.",
    ),
    "o_note": (
        "Cleaned {part}.", "{part} {repair}.", "Passed inward, the {ship}, with {goods}.",
        "Counted {4..46} sail in the roads.", "Lime-washed the yard.", "Trimmed and filled.",
        "Boat could not land.", "Landed {goods} and two letters.", "Baked. Bread poor.",
        "Signalled the {ship} that she was standing into danger; she wore round.",
        "Relieved by {person} at {5..11}.", "{person} on the sick list, with a tooth.",
        "Fog signal sounded {2..19} hours.", "Heavy spray over the gallery.",
        "A flight of {starlings|redwings|fieldfares} at the lantern, {3..60} dead.",
        "Painted the rail, first coat.", "Wound by hand from {two|three} to {four|five}.",
        "Saw lights to the {north|south}, and could make nothing of them.",
        "Drew fish from the pool, {2..9} pollack.", "Read to the others from the newspaper.",
    ),
    "t_line": (
        "We have had {weather} and I have mended everything twice.",
        "{person} came over with the {goods} and stayed to supper, as he does.",
        "You ask about {spot}. It is as you left it, with more gulls.",
        "The {ship} was in on {Monday|Tuesday|Friday}, and her mate says that {town} is all"
        " motor cars.",
        "I am learning to knit, out of spite.",
        "{part} {repair}, at last, and we are allowed to be warm.",
        "The children have a seal which they believe is tame.",
        "Send thread, pepper, and anything printed.",
        "{person} is to marry {person}, and the whole island was told in an afternoon.",
        "Your parcel came wet, but the {cheese|tobacco|book|ink} was as good as ever.",
        "I went up to see the light turned, and thought of you with your lists.",
        "They say {month} will be better. They said it of the one before.",
        "The hens have stopped laying and {person} says that it is the wireless.",
        "We buried the old dog by {part}, where he liked to lie.",
        "I have your letter about {town} and have read it to everyone, leaving out the part about"
        " {person}.",
        "The roof held in {weather}, which is more than the {ship} did; her boom is on our beach.",
        "There was a wedding, a christening and a sale of {goods}, all on the one day.",
        "If you see {person} at {spot}, say that the {goods} never came.",
        "I can now row to the point and back before the kettle boils.",
        "It was so still on {Sunday|Wednesday} that we heard the bell at {town}.",
    ),
}  # fmt: skip
