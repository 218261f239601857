"""The rule for simple cases: instructions after all arguments that mean the same in front of them.

Either all text after the last argument moves, except the cue, or none of it. Every argument stands
alone after a label, in a section or between tags. The text consists of separate paragraphs or
sections; its sentences are imperatives from a fixed list, questions, or requirements for the reply,
and one in the first paragraph names an argument. None of it refers to the text around it, speaks to
or about a person, or may say how to treat an argument. In doubt the text stays. The rule knows
English only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sgc.passes.changing.movement.pieces import ITEM, SLOT, Kind, Piece
from sgc.passes.changing.movement.prompts import Prompt

# Verbs for work on a text: one of them must name an argument. OTHER verbs may stand beside it.
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


def _any(words: str) -> str:
    return "|".join(words.split())


_PLAIN = re.compile(
    r"(?:(?:if|for|when|in|unless|using|based on|as) (?!not|so)[^,]*, )?"
    r"(?:please |your (?:task|job) is to )?(?:always |briefly |only )?"
    rf"(?P<no>do not |don't |never )?(?:(?P<work>{_any(WORK)})|{_any(OTHER)})\b|(?P<be>be)\b|"
    r"you are (?:an?|the)\b|(?P<norm>(?:the|your|each|every) [^.,]* (?:must|should)\b)|"
    r"(?P<asks>does|do|did|is|are|has|can|what|which|who|how|why|when|where)\b(?=.*\?$)",
    re.I,
)
_TITLE = re.compile(
    r"(#+ |\*\*|<)?(?:your )?(?:constraints|format|guidelines|instructions?|output|"
    r"output format|requirements|response format|rules|style|task)(:?\*\*:?|>|:)?",
    re.I,
)
_STAYS = {
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
STAYS = {why: re.compile(rf"\b(?:{words})\b", re.I) for why, words in _STAYS.items()}
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
    pieces = prompt.pieces
    same = tuple(range(len(pieces)))
    arguments = [i for i in same if pieces[i].kind is Kind.ARGUMENT]
    first, last = arguments[0], arguments[-1]
    end = len(pieces) - (pieces[-1].kind is Kind.CUE)
    texts = [prompt.text[piece.start : piece.end] for piece in pieces]
    if not prompt.is_last:
        return same, "the prompt goes on in text that is not read here"
    if last + 1 >= end:
        return same, "only a cue stands behind the last argument"
    if len(arguments) <= last - first:
        return same, "other text stands between arguments"
    if prompt.text.count("\n", pieces[last].end, pieces[last + 1].start) < 2:
        return same, "it stands directly behind an argument"
    lead = prompt.before + "\n".join(texts[:first])
    cue = re.sub(r"[^\w ]", "", "".join(texts[end:])).strip().lower()
    fields = [field for i in arguments for field in _fields(prompt, pieces[i])]
    reason = _refusal(lead, fields, texts[last + 1 : end], cue)
    order = same[:first] + same[last + 1 : end] + same[first : last + 1] + same[end:]
    return (same, reason) if reason else (order, "")


# An argument's name in lower case, and the mark of its heading.
_Field = tuple[str, str]


def _fields(prompt: Prompt, piece: Piece) -> Iterator[_Field | None]:
    """A piece's arguments; None for one that does not stand alone."""
    position = piece.start
    while position < piece.end:
        found = _FIELD.match(prompt.text, position, piece.end)
        if found is None:
            yield None
            return
        at = prompt.text.index(SLOT, position)
        own = prompt.names[prompt.text.count(SLOT, 0, at)]
        name = found["label"] or found["heading"] or found["tag"] or own
        yield re.sub(r"[_-]", " ", name).lower(), found["mark"] or ""
        position = found.end()


def _refusal(lead: str, fields: list[_Field | None], tail: list[str], cue: str) -> str:
    """Why the text after the arguments stays; "" if it may move."""
    known = [field for field in fields if field is not None]
    names, mark = [name for name, _ in known], known[-1][1] if known else ""
    if len(known) < len(fields):
        return "an argument does not stand alone behind a label, in a section or between tags"
    if len({*names, cue}) <= len(names):
        return "two arguments, or one and the cue, have one name"
    if not tail[0].startswith(mark):
        return "it stands in an argument's section"
    if found := _ORDER_SAID.search(lead):
        return f"{found[0]!r} in front of the arguments may say what comes when"
    if any(paragraph in lead for paragraph in tail):
        return "it is said in front already"
    named = _named(names)
    if not any(_works_on(sentence, named) for sentence in _SENTENCE.split(tail[0])):
        return "its first paragraph asks for no work on an argument"
    return next((reason for each in tail for reason in _not_plain(each, mark, named)), "")


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
    lines = [ITEM.sub("", line) for line in sentence.splitlines() if named.search(line)]
    found = [_PLAIN.match(line) for line in lines]
    return any(each and (each["work"] or each["asks"]) for each in found)


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
            yield from _words_that_stay(line)
            continue
        for sentence in _SENTENCE.split(line):
            is_list = sentence.endswith(":") and line is not lines[-1]
            yield from _of_sentence(sentence, is_list, named)


def _of_sentence(sentence: str, announces: bool, named: re.Pattern[str]) -> Iterator[str]:
    """The reasons why a sentence must stay. announces: a list or a block follows it."""
    if announces and _TITLE.fullmatch(sentence):
        return
    bare = _QUOTED.sub("quoted", sentence)
    plain = _PLAIN.match(bare)
    if plain is None:
        yield f"{_start(sentence)!r} begins no plain instruction"
        return
    if not re.search(r"[.!?]$", bare) and not announces:
        yield f"{_start(sentence)!r} is no whole sentence"
    if plain["asks"] and not named.search(bare):
        yield f"{_start(sentence)!r} names no argument"
    if (plain["no"] or plain["norm"] or plain["be"]) and named.search(bare):
        yield f"{_start(sentence)!r} may say how to take an argument"
    bare = named.sub("named", bare)
    yield from _words_that_stay(_ANNOUNCING.sub("a", bare) if announces else bare)


def _words_that_stay(text: str) -> Iterator[str]:
    bare = _QUOTED.sub("quoted", text)
    for why, pattern in STAYS.items():
        if found := pattern.search(bare):
            yield f"{found[0].strip()!r} {why}"


def _start(sentence: str) -> str:
    return " ".join(sentence.split()[:3])
