"""Abstract values: what a program's Python sees in place of arguments and generations.

Abstract text is a `str`, so that code which asks for one is content; whatever would need
to know its characters stops the trace with the user's line and a way out. A stop derives
from `BaseException`: a program's own `except Exception` must not swallow it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from sgc.errors import TraceError
from sgc.ir.types import Kind
from sgc.symbols import Symbol
from sgc.tracing.markers import has_marker, split_markers

if TYPE_CHECKING:
    from sgc.tracing.tracer import TraceSession

INTERPRET = "run it with --interpret (or f.run), which needs no trace"
DECIDE = "make the argument static with --bind name=value if it is one, or " + INTERPRET


class TraceStop(BaseException):
    """Carries the error out of the traced program, past its own handlers."""

    def __init__(self, error: TraceError) -> None:
        super().__init__(error)
        self.error = error


def stop(message: str, hint: str = INTERPRET) -> NoReturn:
    """Ends the trace with an error at the user's line."""
    from sgc.session import user_loc

    raise_stop(TraceError(message, where=str(user_loc() or ""), hint=hint))


def raise_stop(error: TraceError) -> NoReturn:
    """Stops the trace; the session remembers, should a bare `except` swallow it."""
    from sgc.session import current_session

    stopped = TraceStop(error)
    session = current_session()
    if session is not None and getattr(session, "stopped", stopped) is None:
        session.stopped = stopped  # type: ignore[attr-defined]
    raise stopped


class AbstractBool:
    """The outcome of a test on an abstract value; a decision that tracing cannot take."""

    __slots__ = ("_test",)

    def __init__(self, test: str) -> None:
        self._test = test

    def __bool__(self) -> bool:
        stop(
            f"the program branches on a value known only when it runs ({self._test})",
            hint="branches cannot be compiled yet: " + DECIDE,
        )

    def __format__(self, spec: str) -> str:
        stop(f"the outcome of a test ({self._test}) cannot become text")

    __str__ = __repr__ = lambda self: format(self, "")
    __eq__ = __ne__ = __and__ = __or__ = __xor__ = __invert__ = (  # type: ignore[assignment]
        lambda self, *args: AbstractBool(self._test)
    )
    __hash__ = None  # type: ignore[assignment]


class AbstractText(str):
    """Text known only when the program runs: markers, with plain text around them."""

    session: TraceSession

    def __new__(cls, content: str, session: TraceSession) -> AbstractText:
        text = super().__new__(cls, content)
        text.session = session
        return text

    def _joined(self, *parts: str) -> AbstractText:
        return AbstractText("".join(str.__str__(part) for part in parts), self.session)

    def __add__(self, other: Any) -> Any:
        return self._joined(self, other) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return self._joined(other, self) if isinstance(other, str) else NotImplemented

    def __format__(self, spec: str) -> str:
        # Itself, so that a lone f"{x}" stays abstract; in a longer one its marker is copied.
        return self.session.formatted(self, spec) if spec else self

    def __str__(self) -> str:
        return self

    def __repr__(self) -> str:
        stop(
            "repr() of a value known only when the program runs",
            hint="use it without !r; or " + INTERPRET,
        )

    def __eq__(self, other: object) -> Any:
        return AbstractBool(f"{self._shown()} == …")

    def __ne__(self, other: object) -> Any:
        return AbstractBool(f"{self._shown()} != …")

    def __hash__(self) -> int:
        stop(
            f"{self._shown()} is looked up in a dict or set",
            hint="look-ups cannot be compiled yet: " + DECIDE,
        )

    def __bool__(self) -> bool:
        return bool(AbstractBool(f"if {self._shown()}"))

    def __mul__(self, times: Any) -> Any:
        if isinstance(times, int):
            return self._joined(*[self] * times)
        return NotImplemented

    __rmul__ = __mul__

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        stop("a value known only when the program runs cannot be copied or pickled")

    def _shown(self) -> str:
        return self.session.shown(self)

    def format(self, *args: Any, **kwargs: Any) -> Any:
        stop("a template known only when the program runs cannot be filled")


class AbstractNumber:
    """An int or float known only when the program runs; it can be shown and passed on."""

    __slots__ = ("session", "symbol")

    def __init__(self, symbol: Symbol, session: TraceSession) -> None:
        self.symbol = symbol
        self.session = session

    def __format__(self, spec: str) -> str:
        if not spec:
            return self.session.marker(self.symbol)
        return self.session.formatted(self, spec)

    def __str__(self) -> str:
        return AbstractText(self.session.marker(self.symbol), self.session)

    def __repr__(self) -> str:
        return str(self)

    def _compared(self, other: object) -> Any:
        return AbstractBool(f"a comparison of {self.symbol.name}")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compared  # type: ignore[assignment]

    def __hash__(self) -> int:
        stop(f"{self.symbol.name} is looked up in a dict or set", hint=DECIDE)

    def __bool__(self) -> bool:
        return bool(AbstractBool(f"if {self.symbol.name}"))

    def __index__(self) -> int:
        stop(
            f"{self.symbol.name} is needed as a number while tracing",
            hint=f"give its value when compiling: --bind {self.symbol.name}=N; or " + INTERPRET,
        )

    __int__ = __float__ = __round__ = __trunc__ = __complex__ = __index__  # type: ignore[assignment]


class AbstractFlag(AbstractBool):
    """A bool argument: a decision with two arms."""

    __slots__ = ("session", "symbol")

    def __init__(self, symbol: Symbol, session: TraceSession) -> None:
        super().__init__(symbol.name)
        self.symbol = symbol
        self.session = session

    def __bool__(self) -> bool:
        stop(
            f"the program branches on its argument {self.symbol.name!r}",
            hint=f"branches cannot be compiled yet: give its value when compiling, "
            f"--bind {self.symbol.name}=true; or {INTERPRET}",
        )

    def __format__(self, spec: str) -> str:
        if not spec:
            return self.session.marker(self.symbol)
        return self.session.formatted(self, spec)

    def __str__(self) -> str:
        return AbstractText(self.session.marker(self.symbol), self.session)


class AbstractList:
    """A list whose length is known only when the program runs."""

    __slots__ = ("session", "symbol")

    def __init__(self, symbol: Symbol, session: TraceSession) -> None:
        self.symbol = symbol
        self.session = session

    def _needs_items(self, *args: Any) -> NoReturn:
        stop(
            f"the items or the length of {self.symbol.name} are needed while tracing",
            hint=f"give the list when compiling: --bind {self.symbol.name}='[…]'; or " + INTERPRET,
        )

    __iter__ = __len__ = __getitem__ = __contains__ = __bool__ = _needs_items
    __add__ = __radd__ = __mul__ = __reversed__ = _needs_items
    __eq__ = __ne__ = __hash__ = _needs_items  # type: ignore[assignment]
    __str__ = __repr__ = __format__ = _needs_items  # type: ignore[assignment]


_PLAIN_WORDS = {
    "__len__": "the length",
    "__iter__": "the items",
    "__getitem__": "a part",
    "__contains__": "a search",
    "__int__": "int()",
    "__float__": "float()",
    "__index__": "a whole number",
}


def _refuse(name: str) -> Callable[..., Any]:
    what = _PLAIN_WORDS.get(name, f"str.{name}")

    def method(self: AbstractText, *args: Any, **kwargs: Any) -> Any:
        shown = self._shown()
        bind = f"give its value when compiling, --bind {shown}=VALUE; or "
        hint = (bind if self.session.is_parameter(shown) else "") + INTERPRET
        stop(f"{what} of {shown}, which is known only when the program runs", hint)

    method.__name__ = name
    return method


def _refuse_rest() -> None:
    """Every other `str` method and operator must stop the trace, also those of later Pythons."""
    kept = {
        "__class__", "__new__", "__init__", "__init_subclass__", "__subclasshook__", "__doc__",
        "__getattribute__", "__setattr__", "__delattr__", "__dir__", "__getstate__", "__reduce__",
        "__getnewargs__",
    }  # fmt: skip
    for name in dir(str):
        if name not in kept and name not in vars(AbstractText):
            setattr(AbstractText, name, _refuse(name))
    for name in ("__int__", "__float__", "__complex__", "__index__"):
        setattr(AbstractText, name, _refuse(name))


_refuse_rest()

_ARITHMETIC = (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv",
    "mod", "rmod", "pow", "rpow", "divmod", "rdivmod", "neg", "pos", "abs", "and", "or", "xor",
    "lshift", "rshift", "invert", "floor", "ceil",
)  # fmt: skip


def _refuse_arithmetic() -> None:
    for short in _ARITHMETIC:

        def method(self: AbstractNumber, *args: Any, _name: str = short) -> Any:
            if _name in ("add", "radd") and args and isinstance(args[0], str):
                return NotImplemented
            stop(
                f"arithmetic ({_name}) on {self.symbol.name}, known only when the program runs",
                hint=f"give its value when compiling: --bind {self.symbol.name}=N; or {INTERPRET}",
            )

        setattr(AbstractNumber, f"__{short}__", method)


_refuse_arithmetic()


def abstract(symbol: Symbol, session: TraceSession) -> Any:
    """The abstract value that stands for a symbol, by its type."""
    kind = symbol.type.kind
    if kind in (Kind.TEXT, Kind.CHOICE):
        return AbstractText(session.marker(symbol), session)
    if kind in (Kind.INT, Kind.FLOAT):
        return AbstractNumber(symbol, session)
    if kind is Kind.BOOL:
        return AbstractFlag(symbol, session)
    return AbstractList(symbol, session)


def marked(text: str) -> bool:
    """Whether a plain string carries abstract values."""
    return type(text) is str and has_marker(text)


def pieces_of(text: str) -> list[str | int]:
    """The pieces of a marked text; stops the trace at a marker that was cut apart."""
    try:
        return split_markers(str.__str__(text))
    except ValueError:
        stop(
            "a text was cut or changed through a value known only when the program runs",
            hint="use the value whole; " + INTERPRET,
        )
