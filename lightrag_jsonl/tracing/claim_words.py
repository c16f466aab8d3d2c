"""Closed classes of words, English and Chinese, by which claims are judged: numerals, units, negations,
hedges and the like. No list of things.
"""

import re

from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import words

ENGLISH_MULTIPLIERS = {
    "hundred": 1e2,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "trillion": 1e12,
}
SHORT_MULTIPLIERS = {"k": 1e3, "m": 1e6, "mn": 1e6, "bn": 1e9, "b": 1e9}
FRACTIONS = {
    **dict.fromkeys(("half", "halves"), 2),
    **dict.fromkeys(("third", "thirds"), 3),
    **dict.fromkeys(("quarter", "quarters"), 4),
    **dict.fromkeys(("fifth", "fifths"), 5),
}
UNITS: dict[str, tuple[str, float]] = {
    unit: (measure, factor)
    for measure, table in {
        "mass": {
            "mg milligram milligrams 毫克": 1e-3,
            "g gram grams 克": 1.0,
            "kg kilogram kilograms kilo kilos 千克 公斤": 1e3,
            "ton tons tonne tonnes 吨": 1e6,
            "lb lbs pound-weight": 453.6,
            "oz ounce ounces": 28.35,
        },
        "length": {
            "mm millimetre millimetres millimeter millimeters 毫米": 1e-3,
            "cm centimetre centimetres centimeter centimeters 厘米": 1e-2,
            "m metre metres meter meters 米": 1.0,
            "km kilometre kilometres kilometer kilometers 千米 公里": 1e3,
            "mile miles 英里": 1609.34,
            "ft foot feet 英尺": 0.3048,
            "inch inches 英寸": 0.0254,
        },
        "time": {
            "ms millisecond milliseconds 毫秒": 1e-3,
            "sec second seconds 秒 秒钟": 1.0,
            "min minute minutes 分钟": 60.0,
            "h hour hours 小时 个小时 钟头": 3600.0,
            "day days 天": 86400.0,
            "week weeks 周 星期 个星期": 604800.0,
        },
        "months": {
            "month months 个月": 1.0,
            "year years yr yrs 周年": 12.0,
            "decade decades": 120.0,
        },
        "volume": {
            "ml millilitre millilitres milliliter milliliters 毫升": 1e-3,
            "l litre litres liter liters 升": 1.0,
        },
        "share": {"% percent pct 个百分点": 1e-2},
        "temperature": {"°c ℃ 摄氏度 °f 度 degrees": 1.0},
        "data": {"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12},
        "dollars": {"$ us$ dollar dollars usd 美元": 1.0},
        "euros": {"€ euro euros eur 欧元": 1.0},
        "pounds": {"£ pounds pound gbp 英镑": 1.0},
        "yuan": {"¥ rmb yuan cny 元 人民币": 1.0},
    }.items()
    for units, factor in table.items()
    for unit in units.split()
}
NEGATIONS = words(
    "not no never neither nor none nobody nothing nowhere cannot hardly"
    " aint arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt mustnt neednt shouldnt wasnt werent wont wouldnt"
    " 不 没 没有 未 无 非 并非 不是 不会 不能 不得 无法 并未 尚未 从未 从不 不可 不必 毫无 勿 莫 不曾 未曾 并不 不再"
    " 未能 不予 未经 没能 不应 不准 不许 绝不 决不 均未 并没有 从来不 不需要 不用 不该 并无 均不 仍未 也不 都不 还没"
    " 还没有 从没 从没有 不想 不愿"
)
# Classes of words that make a statement stronger or weaker. A statement with a word of one class is
# compared with its sentence if the sentence has no word of the class.
STRONG_WORDS: dict[str, frozenset[str]] = {
    "all": words(
        "all every everyone everybody everything entire entirely whole fully completely always 全部 所有 全体 一切 完全 均 总是 始终 每个 每 从来"
    ),
    "only": words(
        "only sole solely exclusively alone just 只 仅 仅仅 唯一 只有 只能 独自 单独 惟一"
    ),
    "must": words(
        "must required mandatory obligatory necessarily shall 必须 必需 务必 一定 必然 必定 应当 须 强制"
    ),
    "certain": words(
        "definitely certainly undoubtedly surely proven proved clearly 肯定 确定 无疑 毫无疑问 绝对"
    ),
}
HEDGES = words(
    "may might could possibly perhaps probably likely maybe suspected suggests suggest suggested appears"
    " appear seems reportedly allegedly estimated expected 可能 也许 或许 大概 疑似 似乎 据说 据称 预计 估计 或将 有望 建议 可以 不一定 未必 恐怕"
)

# What an answer says to its reader, or of its sources, states nothing of their subject.
OFFERS = pattern_of(
    r"^(?:i hope|let me know|feel free|if you (?:need|have|want|would|'d)|please (?:let|ask|note|feel|provide)"
    r"|would you|do you|happy to|i can(?:not|'t)? |i(?:'m| am) |i could not|i couldn't|here (?:is|are)\b|sure[,!.]"
    r"|in (?:summary|conclusion)\W*$|thank|sorry|based on the (?:context|passages?|provided)\b[^,.]*(?:[,.]\W*)?$)"
    r"|^(?:希望|如有|如需|如果您|如果你|请告诉|请问|欢迎|以下是|抱歉|对不起|很高兴|我无法|我不能|谢谢|需要(?:我|更多)|[^。]*您(?:想|希望|需要|问))",
    re.IGNORECASE,
)
SOURCES_AS_SUBJECT = pattern_of(
    r"\b(?:context|passages?|sources?|excerpts?|documents?|texts?|information)\b[^.]{0,40}"
    r"\b(?:does|do|did|is|are)(?:n['’]t| not)\s+(?:\w+\s+)?"
    r"(?:mention|say|specif|stat|provid|giv|contain|includ|indicat|explain|available|enough|nam|tell|describ|answer)"
    r"|\bno\s+(?:\w+\s+){0,2}(?:information|mention|details?)\b"
    r"|\bnot\s+(?:\w+\s+)?(?:mentioned|specified|stated|provided|given|named|described)\s+(?:in|by)\s+the\b"
    r"|(?:资料|上下文|原文|文中|文档|文本|信息|材料|段落|内容|知识库)[^。]{0,30}(?:没有|没|未|不|无法)[^。，]{0,6}"
    r"(?:提|说|给|包含|涉及|指出|写|记载|列出|确认|判断|回答|提供)"
    r"|没有[^。，]{0,6}(?:信息|资料|记载)",
    re.IGNORECASE,
)
