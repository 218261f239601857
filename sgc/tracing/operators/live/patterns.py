"""The patterns of `match` on a live object, which code matches."""

from __future__ import annotations

from typing import Any

from sgc.core.stops import INTERPRET, stop
from sgc.ir import types
from sgc.ir.code import CodeError
from sgc.tracing.pieces.live import bound_code
from sgc.tracing.pieces.text.constants import NotData
from sgc.tracing.values.live.abstract_live import AbstractLive


def sequence_parts(value: AbstractLive, before: int, after: int | None) -> tuple[list[Any], ...]:
    names = [f"x{n}" for n in range(before + (after or 0))]
    inside = [*names[:before], *(["*rest"] if after is not None else []), *names[before:]]
    given = [*names[:before], *(["rest"] if after is not None else []), *names[before:]]
    return _matched(value, f"[{', '.join(inside)}]", given)


def mapping_parts(value: AbstractLive, keys: tuple[Any, ...]) -> tuple[list[Any], ...]:
    if not all(type(each) in (str, int, bool, float, type(None)) for each in keys):
        stop("a key of a `case {…}` is known only at run time", INTERPRET)
    names = [f"x{n}" for n in range(len(keys))]
    inside = [f"{key!r}: {name}" for key, name in zip(keys, names, strict=True)]
    return _matched(value, f"{{{', '.join(inside)}}}", names)


def object_parts(
    value: AbstractLive, kind: Any, count: int, attributes: tuple[str, ...]
) -> tuple[list[Any], ...]:
    names = [f"x{n}" for n in range(count + len(attributes))]
    named = [f"{name}={x}" for name, x in zip(attributes, names[count:], strict=True)]
    inside = ", ".join([*names[:count], *named])
    return _matched(value, f"{kind.__name__}({inside})", names, kind)


def _matched(
    value: AbstractLive, pattern: str, names: list[str], kind: Any = None
) -> tuple[list[Any], ...]:
    """The parts that a pattern names, in a tuple; an empty tuple if the pattern does not match."""
    code = (
        f"def piece(a):\n    match a:\n        case {pattern}:\n"
        f"            return [{', '.join(['True', *names])}]\n"
        f"    return [{', '.join(['False', *('None' for _ in names)])}]"
    )
    if not names:
        code = f"def piece(a):\n    match a:\n        case {pattern}:\n            return True\n"
        code += "    return False"
    session: Any = value.session
    if kind is not None:
        try:
            code = bound_code(session, code, {kind.__name__: kind})
        except (NotData, CodeError) as error:
            stop(f"`case {kind.__name__}(…)` of a value known only at run time: {error}", INTERPRET)
    is_it, *found = session.performed(code, (value,), (types.BOOL, *(types.LIVE for _ in names)))
    return (found,) if is_it else ()


def known(value: Any) -> Any:
    """A value that Python itself inspects, as the subject of a `match`; stops at a live object."""
    parts = value if isinstance(value, (tuple, list)) else (value,)
    if any(type(each) is AbstractLive for each in parts):
        stop("Python itself inspects a value known only at run time", INTERPRET)
    return value
