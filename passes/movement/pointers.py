"""Words that point at their surroundings, and whether what they point at comes along.

A pointer is harmless when what it means is in the constant text that leads with it: a sentence
before it, or what its own colon announces. Quoted words point at nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sgc.passes.movement.vocabulary import ENDS_PHRASE, HOW, MANNERS, OUTPUTS, VERBS

_QUOTED = re.compile(r'"[^"\n]*"|“[^”\n]*”|`[^`\n]*`|(?<!\w)\'[^\'\n]*\'(?!\w)|<[^<>\n]{1,60}>')

# Words given as examples: "(remember, understand, apply)".
_LISTED = re.compile(r"\((?:[\w-]+(?: [\w-]+)?,\s*){2,}(?:or |and )?[\w-]+(?: [\w-]+)?\)")
_PLACED = re.compile(r"\s+(?:the|your|each|every)\s+([\w-]+)", re.I)

# Always point back, or at a place in the prompt or in time.
_BACK = re.compile(
    r"\b(?:above|preceding|previous|previously|earlier|foregoing|aforementioned|latter|former|"
    r"prior(?! (?:knowledge|experience))|so far|until now|up to now|again|back|beneath|underneath|"
    r"now|already(?= (?:mentioned|given|shown|said|stated|seen|described))|"
    r"later|last(?! \w+ (?:in|of|from) (?:the|each|every))|yet|once more|at hand|"
    r"in question|in front of|thereof|therein|thereby|hereof|reminder|remind|"
    r"(?:end|start|beginning|top|bottom) of (?:the|this) (?:page|prompt|message|conversation)|"
    r"rest(?! of the \w)|remaining|remainder|opposite|another|others|your turn|"
    r"you were (?:given|shown|told)|"
    r"(?:just|you|you've|you have|having|have|has been) (?:just )?"
    r"(?:read|seen|quoted|pasted|received|been given|been shown|been told|heard|learned|given)|"
    r"i (?:just )?(?:gave|sent|pasted|wrote|provided|showed|shared|told|said|asked|mentioned)|"
    r"i(?:'ve| have) (?:just )?\w+|will (?:be given|see|receive|get|read|find)|"
    r"the said|the mentioned|the quoted|the whole thing|the entire thing|the thing|"
    r"do so|if so|so do|doing so|to do so|if not(?=[ ,])|vice versa|"
    r"(?:one|two|three|four|five|some|any|few|many|\d+) more(?! than)|more (?:examples?|ideas?|of)|"
    r"carry on|go on|keep going|"
    r"under (?:it|this|that|the (?:text|passage|document|input))|"
    r"as (?:shown|mentioned|described|stated|noted|explained|discussed|defined|listed|given|"
    r"specified|said|before|outlined|instructed|requested|asked)(?! (?:in|by) ))\b",
    re.I,
)
_GOES_ON = re.compile(
    r"(?:^|\b(?:to|and|please|then|must|should|now)\s+)"
    r"(?:continue|resume|proceed|finish(?! with)|complete(?= (?:the|this|my)))\b",
    re.I,
)
_REPORTED = re.compile(
    r"\bas (?:\w+ ){0,3}(?:said|told|asked|wrote|mentioned|noted|requested|instructed|agreed)\b"
    r"(?! (?:in|by) )",
    re.I,
)
_REMIND = re.compile(r"(?:^|\bplease |\band |\balways )(?:remember|recall)\b|\bforget\b", re.I)
_WE = re.compile(r"\b(?:we|us(?<!US)|our|ours|let's|we're|we've)\b", re.I)
_FORWARD = re.compile(
    r"\b(?:below|following|(?:as|what|that|which) follows|(?<!one )(?<!\ba )next|here|"
    r"hereafter)\b",
    re.I,
)
_SAME = re.compile(
    r"(?<!have the )(?<!has the )(?<!share the )(?<!express the )(?<!mean the )(?<!convey the )"
    r"(?<!refer to the )(?<!describe the )"
    r"\bsame\b(?![^.,;]*\bas\b)",
    re.I,
)
_OTHER = re.compile(
    r"\b(?<!any )(?<!no )(?<!each )(?<!every )other \w(?<!other t(?=han))|\bthe other\b", re.I
)
_SUCH = re.compile(
    r"\bsuch\b(?! as)|\bsimilar\b(?! (?:\w+ )?to the| in )|\bsimilarly\b|\blikewise\b", re.I
)
_ALL = re.compile(r"\beverything\b(?! (?:else|in|from|that))|\ball of (?:it|them)\b", re.I)
_PLACE = re.compile(
    r"\b(?:at|in|from|to|near|by) the (?:very )?(?:top|bottom|beginning|start|end|outset)\b"
    r"(?! of (?:your|each|every|the (?P<what>[\w-]+)))",
    re.I,
)
# "put the total at the end" is about the reply, "answer the question at the end" is not.
_PUT = re.compile(
    r"\b(?:add|put|give|include|place|append|insert|begin|start|list|provide)\b"
    r"(?![^.;]*\b(?:question|text|instructions?|passage|input|document) $)[^.;:]*$",
    re.I,
)
_ORDER = re.compile(
    r"\bafter\b(?!\s+(?:qq|your|each|every|a|an|"
    r"the (?:answer|response|output|summary|label|comma))\b)|"
    r"\bbefore\b(?!\s+(?:qq|\w+ing|you|your|each|every|giving|the (?:answer|response|output))\b)",
    re.I,
)
_INITIAL = re.compile(
    r"(?:then|also|and|but|or|so|yet|next|finally|lastly|afterwards?|otherwise|else|instead|however|"
    r"therefore|thus|hence|additionally|furthermore|moreover|in addition|besides|likewise|"
    r"conversely|still|meanwhile|once|when (?:done|finished|you(?:'re| are) (?:done|finished))|"
    r"second(?:ly)?|third(?:ly)?|fourth|after|alternatively|accordingly|consequently|because|"
    r"for (?:example|instance)|e\.g\.|i\.e\.|that is|in other words|as a result|in short|overall|"
    r"plus|except|unless|rather|even|too|likewise|with (?:that|this)|in (?:that|this) case)\b",
    re.I,
)
_ADDS = re.compile(
    r"\b(?:as well|too|also|instead(?! of)|either|neither)\s*[.!?;)]?$|\balso\b", re.I
)
_THERE = re.compile(
    r"\bthere\b(?! (?:is|are|was|were|should|must|may|can|isn't|aren't|will)\b)", re.I
)
_DEMONSTRATIVE = re.compile(r"\b(this|these|those)\b\s*([\w-]*)", re.I)
_THAT = re.compile(
    r"(?:^|\b(?:on|of|with|from|in|by|for|like|about|do|than|all|to|after|before|given|at|into)\s+)"
    r"that\b",
    re.I,
)
_THAT_NOUN = re.compile(
    r"\bthat (text|passage|article|document|review|question|email|message|story|code|sentence|"
    r"paragraph|answer|claim|statement|input|content|conversation|report|list|table|image)\b",
    re.I,
)
_PRONOUN = re.compile(
    r"\b(it|its|it's|itself|they|them|their|theirs|themselves|he|him|his|she|her|hers)\b", re.I
)
_BARE = re.compile(
    r"\b(each|one(?! or (?:two|more))|ones|both|either|neither)\b"
    r"(?=\s*[.,;!?)]|\s+(?:is|are|was|should|must|in|with|by|as|on|using|and|or)\b|\s*$)",
    re.I,
)
_EXPLETIVE = re.compile(
    r"\b(?:it|it's) (?:is )?(?:important|clear|possible|likely|okay|ok|fine|necessary|useful|best|"
    r"essential|not possible|impossible)\b|\bmake (?:it )?(?:clear|sure)\b",
    re.I,
)
_EACH = re.compile(r"\b(?:each|every) \w+", re.I)
_PREPOSITION = re.compile(
    r"\b(?:to|of|for|about|from|on|in|with|by|against|into|at|within|around|after|before)\s+$", re.I
)
_CLAUSE = re.compile(
    r"[,;]|\b(?:and|but|that|which|then|or|so|if|when|because|while|where|unless)\b", re.I
)


def pointer(sentence: str, before: str, nouns: frozenset[str], *, announces: bool = False) -> str:
    """The words of a sentence that point at what may not come along; "" if there are none.

    before: constant text that leads directly before it; nouns: what the arguments are called;
    announces: its colon is followed by constant text, which words like "following" then mean.
    """
    text = _LISTED.sub(" ", _QUOTED.sub(" QQ ", sentence))
    head, colon, tail = text.partition(":")
    has_list = announces or (bool(colon) and bool(tail.strip()))
    for found in _fixed(text, before):
        placed = _PLACED.match(text, found.end())
        if placed and placed.group(1) not in nouns and _is_known(placed.group(1), before):
            continue
        return found.group().strip()
    for pattern in (_FORWARD, _DEMONSTRATIVE):
        for word in pattern.finditer(text):
            placed = _PLACED.match(text, word.end())
            if placed and placed.group(1) not in nouns and _is_known(placed.group(1), before):
                continue
            is_announced = has_list and (announces or word.start() < len(head))
            if is_announced or (pattern is _DEMONSTRATIVE and _is_known(word.group(2), before)):
                continue
            return word.group().strip()
    for word in _PRONOUN.finditer(text):
        if not _is_resolved(text, word, before, nouns):
            return word.group()
    for word in _BARE.finditer(text):
        if not (_names_something(before) or _names_before(text, word.start())):
            return word.group()
    return ""


def refers_back(text: str) -> bool:
    """Whether a text holds words that may mean what is said before it."""
    text = _QUOTED.sub(" ", text)
    patterns = (_PRONOUN, _DEMONSTRATIVE, _THAT, _BARE, _SUCH, _SAME)
    return bool(_INITIAL.match(text)) or any(pattern.search(text) for pattern in patterns)


def _fixed(text: str, before: str) -> Iterator[re.Match[str]]:
    """Pointers that nothing in front of them makes harmless, or only that something is."""
    patterns = [
        _BACK,
        _GOES_ON,
        _REPORTED,
        _REMIND,
        _WE,
        _SAME,
        _OTHER,
        _SUCH,
        _ALL,
        _ORDER,
        _THERE,
        _THAT,
        _THAT_NOUN,
    ]
    for pattern in patterns:
        yield from pattern.finditer(text)
    yield from (found for found in _PLACE.finditer(text) if not _PUT.search(text[: found.start()]))
    first = None if before else (_INITIAL.match(text) or _ADDS.search(text))
    if first and not re.match(r"unless\b|after your\b", first.group(), re.I):
        yield first


def _is_known(noun: str, before: str) -> bool:
    return bool(noun) and bool(re.search(rf"\b{re.escape(noun)}\b", before, re.I))


def _is_resolved(text: str, word: re.Match[str], before: str, nouns: frozenset[str]) -> bool:
    """Whether a pronoun's antecedent is in the constant text before it."""
    if any(low.start() <= word.start() < low.end() for low in _EXPLETIVE.finditer(text)):
        return True
    if word.group().lower() in ("its", "their") and _EACH.search(text, 0, word.start()):
        return True
    is_singular = word.group().lower() in ("it", "its", "it's", "itself")
    is_owner = word.group().lower() in ("its", "their")
    if _names_before(text, word.start(), is_singular):
        return is_owner or not _PREPOSITION.search(text[: word.start()])
    if is_owner:
        earlier = text[: word.start()]
        if re.search(r"\b(?:with|by) $", earlier) and _names_something(earlier, is_same=True):
            return True
        if _names_argument(earlier, nouns):
            return True
    if _PREPOSITION.search(text[: word.start()]):
        return False
    if word.group().lower() in ("its", "their", "his", "her", "theirs", "hers", "he", "she", "him"):
        return _names_argument(before, nouns)
    return _names_something(before, is_singular)


def _names_argument(text: str, nouns: frozenset[str]) -> bool:
    return any(re.search(rf"\bthe (?:\w+ )?{re.escape(noun)}\b", text, re.I) for noun in nouns)


def _names_before(text: str, position: int, is_singular: bool = False) -> bool:
    """Whether an earlier clause of the same sentence names something."""
    clauses = [found.start() for found in _CLAUSE.finditer(text, 0, position)]
    return bool(clauses) and _names_something(text[: clauses[-1]], is_singular, True)


_NOUN_PHRASE = re.compile(
    r"\b(a|an|the|your|each|every|any|all|one|two|three|four|five|\d+|some|of)\s+"
    r"((?:[\w'-]+ ?){1,4})",
    re.I,
)
_PERSONA = re.compile(r"^(?:you are|you're|act|imagine|pretend|assume|be an?)\b", re.I)
_NEGATED = re.compile(r"\b(?:don't|do not|never|avoid|without|no|not)\b", re.I)
# What is picked is a thing, also where it is called as a manner is: a sentence, a word.
_PICKS = re.compile(
    r"\s*(?:pick|choose|select|find|identify|extract|locate|quote|take)\b"
    r"(?! (?:a|an) \w+ (?:tone|style))",
    re.I,
)


def _names_something(before: str, is_singular: bool = False, is_same: bool = False) -> bool:
    """Whether a text names what a pronoun after it can mean: no persona, nothing ruled out."""
    for sentence in re.split(r"(?<=[.!?])\s+|\n", _QUOTED.sub(" ", before)):
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
