"""Names of Chinese organizations, whole, by their endings: 诚信消费品有限公司, 青松区人民法院."""

import re
from collections.abc import Iterator, Sequence

from lightrag_jsonl.core.cjk import simplified
from lightrag_jsonl.core.text import words
from lightrag_jsonl.providers.offline.phrases import Phrase
from lightrag_jsonl.providers.offline.segmentation import SegmentedWord
from lightrag_jsonl.providers.offline.words import GENERIC_NOUNS

_LEGAL_FORMS = ("有限公司", "有限责任公司")  # of the Company Law: whatever stands before is a name
_ORGANIZATION_ENDINGS = (  # kinds of organizations, chosen by hand
    *(
        "公司",
        "集团",
        "银行",
        "信用社",
        "证券",
        "基金",
        "合作社",
        "委员会",
        "居委会",
        "村委会",
        "法院",
        "检察院",
        "派出所",
    ),
    *(
        "大学",
        "学院",
        "中学",
        "小学",
        "幼儿园",
        "医院",
        "卫生院",
        "研究所",
        "研究院",
        "研究中心",
        "实验室",
        "设计院",
    ),
    *(
        "科学院",
        "协会",
        "学会",
        "商会",
        "工会",
        "基金会",
        "联合会",
        "理事会",
        "俱乐部",
        "事务所",
        "交易所",
        "出版社",
        "报社",
    ),
    *("通讯社", "电视台", "博物馆", "图书馆", "美术馆", "纪念馆", "局", "厅", "署"),
)
_INSTITUTION = re.compile(  # words of the dictionary, after a name: 江南印书馆, 长桥旅行社
    r"\w{2,}[馆院社厂]|(?:招待|看守|卫生|收容)所|诊所|学校|书院|剧院|画院|影院|书店|书社|剧团|乐团"
)
_BUILDINGS = ("四合院", "大杂院", "三合院")
_INDUSTRIES = words(  # verbs and verbal nouns in names of companies: lines of business, chosen by hand
    "发展 投资 建设 开发 管理 服务 设计 制造 咨询 租赁 销售 加工 运输 通信 勘探 养殖 种植 控股 担保 装饰 安装 维修 检测 监理"
    " 研究 教育 培训 出版 印刷 包装 保险 娱乐 传播 营销 评估 拍卖 仓储 配送 进出口 供应 供水 供电 发电 回收 再生 旅游 餐饮"
    " 合作 改革 监督 检察 管制 交通 规划 科技 传媒 实业 贸易"
)
_NO_NAME = words(  # before an ending: a kind of organization, or a part of one, but no name
    "分 子 母 总 股份 有限 责任 有限责任 股份有限 控股 上市 跨国 外国 本地 全资 附属 下属 公共 大型 中小 小型 中型 新 老 大 小 各"
    " 集团 公司 银行 国有 民营 私营 外资 合资 商业 中央 地方 综合 专科 附近 当地 全国 国际 世界 国内"
)
_NO_BEGINNING = words("就读 就读于 毕业 毕业于 地处 位于 即 原 前 为 在 于")
_NAME_TAGS = ("n", "nz", "nr", "ns", "nt", "nrt", "nrfg", "vn", "j", "b", "s", "eng", "an", "l")
_PROPER_TAGS = ("nz", "nr", "ns", "nt", "nrt", "nrfg", "eng")
_ADMINISTRATIVE_UNITS = (
    "省市县区镇乡州旗"  # administrative: 青松区 is a place though no dictionary has it
)
_MOST_WORDS = 8
_ORDINAL = re.compile(r"第[一二三四五六七八九十百\d]+")
# characters of a company's name without its legal form (华夏娱乐), as texts go on with
_SHORTEST_STEM = 3
_STEM_ENDING = re.compile(r"(?:集团)?(?:股份)?(?:有限责任公司|有限公司|公司)$")


def organization_phrases(text: str, segments: Sequence[SegmentedWord]) -> Iterator[Phrase]:
    """The organizations named in a text, and their names without the legal form."""
    stems: set[str] = set()
    for number, word in enumerate(segments):
        if not _ends_a_name(word, segments[number + 1 : number + 2]):
            continue
        first = _first_word_of_name(segments, number)
        if first is None:
            continue
        start = segments[first].start
        if text.startswith("于", start) and text.endswith(("毕业", "就读"), 0, start):
            start += 1  # joined to a name by the segmenter: 毕业 于德信 学校
        name = text[start : word.end]
        if simplified(name) in GENERIC_NOUNS:
            continue
        stems.add(_STEM_ENDING.sub("", name))
        yield _organization(start, name)
    for stem in sorted(stems):
        if len(stem) >= _SHORTEST_STEM:
            yield from _places_of(stem, text)


def _organization(start: int, name: str) -> Phrase:
    return Phrase(start=start, end=start + len(name), name=name, type="organization")


def _places_of(stem: str, text: str) -> Iterator[Phrase]:
    for place in re.finditer(re.escape(stem), text):
        yield _organization(place.start(), stem)


def _ends_a_name(word: SegmentedWord, following: Sequence[SegmentedWord]) -> bool:
    """Whether a word is the last one of an organization's name, by an ending; 股份 and 集团 go on."""
    if not _is_kind(word) or word.tag not in (*_NAME_TAGS, "q"):
        return False
    next_word = following[0] if following and following[0].start == word.end else None
    return next_word is None or (not _is_kind(next_word) and simplified(next_word.text) != "股份")


def _is_kind(word: SegmentedWord) -> bool:
    """Whether a word ends with a kind of organization."""
    plain = simplified(word.text)
    if plain.endswith(_ORGANIZATION_ENDINGS):
        return True
    is_institution = word.in_dictionary and _INSTITUTION.fullmatch(plain) is not None
    return is_institution and plain not in _BUILDINGS


def _first_word_of_name(segments: Sequence[SegmentedWord], last: int) -> int | None:
    """The number of the first word of the name that ends with the word numbered `last`, if it is one."""
    first = last
    while (
        first > 0 and last - first < _MOST_WORDS and _goes_on(segments[first - 1], segments[first])
    ):
        first -= 1
    while first < last and simplified(segments[first].text) in _NO_BEGINNING:
        first += 1
    leftmost = first
    while first < last and simplified(segments[first].text) in _INDUSTRIES:
        first += 1
    modifiers = [simplified(word.text) for word in segments[first:last]]
    proper = [word for word in segments[first : last + 1] if _is_proper(word)]
    name = "".join([*modifiers, simplified(segments[last].text)])
    own_modifiers = [modifier for modifier in modifiers if modifier not in _NO_NAME]
    if name.endswith(_LEGAL_FORMS):
        is_bare = all(modifier in _INDUSTRIES | _NO_NAME for modifier in modifiers)
        if (
            is_bare
            and leftmost > 0
            and _is_quality_before(segments[leftmost - 1], segments[leftmost])
        ):
            return leftmost - 1
        return first if own_modifiers else None
    return first if proper and (own_modifiers or segments[last].tag == "nt") else None


def _is_quality_before(before: SegmentedWord, word: SegmentedWord) -> bool:
    """Whether a verb or an adjective of two characters stands right before: 创新科技有限公司."""
    is_quality = before.tag in ("v", "a", "ad", "z", "i")
    return before.end == word.start and is_quality and len(before.text) > 1


def _goes_on(before: SegmentedWord, word: SegmentedWord) -> bool:
    """Whether a name goes on to the left: with nouns, industries and ordinals, without a gap."""
    if before.end != word.start:
        return False
    plain = simplified(before.text)
    is_name_part = before.tag in _NAME_TAGS or plain in _INDUSTRIES or plain in ("股份", "有限")
    return (
        is_name_part or _ORDINAL.fullmatch(plain) is not None or plain in "第一二三四五六七八九十"
    )


def _is_proper(word: SegmentedWord) -> bool:
    """Whether a word is a name, or an administrative unit, or unknown to the dictionary."""
    plain = simplified(word.text)
    return word.tag in _PROPER_TAGS or plain in _ADMINISTRATIVE_UNITS or not word.in_dictionary
