"""Advice on a program: what is probably not what its author meant, and what to do about it.

Every kind of advice is a function of the graph in `ADVISERS`; `sgc explain` prints their
findings. None is an error: the program runs as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sgc.ir.analysis.host_calls import pieces_in_python, shown_piece
from sgc.ir.analysis.interpreted import deopts, left_of
from sgc.ir.analysis.text_boundaries import Border, Tail, borders
from sgc.ir.graph import Graph, Lit, Loc

SHOWN_CHARS = 30


@dataclass(frozen=True, slots=True)
class Finding:
    """loc: the user's line; what: the problem found there; advice: what to do."""

    loc: Loc | None
    what: str
    advice: str

    def __str__(self) -> str:
        return f"{self.loc or 'a line unknown'}: {self.what}\n  {self.advice}"


def findings(graph: Graph) -> tuple[Finding, ...]:
    """All findings; one that a loop or a fork repeats is listed once."""
    programs = (graph, *graph.called)
    found = (finding for adviser in ADVISERS for each in programs for finding in adviser(each))
    return tuple(dict.fromkeys(found))


# -- borders ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Risk:
    what: str
    advice: str


_SPACE_ADVICE = "a model's tokens bring their own: leave it out, or generate with heal=True"
_URL_ADVICE = 'one token, such as "://", would go over the border: generate with heal=True'
_WORD_ADVICE = "if that is not a whole word or number, generate with heal=True"

_URL = re.compile(r"(?:\b(?:https?|ftp|wss?):/?|://)\Z")
_WORD = re.compile(r"[\w'’]+\Z")
# Words that a prompt may end with, since the next token begins with a space. Only the writer knows
# whether other words are whole.
_SMALL_WORDS = """
a about above after again against all also although always am an and another answer any are as
ask at be because been before being below between both but by called can could did do does done
down during each either every few find following for from gave get give gives has have having he
her here hers him his how however i if in include includes including into is it its just know
known less let like make many may me mean means might mine more most must my named need neither
next no nor not now of off often on once one only onto or other our ours out over own per please
rather said same say says see shall she should since so some such than that the their them then
there therefore these they think this those though through thus to today too toward two under
until up upon us use used uses using very want was we were what when where whether which while
who whom whose why will with within without would write yes yet you your yours
"""
_WHOLE_WORDS = frozenset(_SMALL_WORDS.split())
_CONTRACTED = frozenset({"d", "ll", "m", "re", "s", "t", "ve"})  # after an apostrophe


def border_advice(graph: Graph) -> Iterator[Finding]:
    """Generations whose prompt probably ends inside a token.

    A model is trained on texts in their usual tokens, so it has rarely seen a prompt that ends
    inside one. Advice is given for a prompt that ends with
    - a space or a tab, with which the next text's first token would have begun;
    - the scheme of a URL, such as `http:`, or `://`;
    - a word, a number or an underscore that may be the beginning of a longer one: not one of the
      usual small words, and none that continues text known only at run time.
    No advice is given for other punctuation, line ends, scripts without spaces between words,
    the beginning of a message, and generations with an explicit `heal`.
    """
    for border in borders(graph):
        risk = _risk(border.tail) if border.node.get("heal") == Lit(None) else None
        if risk is not None:
            what = f"the prompt of {_called(border)} {risk.what}: {_shown(border.tail)}"
            yield Finding(border.node.loc, what, risk.advice)


def _risk(tail: Tail) -> Risk | None:
    if tail.text.endswith(("\t", " ")):
        space = "tab" if tail.text.endswith("\t") else "space"
        return Risk(f"ends with a {space}", _SPACE_ADVICE)
    if _URL.search(tail.text):
        return Risk("ends inside a URL", _URL_ADVICE)
    if _is_word_open(tail):
        return Risk("may end inside a word", _WORD_ADVICE)
    return None


def _is_word_open(tail: Tail) -> bool:
    """Whether the text may end inside a word or a number."""
    match = _WORD.search(tail.text)
    if match is None or (match.start() == 0 and tail.is_cut):
        return False
    word = match.group().replace("’", "'").lower()
    last = word[-1]
    has_spaces = last.isdigit() or last == "_" or last.upper() != last
    is_whole = word in _WHOLE_WORDS or ("'" in word and word.rpartition("'")[2] in _CONTRACTED)
    return has_spaces and not is_whole


def _called(border: Border) -> str:
    name = border.node.text("name")
    return f"gen {json.dumps(name, ensure_ascii=False)}" if name else "gen"


def _shown(tail: Tail) -> str:
    is_cut = tail.is_cut or len(tail.text) > SHOWN_CHARS
    end = tail.text[-SHOWN_CHARS:]
    return json.dumps(("…" if is_cut else "") + end, ensure_ascii=False)


# -- what was not compiled ----------------------------------------------------------------


def left_advice(graph: Graph) -> Iterator[Finding]:
    """Paths left to the interpreter: a run of the file without its source fails on them."""
    left = left_of(graph)
    if left is not None:
        loc = next((node.loc for node in deopts(graph.all_nodes())), None)
        nothing = "; what is compiled asks a model for nothing" if left.is_all else ""
        advice = "run the file with --source PROG.py, or give loops bounds and lists their values"
        yield Finding(loc, f"{left}{nothing}", advice)


def piece_advice(graph: Graph) -> Iterator[Finding]:
    """Pieces of the source that run in Python: a run of the file without the source ends there."""
    for node in pieces_in_python(graph):
        advice = "run the file with --source PROG.py; --full-graph says what to write instead"
        yield Finding(node.loc, f"{shown_piece(node)} runs in Python", advice)


ADVISERS: tuple[Callable[[Graph], Iterator[Finding]], ...] = (
    border_advice,
    left_advice,
    piece_advice,
)
