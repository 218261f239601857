"""`@sgc.function`: programs as Python functions that can be run, traced and compiled."""

from __future__ import annotations

import functools
import inspect
import os
import random
import types as python_types
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, overload

from sgc.calls import call, finished, start_eager
from sgc.endpoints import Endpoint, resolve_backend
from sgc.errors import UsageError
from sgc.ir.graph import Loc
from sgc.runtime.executor.instance import OnText
from sgc.runtime.executor.loop import shared
from sgc.runtime.executor.options import RunOptions
from sgc.runtime.executor.record import RunResult
from sgc.session import current_session, user_loc
from sgc.signature import read_signature
from sgc.state import ProgramState

if TYPE_CHECKING:
    from sgc.program import Program

OPTION_NAMES = frozenset(field.name for field in fields(RunOptions)) | {"max_new_tokens"}


_NOT_PROGRAMS = {
    "an async function": inspect.iscoroutinefunction,
    "an async generator": inspect.isasyncgenfunction,
    "a generator": inspect.isgeneratorfunction,
}


def _place(python: python_types.FunctionType) -> Loc:
    code = python.__code__
    return Loc(os.path.basename(code.co_filename), code.co_firstlineno, python.__name__)


class Function:
    """A program. Calling it inside another program opens a new stream of the same run."""

    def __init__(self, python: Callable[..., Any]) -> None:
        # A decorator below this one is part of the program: it is called, not looked through.
        if not isinstance(python, python_types.FunctionType):
            raise UsageError(f"@sgc.function takes a Python function, found {python!r}")
        unwrapped = inspect.unwrap(python)
        assert isinstance(unwrapped, python_types.FunctionType)
        for kind, is_kind in _NOT_PROGRAMS.items():
            if is_kind(unwrapped):
                raise UsageError(
                    f"{unwrapped.__name__} is {kind}, which cannot be a program",
                    where=str(_place(unwrapped)),
                    hint="write a plain `def`; generations run in parallel without await",
                )
        self.python = python
        self.func = python  # SGLang's name for it
        self.name = unwrapped.__name__
        self.signature = read_signature(unwrapped)
        self.loc = _place(unwrapped)
        functools.update_wrapper(self, unwrapped)

    def __call__(self, *args: Any, **kwargs: Any) -> ProgramState:
        session = current_session()
        if session is None:
            return self.run(*args, **kwargs)
        return call(self, session, self.signature.bind(args, kwargs))

    def run(
        self,
        *args: Any,
        backend: Endpoint | None = None,
        on_text: OnText | None = None,
        **kwargs: Any,
    ) -> ProgramState:
        """Interprets the program: its Python runs here, generations run behind it.

        Takes the program's arguments, and a run's options where the program has no
        argument of that name: seed, temperature, max_new_tokens, stop and the like. Returns
        when the body has ended; reading a name or the text waits for it.
        """
        if current_session() is not None:
            refused = [name for name in kwargs if name in OPTION_NAMES - set(self.signature.names)]
            if refused or backend is not None:
                raise UsageError(
                    f"{self.name}.run inside a program cannot set {refused or 'a backend'}: "
                    "the whole program is one run",
                    where=str(user_loc() or ""),
                    hint="give gen its own parameters, and options to the outermost run",
                )
            return self(*args, **kwargs)
        arguments, options = self._split(args, kwargs)
        endpoint = resolve_backend(backend)
        return start_eager(self, arguments, endpoint.backend, options, shared.loop, on_text)

    def run_once(
        self,
        arguments: Mapping[str, Any],
        options: RunOptions,
        endpoint: Endpoint,
        on_text: OnText | None = None,
    ) -> RunResult:
        """Interprets to the end and gives what a compiled run gives."""
        given = self.signature.bind((), arguments)
        self.signature.check_types(given)
        backend = endpoint.backend
        return finished(start_eager(self, given, backend, options, shared.loop, on_text))

    def _split(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[dict[str, Any], RunOptions]:
        """The program's own parameters come first; what is left may be options."""
        own = {name: value for name, value in kwargs.items() if name in self.signature.names}
        rest = {name: value for name, value in kwargs.items() if name not in own}
        chosen = {name: rest.pop(name) for name in list(rest) if name in OPTION_NAMES}
        arguments = self.signature.bind(args, own | rest)
        self.signature.check_types(arguments)
        return arguments, make_options(chosen)

    def compile(self, *, check: bool = True, opt_level: int = 1, **bind: Any) -> Program:
        """The compiled program, with `bind` arguments fixed to values.

        Raises TraceError at the line that cannot be traced. check: replay the trace
        against the interpreter.
        """
        from sgc.program import compile_function

        return compile_function(self, bind, check=check, opt_level=opt_level)

    def __repr__(self) -> str:
        return f"<sgc.function {self.name}({', '.join(self.signature.names)})>"


def make_options(given: Mapping[str, Any]) -> RunOptions:
    """Run options from keywords; SGLang's `max_new_tokens` is our `max_tokens`.

    Without a seed one is drawn; the result tells which.
    """
    chosen = {name: value for name, value in given.items() if value is not None}
    if "max_new_tokens" in chosen:
        chosen["max_tokens"] = chosen.pop("max_new_tokens")
    if isinstance(chosen.get("stop"), str):
        chosen["stop"] = (chosen["stop"],)
    for name in ("stop", "stop_token_ids"):
        if name in chosen:
            chosen[name] = tuple(chosen[name])
    chosen.setdefault("seed", random.SystemRandom().getrandbits(32))
    return RunOptions(**chosen)


@overload
def function(func: Callable[..., Any]) -> Function: ...
@overload
def function(func: None = None) -> Callable[[Callable[..., Any]], Function]: ...


def function(func: Callable[..., Any] | None = None) -> Any:
    """Makes a Python function whose first parameter is a stream into a program."""
    return Function if func is None else Function(func)
