"""Judges whether a piece says the same in front of the arguments as behind them.

What is not recognised as an instruction that stands on its own is refused: every refusal has a
reason, and no piece leads without having been understood. English only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sgc.passes.movement.pointers import pointer
from sgc.passes.movement.vocabulary import (
    ADVERBS,
    ANCHORS,
    FORM_LABELS,
    FORM_TAGS,
    MODALS,
    OUTPUTS,
    STYLE_VERBS,
    TASK_LABELS,
    TASK_TAGS,
    VERBS,
)

MAX_BEFORE_CHARS = 2_000  # further back nothing is pointed at
MAX_CONDITIONS = 3  # in front of one instruction

_MARK = re.compile(r"^\s*(?:[-*•–+]|\(?\d{1,2}[.)]|\(?[a-zA-Z][.)]|step \d+[:.)]?)\s+", re.I)
_NUMBER = re.compile(
    r"^\W*(?:(?:step|part|section|task|phase|stage)\s+)?(?:(\d{1,2})\s*[.):]|(\d{1,2})$|([b-h])[.)])",
    re.I,
)
_COUNTED = re.compile(r"^\W*[A-Za-z]+\.? (\d{1,2})[.:)]")
_LABEL = re.compile(r"^\**([A-Za-z][A-Za-z /_-]{1,40})\**:\**\s+(?=\S)")
_UNDERLINE = re.compile(r"^[-=]{3,}[ \t]*(?:\n|$)")
_TAGGED = re.compile(r"^<([A-Za-z][\w.-]*)[^<>]*>(.*)</\1>\s*$", re.S | re.I)
_CODE = re.compile(r"^\s*(?:--|//|/\*|\||>|\$|%)")
_CONDITION = re.compile(
    r"^(?:if|when|where|for|in|with|using|as|to|based on|from|given|without|within|while|unless|"
    r"according to|by|under|on)\b[^,]*,\s+(?:then\s+)?(.+)$",
    re.I | re.S,
)
_SUBJECT = re.compile(
    r"^(?:the|your|each|every|all|any|no|both|only|none of the)\s+(?:[\w'-]+\s+){0,3}?([\w'-]+)\s+"
    r"(?:\w+ly\s+)?(must|should|shall|needs?|has|have|may|can|cannot|will|is|are|ought)\b",
    re.I,
)
_SECOND = re.compile(
    r"^(?:you're an?|you'll|you (?:are (?:an?|the|now|one|acting)|must|should|may|can|cannot|"
    r"need|have to|will (?:act|answer|write|respond|reply|be acting))|"
    r"(?:i (?:want|need|would like)|i'd like) you to (?!.*\b(?:me|my|i)\b)|there (?:should|must)|"
    r"a good (?:answer|summary|response|reply)|"
    r"you (?:represent|specialise|specialize|assist|work (?:as|for|in|at))|"
    r"\w+ is an? (?:[\w-]+ ){0,3}(?:chatbot|assistant|bot|agent|tutor)\b|"
    r"the (?:goal|task|aim|objective) is)\b",
    re.I,
)
_PRONOUN_SUBJECT = re.compile(
    r"^(?:it|they|this|these)(?: \w+)? (?:must|should|shall|needs? to|has to|have to|can|may)\b",
    re.I,
)
_FRAGMENT = re.compile(
    r"^(?:no|maximum|max|minimum|at most|at least|not more than|nothing else)\b(?:\W+\w+){0,8}\W*$|"
    r"^[\w-]+ only[.!]?$",
    re.I,
)
_CHOICES = re.compile(
    r"^(?:the )?(?:valid|possible|allowed|available|permitted|acceptable) \w+(?: \w+)?"
    r"(?: are| is)?:?\s|"
    r"^(?:the )?(?:\w+ )?(?:categories|labels|classes|options|violations|criteria|choices|"
    r"values|levels|types|intents|tags|topics|scores|ratings)(?: \w+)? (?:are|include):?\s",
    re.I,
)
# What tells "Answer with one of" from "Answer key", "Order the items" from "Order numbers are".
_IN_SENTENCE = re.compile(
    r" (?:the|a|an|one|with|in|into|as|using|of|these|this|following|only|your|from|to|and|by)\b",
    re.I,
)
_STATED = re.compile(r"^\w+(?: [\w-]+){0,2} (?:is|are|was|were|has|had|will|did|does)\b", re.I)
_DETERMINED = re.compile(
    r"^\w+ (?:the|an?|all|each|every|any|one|two|three|only|in|with|as|using|whether|if|that|which|"
    r"what|who|how|to|for|from|at|no|not|it|them|this|these|your|sure)\b",
    re.I,
)
# What says how things must be, in a paragraph that was seen to be an instruction.
_NORM = re.compile(
    r"\b(?:should|must|needs? to|has to|have to|may not|shall|is one of|are one of|is either)\b|"
    r"^it is (?:ok|okay|fine|important|acceptable|essential|not necessary)\b|"
    r"^(?:one|two|three|\d+) \w+(?: \w+)? per \w+",
    re.I,
)
# How the parts of a reply are, once it is known that there is one.
_EACH = re.compile(
    r"^(?:each|every) [\w-]+ (?:\w+ )?(?:gets|has|contains|includes|is|consists|starts|"
    r"ends|needs)\b",
    re.I,
)
_NO_VERB = re.compile(
    r"(?:\w*(?:ing|ed|ly|tion|ness|ment|[^s]s)|i|you|he|she|it|they|we|my|our|the|an?|this|that|"
    r"these|those|there|some|many|most|few|all|no|none|each|every|both|any|in|on|at|for|from|with|"
    r"by|of|to|as|about|under|over|if|when|while|where|because|since|although|though|who|what|"
    r"which|how|why|one|two|three|today|yesterday|tomorrow|yes|\d.*)$",
    re.I,
)
_QUESTION = re.compile(r"^(?:what|which|who|how|why|where|when|is|are|does|do|did|can|was)\b", re.I)
_DEFINITE = re.compile(r"\bthe\s+(?!answer\b|response\b|reply\b|output\b)[\w-]+|\w's\b", re.I)

LOCAL = "it may be meant for the argument before it alone"


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a piece stands.

    nouns: what the arguments are called; generic: and what any argument may be; shared: those of
    several of them; before: what leads directly before it; is_inline: an argument stands within an
    instruction; is_between: another argument follows; is_loose: its paragraph was seen to be about
    an argument, so that an unknown verb will do.
    """

    nouns: frozenset[str]
    generic: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    before: str = ""
    is_inline: bool = False
    is_between: bool = False
    is_loose: bool = False


def refusal(text: str, setting: Setting, *, is_whole: bool, is_heading: bool) -> str:
    """Why a piece must stay; "" if it may lead.

    is_whole: it has lines of its own; is_heading: the first of them is a heading.
    """
    counted = _COUNTED.match(text)
    if counted and int(counted.group(1)) > 1:
        return "it goes on with a numbering"
    number = _NUMBER.match(text.lstrip("#* "))
    if number and (number.group(3) or int(number.group(1) or number.group(2)) != 1):
        return "it goes on with a numbering"
    if _CODE.match(text):
        return "it looks like code, a quotation or a table"
    if is_whole:
        reason = _of_lines(text, is_heading, setting)
    else:
        reason = _of_sentence(text, setting)
    if reason:
        return reason
    if (
        setting.is_between
        and not _mentions(text, setting.nouns - setting.shared)
        and not _is_persona(text)
    ):
        return LOCAL
    if setting.is_inline and not _stands_alone(text):
        return "it may go on with what is said before it"
    return ""


# -- sentences --


def _of_sentence(text: str, setting: Setting) -> str:
    label = _LABEL.match(text)
    if label:
        known = _known_label(label.group(1))
        if known == "form":
            return _pointing(text[label.end() :], setting)
        if known == "task":
            text = text[label.end() :]
        elif not _CHOICES.match(text) and not (
            _is_directive(label.group(1)) and _IN_SENTENCE.search(label.group(1))
        ):
            return "its label is none that the rules know"
    reason = _pointing(text, setting)
    if reason:
        return reason
    if text.endswith("?"):
        is_asked = _QUESTION.match(text) and _mentions(text, setting.nouns | setting.generic)
        return "" if is_asked else "it is a question that names no argument"
    is_loose = setting.is_loose or bool(
        not setting.is_inline and _DETERMINED.match(text) and speaks_of(text, setting.nouns)
    )
    if setting.before and _EACH.match(_plain(text)):
        return ""
    if not (_is_directive(text, is_loose) or _is_about_named(text, setting.before)):
        return "it is not recognised as an instruction"
    return ""


def _is_about_named(text: str, before: str) -> bool:
    """Whether it says how something must be that is named in the text before it."""
    subject = _SUBJECT.match(_plain(text))
    return subject is not None and bool(
        re.search(rf"\b{re.escape(subject.group(1))}\b", before, re.I)
    )


# "the guest book." names no guest; "the question truthfully." names the question.
_COMPOUND = re.compile(r"(?<=\bthe )([a-z]+) (?!\w+ly\b)[a-z]+(?=[.;!?])")
_ROLE = re.compile(
    r"\b(?:act as|you are an?|your (?:task|job|goal)|i want you to|(?:one|any) of[^.]*:)", re.I
)


def is_anchored(text: str, nouns: frozenset[str]) -> bool:
    """Whether a paragraph is about an argument or a reply, and not part of what is given."""
    plain = _COMPOUND.sub(lambda found: found.group(1) if found.group(1) in ANCHORS else "", text)
    return _mentions(plain, nouns | ANCHORS) or bool(_ROLE.search(text))


def speaks_of(text: str, nouns: frozenset[str]) -> bool:
    """Whether it names an argument with "the", or asks for something to be made."""
    named = re.findall(r"\b(?:the|each|every) ([\w-]+)(?: ([\w-]+))?", text.lower())
    if any(word in nouns for pair in named for word in pair):
        return True
    return bool(re.match(r"(?:write|draft|compose|generate|create|produce|prepare)\b", text, re.I))


def _pointing(text: str, setting: Setting, *, announces: bool = False) -> str:
    found = pointer(text, setting.before, setting.nouns, announces=announces)
    return f"{found!r} points at its surroundings" if found else ""


def _is_directive(text: str, is_loose: bool = False, depth: int = 0) -> bool:
    text = _plain(text)
    words = re.findall(r"[\w'’-]+", text.lower())
    while words and words[0] in ADVERBS:
        words = words[1:]
    if not words:
        return False
    patterns = (_SECOND, _FRAGMENT, _CHOICES, _PRONOUN_SUBJECT)
    stripped = " ".join(words)
    is_verb = words[0] in VERBS or (is_loose and not _NO_VERB.match(words[0]))
    is_order = is_verb and (_DETERMINED.match(stripped) or not _STATED.match(stripped))
    if is_order or any(pattern.match(text) for pattern in patterns):
        return True
    subject = _SUBJECT.match(text)
    if subject and (subject.group(1).lower() in OUTPUTS or text.lower().startswith("your")):
        return True
    if is_loose and _NORM.search(text):
        return True
    condition = _CONDITION.match(text)
    if condition is None or depth == MAX_CONDITIONS:
        return False
    return _is_directive(condition.group(1), is_loose, depth + 1)


def _plain(text: str) -> str:
    """A sentence without marks of emphasis and of lists."""
    text = _MARK.sub("", text).strip("*_ \t\"'")
    return re.sub(r"^(?:important|note|task|instructions?)[:!]\s+", "", text, flags=re.I)


def _is_persona(text: str) -> bool:
    return bool(re.match(r"(?:you are|act as|imagine you are|pretend)\b", text, re.I))


def _stands_alone(text: str) -> bool:
    """Whether it is about the reply alone, wherever it is said."""
    text = _plain(text)
    words = re.findall(r"[\w'’-]+", text.lower())
    while words and words[0] in ADVERBS:
        words = words[1:]
    if not words or _DEFINITE.search(text):
        return False
    is_about_reply = words[0] in STYLE_VERBS or bool(_FRAGMENT.match(text)) or _is_persona(text)
    is_about_yours = words[0] == "your" and any(word in MODALS for word in words[2:4])
    return is_about_reply or is_about_yours


def _mentions(text: str, nouns: frozenset[str]) -> bool:
    words = re.findall(r"[a-z][\w-]*", text.lower())
    stems = tuple(noun for noun in nouns if len(noun) > 5)  # "config" names a configuration
    return any(word in nouns or word.startswith(stems) for word in words)


def _known_label(label: str) -> str:
    words = re.sub(r"[^a-z ]", " ", label.lower()).split()
    if len(words) > 3 or (len(words) > 1 and words[0] in VERBS - {"output", "answer", "response"}):
        return ""
    if {"example", "examples"} & set(words):
        return "form"
    if words and words[-1] in TASK_LABELS:
        return "task"
    return "form" if words and words[-1] in FORM_LABELS else ""


# -- lists, blocks and sections --


def _of_lines(text: str, is_heading: bool, setting: Setting) -> str:
    tagged = _TAGGED.match(text)
    if tagged:
        name = tagged.group(1).lower()
        if name not in TASK_TAGS | FORM_TAGS:
            return f"the rules do not know what <{name}> holds"
        return _of_content(tagged.group(2), setting, name in FORM_TAGS)
    head, _, rest = text.partition("\n")
    title = head.strip("#*= \t").rstrip(":").strip("* ")
    if not (is_heading or head.endswith(":")) or _MARK.match(head):
        return _of_content(text, setting, False)
    known = _known_label(title)
    if is_heading and title.lower() in ("output", "response", "answer"):
        known = "form"
    rest = _UNDERLINE.sub("", rest)
    if known and rest.strip():
        return _of_content(rest, setting, known == "form")
    if is_heading:
        return "its heading is none that the rules know"
    return _of_announced(head, rest, setting)


def _of_announced(head: str, rest: str, setting: Setting) -> str:
    """A sentence that ends with a colon, and what it announces."""
    reason = _pointing(head, setting, announces=bool(rest.strip()))
    is_known = _is_directive(head) or _CHOICES.match(head + " ")
    if not reason and not (is_known or _is_about_named(head, setting.before)):
        reason = "it is not recognised as an instruction"
    return reason or _of_content(rest, setting, True, head)


def _of_content(text: str, setting: Setting, is_form: bool, before: str = "") -> str:
    """is_form: it describes a form or lists things, and need not be instructions."""
    held = f"{setting.before} {before}".strip()
    for sentence in _sentences(text):
        inner = replace(setting, before=held)
        reason = _pointing(_plain(sentence), inner) if is_form else _inner(sentence, inner)
        if reason:
            return reason
        held = f"{held} {sentence}".strip()[-MAX_BEFORE_CHARS:]
    return "" if text.strip() else "it announces nothing"


def _inner(sentence: str, setting: Setting) -> str:
    return _of_sentence(sentence, setting)


def _sentences(text: str) -> Iterator[str]:
    for line in text.splitlines():
        body = _MARK.sub("", line).strip()
        if body and not body.startswith("```"):
            yield from (part for part in re.split(r"(?<=[.!?])\s+(?=[A-Z])", body) if part)
