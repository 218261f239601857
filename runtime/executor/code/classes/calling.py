"""How methods and attributes of a class find the run in which they are used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sgc.runtime.executor.code.fuel import Run, here
from sgc.runtime.executor.code.room import room
from sgc.runtime.executor.interface.records import Bound, Record
from sgc.runtime.executor.interface.value_limits import LimitExceeded

_TEXTS = frozenset({"__repr__", "__str__", "__format__"})


def bound_in(run: Run, record: Record) -> Bound:
    """A class in a run; a class that the run's own text does not define is loaded from its text."""
    return run.classes.get(record.key) or record.load(run)


def method_of(record: Record, name: str) -> Callable[..., Any]:
    """A method, as a function that calls the closure of the present run."""

    def call(*args: Any, **kwargs: Any) -> Any:
        run = here.run
        if run is None:
            return outside(call, *args, **kwargs)
        return bound_in(run, record).methods[name](*args, **kwargs)

    def text(*args: Any, **kwargs: Any) -> Any:
        """Pays for each text by itself, since C joins the texts of many instances."""
        made = call(*args, **kwargs)
        if type(made) is str and here.run is not None:
            here.run.charge(len(made) >> 3)
        return made

    made: Any = text if name in _TEXTS else call
    made.__name__, made.__qualname__ = name, f"{record.name}.{name}"
    made.is_code = True
    return made  # type: ignore[no-any-return]


def outside(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function of a class as a run of its own, outside of any run of code."""
    run = Run()
    here.run = run
    try:
        with room():
            result = function(*args, **kwargs)
            run.charge(0)
            return result
    except (RecursionError, MemoryError) as error:
        raise LimitExceeded("a graph's code nests too deeply, or needs too much") from error
    finally:
        run.left = -1
        here.run = None


class PerRun:
    """An attribute of a class that each run makes anew, since code may change it."""

    __slots__ = ("_name", "_record")

    def __init__(self, record: Record, name: str) -> None:
        self._record, self._name = record, name

    def __get__(self, instance: Any, owner: Any) -> Any:
        run = here.run
        if run is None:
            return outside(self.__get__, instance, owner)
        return bound_in(run, self._record).values[self._name]


class Factory:
    """The `default_factory` of a field, which may be a function of the code."""

    __slots__ = ("_name", "_record")

    def __init__(self, record: Record, name: str) -> None:
        self._record, self._name = record, name

    def __call__(self) -> Any:
        run = here.run
        if run is None:
            return outside(self)
        run.charge(1)
        return bound_in(run, self._record).values[self._name].default_factory()
