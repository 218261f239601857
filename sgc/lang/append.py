"""Appending to a stream: each word of the language becomes nodes of the program."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from sgc.core.markers import CLOSE, OPEN, has_marker
from sgc.core.places import here, placed
from sgc.core.session import Stream
from sgc.core.watching import unhooked
from sgc.errors import AppendError, UsageError
from sgc.ir import types
from sgc.ir.graph import Lit, Operand, Ref
from sgc.lang.choices import DEFAULT_METHOD
from sgc.lang.parameters import check_choices, check_parameters
from sgc.lang.words import (
    Appended,
    Gen,
    Image,
    RoleBegin,
    RoleEnd,
    Select,
    SeparateReasoning,
    Sequenced,
    Video,
)
from sgc.runtime.executor.interface.media import load_media, load_video
from sgc.runtime.executor.prompts.reasoning import MODEL_TYPES


@unhooked
def append(state: Stream, part: Any) -> None:
    """Appends a text or an expression to a stream; raises AppendError for anything else."""
    if (as_text := getattr(type(part), "as_appended", None)) is not None:
        part = as_text(part)  # an abstract value, which may not be a text
    if isinstance(part, str):
        _text(state, part)
        return
    handler = _HANDLERS.get(type(part))
    if handler is None:
        raise AppendError(
            f"only text and expressions can be appended, found {shown(part)}",
            where=here(),
            hint="write str(x) for a number, and s += gen(...) for a generation",
        )
    handler(state, part)


def _text(state: Stream, text: str) -> None:
    for is_constant, operand in state.session.text_parts(text):
        if is_constant:
            advance(state, "const", text=operand)
        else:
            advance(state, "append", value=operand)


def advance(state: Stream, op: str, **fields: Operand) -> None:
    """Emits an op that takes the stream's state and returns the next one."""
    stream = Ref(state.symbol.name)
    (state.symbol,) = state.session.emit(op, [("s", types.STREAM)], stream=stream, **fields)


def _sequenced(state: Stream, expr: Sequenced) -> None:
    for part in expr.parts:
        append(state, part)


def _appended(state: Stream, expr: Appended) -> None:
    if expr.state is not state:
        append(state, expr.expr)


# -- generating ---------------------------------------------------------------------------

_LISTS = ("stop", "stop_token_ids", "stop_regex")


def _gen(state: Stream, expr: Gen, is_hidden: bool = False) -> None:
    session = state.session
    n = expr.params.get("n")
    fields: dict[str, Operand] = {}
    check_parameters(session, expr.params)
    for key, value in expr.params.items():
        if key != "n":
            fields[key] = session.operands(value) if key in _LISTS else session.scalar(value)
    if session.stack.heal is not None:
        fields.setdefault("heal", Lit(session.stack.heal))
    if n is not None and session.is_abstract(n):
        session.note_size(n)
    if n is None or n == 1:  # a decision, if it is known only at run time
        if n == 1:
            fields["single"] = Lit(True)
        if is_hidden:
            fields["hidden"] = Lit(True)
        if session.stack.ahead:
            fields["ahead"] = Lit(session.stack.ahead)
        _sample(state, "gen", expr.name, types.TEXT, fields)
    else:
        _sample(
            state, "gen_n", expr.name, types.list_of(types.TEXT), {"n": session.scalar(n), **fields}
        )


def _select(state: Stream, expr: Select) -> None:
    if isinstance(expr.choices, str):
        raise UsageError(
            f"select's choices must be a list of texts, found the text {expr.choices!r}",
            where=here(),
        )
    session = state.session
    is_known = not session.is_abstract(expr.choices)
    if is_known and not expr.choices:
        if session.is_certain:
            raise UsageError("select needs at least one choice", where=here())
        is_known = False  # the graph's select raises it if a run gets there
    choices: Operand = session.operands(expr.choices) if is_known else ()
    check_choices(session, expr.choices if is_known else (), expr.method)
    fields: dict[str, Operand] = (
        {"choices": choices} if is_known else {"among": session.operand(expr.choices)}
    )
    if expr.method != DEFAULT_METHOD:
        fields["method"] = session.scalar(expr.method)
    for key, value in expr.params.items():
        fields[key] = session.scalar(value)
    known = _options(choices) if is_known else ()
    _sample(state, "select", expr.name, types.choice_of(known), fields)  # type: ignore[arg-type]


def _options(choices: Operand) -> tuple[Any, ...]:
    """The choices, if all are known."""
    found = choices if isinstance(choices, tuple) else ()
    are_known = all(isinstance(each, Lit) and isinstance(each.value, str) for each in found)
    return tuple(each.value for each in found if isinstance(each, Lit)) if are_known else ()


def _sample(
    state: Stream, op: str, name: str | None, type_: types.Type, fields: dict[str, Operand]
) -> None:
    if name is not None:
        late = state.session.late(state, name, is_set=True)
        is_late = late is not None and has_marker(name)
        fields["name"] = late.late_name(name) if late and is_late else Lit(checked_name(name))
    given = fields.get("name")
    results = [("s", types.STREAM), (name if name and isinstance(given, Lit) else op, type_)]
    stream = Ref(state.symbol.name)
    state.symbol, value = state.session.emit(op, results, stream=stream, **fields)
    state.set_generated(name, value, fields.get("hidden") == Lit(True))


def _separate_reasoning(state: Stream, expr: SeparateReasoning) -> None:
    model_type = expr.model_type
    if not isinstance(model_type, str) or model_type.lower() not in MODEL_TYPES:
        raise UsageError(
            f"separate_reasoning has no model_type {model_type!r}",
            where=here(),
            hint=f"use one of: {', '.join(MODEL_TYPES)}",
        )
    if expr.expr is not None:
        _separated(state, expr.expr, model_type)


def _separated(state: Stream, part: Any, model_type: str) -> None:
    """Appends an expression with the reasoning removed from each of its generations."""
    if isinstance(part, Sequenced):
        for item in part.parts:
            _separated(state, item, model_type)
        return
    if not isinstance(part, (Gen, Select)):
        append(state, part)
        return
    name, start = part.name, state.symbol
    if name is None or part.params.get("n", 1) != 1:
        raise UsageError("separate_reasoning needs one generation with a name", where=here())
    checked_name(name)
    if isinstance(part, Gen):
        _gen(state, part, is_hidden=True)
    else:
        _select(state, part)
    results = [
        ("s", types.STREAM),
        (name, types.TEXT),
        (f"{name}_reasoning_content", types.TEXT),
    ]
    state.symbol, answer, reasoning = state.session.emit(
        "separate_reasoning",
        results,
        stream=Ref(state.symbol.name),
        start=Ref(start.name),
        model_type=Lit(model_type),
        name=Lit(name),
    )
    state.set_derived(name, answer)
    state.set_derived(f"{name}_reasoning_content", reasoning)


# -- images -------------------------------------------------------------------------------


def _image(state: Stream, expr: Image) -> None:
    advance(state, "image", value=_media(state, expr.value, load_media))


def _video(state: Stream, expr: Video) -> None:
    n_frames = expr.n_frames
    if state.session.is_abstract(n_frames):
        refuse_unknown(
            state.session,
            n_frames,
            "a video of a number of frames known only at run time",
            "give a plain number",
        )
    if isinstance(n_frames, bool) or not isinstance(n_frames, int) or not 1 <= n_frames <= 1024:
        raise UsageError(f"video takes from 1 to 1024 frames, found {n_frames!r}", where=here())
    value = _media(state, expr.value, lambda path: load_video(path, n_frames))
    advance(state, "video", value=value, frames=Lit(n_frames))


def _media(state: Stream, value: Any, load: Any) -> Operand:
    session = state.session
    if session.is_abstract(value):
        return session.scalar(value)
    with placed():
        return session.media(load, value)


# -- roles --------------------------------------------------------------------------------


def _role_begin(state: Stream, expr: RoleBegin) -> None:
    if state.roles:
        raise UsageError(
            f"role {expr.role!r} begins inside role {state.roles[-1]!r}; roles do not nest",
            where=here(),
            hint=f"end {state.roles[-1]!r} first",
        )
    state.roles.append(checked_name(expr.role))
    advance(state, "role_begin", role=Lit(expr.role))


def _role_end(state: Stream, expr: RoleEnd) -> None:
    if state.roles != [expr.role]:
        found = f"{state.roles[-1]!r} is open" if state.roles else "no role is open"
        raise UsageError(f"role {expr.role!r} ends, but {found}", where=here())
    state.roles.pop()
    advance(state, "role_end", role=Lit(expr.role))


_HANDLERS: dict[type, Any] = {
    Sequenced: _sequenced,
    Appended: _appended,
    Gen: _gen,
    Select: _select,
    SeparateReasoning: _separate_reasoning,
    Image: _image,
    Video: _video,
    RoleBegin: _role_begin,
    RoleEnd: _role_end,
}


def checked_name(name: Any) -> str:
    if isinstance(name, str) and has_marker(name):
        _refuse_name()
    if type(name) is not str or not name:
        raise UsageError(f"a name must be a plain text, found {shown(name)}", where=here())
    return name


def refuse_unknown(session: Any, value: Any, message: str, hint: str) -> NoReturn:
    """Stops the trace at a number that must be known; the hint for an argument is to bind it."""
    from sgc.core.stops import INTERPRET, stop

    name = session.shown(str(value)) if isinstance(value, str) else value.symbol.name
    bind = f"give its value when compiling, --bind {name}=N; or "
    bind = bind if session.is_parameter(name) else ""
    stop(message, hint=f"{bind}{hint}; or {INTERPRET}")


def _refuse_name() -> NoReturn:
    from sgc.core.stops import INTERPRET, stop

    stop(
        "a name made of a value known only at run time, where it must be known",
        hint="give it by a plain text; or " + INTERPRET,
    )


# A `repr` may have escaped a marker in it.
_MARKER = re.compile(rf"(?:{OPEN}|\\ufdd0)[0-9]+(?:{CLOSE}|\\ufdd1)")


def shown(value: Any) -> str:
    """A value for an error message, shortened."""
    text = _MARKER.sub("{…}", repr(value))
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
