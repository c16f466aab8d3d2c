"""Names and content words of Chinese texts, by a tagger or a segmenter's parts of speech, and by marks."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from msgspec.structs import replace

from lightrag_jsonl.core.options import Tagger
from lightrag_jsonl.core.types import UNKNOWN_TYPE
from lightrag_jsonl.rules.listed_names import is_clause
from lightrag_jsonl.rules.phrases import (
    WORD_GAP,
    ContentWord,
    Phrase,
    PhrasesAndWords,
    Spans,
    title_phrases,
    without_name_lines,
    without_overlap,
)
from lightrag_jsonl.rules.tagging import tagged_words
from lightrag_jsonl.rules.words import is_ordinary, is_ordinary_chinese
from lightrag_jsonl.text.cjk import has_cjk, simplified
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.segmentation import SegmentedWord, is_common_noun, segmented
from lightrag_jsonl.text.strings import words
from lightrag_jsonl.text.terms import STOP_WORDS

_WORK_TITLE = pattern_of(r"《([^《》\n]{1,40})(?<![.…])》")  # whole, not 《聚合物的研发与...》
_LATIN_REST = r"[\p{Latin}\p{N}.+&_'’-]*"
_LATIN = pattern_of(
    rf"(?<![\p{{Latin}}\p{{N}}])(?<![\p{{Latin}}\p{{N}}]_)[a-z]*\p{{Lu}}{_LATIN_REST}"
    r"(?:/[A-Z]{1,3}(?= ?\d)[\d.-]*)?"  # GB/T 19001
    rf"(?:{WORD_GAP}(?:(?:of|the|and){WORD_GAP})*[\p{{Lu}}\p{{N}}]{_LATIN_REST}){{0,5}}",
    module="regex",
)
_LATIN_WORD_BEHIND = pattern_of(r"\s*\p{Latin}", module="regex")  # The | long voyage; not Go | 语言
# The most frequent surnames of China by number of people, but for those that begin common words (阳光);
# then surnames of 百家姓 that today hardly begin other words.
_SURNAMES = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林郑谢罗梁宋唐许韩冯邓曹彭曾萧田董潘袁蔡蒋余于杜叶程魏苏吕丁任沈"
    "姚卢姜崔钟谭陆汪范廖石贾韦夏傅方邹熊白孟秦邱侯江尹薛闫段雷龙史陶贺毛郝顾龚邵万覃武钱戴严莫孔向常汤康"
    "易乔赖文庞樊殷施洪翟安颜倪牛温季俞章鲁葛伍申尤毕聂柴焦路岳齐梅庄辛管祝左涂谷祁时舒耿牟卜詹关苗凌费纪"
    "靳盛童欧甄项曲游裴席卫查屈鲍霍翁隋甘景薄单包司柏宁柯阮桂闵解强华车冉房边鞠"
    "荀糜臧伏滕蒯骆虞胥桓阚娄步伊乐班褚庾隗竺卞狄戚岑邢储缪喻邰郜闾"
)
_DOUBLE_SURNAMES = words(  # of 百家姓, with 太史 and 独孤
    "万俟 司马 上官 欧阳 夏侯 诸葛 闻人 东方 赫连 皇甫 尉迟 公羊 澹台 公冶 宗政 濮阳 淳于 单于 太叔 申屠 公孙 仲孙 轩辕 令狐"
    " 钟离 宇文 长孙 慕容 鲜于 闾丘 司徒 司空 端木 呼延 南宫 百里 东郭 拓跋 太史 独孤"
)
_LONGEST_PLAIN_NAME = 3  # characters of a name with a surname of one character
_TYPES_BY_TAG = {
    "nr": "person",
    "ns": "place",
    "nt": "organization",
    "nw": "work",
    "nz": UNKNOWN_TYPE,  # other names
}
_DOT = "·"  # between the parts of foreign names
_PICTURES = "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"  # arrows, signs, emoji
_NUMBER_OF_RULER = pattern_of("[一二三四五六七八九十百]{1,4}世|[一二三四五六七八九十百]{2,4}")
_NAME = pattern_of(rf"\w[^{_PICTURES}]*[\w)）》」』”’!！?？]")  # in a tagged word


def chinese_names(
    text: str, spans: Spans, tagger: Tagger, *, has_title: bool = True
) -> list[Phrase]:
    """The names of a Chinese text, by LAC, or else by the parts of speech of the segmenter; the title is one,
    but a clause only if the text repeats it.
    """
    if tagger == "lac":
        words = _with_numbers_of_rulers(tagged_words(text, spans))
        tagged = _tagged_names(_with_whole_names(words))
    else:
        tagged = _segmented_names(_with_whole_names(segmented(text)))
    titles = title_phrases(text, spans) if has_title else ()
    named_titles = [
        title for title in titles if text.count(title.name) > 1 or not is_clause(title.name)
    ]
    names = _with_spellings_elsewhere(text, list(tagged))
    return without_overlap([*named_titles, *_marked_names(text, spans), *names])


def _with_spellings_elsewhere(text: str, names: Sequence[Phrase]) -> Iterator[Phrase]:
    """The names; one that always goes on as a longer name of the text does is that name (黄克 of 黄克服)."""
    names_by_spelling = {name.name: name for name in names}
    spellings_by_beginning = defaultdict[str, list[str]](list)
    for spelling in sorted(names_by_spelling, key=len):
        spellings_by_beginning[spelling[:2]].append(spelling)
    counts = {spelling: text.count(spelling) for spelling in names_by_spelling}
    whole_spellings = {
        spelling: longer
        for spelling, count in counts.items()
        for longer in spellings_by_beginning[spelling[:2]]
        if longer.startswith(spelling) and counts[longer] == count
    }
    for name in names:
        whole = names_by_spelling[whole_spellings[name.name]]
        yield replace(whole, start=name.start, end=name.start + len(whole.name))


def chinese_phrases(question: str, spans: Spans) -> PhrasesAndWords:
    """The names and the content words of a Chinese question."""
    content = [word for word in segmented(question) if _is_content(word)]
    return PhrasesAndWords(
        chinese_names(question, spans, "rules"),
        [ContentWord(word.start, word.text) for word in content],
    )


def _is_content(word: SegmentedWord) -> bool:
    """Whether a word (verb or noun) can be the subject of a question; nouns of one character count, too."""
    if not word.in_dictionary or not has_cjk(word.text) or _is_common(word.text):
        return False
    if len(word.text) == 1:
        return word.tag.startswith(("n", "j", "zg"))
    return word.tag in ("n", "v", "vn", "l")


def _is_common(text: str) -> bool:
    text = simplified(text)
    return text in STOP_WORDS or text[0] in "一二三四五六七八九十两几各每某此其"


def _marked_names(text: str, spans: Spans) -> Iterator[Phrase]:
    """Names by written form: works in 《》, words in Latin letters inside a sentence."""
    for match in _WORK_TITLE.finditer(text):
        title = " ".join(match[1].split())
        yield Phrase(start=match.start(1), end=match.end(1), name=title, type="work")
    for start, end in without_name_lines(text, spans, _LATIN):
        for match in _LATIN.finditer(text, start, end):
            name = " ".join(match[0].split()).rstrip(".-_'’")
            is_in_a_phrase = _LATIN_WORD_BEHIND.match(text, match.end()) is not None
            is_function_word = not name.isupper() and (
                name.casefold() in STOP_WORDS or is_ordinary(name.casefold())
            )
            if len(name) > 1 and not (is_function_word and is_in_a_phrase):
                yield Phrase(
                    start=match.start(), end=match.end(), name=name, type=UNKNOWN_TYPE, sure=False
                )


def _tagged_names(words: Iterable[SegmentedWord]) -> Iterator[Phrase]:
    """Names by the tags of LAC, without pictures around; a common noun in the place of another name is none."""
    for word in words:
        type = _TYPES_BY_TAG.get(word.tag)
        name = _NAME.search(word.text) if type and has_cjk(word.text) else None
        if not type or not name or (type == UNKNOWN_TYPE and is_common_noun(name[0])):
            continue
        start = word.start + name.start()
        end = word.start + name.end()
        yield Phrase(start=start, end=end, name=name[0], type=type, sure=type != UNKNOWN_TYPE)


def _segmented_names(segments: Sequence[SegmentedWord]) -> Iterator[Phrase]:
    """Names by the tags of the segmenter; of people only names with a surname, and repeated names."""
    counts = Counter(map(attrgetter("text"), segments))
    for segment in segments:
        type = _TYPES_BY_TAG.get(segment.tag[:2])
        name = segment.text
        if type is None or len(name) < 2 or not has_cjk(name) or _is_common(name):
            continue
        if is_ordinary_chinese(simplified(name)):
            continue
        is_repeated = counts[name] > 1 and not segment.in_dictionary
        if type == "person" and not is_repeated and not begins_with_surname(name):
            continue
        yield Phrase(
            start=segment.start, end=segment.end, name=name, type=type, sure=type != UNKNOWN_TYPE
        )


def _with_whole_names(words: Iterable[SegmentedWord]) -> list[SegmentedWord]:
    """The words, with the parts of foreign names joined (皮埃尔·居里): the words around a dot, if one is a person,
    and the people right behind them.
    """
    joined: list[SegmentedWord] = []
    for word in words:
        is_behind_dot = len(joined) > 1 and joined[-1].text == _DOT
        before = joined[-2:] if is_behind_dot else joined[-1:]
        if before and before[-1].end == word.start:
            first = before[0]
            if is_behind_dot:
                is_name = _is_person(first) or (_is_person(word) and len(first.text) > 1)
            else:
                is_name = _DOT in first.text and _is_person(first) and _is_person(word)
            if is_name:
                name = "".join([*(part.text for part in before), word.text])
                del joined[-len(before) :]
                word = SegmentedWord(first.start, word.end, name, "nr", in_dictionary=False)
        joined.append(word)
    return joined


def _with_numbers_of_rulers(words: Iterable[SegmentedWord]) -> Iterator[SegmentedWord]:
    """The words, with 拿破仑 and 三世 joined. Whether 十八 right behind a name, as in 路易十八, is a part of it is not
    known: the two are one word, and no name.
    """
    before: SegmentedWord | None = None
    for word in words:
        is_number = _NUMBER_OF_RULER.fullmatch(word.text) is not None
        if before is not None and before.tag and is_number and before.end == word.start:
            tag = "nr" if word.text.endswith("世") else ""
            name = before.text + word.text
            before = SegmentedWord(before.start, word.end, name, tag, in_dictionary=False)
            continue
        if before is not None:
            yield before
        before = word
    if before is not None:
        yield before


def _is_person(word: SegmentedWord) -> bool:
    return word.tag.startswith("nr")


def begins_with_surname(name: str) -> bool:
    """Whether a name begins with a Chinese surname, or is a foreign name in parts (·)."""
    plain = simplified(name)
    if "·" in plain or plain[:2] in _DOUBLE_SURNAMES:
        return True
    return len(plain) <= _LONGEST_PLAIN_NAME and plain[0] in _SURNAMES
