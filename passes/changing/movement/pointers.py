"""Words that point at their surroundings, and whether what they point at comes along.

A pointer is harmless when what it means is in the constant text that leads with it: a sentence
before it, or what its own colon announces. Quoted words point at nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sgc.passes.changing.movement.antecedents import (
    QUOTED,
    is_known,
    is_resolved,
    names_before,
    names_something,
)

# Words given as examples: "(remember, understand, apply)".
_LISTED = re.compile(r"\((?:[\w-]+(?: [\w-]+)?,\s*){2,}(?:or |and )?[\w-]+(?: [\w-]+)?\)")
_PLACED = re.compile(r"\s+(?:the|your|each|every)\s+([\w-]+)", re.I)

# Always point back, or at a place in the prompt or in time.
_BACK = re.compile(
    r"\b(?:above(?! \d)|preceding|previous|previously|earlier|foregoing|aforementioned|"
    r"latter|former|"
    r"prior(?! (?:knowledge|experience))|so far|until now|up to now|again|"
    r"(?<!come )(?<!go )back|beneath|underneath|"
    r"now|already(?= (?:mentioned|given|shown|said|stated|seen|described))|"
    r"later|last(?! \w+ (?:in|of|from) (?:the|each|every))|yet|once more|at hand|"
    r"in question|in front of|thereof|therein|thereby|hereof|reminder|remind|"
    r"(?:end|start|beginning|top|bottom) of (?:the|this) (?:page|prompt|message|conversation)|"
    r"on top(?! of)|in the (?:first|second|third) line(?! of)|came (?:first|before|last)|"
    r"you (?:see|are (?:reading|seeing|looking at))|(?:stop|finish|done) reading|"
    r"as (?:usual|always)|like (?:you|we|i) \w+|"
    r"the (?!one listed (?:first|last))\w+ (?:shown|listed|specified|quoted|pasted)"
    r"(?! (?:in|by|at|as) )|"
    r"rest(?! of the \w)|remaining|remainder|another|(?<!of )others|your turn|"
    r"(?<!says the )(?<!means the )(?<!states the )opposite|"
    r"you were (?:given|shown|told)|"
    r"(?:just|you|you've|you have|having|have|has been) (?:just )?"
    r"(?:read|seen|quoted|pasted|received|been given|been shown|been told|heard|learned|given)|"
    r"i (?:just )?(?:gave|sent|pasted|wrote|provided|showed|shared|told|said|asked|mentioned)|"
    r"i(?:'ve| have) (?:just )?\w+|will (?:be given|see|receive|get|read|find)|"
    r"the said|the mentioned|the quoted|the whole thing|the entire thing|the thing|"
    r"do so|if so|so do|doing so|to do so|if not(?=[ ,])|vice versa|"
    r"(?:one|two|three|four|five|some|any|few|many|\d+) more(?! than)|"
    r"(?<!or )more (?:examples?|ideas?|of)|"
    r"carry on|go on|keep (?:going|writing)|keep (?:the|a) \w+ going|pick up (?:where|from)|"
    r"(?:leaves|left) off|"
    r"under (?:it|this|that|the (?:text|passage|document|input))|"
    r"as (?:shown|mentioned|described|stated|noted|explained|discussed|defined|listed|given|"
    r"specified|said|before|outlined|instructed|requested|asked)(?! (?:in|by) ))\b",
    re.I,
)
_GOES_ON = re.compile(
    r"(?:^|\b(?:to|and|please|then|must|should|now)\s+)"
    r"(?:continue|resume|proceed|extend|finish(?! (?:with|your|the (?:reply|answer|response))\b)|"
    r"complete(?= (?:the|this|my))|"
    r"(?:write|give|tell|add|compose) (?:(?:the|a) (?:rest|sequel|continuation|ending|second \w+|"
    r"next)|(?:part|chapter|episode|scene|act|verse|stanza) (?:two|three|four|five|[2-9])))\b|"
    r"\b(?:begin|start) (?:\w+ )?where\b|"
    r"\b(?:a|an) (?:different|alternative|better|new) (?:answer|response|reply|one|example)\b"
    r"(?! than)",
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
    r"\b(?:below(?! \d)|following|(?:as|what|that|which) follows|(?<!one )(?<!\ba )"
    r"next(?! (?:years?|months?|weeks?|days?|steps)\b)|here|"
    r"hereafter)\b",
    re.I,
)
_SAME = re.compile(
    r"(?<!have the )(?<!has the )(?<!share the )(?<!express the )(?<!mean the )(?<!convey the )"
    r"(?<!stay the )(?<!remain the )(?<!remains the )(?<!be the )(?<!refer to the )"
    r"(?<!describe the )(?<!ask the )(?<!say the )(?<!are the )(?<!make the )"
    r"\bsame\b(?![^.,;]*\bas\b)",
    re.I,
)
_OTHER = re.compile(
    r"\b(?<!any )(?<!no )(?<!each )(?<!every )(?<!all )other (?!words\b)\w(?<!other t(?=han))|"
    r"\bthe other\b",
    re.I,
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
    r"(?:(?:only|just|please|kindly|even|right) )?(?:then|also|and|but|or|so|yet|next|finally|"
    r"lastly|afterwards?|otherwise|else|instead|however|"
    r"therefore|thus|hence|additionally|furthermore|moreover|in addition|besides|likewise|"
    r"conversely|still|meanwhile|once|when (?:done|finished|you(?:'re| are) (?:done|finished))|"
    r"second(?:ly)?|third(?:ly)?|fourth|after|alternatively|accordingly|consequently|because|"
    r"for (?:example|instance)|e\.g\.|i\.e\.|that is|in other words|as a result|in short|overall|"
    r"plus|except|unless|rather|even|too|likewise|with (?:that|this)|in (?:that|this) case|"
    r"if (?:yes|no|so|true|false)(?=,)|in (?:any|either|all|both|neither) cases?|"
    r"(?:in|by) contrast|on the (?:contrary|other hand|one hand)|apart from|"
    r"to (?:conclude|finish|begin with|start with|sum up|close)|moving on|end of|"
    r"in (?:turn|response|reply|return|fact|closing|summary|conclusion|light of|the end)(?=[ ,])|"
    r"(?:as a|to) follow[- ]up|to summarize(?=,)|by the way|step (?:two|three|four)|"
    r"put differently|"
    r"when (?:you(?:'re| are) )?ready|while reading|given what|on (?:second thought|reflection)|"
    r"for (?:the moment|a change|once)|"
    r"with [^,]* in mind|(?:(?:as|in|for) (?:a|the|your)|your) "
    r"(?:first|second|third|next|final|last) (?:step|task|job|part|assignment)|"
    r"(?:ok|okay|now|well|great|good|thanks|thank you)(?=[,.!]))\b",
    re.I,
)
_ADDS = re.compile(
    r"\b(?:as well|too|also|instead(?! of)|either|neither|otherwise)\s*[.!?;)]?$|\balso\b", re.I
)
_THERE = re.compile(
    r"\bthere\b(?! (?:is|are|was|were|should|must|may|can|isn't|aren't|will)\b)", re.I
)
_DEMONSTRATIVE = re.compile(
    r"\b(this|these|those)\b\s*(?:(?:two|three|four|five|six|\d+)\s+)?([\w-]*)", re.I
)
_LISTS = re.compile(r"\w,\s.*\bor\b|\w or \w", re.I)  # what "these words" may then mean
_LISTED_NOUNS = re.compile(
    r"(?:word|label|option|categor|value|choice|class|answer)(?:s|es|ies)$", re.I
)
_THAT = re.compile(
    r"(?:^|\b(?:on|of|with|from|in|by|for|like|about|do|than|all|to|after|before|given|at|into|why|"
    r"how|if|because|whether|when|since)\s+)that\b",
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
# What is named in the same sentence: "keep names as they are", "helps, harms, or does neither".
_KEPT = re.compile(
    r"\b(?:keep|leave|copy|preserve|retain|reproduce|quote)\b[^.;:]*?\b(as (?:they are|it is))\b",
    re.I,
)
_ALTERNATIVE = re.compile(r"(?<=, )or (?:(?:does|do|is|are) )?neither\b", re.I)
_BARE = re.compile(
    r"\b(each|one(?! or (?:two|more))|ones|both|either|neither|(?<=the )(?:first|second|third))\b"
    r"(?=\s*[.,;!?)]|\s+(?:is|are|was|should|must|in|with|by|as|on|using|and|or)\b|\s*$)",
    re.I,
)


def pointer(sentence: str, before: str, nouns: frozenset[str], *, announces: bool = False) -> str:
    """The words of a sentence that point at what may not come along; "" if there are none.

    before: constant text that leads directly before it; nouns: what the arguments are called;
    announces: its colon is followed by constant text, which words like "following" then mean.
    """
    text = _LISTED.sub(" ", QUOTED.sub(" QQ ", sentence))
    text = _ALTERNATIVE.sub("or QQ", text)
    if kept := _KEPT.search(text):
        text = text[: kept.start(1)] + text[kept.end(1) :]
    head, colon, tail = text.partition(":")
    has_list = announces or (bool(colon) and bool(tail.strip()))
    for found in _fixed(text, before):
        placed = _PLACED.match(text, found.end())
        if placed and placed.group(1) not in nouns and is_known(placed.group(1), before):
            continue
        return found.group().strip()
    for pattern in (_FORWARD, _DEMONSTRATIVE):
        for word in pattern.finditer(text):
            placed = _PLACED.match(text, word.end())
            if placed and placed.group(1) not in nouns and is_known(placed.group(1), before):
                continue
            is_announced = has_list and (announces or word.start() < len(head))
            if is_announced or (pattern is _DEMONSTRATIVE and _is_shown(word, before)):
                continue
            return word.group().strip()
    for word in _PRONOUN.finditer(text):
        if not is_resolved(text, word, before, nouns):
            return word.group()
    for word in _BARE.finditer(text):
        if not (names_something(before) or names_before(text, word.start())):
            return word.group()
    return ""


def _is_shown(word: re.Match[str], before: str) -> bool:
    """Whether what "these words" are is named, or listed, in the text before."""
    noun = word.group(2)
    is_list = word.group(1).lower() == "these" and bool(_LISTED_NOUNS.match(noun))
    return is_known(noun, before) or (is_list and bool(_LISTS.search(QUOTED.sub("QQ", before))))


def refers_back(text: str) -> bool:
    """Whether a text holds words that may mean what is said before it."""
    text = QUOTED.sub(" ", text)
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
