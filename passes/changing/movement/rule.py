"""The rule for simple cases: moves instructions that come after all arguments in front of them, if
they mean the same there.

Either all text after the last argument moves, except the cue, or none of it; in doubt it stays.
docs/code_movement.md lists the conditions. The rule knows English words, not their meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sgc.passes.changing.movement.pieces import ITEM, SLOT, Kind
from sgc.passes.changing.movement.prompts import Prompt

# Verbs for work on a text: the object of one of them must be an argument. OTHER verbs may stand
# beside it.
WORK = """adapt analyse analyze annotate answer assess assign audit brainstorm build calculate
    categorise categorize choose cite clarify classify combine comment compare complete compose
    compute condense convert correct count create criticize critique decide define describe
    design detect determine develop diagnose discuss document draft edit estimate evaluate
    expand explain express extract find fix flag generate grade group highlight identify improve
    indicate infer interpret judge justify label list locate map match mention name normalize
    organize outline paraphrase parse pick plan point port predict prepare prioritize produce
    propose provide quantify quote rank rate recommend refactor rephrase reply report respond
    restate review rewrite score select separate shorten show simplify solve sort specify split
    spot state structure suggest summarise summarize tag tell transcribe transform translate
    turn verify weigh write"""
OTHER = """act add adopt apply argue arrange avoid base begin break check copy cover cut divide
    draw emphasize end ensure exclude fill finish focus format gather give include insert invent
    keep leave limit make mark mask merge number omit open order output prefer present preserve
    print put refer remove replace restrict return round route say sketch skip speak spell start
    stay support think trim update use vary"""
_WORK, _OTHER = ("|".join(words.split()) for words in (WORK, OTHER))
_PLAIN = re.compile(
    r"(?:(?:if|for|when|in|unless|using|based on|as) (?!not|so)[^,]*, )?"
    r"(?:please |your (?:task|job) is to )?(?:always |briefly |only )?"
    rf"(?P<no>do not |don't |never )?(?:(?P<work>{_WORK})|{_OTHER})\b|(?P<be>be)\b|"
    r"you are (?:an?|the)\b|(?P<norm>(?:the|your|each|every) [^.,]* (?:must|should)\b)|"
    r"(?P<asks>does|do|did|is|are|has|can|what|which|who|how|why|when|where)\b(?=.*\?$)",
    re.I,
)
_TITLE = re.compile(
    r"(#+ |\*\*|<)?(?:your )?(?:constraints|format|guidelines|instructions?|output|"
    r"output format|requirements|response format|rules|style|task)(:?\*\*:?|>|:)?",
    re.I,
)
STAYS = {
    "may point at what stands around it": r"above|aforementioned|again|already|also|another|back|"
    r"before|below|bottom|continue|each other|earlier|else|finally|first(?! person)|following|"
    r"former|further|here|instead|last|later|latter|more(?! than)|next|now|once|others?|preceding|"
    r"previous|remaining|rest|same|second(?! person)|so far|still|such|then|there(?! is| are)|"
    r"third|too|top|yet",
    "may stand for the argument, or speaks to somebody": r"he|her|him|his|i|it|its|itself|me|mine|"
    r"my|our|she|their|them|they|these|this|those|us|we|you(?! are (?:an?|the) )|"
    r"your(?! (?:answer|reply|response|summary|translation))|that(?=[.,;!?])|"
    r"(?:^\w+|of|in|on|for|to|with|from|about|than|and|or|after|at|by|as) that",
    "may say how to take an argument": r"commands?|disregard|execute|follow|ignor\w+|inject\w*|"
    r"instruct\w*|manipulat\w+|obey|overrid\w+|prompts?|quotation|requests?|treat|trust\w*|"
    r"untrusted|anyway|even if|even when|no matter|otherwise|regardless|whatever",
    "may be said to somebody else": r"(?:mon|tues|wednes|thurs|fri|satur|sun|to)day|"
    r"tomorrow|within \w+ \w+",
}
_ORDER_SAID = re.compile(
    r"\b(?:after|before|below|ends?|first|following|instructions?|last|later|next|then)\b", re.I
)
_QUOTED = re.compile(r'"[^"\n]*"|“[^”\n]{0,400}”|`[^`\n]*`')
_ANNOUNCING = re.compile(r"\b(?:the following|these|this)\b", re.I)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"“])")

_VALUE = (
    rf'(?:{SLOT}|"{SLOT}"|(?P<fence>```|"""|\'\'\'|---|###|===)\w*\n{SLOT}\n(?P=fence)|'
    rf"<(?P<tag>[\w-]+)>\s*{SLOT}\s*</(?P=tag)>)"
)
_FIELD = re.compile(
    rf"(?:(?:Here is the |The )?(?P<label>[A-Za-z][\w' -]{{0,40}}?)(?: \([\w ]+\))?:\s*|"
    rf"(?P<mark>#+ |\*\*)(?P<heading>[A-Za-z][\w' -]{{0,40}}?):?(?:\*\*)?:?\n+)?{_VALUE}\s*"
)


def plan(prompt: Prompt) -> tuple[tuple[int, ...], str]:
    """The order of the pieces, and the reason if nothing moves."""
    kinds = prompt.kinds
    numbers = tuple(range(len(kinds)))
    arguments = [i for i in numbers if kinds[i] is Kind.ARGUMENT]
    first, behind = arguments[0], arguments[-1] + 1
    end = len(kinds) - (kinds[-1] is Kind.CUE)
    order = numbers[:first] + numbers[behind:end] + numbers[first:behind] + numbers[end:]
    return order, _refusal(prompt, slice(first, behind), slice(behind, end))


def _refusal(prompt: Prompt, arguments: slice, tail: slice) -> str:
    """Why the text after the arguments stays; "" if it may move."""
    pieces = prompt.pieces
    if not prompt.is_last:
        return "the prompt goes on in text that is not read here"
    if tail.start >= tail.stop:
        return "only a cue stands behind the last argument"
    if any(piece.kind is not Kind.ARGUMENT for piece in pieces[arguments]):
        return "other text stands between arguments"
    if pieces[arguments][-1].gap.count("\n") < 2:
        return "it stands directly behind an argument"
    fields = _fields("".join(each.text + each.gap for each in pieces[arguments]), prompt.names)
    if fields is None:
        return "an argument does not stand alone behind a label, in a section or between tags"
    names, mark = [name for name, _ in fields], fields[-1][1]
    texts = [piece.text for piece in pieces]
    cue = re.sub(r"[^\w ]", "", "".join(texts[tail.stop :])).strip().lower()
    if len({*names, cue}) <= len(names):
        return "two arguments, or one and the cue, have one name"
    if not texts[tail.start].startswith(mark):
        return "it stands in an argument's section"
    lead = prompt.before + "\n".join(texts[: arguments.start])
    if found := _ORDER_SAID.search(lead):
        return f"{found[0]!r} in front of the arguments may say what comes when"
    if any(paragraph in lead for paragraph in texts[tail]):
        return "it is said in front already"
    named = _named(names)
    if not any(_works_on(sentence, named) for sentence in _SENTENCE.split(texts[tail.start])):
        return "its first paragraph asks for no work on an argument"
    return next((reason for each in texts[tail] for reason in _not_plain(each, mark, named)), "")


def _fields(text: str, names: Sequence[str]) -> list[tuple[str, str]] | None:
    """Each argument's name in lower case and its heading's mark; None if one is not alone."""
    found: list[tuple[str, str]] = []
    position = 0
    for own in names:
        field = _FIELD.match(text, position)
        if field is None:
            return None
        name = field["label"] or field["heading"] or field["tag"] or own
        found.append((re.sub(r"[_-]", " ", name).lower(), field["mark"] or ""))
        position = field.end()
    return found if position == len(text) else None


def _named(names: Sequence[str]) -> re.Pattern[str]:
    """Matches "the NAME" or a word of the name; "text A" also without the article."""
    words = {word for name in names for word in name.split() if len(word) > 2}
    shown = {*names, *words} - {"the", "for", "and", "with", "your"}
    longest_first = sorted(shown, key=len, reverse=True)
    options = "|".join(f"{re.escape(name.removesuffix('s'))}s?" for name in longest_first)
    numbered = [re.escape(name) for name in names if re.search(r" \w$", name)] or ["(?!)"]
    return re.compile(
        rf"\b(?:the|each|every|all|any) (?:{options})\b|\b(?:{'|'.join(numbered)})\b", re.I
    )


def _works_on(sentence: str, named: re.Pattern[str]) -> bool:
    lines = (ITEM.sub("", line) for line in sentence.splitlines() if named.search(line))
    return any(found and (found["work"] or found["asks"]) for found in map(_PLAIN.match, lines))


def _not_plain(paragraph: str, mark: str, named: re.Pattern[str]) -> Iterator[str]:
    """The reasons why a paragraph, or a section with its title, must stay."""
    lines = [line.strip() for line in paragraph.splitlines() if line.strip()]
    title = _TITLE.fullmatch(lines[0])
    if title and (title[1] or "") not in (mark, "<"):
        yield "its heading is not of the arguments' kind"
    if title and title[1] == "<" and lines[-1].startswith("</"):
        del lines[-1]
    is_list = bool(title)
    for line in lines[1:] if title else lines:
        if is_list and (ITEM.match(line) or not line[0].isalpha()):
            yield from _words_that_stay(_QUOTED.sub("quoted", line))
            continue
        for sentence in _SENTENCE.split(line):
            is_list = sentence.endswith(":") and line is not lines[-1]
            yield from _of_sentence(sentence, is_list, named)


def _of_sentence(sentence: str, announces: bool, named: re.Pattern[str]) -> Iterator[str]:
    """The reasons why a sentence must stay. announces: a list or a block follows it."""
    if announces and _TITLE.fullmatch(sentence):
        return
    start = " ".join(sentence.split()[:3])
    bare = _QUOTED.sub("quoted", sentence)
    plain = _PLAIN.match(bare)
    if plain is None:
        yield f"{start!r} begins no plain instruction"
        return
    if not announces and bare[-1] not in ".!?":
        yield f"{start!r} is no whole sentence"
    if plain["asks"] and not named.search(bare):
        yield f"{start!r} names no argument"
    if (plain["no"] or plain["norm"] or plain["be"]) and named.search(bare):
        yield f"{start!r} may say how to take an argument"
    bare = named.sub("named", bare)
    yield from _words_that_stay(_ANNOUNCING.sub("a", bare) if announces else bare)


def _words_that_stay(text: str) -> Iterator[str]:
    for why, words in STAYS.items():
        if found := re.search(rf"\b(?:{words})\b", text, re.I):
            yield f"{found[0].strip()!r} {why}"
