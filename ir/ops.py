"""The table of ops: the fields, results and flags of each op.

Printer, parser, verifier, file form, `docs/ops.md` and many tests are loops over `OPS`.
CONTRIBUTING.md says what a new op needs (`tests/ir/test_new_op.py` adds some). Semantics live in
the executor.
"""

from __future__ import annotations

from collections.abc import Set

from sgc.ir.op_specs import (
    ANY_OBJECT,
    ANY_VALUE,
    ANYTHING,
    PRINTABLE,
    REQUIRED,
    STREAMS,
    TEXTUAL,
    FieldSpec,
    Flag,
    OpSpec,
)
from sgc.ir.sampling import SAMPLING, option
from sgc.ir.types import Kind

# Raised when a row is new or changes meaning; a file made with a newer table is refused.
OP_TABLE_VERSION = 15


def _stream(name: str = "stream", consumes: bool = True) -> FieldSpec:
    return FieldSpec(name, STREAMS, consumes=consumes, positional=True)


def _static(name: str, kind: Kind, doc: str = "", default: object = REQUIRED) -> FieldSpec:
    positional = default is REQUIRED
    return FieldSpec(name, frozenset({kind}), default, static=True, positional=positional, doc=doc)


def _named(name: str, kind: Kind, doc: str = "") -> FieldSpec:
    return FieldSpec(name, frozenset({kind}), static=True, doc=doc)


def _value(name: str, kinds: Set[Kind], doc: str = "") -> FieldSpec:
    return FieldSpec(name, frozenset(kinds), positional=True, doc=doc)


def _list(name: str, kinds: Set[Kind], doc: str = "", default: object = REQUIRED) -> FieldSpec:
    return FieldSpec(name, frozenset(kinds), default, is_list=True, doc=doc)


def _words(name: str, doc: str = "", default: object = REQUIRED) -> FieldSpec:
    return FieldSpec(name, TEXTUAL, default, is_list=True, static=True, doc=doc)


def _label(name: str, kind: Kind, doc: str, default: object) -> FieldSpec:
    return FieldSpec(name, frozenset({kind}), default, static=True, doc=doc, is_label=True)


def _name(doc: str) -> FieldSpec:
    """The name of a variable, which may be known only at run time."""
    return FieldSpec("name", TEXTUAL, default="", doc=doc, is_label=True)


def _flags(*flags: Flag) -> frozenset[Flag]:
    return frozenset(flags)


# A hint on sampling ops, for engines that cache prompts.
_LAST = _label("last", Kind.BOOL, "no request continues from here: its tokens may be evicted first",
               default=False)  # fmt: skip

_PURE = _flags(Flag.PURE)
_APPENDS = _flags(Flag.APPENDS)
_CONSTANT = _flags(Flag.APPENDS, Flag.CONSTANT)
_ROLE = _CONSTANT | {Flag.ROLE}
_MEDIA = _flags(Flag.APPENDS, Flag.MEDIA)
_ASKS = _flags(Flag.APPENDS, Flag.STOCHASTIC, Flag.ASKS)
_GENERATES = _ASKS | {Flag.GENERATES}
_ENDS = _flags(Flag.TERMINATOR)

TABLE: tuple[OpSpec, ...] = (
    OpSpec(
        "stream",
        "Begins a stream: an empty prompt. `path` places it among the calls that led to it.",
        (
            _static("name", Kind.TEXT, "the function it belongs to"),
            _static("path", Kind.TEXT, "call path; seeds are derived from it", default=""),
            FieldSpec(
                "caller",
                STREAMS,
                default=None,
                doc="a stream of the calling function: the path is counted from its own",
            ),
            _list(
                "after",
                ANYTHING,
                "values that must exist first: the ends of an earlier mapped call",
                default=(),
            ),
        ),
        (Kind.STREAM,),
        _flags(Flag.PURE, Flag.EMPTY, Flag.BEGINS),
        '%s0 = stream "tip_suggestion"',
    ),
    OpSpec(
        "const",
        "Appends the program's own text. Special tokens are recognised in it.",
        (_stream(), _static("text", Kind.TEXT)),
        (Kind.STREAM,),
        _CONSTANT,
        '%s1 = const %s0 "Here are 2 concise tips for "',
    ),
    OpSpec(
        "append",
        "Appends a value as text: an argument or a generated text. Never special tokens.",
        (_stream(), _value("value", PRINTABLE)),
        (Kind.STREAM,),
        _APPENDS,
        "%s2 = append %s1 %topic",
    ),
    OpSpec(
        "role_begin",
        "Appends what the chat template puts before a role's content.",
        (_stream(), _static("role", Kind.TEXT)),
        (Kind.STREAM,),
        _ROLE,
        '%s1 = role_begin %s0 "user"',
    ),
    OpSpec(
        "role_end",
        "Appends what the chat template puts after a role's content.",
        (_stream(), _static("role", Kind.TEXT)),
        (Kind.STREAM,),
        _ROLE,
        '%s2 = role_end %s1 "user"',
    ),
    OpSpec(
        "gen",
        "Generates text from the prompt so far, appends the text and returns it.",
        (
            _stream(),
            _name("the user's name for it"),
            _static("single", Kind.BOOL, "draws one text whatever a run's n is", default=False),
            _label("hidden", Kind.BOOL, "not shown as it comes; later text is", default=False),
            _label(
                "ahead",
                Kind.INT,
                "tokens to request at once, for later generations too, where requests are billed",
                default=0,
            ),
            _LAST,
            *SAMPLING,
        ),
        (Kind.STREAM, Kind.TEXT),
        _GENERATES,
        '%s3, %tip_1 = gen %s2 name="tip_1" stop=["\\n", ":", "."]',
    ),
    OpSpec(
        "gen_n",
        "Generates n texts from the prompt so far, appends the first and returns all.",
        (
            _stream(),
            _value("n", {Kind.INT}),
            _name("the user's name for them"),
            _LAST,
            *SAMPLING,
        ),
        (Kind.STREAM, Kind.LIST),
        _GENERATES,
        '%s3, %answers = gen_n %s2 4 name="answers" temperature=0.8',
    ),
    OpSpec(
        "select",
        "Appends the likeliest of some texts and returns it.",
        (
            _stream(),
            _list("choices", TEXTUAL, "at least one, or `among`", default=()),
            FieldSpec(
                "among",
                frozenset({Kind.LIST, Kind.JSON}),
                default=None,
                doc="a list of the choices, known only at run time",
            ),
            _name("the user's name for it"),
            _static(
                "method",
                Kind.TEXT,
                "token_length_normalized, greedy_token_selection, "
                "unconditional_likelihood_normalized or joint",
                default="token_length_normalized",
            ),
            _LAST,
            option("temperature", Kind.FLOAT, "below 1e-5 takes the best; else draws"),
            option("seed", Kind.INT, "of this draw alone"),
        ),
        (Kind.STREAM, Kind.CHOICE),
        _ASKS,
        '%s4, %grade = select %s3 choices=["A", "B"] name="grade"',
    ),
    OpSpec(
        "share",
        "Appends the text of an equal generation of another stream, and returns its results.",
        (
            _stream(),
            _stream("start", consumes=False),
            _stream("end", consumes=False),
            _value("value", ANY_VALUE),
            _name("the user's name for it"),
        ),
        (Kind.STREAM, None),
        _APPENDS,
        '%t3, %tip_2: text = share %t2 %s2 %s3 %tip_1 name="tip_2"',
        span=("start", "end"),
    ),
    OpSpec(
        "cache",
        "Marks the prompt up to here for the provider's cache; other engines ignore the mark.",
        (_stream(), _static("ttl", Kind.TEXT, "for how long: 5m, 1h", default="")),
        (Kind.STREAM,),
        _flags(Flag.APPENDS, Flag.HINT, Flag.SAME),
        '%s2 = cache %s1 ttl="1h"',
    ),
    OpSpec(
        "prefetch",
        "Has the beginning of a prompt computed before its request, when nothing else waits.",
        (
            _words("kinds", "of each piece: const, value, role_begin or role_end"),
            _list("pieces", PRINTABLE, "texts, and the names of roles"),
            FieldSpec("stream", STREAMS, default=None, doc="the state before; none: a new prompt"),
        ),
        (),
        _flags(Flag.HINT, Flag.TAKES_LOST),
        'prefetch kinds=["const"] pieces=["You are a strict judge."]',
    ),
    OpSpec(
        "media",
        "An image, or a video as frames: its bytes in base64, known by their SHA-256.",
        (
            _static("sha256", Kind.TEXT),
            _named("mime", Kind.TEXT),
            _named("data", Kind.TEXT, "base64"),
            _static("frames", Kind.INT, "of a video", default=0),
        ),
        (Kind.MEDIA,),
        _PURE,
        '%image = media "9f86d081…" mime="image/png" data="iVBORw0KGgo="',
    ),
    OpSpec(
        "image",
        "Appends an image.",
        (_stream(), _value("value", {Kind.MEDIA})),
        (Kind.STREAM,),
        _MEDIA,
        "%s2 = image %s1 %photo",
    ),
    OpSpec(
        "video",
        "Appends a video as some of its frames.",
        (
            _stream(),
            _value("value", {Kind.MEDIA}),
            _named("frames", Kind.INT, "evenly spaced"),
        ),
        (Kind.STREAM,),
        _MEDIA,
        "%s2 = video %s1 %clip frames=8",
    ),
    OpSpec(
        "separate_reasoning",
        "Takes the reasoning out of the text appended since `start`; returns the rest and the "
        "reasoning.",
        (
            _stream(),
            _stream("start", consumes=False),
            _static("model_type", Kind.TEXT, "whose marks of reasoning"),
            _label("name", Kind.TEXT, "the user's name for the rest", default=""),
        ),
        (Kind.STREAM, Kind.TEXT, Kind.TEXT),
        _APPENDS,
        '%s4, %answer, %why = separate_reasoning %s3 %s2 "qwen3"',
        span=("start", "stream"),
    ),
    OpSpec(
        "append_span",
        "Appends the text and images between two states of another stream.",
        (
            _stream(),
            _stream("start", consumes=False),
            _stream("end", consumes=False),
            _static(
                "kv",
                Kind.TEXT,
                "first or next: an engine may take it as it was computed there, beside the parts "
                "that are appended before and after it, which is an approximation",
                default="",
            ),
        ),
        (Kind.STREAM,),
        _APPENDS,
        '%s5 = append_span %s4 %c0 %c3 kv="first"',
        span=("start", "end"),
    ),
    OpSpec(
        "fork",
        "Returns the trunk and n children that all continue the same prompt.",
        (_stream(), _static("n", Kind.INT, "children")),
        (Kind.STREAM, Kind.STREAM),
        _flags(Flag.APPENDS, Flag.SAME, Flag.BEGINS),
        "%s4, %c0, %c1 = fork %s3 2",
        variadic_results=True,
    ),
    OpSpec(
        "open_fork",
        "Returns the trunk, and a fork of n children that continue the same prompt; `child` begins "
        "them one by one.",
        (
            _stream(),
            _value("n", {Kind.INT}, "children: from 1 to 100000"),
        ),
        (Kind.STREAM, Kind.STREAM),
        _flags(Flag.APPENDS, Flag.SAME, Flag.BEGINS),
        "%s4, %f0 = open_fork %s3 %n",
    ),
    OpSpec(
        "child",
        "Begins the next child of an open fork.",
        (_stream(),),
        (Kind.STREAM, Kind.STREAM),
        _flags(Flag.APPENDS, Flag.SAME, Flag.BEGINS),
        "%f1, %c0 = child %f0",
    ),
    OpSpec(
        "ended",
        "Returns a test once the test is known and the stream has reached this state.",
        (
            _stream(consumes=False),
            _value("test", {Kind.BOOL}),
        ),
        (Kind.BOOL,),
        _flags(Flag.PURE, Flag.TIMED),
        "%e0 = ended %c2 %is_short",
    ),
    OpSpec(
        "join_first",
        "Which of some tests are the first k to come true: their indices, in order.",
        (
            FieldSpec("entries", frozenset({Kind.BOOL}), is_list=True, positional=True),
            _static("k", Kind.INT, "of them", default=1),
        ),
        (Kind.LIST,),
        _flags(Flag.CUTS, Flag.TIMED, Flag.TAKES_LOST),
        "%winners: list[int] = join_first [%e0, %e1] k=1",
    ),
    OpSpec(
        "winner",
        "Continues with a child if it is a winner; else cuts off the child and its requests.",
        (
            _stream(),
            _stream("start", consumes=False),
            _value("winners", {Kind.LIST}),
            _static("index", Kind.INT, "the child's"),
        ),
        (Kind.STREAM,),
        _flags(Flag.APPENDS, Flag.CUTS, Flag.TIMED, Flag.TAKES_LOST, Flag.UNSURE),
        "%c4 = winner %c2 %c0 %winners 0",
    ),
    OpSpec(
        "winner_value",
        "A value of a child; using it fails if the child is no winner.",
        (
            _value("value", ANY_VALUE),
            _value("winners", {Kind.LIST}),
            _static("index", Kind.INT, "the child's"),
        ),
        (None,),
        _flags(Flag.PURE, Flag.TIMED, Flag.TAKES_LOST, Flag.UNSURE),
        "%tip_1.1: text = winner_value %tip_1 %winners 0",
    ),
    OpSpec(
        "winner_values",
        "The values of the children that are winners.",
        (
            _value("winners", {Kind.LIST}),
            FieldSpec(
                "owners",
                frozenset({Kind.INT}),
                is_list=True,
                static=True,
                doc="for each item, the index of its child",
            ),
            _list("items", ANY_VALUE),
        ),
        (Kind.LIST,),
        _flags(Flag.PURE, Flag.TIMED, Flag.TAKES_LOST),
        "%tips = winner_values %winners owners=[0, 1] items=[%tip_1, %tip_2]",
    ),
    OpSpec(
        "text_of",
        "The whole text of a stream state.",
        (_stream(consumes=False),),
        (Kind.TEXT,),
        _PURE,
        "%all = text_of %s3",
    ),
    OpSpec(
        "span",
        "The text appended between two states of one stream.",
        (_stream("start", consumes=False), _stream("end", consumes=False)),
        (Kind.TEXT,),
        _PURE,
        "%part = span %s1 %s3",
        span=("start", "end"),
    ),
    OpSpec(
        "concat",
        "Joins texts end to end; numbers as Python prints them.",
        (_list("parts", PRINTABLE),),
        (Kind.TEXT,),
        _PURE,
        '%line = concat parts=["Tip: ", %tip_1]',
    ),
    OpSpec(
        "format",
        "Python's format(value, spec).",
        (_value("value", PRINTABLE), _static("spec", Kind.TEXT)),
        (Kind.TEXT,),
        _PURE,
        '%padded = format %n ">4"',
    ),
    OpSpec(
        "list",
        "Gathers values into a list.",
        (_list("items", ANY_VALUE),),
        (Kind.LIST,),
        _PURE,
        "%judgments = list items=[%j0, %j1]",
    ),
    OpSpec(
        "record",
        "Gathers values under keys; items without keys become a tuple.",
        (
            _words("keys", default=()),
            _list("items", ANY_VALUE),
            _static("is_tuple", Kind.BOOL, "without items: a tuple, not a dict", default=False),
        ),
        (Kind.JSON,),
        _PURE,
        '%r = record keys=["a"] items=[%tip_1]',
    ),
    OpSpec(
        "compute",
        "A pure function of values, by its name in the table of functions.",
        (
            _static("fn", Kind.TEXT, "which function"),
            FieldSpec("args", ANY_VALUE, is_list=True, positional=True),
        ),
        (None,),
        _PURE,
        '%tidy: text = compute "strip" [%tip_1]',
    ),
    OpSpec(
        "attempt",
        "Whether `compute` of the same function would succeed, and its error's message if not.",
        (
            _static("fn", Kind.TEXT, "which function; one that can fail"),
            FieldSpec("args", ANY_VALUE, is_list=True, positional=True),
        ),
        (Kind.BOOL, Kind.TEXT),
        _PURE,
        '%ok, %why = attempt "int" [%tip_1]',
    ),
    OpSpec(
        "evaluate",
        "Runs a small Python module (`ir/code.py`), which is data, on values; returns the result "
        "of its last function. It may define classes, and take and return their instances: a class "
        "is the same in all modules that define it, and what it uses, by the same text. `outcome` "
        "tells of a failure.",
        (
            _static("code", Kind.TEXT, "the module's text"),
            FieldSpec("args", ANY_VALUE, is_list=True, positional=True),
            FieldSpec(
                "changed",
                frozenset({Kind.INT}),
                default=(),
                is_list=True,
                static=True,
                doc="the arguments that it changes and returns; nothing else may hold them",
            ),
            _static("is_several", Kind.BOOL, "the result is a list of values", default=False),
            _static(
                "gives",
                Kind.TEXT,
                "the type of the result, as an annotation: `list[tuple[str, int]] | None`; "
                "another result is an error",
                default="",
            ),
        ),
        (None,),
        _PURE,
        '%n: json = evaluate "def f(text):\\n    return len(text)" [%tip_1]',
    ),
    OpSpec(
        "unset",
        "Stands for a name that was not set on this path of the program; using it fails.",
        (_static("name", Kind.TEXT),),
        (None,),
        _flags(Flag.PURE, Flag.UNSURE),
        '%none: text = unset "tip_1"',
    ),
    OpSpec(
        "perform",
        "Runs code as `evaluate` does, on live objects: it gets the objects themselves, and may "
        "change and return them. All such nodes of a run run in the program's order.",
        (
            _static("code", Kind.TEXT, "the module's text"),
            FieldSpec("args", ANY_OBJECT, is_list=True, positional=True),
            _static("n", Kind.INT, "how many values it returns; if several, in a list", default=1),
            _static(
                "catches",
                Kind.BOOL,
                "a failure is told by `outcome`; else it ends the run",
                default=False,
            ),
            _static(
                "is_apart",
                Kind.BOOL,
                "it takes no live object and makes a new one: it has no place in that order",
                default=False,
            ),
        ),
        (None,),
        _flags(Flag.LIVE),
        '%2: live = perform "def f(xs, x):\\n    xs.append(x)\\n    return xs" [%notes, %text]',
        variadic_results=True,
    ),
    OpSpec(
        "future",
        "A live object that stands for the variables of a stream to which nothing is appended any "
        "more, and for its call's return value. It waits for none of these; code that may read "
        "one does.",
        (
            _words("keys", "the names of the variables", default=()),
            FieldSpec("items", ANY_OBJECT, is_list=True, default=()),
            FieldSpec("returned", ANY_OBJECT, default=None, doc="none: it has returned None"),
        ),
        (Kind.LIVE,),
        _flags(Flag.TAKES_LOST),
        '%call = future keys=["note"] items=[%note] returned=%v',
    ),
    OpSpec(
        "tool",
        "Calls a function of the host, which the file only names, and returns its result.",
        (
            _static("name", Kind.TEXT, "`module:function`; the caller says what it stands for"),
            FieldSpec("args", ANY_VALUE, is_list=True, positional=True),
            _words(
                "keys",
                "the parameters of the last arguments; the others are positional",
                default=(),
            ),
            _static(
                "effect",
                Kind.TEXT,
                "pure, idempotent or effect; all but pure ones run in the program's order",
                default="effect",
            ),
            _named(
                "signature", Kind.TEXT, "parameters and annotations, which must be the function's"
            ),
            FieldSpec(
                "timeout_s",
                frozenset({Kind.FLOAT}),
                default=None,
                static=True,
                unit="seconds",
                doc="a call that takes longer fails",
            ),
            _static(
                "on_error",
                Kind.TEXT,
                "JSON of the result of a failed call; none: the run fails",
                default=None,
            ),
            _static(
                "path",
                Kind.TEXT,
                "the mapped call that contains it, within which calls are counted",
                default="",
            ),
            _static(
                "catches",
                Kind.BOOL,
                "a failure is told by `outcome`, and does not end the run",
                default=False,
            ),
        ),
        (None,),
        _flags(Flag.HOST, Flag.LOGGED),
        '%hits: text = tool "agent:search" [%query] effect="pure" signature="(query: str) -> str"',
    ),
    OpSpec(
        "host",
        "Runs a piece of the program's source in Python, in the program's order; the file only "
        "names the piece, and a run without the source ends there. No log keeps its result.",
        (
            _static("name", Kind.TEXT, "`module:line:column` of the piece"),
            FieldSpec("args", ANY_VALUE, is_list=True, positional=True),
            _words("keys", "the piece's variables that get the arguments", default=()),
            _named("source", Kind.TEXT, "the piece, which the program's source must still have"),
            _static(
                "gives",
                Kind.TEXT,
                "the type of the result, as an annotation; another result is an error",
                default="",
            ),
        ),
        (None,),
        _flags(Flag.HOST),
        '%parts: json = host "agent:12:8" [%reply] keys=["t"] source="ET.fromstring(t).attrib"',
    ),
    OpSpec(
        "show",
        "Shows a text to people, in the program's order, as `print` and loggers do; gives whether "
        "it is shown, for which later errors wait.",
        (
            FieldSpec("text", TEXTUAL, positional=True),
            _static("to", Kind.TEXT, "stdout, stderr, log or warnings", default="stdout"),
            _static("name", Kind.TEXT, "of the logger, or of the warning's class", default=""),
            _static("level", Kind.INT, "of a line of a log", default=0),
        ),
        (Kind.BOOL,),
        _flags(Flag.HOST, Flag.SHOWS),
        '%shown = show %line to="stderr"',
    ),
    OpSpec(
        "outcome",
        "Whether a tool's call, `host`, `evaluate` or `perform` succeeded; if not, the error's "
        "message, and the names of the error's class and of all its base classes.",
        (FieldSpec("value", ANY_OBJECT, positional=True, doc="of a call that catches"),),
        (Kind.BOOL, Kind.TEXT, Kind.TEXT, Kind.LIST),
        _PURE,
        "%ok, %why, %kind, %classes = outcome %hits",
    ),
    OpSpec(
        "map",
        "Runs a called program for each item of a list; returns lists of the calls' results.",
        (
            _static("program", Kind.INT, "its number among the called programs"),
            _value("items", {Kind.LIST, Kind.JSON}),
            FieldSpec(
                "caller", STREAMS, doc="a stream of the calling function: paths begin with its own"
            ),
            _words(
                "keys",
                "the parameters that get `args`; the remaining one gets the item",
                default=(),
            ),
            _list("args", ANY_VALUE, default=()),
            _static("width", Kind.INT, "at most so many run at a time", default=16),
            _static(
                "ordinal",
                Kind.INT,
                "its number among the maps of the caller; none: it is counted",
                default=None,
            ),
            _words("names", "variables of the main streams; a list for each", default=()),
            _static("returns", Kind.BOOL, "then the list of the values returned", default=False),
            _static("texts", Kind.BOOL, "then the list of the main streams' texts", default=False),
        ),
        (Kind.LIST,),
        _flags(Flag.STOCHASTIC, Flag.OUTPUT, Flag.BEGINS, Flag.CALLS, Flag.UNSURE),
        '%notes = map 0 %chunks caller=%s0 width=4 names=["note"]',
        variadic_results=True,
    ),
    OpSpec(
        "publish",
        "Makes a stream and its variables part of the program's result; of an open fork, all "
        "children that no other node publishes.",
        (
            _stream(consumes=False),
            _static("name", Kind.TEXT, "the function it belongs to"),
            _words("keys", default=()),
            _list("items", ANY_VALUE, default=()),
            FieldSpec(
                "named",
                frozenset({Kind.LIST}),
                default=None,
                doc="pairs of a name, known only at run time, and its value",
            ),
        ),
        (),
        _flags(Flag.OUTPUT, Flag.TAKES_LOST),
        'publish %s7 "tip_suggestion" keys=["tip_1"] items=[%tip_1]',
    ),
    OpSpec(
        "return",
        "Ends the program; the value is the function's return value.",
        (FieldSpec("value", ANY_VALUE, default=None, positional=True),),
        (),
        _flags(Flag.TERMINATOR, Flag.OUTPUT),
        "return %summary",
    ),
    OpSpec(
        "jump",
        "Continues with a block; its parameters get the values in order.",
        (
            _static("target", Kind.TEXT, "the block's name"),
            FieldSpec("args", ANYTHING, default=(), is_list=True, consumes=True),
        ),
        (),
        _ENDS,
        'jump "join" args=[%s3, %tip_1]',
    ),
    OpSpec(
        "branch",
        "Continues with one of two blocks, which take no parameters.",
        (
            _value("test", {Kind.BOOL}),
            _named("then", Kind.TEXT, "the block if it is true"),
            _named("orelse", Kind.TEXT, "the block if not"),
        ),
        (),
        _ENDS,
        'branch %is_yes then="yes" orelse="no"',
    ),
    OpSpec(
        "switch",
        "Continues with the block of the case that a text equals; the blocks take no parameters.",
        (
            _value("value", TEXTUAL),
            _words("cases"),
            _words("targets", "a block for each case"),
            FieldSpec("default", TEXTUAL, static=True, default="", doc="the block for other texts"),
        ),
        (),
        _ENDS,
        'switch %tool cases=["search", "math"] targets=["b1", "b2"]',
    ),
    OpSpec(
        "fail",
        "Ends the run with an error that the program raises.",
        (
            _static("error", Kind.TEXT, "the exception's class"),
            FieldSpec("message", TEXTUAL, default="", positional=True),
            FieldSpec("failed", ANY_OBJECT, default=None, doc="the tool's call that failed, if so"),
            _static("base", Kind.TEXT, "the builtin class that it derives from", default=""),
        ),
        (),
        _ENDS,
        'fail "ValueError" %why',
    ),
    OpSpec(
        "deopt",
        "What follows was not traced: the interpreter continues, fed with the run's log.",
        (_static("reason", Kind.TEXT),),
        (),
        _ENDS,
        'deopt "more than 256 paths"',
    ),
)

OPS: dict[str, OpSpec] = {row.name: row for row in TABLE}


def ops_with(flag: Flag) -> frozenset[str]:
    """The names of the ops with a flag."""
    return frozenset(row.name for row in OPS.values() if flag in row.flags)
