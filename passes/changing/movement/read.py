"""Judges whether a piece says the same in front of the arguments as behind them.

What is not recognised as an instruction that stands on its own is refused: every refusal has a
reason, and no piece leads without having been understood. English only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sgc.passes.changing.movement.antecedents import QUOTED, names_argument
from sgc.passes.changing.movement.directives import (
    CHOICES,
    DETERMINED,
    MARK,
    SUBJECT,
    asks_for_work,
    is_directive,
    is_persona,
    mentions,
    plain,
    speaks_of,
    stands_alone,
)
from sgc.passes.changing.movement.lines import SCALE
from sgc.passes.changing.movement.pointers import pointer
from sgc.passes.changing.movement.vocabulary import (
    FORM_LABELS,
    FORM_TAGS,
    OUTPUTS,
    TASK_LABELS,
    TASK_TAGS,
    VERBS,
)

MAX_BEFORE_CHARS = 2_000  # further back nothing is pointed at

_NUMBER = re.compile(
    r"^\W*(?:(?:step|part|section|task|phase|stage)\s+)?(?:(\d{1,2})\s*[.):]|(\d{1,2})$|([b-h])[.)])",
    re.I,
)
_COUNTED = re.compile(r"^\W*[A-Za-z]+\.? (\d{1,2})[.:)]")
_LABEL = re.compile(r"^\**([A-Za-z][A-Za-z /_-]{1,40})\**:\**\s+(?=\S)")
_UNDERLINE = re.compile(r"^[-=]{3,}[ \t]*(?:\n|$)")
_TAGGED = re.compile(r"^<([A-Za-z][\w.-]*)[^<>]*>(.*)</\1>\s*$", re.S | re.I)
_CODE = re.compile(r"^\s*(?:--|//|/\*|\||>|\$|%|[\w.]+\()|^(?:\".*\"|'.*'|“.*”)$", re.S)
# "Prompt for the skill:", "Review of the film:" are no instructions.
_NOUN_HEAD = re.compile(
    r"^(?:answer|comment|copy|design|draft|guess|label|list|message|note|order|outline|plan|prompt|"
    r"query|question|reply|report|request|review|summary|test|title) "
    r"(?:of|for|from|by|about|given|to the)\b",
    re.I,
)
# What tells "Answer with one of" from "Answer key", "Order the items" from "Order numbers are".
_IN_SENTENCE = re.compile(
    r" (?:the|a|an|one|with|in|into|as|using|of|these|this|following|only|your|from|to|and|by|"
    r"json|yaml|xml|csv|html|sql|markdown)\b",
    re.I,
)
# How the parts of a reply are, once it is known that there is one.
_EACH = re.compile(
    r"^(?:each|every) [\w-]+ (?:\w+ )?(?:gets|has|contains|includes|is|consists|starts|"
    r"ends|needs)\b",
    re.I,
)
_QUESTION = re.compile(
    r"^(?:(?:in|to|of|for|from|on|with|by) (?:what|which|whom|whose)|"
    r"what|which|who|how|why|where|when|is|are|does|do|did|can|was)\b",
    re.I,
)
# A story, a letter or a dialogue, and no instruction.
_TOLD = re.compile(
    r"\b(?:I|we|my|our|us|me|he|she|him|his|was|were|had|did|said|yesterday|today|tomorrow)\b|\?$",
    re.M,
)
LOCAL = "it may be meant for the argument before it alone"


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a piece stands.

    nouns: what the arguments are called; generic: and what any argument may be; shared: those of
    several of them; before: what leads directly before it; is_inline: an argument stands within a
    sentence; is_stated: and that is neither an instruction nor a question; is_persona: and says who
    the model is; is_apart: and an empty line is behind it; is_between: another argument follows;
    is_loose: its paragraph was seen to be about an argument, so that an unknown verb will do;
    is_task: it is at the end of all, beside an instruction, and need not be one.
    """

    nouns: frozenset[str]
    generic: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    before: str = ""
    is_inline: bool = False
    is_stated: bool = False
    is_persona: bool = False
    is_apart: bool = False
    is_between: bool = False
    is_loose: bool = False
    is_task: bool = False


def refusal(text: str, setting: Setting, *, is_whole: bool, is_heading: bool) -> str:
    """Why a piece must stay; "" if it may lead.

    is_whole: it has lines of its own; is_heading: the first of them is a heading.
    """
    reason = _strictly(text, setting, is_whole=is_whole, is_heading=is_heading)
    if not reason or not setting.is_task or setting.is_inline:
        return reason
    if _TOLD.search(QUOTED.sub("QQ", text)):
        return reason
    return _of_content(text, setting, True) and reason


def _strictly(text: str, setting: Setting, *, is_whole: bool, is_heading: bool) -> str:
    counted = _COUNTED.match(text)
    if counted and int(counted.group(1)) > 1:
        return "it goes on with a numbering"
    if setting.before and all(map(SCALE.match, text.splitlines())):
        return _of_content(text, setting, True)
    number = _NUMBER.match(text.lstrip("#* "))
    if number and (number.group(3) or int(number.group(1) or number.group(2)) != 1):
        return "it goes on with a numbering"
    if text.endswith(",") or re.fullmatch(r"\w+(?: \w+)?", text):
        return "it is no whole sentence"
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
        and not mentions(text, setting.nouns - setting.shared)
        and not is_persona(text)
    ):
        return LOCAL
    stands = (
        stands_alone(text)
        or (setting.is_persona and not mentions(text, setting.nouns))
        or (setting.is_apart and _names_known(text, setting.nouns | OUTPUTS))
    )
    if setting.is_inline and (setting.is_stated or not stands):
        return "it may go on with what is said before it"
    return ""


def _names_known(text: str, nouns: frozenset[str]) -> bool:
    """Whether all that it calls "the" something are arguments, or parts of a reply."""
    named = re.findall(r"\bthe ([\w-]+)(?: ([\w-]+))?", text.lower())
    return "'s " not in text and all(nouns & set(words) for words in named)


# -- sentences --


def _of_sentence(text: str, setting: Setting, *, announces: bool = False) -> str:
    label = _LABEL.match(text)
    if label:
        known = _known_label(label.group(1))
        if known == "form":
            return _pointing(text[label.end() :], setting)
        if known == "task":
            text = text[label.end() :]
        elif not CHOICES.match(text) and not (
            is_directive(label.group(1)) and _IN_SENTENCE.search(label.group(1))
        ):
            return "its label is none that the rules know"
    reason = _pointing(text, setting, announces=announces)
    if reason:
        return reason
    if text.endswith("?"):
        is_asked = _QUESTION.match(text) and mentions(text, setting.nouns | setting.generic)
        return "" if is_asked else "it is a question that names no argument"
    is_loose = setting.is_loose or bool(
        not setting.is_inline and DETERMINED.match(text) and speaks_of(text, setting.nouns)
    )
    if setting.before and _EACH.match(plain(text)):
        return ""
    if not (is_directive(text, is_loose) or _is_about_named(text, setting.before)):
        return "it is not recognised as an instruction"
    return ""


def _is_about_named(text: str, before: str) -> bool:
    """Whether it says how something must be that is named in the text before it."""
    subject = SUBJECT.match(plain(text).replace("`", ""))
    return subject is not None and bool(
        re.search(rf"\b{re.escape(subject.group(1))}\b", before, re.I)
    )


def _pointing(text: str, setting: Setting, *, announces: bool = False) -> str:
    found = pointer(text, setting.before, setting.nouns, announces=announces)
    return f"{found!r} points at its surroundings" if found else ""


def _known_label(label: str) -> str:
    words = re.sub(r"[^a-z ]", " ", label.lower()).split()
    if len(words) > 3 and words[1] == "for" and words[-1] in OUTPUTS:
        words = words[:1]  # "Rules for the translation:"
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
    if not (is_heading or head.endswith(":")) or MARK.match(head):
        return _of_content(text, setting, False)
    known = _known_label(title)
    if is_heading and title.lower() in ("output", "response", "answer"):
        known = "form"
    rest = _UNDERLINE.sub("", rest)
    if known and rest.strip():
        return _of_content(rest, setting, known == "form", title)
    if is_heading:
        return "its heading is none that the rules know"
    return _of_announced(head, rest, setting)


def _of_announced(head: str, rest: str, setting: Setting) -> str:
    """A sentence that ends with a colon, and what it announces."""
    reason = _pointing(head, setting, announces=bool(rest.strip()))
    is_known = (is_directive(head) and not _NOUN_HEAD.match(head)) or CHOICES.match(head + " ")
    if not reason and not (is_known or _is_about_named(head, setting.before)):
        reason = "it is not recognised as an instruction"
    return reason or _of_content(rest, setting, True, head)


def _of_content(text: str, setting: Setting, is_form: bool, before: str = "") -> str:
    """is_form: it describes a form or lists things, and need not be instructions."""
    held = f"{setting.before} {before}".strip()
    is_listing = False  # items follow that a sentence has announced
    has_task = False
    for sentence, is_item, has_items in _sentences(text):
        inner = replace(setting, before=held)
        is_listing = is_item and is_listing
        if is_form or is_listing or (held and SCALE.match(sentence)):
            reason = _pointing(plain(sentence), inner)
        else:
            reason = _of_sentence(sentence, inner, announces=has_items)
            if reason and has_task and not _TOLD.search(QUOTED.sub("QQ", sentence)):
                reason = _pointing(plain(sentence), inner)
        if reason:
            return reason
        is_asked = names_argument(sentence, setting.nouns) and not setting.is_between
        has_task |= is_asked and asks_for_work(sentence)
        is_listing |= has_items
        held = f"{held} {sentence}".strip()[-MAX_BEFORE_CHARS:]
    return "" if text.strip() else "it announces nothing"


def _sentences(text: str) -> Iterator[tuple[str, bool, bool]]:
    """Each sentence, whether it is an item of a list, and whether it announces one."""
    lines = [line for line in text.splitlines() if line.strip()]
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        body = MARK.sub("", line).strip()
        if not body or body.startswith("```"):
            continue
        parts = [part for part in re.split(r"(?<=[.!?])\s+(?=[A-Z])", body) if part]
        is_item = MARK.match(line) is not None
        announces = not is_item and body.endswith(":") and MARK.match(after) is not None
        yield from ((part, is_item, announces and part is parts[-1]) for part in parts)
