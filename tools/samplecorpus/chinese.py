"""The Chinese papers: a port yearbook with pages, and letters without."""

from __future__ import annotations

from samplecorpus.facts import FACTS
from samplecorpus.grammar import Grammar
from samplecorpus.layout import Block, Book, Heading, Look, Para, Table

_POOLS: dict[str, tuple[str, ...]] = {
    "人": (
        "陈守诚", "郭玉衡", "何启明", "黄伯谦", "蒋维新", "李承泽", "罗子敬", "马国栋", "潘若水",
        "钱仲平", "孙鹤年", "唐文彬", "王福生", "吴思远", "徐海澜", "杨立本", "张景和", "周载之",
    ),
    "地": (
        "南栈码头", "旧盐埠", "鱼市口", "西河湾", "石门渡", "海关前", "煤栈", "望潮台", "小青屿",
        "白沙澳", "渡船街", "老船坞",
    ),
    "船": (
        "永安号", "顺风号", "海燕号", "同济号", "福泰号", "新宁号", "飞云号", "长庚号", "瑞和号",
    ),
    "货": (
        "豆饼", "生铁", "棉纱", "茶叶", "桐油", "食盐", "木材", "瓷器", "海味", "煤炭", "水泥",
        "面粉", "麻袋", "红糖",
    ),
    "月": ("一月", "二月", "三月", "四月", "五月", "六月", "七月", "八月", "九月", "十月"),
    "天": ("连日大雾", "东北风劲", "台风过境", "久旱水浅", "春潮甚高", "寒流南下", "阴雨兼旬"),
    "物": ("浮标", "缆桩", "起重机", "栈桥", "仓顶", "轨道", "趸船", "水尺", "信号杆", "石阶"),
    "港务": (
        "{月}，{地}的{物}因{天}受损，由{人}督工修复，费时{6..28}日。",
        "本年{货}进口较上年{略增|略减|相仿}，而{货}出口则{大增|大减|持平}。",
        "{人}报告，{地}一带淤浅日甚，拟于{月}后着手疏浚。",
        "{船}于{月}在{地}搁浅，候潮脱险，船货均无损失。",
        "商会请减{货}之码头费，经{人}与{人}会商，暂准试行半年。",
        "{地}新置{物}{2..9}座，工料共计{120..980}元。",
        "凡装载{货}之船，自{月}起须先在{地}候验，再行入港。",
        "因{天}，港口封闭{2..6}日，停泊船只{14..63}艘。",
        "{人}调往他处，遗缺由{人}接任，交接手续于{月}办竣。",
        "巡丁在{地}查获私运{货}{5..40}件，照章充公。",
        "夜班领港人数不敷，{人}建议添用{2..6}名，已获核准。",
        "{地}水尺经重新校正，较旧尺低{3..19}厘米，旧记录应一并改正。",
    ),
    "评述": (
        "然而经费有限，只能择其要者先办。",
        "此事各方意见不一，留待下年再议。",
        "据{人}所言，旧法虽慢，却更稳妥。",
        "至于成效如何，尚须经过一个冬季方能断定。",
        "商民称便，船户亦无异言。",
        "所需{货}均由本地采办，价目附于表后。",
        "幸赖{人}处置得宜，未酿成大祸。",
        "与邻港相比，本港尚称安静。",
    ),
    "注": (
        "据{月}份月报。", "此数未计小船。", "原件存档，由{人}保管。", "单位为元，角分从略。",
        "见{人}所拟章程。",
    ),
    "信": (
        "这里{天}，出门总要带伞，衣服晾三天也不干。",
        "{人}托我问你，上次寄来的书还有没有下册。",
        "昨天在{地}看见{船}进港，卸了半天{货}。",
        "{人}家的孩子已经会背诗了，只是总把前两句颠倒。",
        "前信说的那笔钱已经收到，请不要再寄。",
        "街上{货}又贵了，好在我们吃得简单。",
        "{人}请我们到{地}吃鱼，席间说了许多旧事。",
        "晚上能听见雾笛，起初睡不着，现在不响反倒睡不着了。",
        "我的中耳炎已经好了，不必挂念。",
        "{月}里想回去一趟，只怕船票难买。",
    ),
}  # fmt: skip

_LIGHTS = (
    "青岬灯塔在港口北岸，铁塔，漆白色。灯高出水面三十一米，晴夜光照可达十四海里，三秒一闪。",
    "鹭洲灯塔建于河口沙洲之上，木桩为基，漆红色。灯高十六米，光照可达九海里，雾天鸣钟。",
    "鹤汀灯桩立于内港浅滩，无人看守，光照仅五海里，每月由巡船加油一次。",
    "龟背礁灯塔为旧式石塔，灯高四十米，光照可达十六海里，红白互闪，由三人轮值。",
)
_WORKS = (
    "西外堤系旧工，长六百八十米，由潘若水主持加高一米二，并于堤脚抛石防冲。",
    "内港浮坞由罗子敬监造，可容三百吨以下船只，收费按日计算。",
)
_CHAPTERS = (
    "港务概况", "航道与疏浚", "堤岸工程", "灯塔与航标", "码头与仓栈", "进出口货物", "引水与救护",
    "气象与潮汐", "经费与人事", "大事记",
)  # fmt: skip


def yearbook() -> Book:
    """青岬港年鉴: ten chapters, tables in most of them."""
    g = Grammar("yearbook", _POOLS)
    body: list[Block] = []
    for number, title in enumerate(_CHAPTERS, start=1):
        body.append(Heading(1, f"第{'一二三四五六七八九十'[number - 1]}章　{title}"))
        for index in range(9):
            if index == 3:
                body.append(Heading(2, "一、本年经过"))
            if index == 7:
                body.append(Heading(2, "二、余论"))
            if index == 4 and number == 3:
                body += [Para(_WORKS[0]), _planted("breakwater"), Para(_WORKS[1])]
            if index == 4 and number == 4:
                body += [Para(_LIGHTS[0]), Para(_LIGHTS[1]), _planted("heron-range")]
                body += [Para(_LIGHTS[2]), Para(_LIGHTS[3])]
            text = g.expand("{港务}{港务}{评述}{港务}{港务}{评述}")
            noted = index % 4 == 2
            body.append(
                Para(text + ("[*]" if noted else ""), notes=(g.expand("{注}"),) if noted else ())
            )
        if number in (2, 5, 6, 7, 8, 9):
            body.append(_table(g, number))
    return Book(
        Look(
            "青岬港年鉴", "青岬港务局", "青岬港年鉴", body=10.5, cjk=True,
            contents_title="目录", continued="（续）",
        ),
        ("一九三三年", "青岬港务局编印"),
        (Heading(1, "编者说明"), *(Para(g.expand("{评述}{港务}{评述}")) for _ in range(4))),
        tuple(body),
    )  # fmt: skip


def _planted(fact: str) -> Para:
    return Para(FACTS[fact].text, fact=fact)


def _table(g: Grammar, number: int) -> Table:
    rows = [
        (
            g.expand("{货}"), g.expand("{地}"), str(g.number(120, 9800)), str(g.number(90, 9100)),
            g.expand("{月}"),
        )
        for _ in range(24)
    ]  # fmt: skip
    return Table(
        f"表{number}　货物吞吐（吨）",
        ("货物", "码头", "进口", "出口", "最旺月份"),
        rows,
        (2, 2, 1, 1, 1.4),
    )


def letters() -> str:
    """青岬来信: forty letters home."""
    g = Grammar("letters-zh", _POOLS)
    parts = ["# 青岬来信"]
    for number in range(40):
        parts.append(f"## 第{number + 1}封　{1930 + number // 10}年{g.expand('{月}')}")
        parts.append(g.expand("{信}{信}{信}{信}"))
        if number == 26:
            parts.append(FACTS["lin-post"].text)
        if number == 31:
            parts.append("林牧川也调动了，他去的是鹭洲灯塔，当副手，抱怨蚊子太多。")
        parts.append(g.expand("{信}{信}"))
    return "\n\n".join(parts) + "\n"
