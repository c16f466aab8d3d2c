"""Chinese offices as names (益州牧, 两江总督, 征西将军), and the people before the verb of an office (杨建国担任)."""

import re
from collections.abc import Iterator, Mapping, Sequence

from lightrag_jsonl.core.cjk import simplified
from lightrag_jsonl.core.text import words
from lightrag_jsonl.providers.offline.phrases import Phrase
from lightrag_jsonl.providers.offline.segmentation import SegmentedWord
from lightrag_jsonl.providers.offline.words import DOUBLE_SURNAMES, NO_PEOPLE, SURNAMES

# Before an office, modern or classical. 任 alone is no verb in 责任, 主任, 任务 and the like.
_VERB_IN_OFFICE = (
    r"(?:(?:担任|出任|就任|接任|升任|改任|调任|转任|兼任|继任|历任|现任|曾任)"
    r"|(?<![责主信委聘新前首上离卸充胜放])任(?![务何意凭由性命免职期教课]))"
)
_APPOINTED = r"(?:当选为?|(?:被|获|受)?(?:任命|委任|聘任|推选|推举|选举)为)"
TAKES_OFFICE = rf"(?:{_VERB_IN_OFFICE}|{_APPOINTED})"
# Of classical Chinese, only before a classical office. 领 is no verb in 将领, 率领 and the like.
TAKES_CLASSICAL_OFFICE = rf"(?:{TAKES_OFFICE}|自领|[拜迁授除兼封署加转为]|(?<![将首率带统占本])领)"

_GOVERNORS = words(  # after the name of a territory; from the official histories, by hand
    """刺史 太守 巡抚 知府 知州 知县 县令 县丞 县尉 节度使 观察使 经略使 安抚使 转运使 布政使 按察使 都护 道台 通判 别驾
    国相"""
)
_COMMANDERS = words("总督 都督 总兵 提督 留守")  # verbs, too: 曹休总督诸军
_TERRITORIAL_OFFICES = "|".join(sorted(_GOVERNORS | _COMMANDERS))
_COURT_OFFICES = words(  # names by themselves, but only after a verb
    """将军 中郎将 校尉 丞相 太尉 司徒 司空 太傅 太师 太保 大司马 大都督 御史大夫 尚书令 中书令 尚书 侍郎 侍中 中书舍人
    大学士 军机大臣 翰林学士 枢密使 参知政事 光禄大夫 长史 主簿"""
)
CLASSICAL_OFFICES = ("州牧", *sorted(_GOVERNORS | _COMMANDERS | _COURT_OFFICES))  # endings
_TITLE_CHARACTER = r"[^\W\d为之以其曰被任领拜授迁封赐与和及我]"
_RANK = rf"(?:[前后左右上大偏副裨卫]|{_TITLE_CHARACTER}{{2}}大?|)"
_PROVINCE = re.compile(r"(?![本该诸各此某作二三四五六七八九十])[^\W\d]州牧")
_TERRITORIAL = re.compile(_TERRITORIAL_OFFICES)
_OFFICE_NAME = (
    rf"(?:{_TITLE_CHARACTER}{{2}}[州郡县府道路国]?(?:{_TERRITORIAL_OFFICES})|{_PROVINCE.pattern}"
    rf"|{_RANK}(?:{'|'.join(sorted(_COURT_OFFICES, key=lambda office: (-len(office), office)))}))(?!府)"
)
_AFTER_VERB = re.compile(rf"{TAKES_CLASSICAL_OFFICE}(?P<office>{_OFFICE_NAME})")
_TERRITORY_TAGS = ("ns", "nz", "j")
_NO_TERRITORY = re.compile(r"[本该诸各此某两]?[州郡县国]|[其这那此]\w?|\w?[为令任领]")

# A person before the verb: at the beginning of a clause, or after a time or 由.
_ADVERB = "(?:曾经|曾|也|又|后|便|遂|仍|即|现|再|先后|继续|自|皆|昔|俱|各)?"
_PERSON = re.compile(
    rf"(?:(?<=[年月日号起后前初末由])|(?<!\w))"
    rf"(?P<surname>{'|'.join(sorted(DOUBLE_SURNAMES))}|[{''.join(sorted(SURNAMES))}])"
    rf"(?P<given>[^\W\d·]{{1,2}}?)"
    rf"(?={_ADVERB}{_VERB_IN_OFFICE}|{_APPOINTED}|{_ADVERB}{TAKES_CLASSICAL_OFFICE}{_OFFICE_NAME})"
)
_NO_GIVEN_NAME = re.compile(
    ".*[曾也可后及时与前现又遂仍便即将就官长员自皆昔俱各称求等]|先生|女士|小姐|老师|教授|博士|同志|某某|[某氏家总老工公君]"
)


def office_phrases(text: str, segments: Sequence[SegmentedWord]) -> Iterator[Phrase]:
    """The classical offices named in a text: a title after a territory, or after a verb of office."""
    plain = simplified(text)
    for match in _PROVINCE.finditer(plain):
        yield _office(text, *match.span())
    for match in _AFTER_VERB.finditer(plain):
        yield _office(text, *match.span("office"))
    segments_by_end = {segment.end: segment for segment in segments}
    for match in _TERRITORIAL.finditer(plain):
        territory = segments_by_end.get(match.start())
        if territory is not None and _is_territory(territory, match[0]):
            yield _office(text, territory.start, match.end())


def people_in_office(text: str, segments: Sequence[SegmentedWord]) -> Iterator[Phrase]:
    """People right before a verb of office, whole where the segmenter cuts the name (杨 建国 担任)."""
    segments_by_start = {segment.start: segment for segment in segments}
    for match in _PERSON.finditer(simplified(text)):
        if _is_full_name(match, segments_by_start):
            start, end = match.span()
            yield Phrase(start=start, end=end, name=text[start:end], type="person")


def _office(text: str, start: int, end: int) -> Phrase:
    return Phrase(start=start, end=end, name=text[start:end], type="concept")


def _is_territory(segment: SegmentedWord, title: str) -> bool:
    """Whether a word before a title is a place, perhaps unknown to the dictionary (建宁太守)."""
    plain = simplified(segment.text)
    if _NO_TERRITORY.fullmatch(plain) or plain in DOUBLE_SURNAMES:
        return False
    if not segment.in_dictionary:
        is_known_kind = segment.tag != "nr" or title in _GOVERNORS
        return len(plain) == 2 and is_known_kind and segment.tag in (*_TERRITORY_TAGS, "nr")
    return len(plain) > 1 and segment.tag in _TERRITORY_TAGS


def _is_full_name(match: re.Match[str], segments_by_start: Mapping[int, SegmentedWord]) -> bool:
    """Whether a surname and what follows are a name: before a classical office always, and otherwise
    unless the dictionary has them as another word.

    A given name of one character counts only if the segmenter sees a person, or a surname by itself.
    """
    if _NO_GIVEN_NAME.fullmatch(match["given"]) or match[0] in NO_PEOPLE:
        return False
    if _AFTER_VERB.match(match.string, match.end()):
        return True
    segment = segments_by_start.get(match.start())
    if segment is None:
        return len(match["given"]) > 1
    is_person = segment.tag.startswith("nr")
    if segment.in_dictionary and not is_person and segment.end >= match.end():
        return False
    return len(match["given"]) > 1 or is_person or segment.end == match.end("surname")
