"""How generators of the code are stepped through.

`driven` is what the code sees as a generator. Its statements are Python generators of their own,
one inside the other (`generators.py`). At the border of each inner generator, Python does what it
should do only at the border of the code's generator: it turns a StopIteration into a RuntimeError,
and never continues a closed generator after its `yield`. So `Closing` is thrown into a closed
generator, and `raised_by_code` finds the StopIteration again.
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


# Errors that the code cannot catch: its own limits.
UNCATCHABLE = (SgcError, RecursionError, MemoryError)
# Errors that a handler of the code may catch: a handler without a type also catches GeneratorExit.
CAUGHT = (Exception, Closing)


def driven(run: Run, body: Callable[..., Any], *given: Any) -> Any:
    """A generator, each step of which counts as a call inside its caller. given: the body's
    arguments."""
    # Made only here: Python closes unused generators in the order in which they were made.
    inner = body(*given)
    del given
    # Values that are passed on are held in a list: Python frees chains of generators by recursion.
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
                run.left = -1  # Python drops errors of generators that it closes: ends the run
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
            # After the run, nothing is done any more; Python may also close the statements first.
            if run.left < 0 or inner.gi_running:
                raise
            step = inner.throw
            box.append(Closing)


def raised_by_code(error: BaseException) -> Any:
    """The error as the code raised it: the StopIteration, if it left only inner generators."""
    if type(error) is not RuntimeError or not isinstance(error.__cause__, StopIteration):
        return error
    is_own = error.args != ("generator raised StopIteration",) or _LEFT in vars(error)
    return error if is_own else error.__cause__


def while_handled(run: Run, error: BaseException, steps: Steps) -> Steps:
    """Steps that handle an error; while they wait, the error does not count as being handled."""
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
        del error  # otherwise the error would refer to itself if it is raised again


def delegated(box: list[Any]) -> Steps:
    """`yield from`; box: holds the iterator, for the reason given in `driven`."""
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
