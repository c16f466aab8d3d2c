"""Finds repetitions in a pattern that can match one text in several ways, so that a failure tries them all."""

import re._constants as codes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterator, Sequence
from typing import Any

# Any text has characters like these; two classes overlap if both have one of them.
SAMPLE = [*map(chr, range(128)), *"é中一年。，、；：！？“”‘’《》（）【】—…·　０－～\u2028"]
MANY = 16  # repetitions; fewer cost little, however they are combined
REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT)
CATEGORIES = {
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_WORD: lambda char: char.isalnum() or char == "_",
    codes.CATEGORY_DIGIT: str.isdecimal,
}
NEGATED = {
    codes.CATEGORY_NOT_SPACE: codes.CATEGORY_SPACE,
    codes.CATEGORY_NOT_WORD: codes.CATEGORY_WORD,
    codes.CATEGORY_NOT_DIGIT: codes.CATEGORY_DIGIT,
}
Items = Sequence[tuple[Any, Any]]


def ambiguities(pattern: str, flags: int = 0) -> list[str]:
    """What is ambiguous in a pattern: "nested" repetitions, whose time is exponential, and "adjacent" ones of
    the same characters, whose time is quadratic.
    """
    return list(_ambiguities(list(parser.parse(pattern, flags))))


def _ambiguities(items: Items) -> Iterator[str]:
    for number, (code, argument) in enumerate(items):
        if code in REPEATS:
            _, most, body = argument
            if most >= MANY:
                yield from (f"nested: {item}" for item in _alone(list(body)))
                yield from _adjacent(code, argument, items[number + 1 :])
        for body in _bodies(code, argument):
            yield from _ambiguities(body)


def _alone(body: Items) -> Iterator[str]:
    """The long repetitions in a repeated body that all else may be left out beside."""
    for number, (code, argument) in enumerate(body):
        if not all(map(_may_be_empty, [*body[:number], *body[number + 1 :]])):
            continue
        if code in REPEATS and argument[1] >= MANY:
            yield str(list(argument[2]))
        elif code in (codes.SUBPATTERN, codes.BRANCH):
            for inner in _bodies(code, argument):
                yield from _alone(inner)


def _adjacent(code: Any, argument: Any, following: Items) -> Iterator[str]:
    """The repetitions that follow another of the same characters, with nothing needed between them."""
    own = _characters(list(argument[2]))
    for next_code, next_argument in following:
        if next_code in REPEATS and next_argument[1] >= MANY:
            common = own & _characters(list(next_argument[2]))
            if common:
                yield f"adjacent: {list(argument[2])} and {list(next_argument[2])}"
        if not _may_be_empty((next_code, next_argument)):
            return


def _bodies(code: Any, argument: Any) -> list[Items]:
    """What a group, a branch or a repetition holds; nothing of those that never give back a match."""
    if code in REPEATS:
        return [list(argument[2])]
    if code is codes.SUBPATTERN:
        return [list(argument[3])]
    if code is codes.BRANCH:
        return [list(branch) for branch in argument[1]]
    if code in (codes.ASSERT, codes.ASSERT_NOT):
        return [list(argument[1])]
    return []


def _may_be_empty(item: tuple[Any, Any]) -> bool:
    code, argument = item
    if code in REPEATS or code is codes.POSSESSIVE_REPEAT:
        return argument[0] == 0 or all(map(_may_be_empty, argument[2]))
    if code is codes.SUBPATTERN:
        return all(map(_may_be_empty, argument[3]))
    if code is codes.BRANCH:
        return any(all(map(_may_be_empty, branch)) for branch in argument[1])
    return code in (codes.AT, codes.ASSERT, codes.ASSERT_NOT)


def _characters(body: Items) -> set[str]:
    """The characters of a body that is one class or one character; none of anything longer."""
    if len(body) != 1:
        return set()
    code, argument = body[0]
    if code is codes.ANY:
        return set(SAMPLE) - {"\n"}
    if code is codes.LITERAL:
        return {char for char in SAMPLE if ord(char) == argument}
    if code is codes.NOT_LITERAL:
        return {char for char in SAMPLE if ord(char) != argument}
    if code is codes.IN:
        is_negated = argument[0][0] is codes.NEGATE
        chars = {char for char in SAMPLE if any(_is_in(char, *item) for item in argument)}
        return set(SAMPLE) - chars if is_negated else chars
    return set()


def _is_in(char: str, code: Any, argument: Any) -> bool:
    if code is codes.LITERAL:
        return bool(ord(char) == argument)
    if code is codes.RANGE:
        return bool(argument[0] <= ord(char) <= argument[1])
    if code is codes.CATEGORY:
        if argument in NEGATED:
            return not CATEGORIES[NEGATED[argument]](char)
        return bool(CATEGORIES[argument](char))
    return False
