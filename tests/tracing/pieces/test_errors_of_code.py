"""What an error of code that is data holds is what it holds in Python, or is refused."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from control_flow import agree_saved, equal_or_refused

import sgc

REPLIES = ("a b", "k", "", "é", "[1, 2", "7", "a b c")


def in_code(text: str) -> list[str]:
    """What makes the whole of a function code."""
    return sorted(Counter(text.split()), key=len)


class Own(ValueError):
    pass


class Placed(ValueError):
    def __init__(self, line: int) -> None:
        super().__init__(f"line {line}")
        self.line = line


def of_two(text: str) -> Any:
    in_code(text)
    raise ValueError(text, 3)


def of_none(text: str) -> Any:
    in_code(text)
    raise ValueError


def of_a_number(text: str) -> Any:
    raise ValueError(len(in_code(text)))


def of_a_tuple(text: str) -> Any:
    in_code(text)
    raise ValueError((text, None))


def of_a_list(text: str) -> Any:
    raise ValueError(in_code(text))


def of_a_key(text: str) -> Any:
    in_code(text)
    return {"k": 1}[text]


def of_a_key_raised(text: str) -> Any:
    in_code(text)
    raise KeyError(text, 2)


def of_a_number_as_key(text: str) -> Any:
    return {1: "one"}[len(in_code(text))]


def of_an_index(text: str) -> Any:
    return in_code(text)[1]


def of_a_conversion(text: str) -> Any:
    in_code(text)
    return int(text)


def of_a_division(text: str) -> Any:
    return 1 // len(in_code(text))


def of_json(text: str) -> Any:
    in_code(text)
    return json.loads(text)


def of_bytes(text: str) -> Any:
    in_code(text)
    return text.encode().decode("ascii")


def of_an_encoding(text: str) -> Any:
    in_code(text)
    return text.encode("ascii")


def of_the_system(text: str) -> Any:
    in_code(text)
    raise OSError(2, "gone " + text)


def of_an_iterator(text: str) -> Any:
    return next(iter(in_code(text)))


def of_a_returned_value(text: str) -> Any:
    in_code(text)
    raise StopIteration(5)


def of_an_assertion(text: str) -> Any:
    words = in_code(text)
    if words:
        raise AssertionError((words, 1))
    return words


def of_an_own_class(text: str) -> Any:
    in_code(text)
    raise Own(text, 1)


RAISING = (
    of_two, of_none, of_a_number, of_a_tuple, of_a_list, of_a_key, of_a_key_raised,
    of_a_number_as_key, of_an_index, of_a_conversion, of_a_division, of_json, of_bytes,
    of_an_encoding, of_the_system, of_an_iterator, of_a_returned_value, of_an_assertion,
    of_an_own_class,
)  # fmt: skip


def its_texts(error: Any) -> Any:
    return str(error), repr(error), f"{error}", f"{error!r}"


def its_first(error: Any) -> Any:
    return error.args[0] if error.args else "none"


def its_number(error: Any) -> Any:
    return len(error.args)


def its_args(error: Any) -> Any:
    return error.args


def its_pattern(error: Any) -> Any:
    match error.args:
        case ():
            return 0
        case (first,):
            return [first]
        case (first, second):
            return second
    return 5


def all_of_it(error: Any) -> Any:
    shown = its_texts(error), its_first(error), its_number(error)
    return shown, its_args(error), its_pattern(error)


@pytest.mark.sweep
@pytest.mark.parametrize("body", RAISING)
def test_an_error_holds_what_it_holds(body: Callable[[str], Any]) -> None:
    assert equal_or_refused(program(body, all_of_it), REPLIES, n=6) == "equal"


def its_errno(error: Any) -> Any:
    return getattr(error, "errno", "none"), getattr(error, "strerror", "none")


def its_position(error: Any) -> Any:
    return error.pos if isinstance(error, json.JSONDecodeError) else error.start


def its_value(error: Any) -> Any:
    return error.value if hasattr(error, "value") else "none"


def its_cause(error: Any) -> Any:
    return error.__cause__, error.__context__


def its_notes(error: Any) -> Any:
    error.add_note("q")
    return error.__notes__


def its_variables(error: Any) -> Any:
    return vars(error)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "show", [its_errno, its_position, its_value, its_cause, its_notes, its_variables]
)
@pytest.mark.parametrize("body", [of_the_system, of_json, of_bytes, of_an_iterator])
def test_what_is_not_told_is_refused(body: Callable[[str], Any], show: Callable[..., Any]) -> None:
    assert equal_or_refused(program(body, show), REPLIES, n=6) == "refused"


def program(body: Callable[[str], Any], show: Callable[..., Any]) -> Any:
    """A program that shows the error which `body` makes of a reply."""

    @sgc.function
    def shown(s, q: str):
        s += q + sgc.gen("x", max_tokens=4)
        try:
            return body(s["x"])
        except Exception as error:
            return show(error)

    return shown


def put_in(xs: list[str], text: str) -> Any:
    in_code(text)
    raise ValueError(xs)


@sgc.function
def changed_later(s, q: str):
    s += q + sgc.gen("x", max_tokens=4)
    xs = ["p"]
    try:
        put_in(xs, s["x"])
    except ValueError as error:
        xs.append("q")
        return error.args[0]


def test_what_an_error_holds_may_not_change() -> None:
    assert equal_or_refused(changed_later, REPLIES) == "refused"


@sgc.function
def handles_its_own(s, q: str):
    s += q + sgc.gen("x", max_tokens=4)
    try:
        words = in_code(s["x"])
        n = int(s["x"]) if len(words) == 1 else len(json.loads(s["x"]))
        if n == 7:
            raise Placed(n)
    except Placed as error:
        return f"at {error.line}"
    except json.JSONDecodeError:
        return "no json"
    except ValueError as error:
        return str(error)
    return n


def test_code_raises_no_error_of_the_programs_own() -> None:
    agree_saved(handles_its_own, REPLIES, n=16, q="x")


@sgc.function
def raised_in_a_helper(s, q: str):
    s += q + sgc.gen("x", max_tokens=4)
    try:
        return raises_its_own(s["x"])
    except Placed as error:
        return f"at {error.line}"
    except ValueError as error:
        return str(error)


def raises_its_own(text: str) -> Any:
    words = in_code(text)
    if len(words) > 1:
        raise Placed(len(words))
    return int(text)


def test_an_error_of_the_programs_own_that_a_helper_raises() -> None:
    assert equal_or_refused(raised_in_a_helper, REPLIES, n=16) == "equal"


class Missing(ValueError):
    def __init__(self, keys: list[str]) -> None:
        super().__init__(", ".join(keys))
        self.keys = keys


@sgc.function
def raised_beside_a_change(s, q: str):
    s += q + sgc.gen("x", max_tokens=4)
    try:
        data = json.loads(s["x"])
        data.setdefault("k", q)
        keys = [key for key in ("k", "a") if key not in data]
        if keys:
            raise Missing(keys)
    except Missing as error:  # which no code raises that only changes data
        return error.keys
    except (ValueError, AttributeError):
        return "none"
    return data


def test_an_error_of_the_programs_own_beside_code_that_changes_data() -> None:
    replies = ("{}", '{"a": 1}', "7", "x", '{"k": 0}')
    assert equal_or_refused(raised_beside_a_change, replies, n=10) == "equal"
