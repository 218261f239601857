"""The functions of `ir/functions.py` at run time: handlers of `compute` and `attempt`.

Each function is Python's own operation, within the limits of `value_limits.py`. The tracer calls
`evaluate` too, if all arguments are known.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from sgc.errors import ProgramError, SgcError
from sgc.ir.functions import FUNCTIONS
from sgc.ir.graph import Node
from sgc.runtime.executor.functions.list_functions import LIST_EVALUATORS
from sgc.runtime.executor.functions.number_functions import NUMBER_EVALUATORS
from sgc.runtime.executor.functions.own_texts import own
from sgc.runtime.executor.functions.regex_functions import REGEX_EVALUATORS
from sgc.runtime.executor.functions.sharing import Holding
from sgc.runtime.executor.functions.text_functions import TEXT_EVALUATORS
from sgc.runtime.executor.functions.value_functions import VALUE_EVALUATORS
from sgc.runtime.executor.interface.failures import forget_frames
from sgc.runtime.executor.ops.run import Run

EXCEPTIONS: dict[str, type[Exception]] = {
    "AttributeError": AttributeError,
    "IndexError": IndexError,
    "JSONDecodeError": json.JSONDecodeError,
    "KeyError": KeyError,
    "OverflowError": OverflowError,
    "TypeError": TypeError,
    "ValueError": ValueError,
    "ZeroDivisionError": ZeroDivisionError,
}


def evaluate(fn: str, *args: Any) -> Any:
    """Returns the value of a function; raises what Python raises, or LimitExceeded."""
    return EVALUATORS[fn](*args)


def failure(fn: str, *args: Any) -> Exception | None:
    """Returns the exception, of those in the function's row, that it raises; None if none."""
    try:
        evaluate(fn, *args)
    except SgcError:
        raise
    except Exception as error:
        if type(error).__name__ not in FUNCTIONS[fn].errors:
            raise
        forget_frames(error)  # they hold the run, and this: a cycle
        return error
    return None


def _raises(error: str, fn: str, *args: Any) -> bool:
    if fn not in EVALUATORS or fn == "raises":
        raise ProgramError(f"there is no function {fn!r} that could raise {error}")
    found = failure(fn, *args)
    return found is not None and type(found).__name__ == error


EVALUATORS: dict[str, Callable[..., Any]] = {
    **TEXT_EVALUATORS,
    **NUMBER_EVALUATORS,
    **VALUE_EVALUATORS,
    **LIST_EVALUATORS,
    **REGEX_EVALUATORS,
    "raises": _raises,
}


# Their result replaces the list that is their first argument.
TAKES_PLACE = frozenset({"push", "put", "insert", "without", "removed"})
HOLDING = dict.fromkeys(("push", "put", "insert"), Holding.RESULT) | dict.fromkeys(
    ("item", "get", "smallest", "largest"), Holding.ARGUMENTS
)
PUTS_TOGETHER = frozenset({"join", "concat", "push", "plus", "put", "insert"})


def _compute(run: Run, node: Node) -> tuple[Any, ...]:
    fn, args, special = node.text("fn"), run.field(node, "args"), run.context.special
    if special is not None and fn in PUTS_TOGETHER:
        args = own(node.get("args"), list(args), special)
    try:
        value = evaluate(fn, *args)
    except SgcError:
        raise
    except Exception as error:
        raise ProgramError(f"{fn} failed: {type(error).__name__}: {error}") from error
    if run.context.sharing is not None:
        given = args[1:] if fn in TAKES_PLACE else args
        run.context.sharing.note(value, given, node=node, holding=HOLDING.get(fn, Holding.UNKNOWN))
    return (value,)


def _attempt(run: Run, node: Node) -> tuple[Any, ...]:
    error = failure(node.text("fn"), *run.field(node, "args"))
    return (True, "") if error is None else (False, str(error))


FUNCTION_HANDLERS: dict[str, Callable[[Run, Node], tuple[Any, ...]]] = {
    "compute": _compute,
    "attempt": _attempt,
}
