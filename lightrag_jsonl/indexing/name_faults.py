"""What models write in the place of a name that the text does not have: thoughts, sentences and code."""

import re
from collections.abc import Callable

from lightrag_jsonl.text.patterns import pattern_of

NO_NAME_BUT_THOUGHT = "the model thinks aloud, or writes a sentence, in place of a name"
NO_NAME_BUT_CODE = "it is code, not a name"
_HESITATION = pattern_of(
    r"\b(?:let me|let's|wait|actually|hmm+|oops|no,|sorry,|i (?:should|need|think|will|must|have|guess|mean)"
    r"|i'll|i'm|not sure|should be|correct(?:ion|ed)?:|reconsider|on second thought"
    r"|the (?:text|user|passage|document) (?:says|said|mentions|states|does|is|only))\b"
    r"|嗯[，,]|让我|等一下|等等[，,]|不对|其实|应该是|我(?:认为|觉得|需要|应该|想|再)|更正|纠正"
    r"|(?:原文|文中|文本|用户)(?:中)?(?:提到|说|只|没有|要求)",
    re.IGNORECASE,
)
_TWO_SENTENCES = pattern_of(
    r"(?<=[a-z]{4})[.!?…]\s+[A-Za-z]|[。！？]\s*\w"
)  # unlike "St. John" and "Dr. No"
_MARKS_OF_CODE = pattern_of(
    r"[{}]|;\s*\w+[.(]|==|!=|:=|=>|->|^\w+\s?=\s?.*[\[({\"';]|\w\.\w+\(|^[a-z_]\w*\(.*\)\W*$|\(\)|\w\[[\d'\":]"
    r"|^(?:def|return|import|elif|const|let|var|lambda|SELECT|for \w+ in|while|if \S+ [<>=])\s|^[$>]\s"
)
_BEFORE_REMARK = " \t\r\n\xa0\u3000(（[,，;；:：—–-"  # between a name and the remark behind it


def usable_name(name: str, is_in_text: Callable[[str], bool]) -> tuple[str, str]:
    """A name without the remark behind it, and what is wrong with the name as it was written, or "".

    What stands in the text is a name, whatever it looks like. The name is "" if nothing of it is one.
    """
    if not name or is_in_text(name):
        return name, ""
    hesitation = _HESITATION.search(name)
    is_sentence = hesitation is not None or _TWO_SENTENCES.search(name) is not None
    is_code = not is_sentence and _MARKS_OF_CODE.search(name) is not None
    if not (is_sentence or is_code):
        return name, ""
    if hesitation is None:
        return "", NO_NAME_BUT_CODE if is_code else NO_NAME_BUT_THOUGHT
    name_alone = name[: hesitation.start()].rstrip(_BEFORE_REMARK)
    return (name_alone if name_alone and is_in_text(name_alone) else ""), NO_NAME_BUT_THOUGHT
