"""The words of numbers and ordinals in English, of numbers in Chinese."""

_UP_TO_NINETEEN = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
ENGLISH_NUMBERS = {
    **{word: number for number, word in enumerate(_UP_TO_NINETEEN.split())},
    **{word: 10 * number for number, word in enumerate(_TENS.split(), start=2)},
}
_IRREGULAR_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
ENGLISH_ORDINALS = {
    _IRREGULAR_ORDINALS.get(word, word.removesuffix("y") + ("ieth" if word[-1] == "y" else "th")): n
    for word, n in ENGLISH_NUMBERS.items()
    if n
}
CHINESE_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {
    "〇": 0,
    "两": 2,
}
CHINESE_MULTIPLIERS = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "亿": 100_000_000}


def chinese_number(text: str) -> float:
    """A number in Chinese numerals: 二十三, 一九一一, 三点五."""
    whole, _, decimals = text.partition("点")
    total = section = digit = 0.0
    if not any(char in CHINESE_MULTIPLIERS for char in whole):
        total = float("".join(str(CHINESE_DIGITS[char]) for char in whole))
    else:
        for char in whole:
            if char in CHINESE_DIGITS:
                digit = CHINESE_DIGITS[char]
            elif char in "十百千":
                section += (digit or 1) * CHINESE_MULTIPLIERS[char]
                digit = 0
            else:
                total = (total + section + digit or 1) * CHINESE_MULTIPLIERS[char]
                section = digit = 0
        total += section + digit
    if decimals:
        total += float("0." + "".join(str(CHINESE_DIGITS[char]) for char in decimals))
    return total
