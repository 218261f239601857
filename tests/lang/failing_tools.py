"""Programs that handle what their tools raise, one for each shape of a handler."""

from __future__ import annotations

import json
import time

import sgc


class Mine(ValueError):
    """An error of the program's own, which says more than it is given."""

    code = 7

    def __str__(self) -> str:
        return f"mine: {self.args[0]}"


class Other(Exception):
    pass


CALLED: list[str] = []


def work(x: str) -> str:
    CALLED.append(x)
    if x == "value":
        raise ValueError("a value")
    if x == "mine":
        raise Mine("own")
    if x == "key":
        raise KeyError("k")
    if x == "json":
        json.loads("{")
    if x == "other":
        raise Other
    if x == "late":
        time.sleep(1.0)
    return f"page of {x}"


@sgc.tool(effect="pure", timeout_s=0.02)
def fetch(x: str) -> str:
    return work(x)


@sgc.tool
def store(x: str) -> str:
    return work(x)


@sgc.tool(effect="pure")
def count(x: str) -> int:
    return 3 if x == "ok" else "none"  # type: ignore[return-value]


@sgc.function
def catches_all(s, q):
    try:
        page = fetch(q)
    except Exception:
        page = "none"
    s += page
    s += sgc.gen("a")


@sgc.function
def catches_one(s, q):
    s += "Q "
    try:
        s += fetch(q)
    except ValueError as e:
        s += "(" + str(e) + ")"
    s += sgc.gen("a")


@sgc.function
def tells_apart(s, q):
    try:
        s += fetch(q)
    except Mine as e:
        s += f"mine {e}"
    except KeyError as e:
        s += f"key {e}"
    except (OSError, ValueError) as e:
        s += type(e).__name__ + " " + str(e)
    s += sgc.gen("a")


@sgc.function
def bare(s, q):
    try:
        s += fetch(q)
    except:  # noqa: E722
        s += "failed"
    s += sgc.gen("a")


@sgc.function
def with_else_and_finally(s, q):
    try:
        page = fetch(q)
    except LookupError:
        s += "no such page"
    else:
        s += "found " + page
    finally:
        s += " done"
    s += sgc.gen("a")


@sgc.function
def finally_alone(s, q):
    try:
        s += fetch(q)
    finally:
        s += sgc.gen("last")


@sgc.function
def nested(s, q):
    try:
        try:
            s += fetch(q)
        except KeyError:
            s += "inner"
    except ValueError:
        s += "outer"
    s += sgc.gen("a")


@sgc.function
def raises_again(s, q):
    try:
        try:
            s += fetch(q)
        except ValueError as e:
            s += "seen " + str(e)
            raise
    except Exception as e:
        s += " then " + str(e)
    s += sgc.gen("a")


@sgc.function
def leaves_again(s, q):
    try:
        s += fetch(q)
    except ValueError:
        s += sgc.gen("seen")
        raise


@sgc.function
def raises_another(s, q):
    try:
        try:
            s += fetch(q)
        except LookupError as e:
            raise RuntimeError("no page: " + str(e)) from e
    except RuntimeError as e:
        s += str(e)
    s += sgc.gen("a")


@sgc.function
def leaves_another(s, q):
    try:
        s += fetch(q)
    except LookupError as e:
        raise RuntimeError("no page: " + str(e)) from e
    s += sgc.gen("a")


@sgc.function
def in_a_handler(s, q):
    try:
        s += fetch(q)
    except Exception:
        try:
            s += fetch("key")
        except KeyError as e:
            s += f"twice {e}"
    s += sgc.gen("a")


def fetched(q):
    try:
        return fetch(q)
    except ValueError:
        return "of a helper"


@sgc.function
def in_a_helper(s, q):
    s += fetched(q)
    s += sgc.gen("a")


def passed_on(q):
    return "<" + fetch(q) + ">"


@sgc.function
def through_a_helper(s, q):
    try:
        s += passed_on(q)
    except (KeyError, Mine) as e:
        s += repr(e)
    s += sgc.gen("a")


@sgc.function
def inner(s, q):
    s += "inner " + fetch(q)
    s += sgc.gen("b")


@sgc.function
def through_a_program(s, q):
    try:
        part = inner(q)
        s += part["b"]
    except Exception as e:
        s += str(e)
    s += sgc.gen("a")


@sgc.function
def tries_again(s, q):
    for turn in sgc.turns(3):
        s += f"try {turn}: "
        try:
            s += fetch(q)
            break
        except ValueError:
            s += sgc.gen("why")
            continue
    s += sgc.gen("a")


@sgc.function
def over_a_list(s, q):
    for x in ("ok", q, "key"):
        try:
            s += fetch(x) + ";"
        except KeyError:
            s += "no key;"
        except Exception as e:
            s += f"{type(e).__name__};"
    s += sgc.gen("a")


@sgc.function
def with_effects(s, q):
    s["first"] = store("ok")
    try:
        s["second"] = store(q)
    except Exception as e:
        s["second"] = "failed: " + str(e)
    s["third"] = store("ok")
    s += s["second"] + sgc.gen("a")


@sgc.function
def returns_early(s, q):
    try:
        page = fetch(q)
    except Exception as e:
        s += "failed"
        return str(e)
    s += page + sgc.gen("a")
    return page


@sgc.function
def keeps_it_for_later(s, q):
    why = None
    try:
        s += fetch(q)
    except Exception as e:
        why = e
    s += sgc.gen("a")
    if why is not None:
        s += "because of " + str(why)


@sgc.function
def asks_what_it_is(s, q):
    try:
        s += fetch(q)
    except Exception as e:
        s += "value" if isinstance(e, ValueError) else "another"
        if isinstance(e, (Mine, KeyError)):
            s += " of mine"
    s += sgc.gen("a")


@sgc.function
def of_another_type(s, q):
    try:
        s["n"] = count(q) + 1
    except sgc.ToolError:
        s["n"] = 0
    s += f"{s['n']}" + sgc.gen("a")


@sgc.function
def before_a_test(s, q):
    s += sgc.gen("x")
    try:
        page = fetch(q)
        if "page" in page:
            s += page
        else:
            raise KeyError("nothing")
    except KeyError as e:
        s += f"[{e}]"
    s += sgc.gen("a")


@sgc.function
def inside_a_role(s, q):
    try:
        with s.user():
            s += "Q" + fetch(q)
    except Exception:
        s += "gone"
    s += sgc.gen("a")


@sgc.function
def item(s, x):
    try:
        s["page"] = fetch(x)
    except ValueError as e:
        s["page"] = str(e)
    s += s["page"] + sgc.gen("b")


@sgc.function
def in_a_map(s, q):
    states = sgc.map(item, ["ok", q, "value"])
    s += sgc.join("; ", states["page"])
    s += sgc.gen("a")


@sgc.function
def not_handled(s, q):
    s += sgc.gen("a") + fetch(q)


@sgc.function
def class_by_its_module(s, q):
    try:
        s += fetch(q)
    except json.JSONDecodeError:
        s += "no JSON"
    s += sgc.gen("a")


PROGRAMS = [value for value in list(vars().values()) if isinstance(value, sgc.Function)]
PROGRAMS = [each for each in PROGRAMS if each not in (inner, item)]
GIVEN = ("ok", "value", "mine", "key", "json", "other")
