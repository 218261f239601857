"""A helper that becomes code does what it does interpreted, whatever its file says."""

from __future__ import annotations

import functools
import importlib.util
import linecache
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from control_flow import equal_or_refused

import sgc

REPLIES = ("a b", "b", "", "7 8 9")
HELPERS = """import textwrap
def helper(text):
    return len(textwrap.fill(text, 4)) + 1
class Kind:
    def method(self, text):
        return len(textwrap.fill(text, 4)) + 1
"""


def size(text: str) -> int:
    return len(textwrap.fill(text, 4))  # no op: it becomes code


def default(text: str, k: int = 1) -> int:
    return size(text) + k


def default_by_name(text: str, *, k: int = 1) -> int:
    return size(text) + k


def no_default(text: str, k: int = 1) -> int:
    return size(text) + k


def replaced(text: str) -> int:
    return size(text) + 1


def other(text: str) -> int:
    return size(text) + 1000


def wrapping(function: Callable[[str], int]) -> Callable[[str], int]:
    @functools.wraps(function)
    def call(text: str) -> int:
        return function(text) + 500

    return call


@wrapping
def wrapped(text: str) -> int:
    return size(text)


class Kind:
    def method(self, text: str, k: int = 2) -> int:
        return size(text) + k

    def replaced(self, text: str) -> int:
        return size(text)


default.__defaults__ = (50,)
default_by_name.__kwdefaults__ = {"k": 60}
no_default.__defaults__ = None
replaced.__code__ = other.__code__
Kind.method.__defaults__ = (70,)
Kind.replaced.__code__ = (lambda self, text: size(text) + 999).__code__
# fmt: off
FIRST, SECOND = lambda text: size(text) + 1, lambda text: size(text) + 1000
# fmt: on


def _executed() -> Any:
    """A function that claims the name and the line of another one of this file."""
    names: dict[str, Any] = {"textwrap": textwrap}
    text = "\n" * (size.__code__.co_firstlineno - 1) + (
        "def size(text):\n    return len(textwrap.fill(text, 4)) + 900\n"
    )
    exec(compile(text, __file__, "exec"), names)
    return names["size"]


EXECUTED = _executed()


def of_defaults(text: str) -> Any:
    try:
        return default(text), default_by_name(text), no_default(text)
    except TypeError:
        return default(text), default_by_name(text)


def of_code(text: str) -> Any:
    return replaced(text), wrapped(text)


def of_methods(text: str) -> Any:
    return Kind().method(text), Kind().replaced(text)


def of_lambdas(text: str) -> Any:
    return FIRST(text), SECOND(text), sorted([text, "k"], key=SECOND)


def of_exec(text: str) -> Any:
    return [EXECUTED(word) for word in text.split()], EXECUTED(text)


def program(body: Callable[[str], Any]) -> Any:
    @sgc.function
    def shown(s, q: str):
        s += q + sgc.gen("x", max_tokens=4)
        return body(s["x"]), size(s["x"])

    return shown


@pytest.mark.sweep
@pytest.mark.parametrize("body", [of_defaults, of_code, of_methods, of_lambdas])
def test_it_is_the_function_as_it_is_now(body: Callable[[str], Any]) -> None:
    assert equal_or_refused(program(body), REPLIES) == "equal"


def test_what_exec_made_is_not_read_from_this_file() -> None:
    assert equal_or_refused(program(of_exec), REPLIES) == "refused"


@pytest.mark.parametrize(
    ("use", "is_edited"), [("helper", False), ("helper", True), ("method", True)]
)
def test_a_file_that_was_edited_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: str, is_edited: bool
) -> None:
    path = tmp_path / f"helpers_{use}_{is_edited}.py"
    path.write_text(HELPERS)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    if is_edited:
        path.write_text(HELPERS.replace("+ 1", "+ 20"))
    linecache.checkcache()
    function = module.helper if use == "helper" else lambda text: module.Kind().method(text)
    body = lambda text: [function(word) for word in text.split()]  # noqa: E731
    assert equal_or_refused(program(body), REPLIES) == ("refused" if is_edited else "equal")
