"""How generators of the code are stepped through.

`driven` is what the code sees as a generator. Its statements are Python generators of their own,
one inside the other (`generators.py`), and at the border of each Python does what it should do
only at the border of the code's generator: it makes a RuntimeError of a StopIteration, and a
closed generator never goes on after its `yield`. So a closed one is thrown `Closing`, and
`raised_by_code` finds the StopIteration again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from sgc.errors import SgcError
from sgc.runtime.executor.code.fuel import Run

Steps = Generator[Any, Any, Any]
_LEFT = "left a generator of the code"


class Closing(BaseException):
    """A GeneratorExit inside of the code's generator."""


# What the code cannot catch: its own limits.
UNCATCHABLE = (SgcError, RecursionError, MemoryError)
# What a handler of the code may take: one without a type takes a GeneratorExit, too.
CAUGHT = (Exception, Closing)


def driven(run: Run, body: Callable[..., Any], *given: Any) -> Any:
    """A generator, each step of which counts as a call inside its caller. given: to the body."""
    # Made only here: of what nothing uses any more Python closes first what was made first.
    inner = body(*given)
    del given
    # What is passed on is held in a list: Python frees chains of generators by recursion.
    box: list[Any] = [None]
    step = send = inner.send
    while True:
        try:
            run.enter_step()
            try:
                box.append(step(box.pop()))
            finally:
                run.depth -= 1
        except StopIteration as ended:
            result = ended.value
            return result[0] if type(result) is tuple else None
        except UNCATCHABLE:
            if step is not send:
                run.left = -1  # what Python closes by itself may not raise: the run would go on
            raise
        except RuntimeError as error:
            vars(error)[_LEFT] = True
            raise
        except Closing:
            if step is send:
                raise
            raise GeneratorExit from None
        step = send
        try:
            box.append((yield box.pop()))
        except GeneratorExit:
            # After the run nothing is done any more; Python may close the statements first.
            if run.left < 0 or inner.gi_running:
                raise
            step = inner.throw
            box.append(Closing)


def raised_by_code(error: BaseException) -> Any:
    """The error as the code raised it: a StopIteration that left only statements is itself."""
    if type(error) is not RuntimeError or not isinstance(error.__cause__, StopIteration):
        return error
    is_own = error.args != ("generator raised StopIteration",) or _LEFT in vars(error)
    return error if is_own else error.__cause__


def while_handled(run: Run, error: BaseException, steps: Steps) -> Steps:
    """Steps at work on an error, which is not the one of others while these wait."""
    box: list[Any] = [None]
    handled, step = run.handled, steps.send
    try:
        while True:
            run.left -= 2
            handled.append(error)
            try:
                box.append(step(box.pop()))
            except StopIteration as ended:
                return ended.value
            finally:
                handled.pop()
            try:
                box.append((yield box.pop()))
                step = steps.send
            except Closing as closing:
                box.append(closing)
                step = steps.throw
    finally:
        del error  # else it holds itself where it is raised again


def delegated(box: list[Any]) -> Steps:
    """`yield from`; box: holds the iterator, as `driven` says."""
    box.append(None)
    try:
        while True:
            sent = box.pop()
            try:
                box.append(next(box[0]) if sent is None else box[0].send(sent))
            except StopIteration as ended:
                return ended.value
            sent = None
            box.append((yield box.pop()))
    except Closing:
        if hasattr(box[0], "close"):
            box[0].close()
        raise
    finally:
        box.clear()
