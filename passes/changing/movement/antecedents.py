"""Whether what a pronoun can mean is named in the text before it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sgc.passes.changing.movement.vocabulary import ENDS_PHRASE, HOW, MANNERS, OUTPUTS, VERBS

QUOTED = re.compile(r'"[^"\n]*"|“[^”\n]*”|`[^`\n]*`|(?<!\w)\'[^\'\n]*\'(?!\w)|<[^<>\n]{1,60}>')
_EXPLETIVE = re.compile(
    r"\b(?:it|it's) (?:is )?(?:important|clear|possible|likely|okay|ok|fine|necessary|useful|best|"
    r"essential|not possible|impossible)\b|\bmake (?:it )?(?:clear|sure)\b",
    re.I,
)
_EACH = re.compile(r"\b(?:each|every) \w+", re.I)
_ONE_IS = re.compile(r"\b(?:one|each|every) [a-z][\w-]* (?:is|has)\b", re.I)
_PREPOSITION = re.compile(
    r"\b(?:to|of|for|about|from|on|in|with|by|against|into|at|within|around|after|before)\s+$", re.I
)
_CLAUSE = re.compile(
    r"[,;:]|\b(?:and|but|that|which|then|or|so|if|when|because|while|where|unless)\b", re.I
)


def is_known(noun: str, before: str) -> bool:
    return bool(noun) and bool(re.search(rf"\b{re.escape(noun)}\b", before, re.I))


def is_resolved(text: str, word: re.Match[str], before: str, nouns: frozenset[str]) -> bool:
    """Whether a pronoun's antecedent is in the constant text before it."""
    if any(low.start() <= word.start() < low.end() for low in _EXPLETIVE.finditer(text)):
        return True
    is_of_each = word.group().lower() in ("it", "them", "they", "its", "their")
    if is_of_each and _EACH.search(text, 0, word.start()):
        return True
    last = before.rpartition(". ")[2]
    if word.group().lower() == "its" and _ONE_IS.search(last):
        return True
    is_singular = word.group().lower() in ("it", "its", "it's", "itself")
    is_owner = word.group().lower() in ("its", "their")
    if names_before(text, word.start(), is_singular):
        earlier = text[: word.start()]
        return is_owner or not _PREPOSITION.search(earlier) or names_argument(earlier, nouns)
    if is_owner:
        earlier = text[: word.start()]
        if re.search(r"\b(?:with|by) $", earlier) and names_something(earlier, is_same=True):
            return True
        if names_argument(earlier, nouns):
            return True
    if _PREPOSITION.search(text[: word.start()]):
        return False
    if word.group().lower() in ("its", "their", "his", "her", "theirs", "hers", "he", "she", "him"):
        return names_argument(before, nouns)
    return names_something(before, is_singular)


def names_argument(text: str, nouns: frozenset[str]) -> bool:
    return any(re.search(rf"\bthe (?:\w+ )?{re.escape(noun)}\b", text, re.I) for noun in nouns)


def names_before(text: str, position: int, is_singular: bool = False) -> bool:
    """Whether an earlier clause of the same sentence names something."""
    clauses = [found.start() for found in _CLAUSE.finditer(text, 0, position)]
    return bool(clauses) and names_something(text[: clauses[-1]], is_singular, True)


_NOUN_PHRASE = re.compile(
    r"\b(a|an|the|your|each|every|any|all|one|two|three|four|five|\d+|some|of)\s+"
    r"((?:[\w'-]+ ?){1,4})",
    re.I,
)
_PERSONA = re.compile(
    r"^(?:you are(?! \w+ing the\b)|you're|act|imagine|pretend|assume|be an?)\b", re.I
)
_NEGATED = re.compile(r"\b(?:don't|do not|never|avoid|without|no|not)\b", re.I)
# What is picked is a thing, also where it is called as a manner is: a sentence, a word.
_PICKS = re.compile(
    r"\s*(?:pick|choose|select|find|identify|extract|locate|quote|take)\b"
    r"(?! (?:a|an) \w+ (?:tone|style))",
    re.I,
)


def names_something(before: str, is_singular: bool = False, is_same: bool = False) -> bool:
    """Whether a text names what a pronoun after it can mean: no persona, nothing ruled out."""
    for sentence in re.split(r"(?<=[.!?])\s+|\n", QUOTED.sub(" ", before)):
        if _PERSONA.match(sentence.strip()) or (not is_same and _NEGATED.search(sentence)):
            continue
        picks = bool(_PICKS.match(sentence))
        if any(_is_thing(words, is_singular, picks) for words in _phrases(sentence)):
            return True
    return False


def _phrases(sentence: str) -> Iterator[list[str]]:
    """The nouns that a sentence names, each with the words before it."""
    position = 0
    while found := _NOUN_PHRASE.search(sentence, position):
        position = found.start(2)
        preceding = sentence[: found.start()].lower().split()
        if preceding and preceding[-1] in HOW:
            continue
        words: list[str] = []
        for word in found.group(2).lower().split():
            if word in ENDS_PHRASE:
                break
            words.append(word)
        if words and found.group(1).lower() != "of":
            yield words
    # A verb's object without an article: "Return JSON", "Extract dates".
    words = re.findall(r"[\w'-]+", sentence.lower())
    if len(words) > 1 and words[0] in VERBS:
        for i, word in enumerate(words[1:4], 1):
            if word in ENDS_PHRASE:
                break
            if word in OUTPUTS or (word.endswith("s") and not word.endswith("ss")):
                yield words[1 : i + 1]
                break


def _is_thing(words: list[str], is_singular: bool, picks: bool) -> bool:
    noun = words[-1]
    is_plural = noun.endswith("s") and not noun.endswith(("ss", "us", "is"))
    if is_singular and is_plural:
        return False
    return (picks or noun not in MANNERS) and noun not in (
        "breath",
        "moment",
        "look",
        "while",
        "bit",
        "lot",
    )
