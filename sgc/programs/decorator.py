"""`@sgc.function`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, overload

from sgc.programs.function import Function

P = ParamSpec("P")

if TYPE_CHECKING:

    class FunctionOf(Function, Generic[P]):
        """A program as type checkers see it: called with the arguments of its Python function.

        Type checkers do not see a run's options here; `run` takes them, and the stubs of `sgc
        stubs` list them.
        """

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any: ...


@overload
def function(func: Callable[Concatenate[Any, P], Any]) -> FunctionOf[P]: ...
@overload
def function(
    func: None = None,
    num_api_spec_tokens: int | None = None,
    *,
    jit: bool = True,
    full_graph: bool = False,
    heal: bool | None = None,
    max_turns: int | None = None,
    allow_ambient: bool = False,
) -> Callable[[Callable[Concatenate[Any, P], Any]], FunctionOf[P]]: ...


def function(
    func: Callable[..., Any] | None = None,
    num_api_spec_tokens: int | None = None,
    *,
    jit: bool = True,
    full_graph: bool = False,
    heal: bool | None = None,
    max_turns: int | None = None,
    allow_ambient: bool = False,
) -> Any:
    """Makes a Python function whose first parameter is a stream into a program.

    Args:
        jit: False interprets every call.
        full_graph: a call that cannot be compiled is an error.
        heal: the default of its generations (see `gen`); None is that of the calling program, else
            the run's.
        max_turns: how many turns a loop may take each time that it is entered, if it is a `while`,
            or a `for` over `itertools.count`, `cycle` or `iter(f, end)`, and uses a stream; the
            next turn raises TurnsExceeded. It holds for the function's own text, and for functions
            that it calls and that have none.
        allow_ambient: reads of clocks, random numbers, the environment and files do not prevent
            compiling: their values become part of the program.
        num_api_spec_tokens: tokens to speculate with on provider APIs.
    """

    def make(python: Callable[..., Any]) -> Function:
        return Function(
            python,
            num_api_spec_tokens,
            jit=jit,
            full_graph=full_graph,
            heal=heal,
            max_turns=max_turns,
            allow_ambient=allow_ambient,
        )

    return make if func is None else make(func)
