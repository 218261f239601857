"""Recognises instructions by their grammar, wherever they stand. English only."""

from __future__ import annotations

import re

from sgc.passes.changing.movement.vocabulary import (
    ADVERBS,
    ANCHORS,
    HANDWORK,
    MODALS,
    OUTPUTS,
    STYLE_VERBS,
    VERBS,
    WORK,
)

MAX_CONDITIONS = 3  # in front of one instruction

MARK = re.compile(r"^\s*(?:[-*•–+]|\(?\d{1,2}[.)]|\(?[a-zA-Z][.)]|step \d+[:.)]?)\s+", re.I)
_CONDITION = re.compile(
    r"^(?:if|when|where|for|in|with|using|as|to|based on|from|given|without|within|while|unless|"
    r"according to|by|under|on)\b[^,]*,\s+(?:then\s+)?(.+)$",
    re.I | re.S,
)
_ADVERBS = re.compile(rf"^(?:(?:{'|'.join(sorted(ADVERBS))})\b,?\s+)+", re.I)
# Conditions without a comma.
_PLAIN_CONDITION = re.compile(
    r"^for (?:each|every) [^,]{1,60}? ((?:write|return|give|list|state|output|print) .*)$|"
    r"^(?:for|from|in) (?:each|every) (?:\w+ ){1,3}?(\w+(?: (?:the|an?|its)\b.*|:.*))$|"
    r"^(?:if|when|unless) [^,]{1,80}? ((?:return|output|print|write|say|reply|respond)\b.*)$",
    re.I | re.S,
)
SUBJECT = re.compile(
    r"^(?:(?:the|your|each|every|all|any|no|both|only|none of the|one|two|three|four|five|\d+)\s+"
    r"(?:[\w'-]+\s+){0,3}?)?([\w'-]+)\s+"
    r"(?:\w+ly\s+)?(must|should|shall|needs?|has|have|may|can|cannot|will|is|are|ought)\b",
    re.I,
)
_SECOND = re.compile(
    r"^(?:you're an?|you'll|you are \w+, (?:an?|the)|"
    r"(?:imagine|pretend|suppose|assume) (?:that )?you(?:'re| are)|"
    r"you are (?!reading|seeing|looking)\w+ing an?|"
    r"you are (?:assess|check|classify|compar|evaluat|grad|judg|rat|review|scor)ing the|"
    r"you (?:write|answer|screen|moderate|label|judge|rate|score|"
    r"translate|review|evaluate|grade|classify|summari[sz]e|generate|extract|"
    r"respond to|reply to|rewrite|edit) (?!me|him|her|them|back)|"
    r"you (?:are (?:an?|the|now|one|acting)|must|should|may|can|cannot|"
    r"need|have to|will (?:act|answer|write|respond|reply|rate|grade|score|judge|evaluate|classify|"
    r"translate|summari[sz]e|extract|analy[sz]e|review|generate|be acting))|"
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
    r"^(?:(?:about|around|roughly|approximately|up to) \d+ \w+|\d+ (?:to|-|–) \d+ \w+[^.]*|"
    r"(?:an?|a single|one|two|three|four|five|\d+) (?:short |long |full )?"
    r"(?:word|sentence|paragraph|line|character|bullet point)s?(?: only| each)?)\.?$|"
    r"^(?:no|maximum|max|minimum|at most|at least|not more than|nothing else)\b"
    r"(?:\W+(?!shall|must|may|is|are|was|were|has|have|will|can)\w+){0,8}\W*$|"
    r"^[\w-]+ only[.!]?$|"
    r"^(?:exactly|only) one (?:of the )?[\w -]{1,30} (?:is|are) (?:correct|right|true)\b.*$",
    re.I,
)
CHOICES = re.compile(
    r"^(?:the )?(?:valid|possible|allowed|available|permitted|acceptable) \w+(?: \w+)?"
    r"(?: are| is)?:?\s|"
    r"^(?:the )?(?:\w+ )?(?:categories|labels|classes|options|violations|criteria|choices|"
    r"values|levels|types|intents|tags|topics|scores|ratings)(?: \w+)? (?:are|include):?\s",
    re.I,
)
_STATED = re.compile(r"^\w+(?: [\w-]+){0,2} (?:is|are|was|were|has|had|will|did|does)\b", re.I)
DETERMINED = re.compile(
    r"^\w+ (?:the|an?|all|each|every|any|one|two|three|only|in|with|as|using|whether|if|that|which|"
    r"what|who|how|to|for|from|at|no|not|it|them|this|these|your|sure)\b",
    re.I,
)
# What says how things must be, in a paragraph that was seen to be an instruction.
_NORM = re.compile(
    r"\b(?:should|must|needs? to|has to|have to|may not|shall|is one of|are one of|is either|"
    r"counts? as)\b|^(?:[\w-]+ ){1,3}(?:are|is) (?:not )?(?:allowed|permitted|accepted|welcome)\b|"
    r"\bdo(?:es)? not (?:matter|count)\b|"
    r"^the (?:field|key|property|attribute|column|marker)s? \S+ (?:is|are|contains?|holds?|has)\b|"
    r"^an? [\w-]+(?: [\w-]+)? is [\w-]+ (?:if|when|unless)\b|"
    r"^it is (?:ok|okay|fine|important|acceptable|essential|not necessary)\b|"
    r"^(?:one|two|three|\d+) \w+(?: \w+)? per \w+",
    re.I,
)
# What counts, said of things in general: no statement about those that are given.
_GENERIC = re.compile(
    r"^(?:(?:an?|each|every|any) [^.?!]{1,120}? "
    r"(?:counts|means|needs|gets|receives|weighs|earns|scores|costs)|"
    r"[A-Z][\w'-]*(?: [\w'-]+){0,7}? (?:count|mean|need|get|receive|weigh|earn|score|cost))\b",
)
_NO_VERB = re.compile(
    r"(?:\w*(?:ing|ed|ly|tion|ness|ment|[^s]s)|i|you|he|she|it|they|we|my|our|the|an?|this|that|"
    r"these|those|there|some|many|most|few|all|no|none|each|every|both|any|in|on|at|for|from|with|"
    r"by|of|to|as|about|under|over|if|when|while|where|because|since|although|though|who|what|"
    r"which|how|why|one|two|three|today|yesterday|tomorrow|yes|\d.*)$",
    re.I,
)
_DEFINITE = re.compile(r"\bthe\s+(?!answer\b|response\b|reply\b|output\b|\d)[\w-]+|\w's\b", re.I)
# "the guest book." names no guest; "the question truthfully." and "the log lines." name theirs.
_COMPOUND = re.compile(r"(?<=\bthe )([a-z]+) (?!\w+ly\b)([a-z]+)(?=[.;!?])")
_MADE = re.compile(r"\bmake the ([\w-]+) (?:more|less|sound|read|\w+er)\b", re.I)
_ROLE = re.compile(
    r"\b(?:act as|you are an?|your (?:task|job|goal)|i want you to|(?:one|any) of[^.]*:)", re.I
)


def is_anchored(text: str, nouns: frozenset[str]) -> bool:
    """Whether a paragraph is about an argument or a reply, and not part of what is given."""
    known = {1: ANCHORS, 2: nouns - ANCHORS}

    def named(found: re.Match[str]) -> str:
        return " ".join(found.group(i) for i, words in known.items() if found.group(i) in words)

    plain = _COMPOUND.sub(named, text)
    if mentions(plain, ANCHORS) or _ROLE.search(text):
        return True
    made = _MADE.search(text)
    if made and made.group(1).lower() in nouns:
        return True
    words = set(re.findall(r"[a-z][\w-]*", text.lower()))
    return mentions(plain, nouns) and (bool(words & WORK) or "?" in text)


_ASKED = re.compile(
    r"(?:the|an?|one|two|three|four|five|six|seven|eight|ten|\d+|up to|each|every|all|whether|if|"
    r"which|how|why|what|with|in|as|by|only|for|from|into)\b",
    re.I,
)
_PLEASE = re.compile(r"(?:please|carefully|first,?) ", re.I)


def asks_for_work(text: str) -> bool:
    """Whether it begins with what a model is asked for, of texts that it is given."""
    verb, _, rest = _PLEASE.sub("", plain(text)).partition(" ")
    return verb.lower() in WORK - HANDWORK and bool(_ASKED.match(rest))


def speaks_of(text: str, nouns: frozenset[str]) -> bool:
    """Whether it names an argument with "the", or asks for something to be made."""
    named = re.findall(r"\b(?:the|each|every) ([\w-]+)(?: ([\w-]+))?", text.lower())
    if any(word in nouns for pair in named for word in pair):
        return True
    return bool(re.match(r"(?:write|draft|compose|generate|create|produce|prepare)\b", text, re.I))


def is_directive(text: str, is_loose: bool = False, depth: int = 0) -> bool:
    text = plain(text)
    words = re.findall(r"[\w'’-]+", text.lower())
    while words and words[0] in ADVERBS:
        words = words[1:]
    if not words:
        return False
    patterns = (_SECOND, _FRAGMENT, CHOICES, _PRONOUN_SUBJECT)
    stripped = " ".join(words)
    is_verb = words[0] in VERBS or (is_loose and not _NO_VERB.match(words[0]))
    is_order = is_verb and (DETERMINED.match(stripped) or not _STATED.match(stripped))
    if is_order or any(pattern.match(text) for pattern in patterns):
        return True
    subject = SUBJECT.match(text)
    if subject and (subject.group(1).lower() in OUTPUTS or text.lower().startswith("your")):
        return True
    if is_loose and (_NORM.search(text) or _GENERIC.match(text)):
        return True
    text = _ADVERBS.sub("", text)
    condition = _PLAIN_CONDITION.match(text) or _CONDITION.match(text)
    if condition is None or depth == MAX_CONDITIONS:
        return False
    return is_directive(condition[condition.lastindex or 0], is_loose, depth + 1)


def plain(text: str) -> str:
    """A sentence without marks of emphasis and of lists."""
    text = MARK.sub("", text).strip("*_ \t\"'")
    return re.sub(r"^(?:important|note|task|instructions?)[:!]\s+", "", text, flags=re.I)


def is_persona(text: str) -> bool:
    return bool(re.match(r"(?:you are|act as|imagine you are|pretend)\b", text, re.I))


def stands_alone(text: str) -> bool:
    """Whether it is about the reply alone, wherever it is said."""
    text = plain(text)
    words = re.findall(r"[\w'’-]+", text.lower())
    while words and words[0] in ADVERBS:
        words = words[1:]
    if not words or _DEFINITE.search(text):
        return False
    is_about_reply = words[0] in STYLE_VERBS or bool(_FRAGMENT.match(text)) or is_persona(text)
    is_about_yours = words[0] == "your" and any(word in MODALS for word in words[2:4])
    return is_about_reply or is_about_yours


def mentions(text: str, nouns: frozenset[str]) -> bool:
    words = re.findall(r"[a-z][\w-]*", text.lower())
    stems = tuple(noun for noun in nouns if len(noun) > 5)  # "config" names a configuration
    return any(word in nouns or word.startswith(stems) for word in words)
