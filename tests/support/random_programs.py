"""Random straight-line programs from a seed, as Python functions over the language.

A program is a list of steps that is drawn first; its body runs them on streams, so the same program
can be interpreted and traced.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import sgc
from sgc.programs.function import Function

TEXTS = ("a", " b", "c\n", "", "The answer is", ": ", "é🙂", "{x}", "%s", "yes")


drawn: Counter[str] = Counter()  # how often each construct was; a test asserts that all were


def random_program(seed: int, n_steps: int = 12) -> Function:
    """A program with two text arguments and an int argument."""
    steps = _steps(random.Random(seed), n_steps, depth=0)

    def program(s: Any, x: str, y: str, n: int) -> Any:
        values = [x, y]
        _run(s, steps, values, n)
        return values[2:]

    program.__name__ = f"random_{seed}"
    return sgc.function(program)


def _steps(rng: random.Random, n: int, depth: int) -> list[tuple[str, Any]]:
    return [_step(rng, index, depth) for index in range(n)]


def _step(rng: random.Random, index: int, depth: int) -> tuple[str, Any]:
    kinds = ["const", "value", "format", "number", "gen", "select", "gen_stop", "join_text", "read"]
    kinds += ["scope", "role", "set", "gen_n", "keep_stop", "reason", "unnamed", "chosen"]
    if depth < 2:
        kinds += ["fork", "call", "copy"]
    kind = rng.choice(kinds)
    drawn[kind] += 1
    name = f"{kind}_{depth}_{index}"
    detail: dict[str, Any] = {
        "name": name,
        "text": rng.choice(TEXTS),
        "pick": rng.randrange(100),
        "n": rng.randrange(1, 4),
    }
    if kind in ("fork", "call", "copy", "scope", "role"):
        deeper = depth if kind == "scope" else depth + 1
        detail["steps"] = _steps(rng, rng.randrange(1, 4), max(deeper, depth))
        if kind in ("scope", "role"):
            detail["steps"] = [s for s in detail["steps"] if s[0] not in ("role", "fork", "copy")]
    return kind, detail


def _run(s: Any, steps: list[tuple[str, Any]], values: list[Any], n: Any) -> None:
    for kind, detail in steps:
        _DO[kind](s, detail, values, n)


def _pick(detail: dict[str, Any], values: list[Any]) -> Any:
    return values[detail["pick"] % len(values)]


def _gen(s: Any, d: dict[str, Any], values: list[Any], n: Any) -> None:
    s += "go" + sgc.gen(d["name"], max_tokens=4 + d["n"])
    values.append(s[d["name"]])


def _gen_stop(s: Any, d: dict[str, Any], values: list[Any], n: Any) -> None:
    temperature = 0.0 if d["pick"] % 2 else 0.8
    s += "go " + sgc.gen(d["name"], n, stop=["\n", ". "], temperature=temperature) + d["text"]
    values.append(f"[{s[d['name']]}]")


def _gen_n(s: Any, d: dict[str, Any], values: list[Any], n: Any) -> None:
    s += "many" + sgc.gen(d["name"], max_tokens=3, n=d["n"], temperature=0.7) + d["text"]
    s.set_var(f"all_{d['name']}", s[d["name"]])


def _keep_stop(s: Any, d: dict[str, Any], values: list[Any], n: Any) -> None:
    s += "until" + sgc.gen(d["name"], max_tokens=6, stop=[" ", "r"], keep_stop=True)
    values.append(s[d["name"]] + "|")


def _reason(s: Any, d: dict[str, Any], values: list[Any], n: Any) -> None:
    expr = "think" + sgc.gen(d["name"], max_tokens=4) + "."
    s += sgc.separate_reasoning(expr, "deepseek-r1" if d["pick"] % 2 else "qwen3")
    values.append(f"{s[d['name']]}/{s[d['name'] + '_reasoning_content']}")


def _unnamed(s: Any, d: dict[str, Any], values: list[Any], n: Any) -> None:
    s += "next" + sgc.gen(max_tokens=2) + d["text"] + sgc.gen(max_tokens=n)


def _chosen(s: Any, d: dict[str, Any], values: list[Any], n: Any) -> None:
    method = (sgc.joint, sgc.greedy_token_selection, "token_length_normalized")[d["pick"] % 3]
    choices = ["no", "yes", "yes!"]
    s += "choose " + sgc.gen(d["name"], choices=choices, choices_method=method, temperature=0.5)


def _select(s: Any, d: dict[str, Any], values: list[Any], n: Any) -> None:
    s += "pick " + sgc.select(d["name"], choices=["a", "bc", "b" + f"{values[0]}x"])
    values.append(s[d["name"]] + "!")


def _fork(s: Any, d: dict[str, Any], values: list[Any], n: Any) -> None:
    group = s.fork(d["n"])
    for index, child in enumerate(group):
        child += f" child {index}"
        _run(child, d["steps"], list(values), n)
        child += sgc.gen(f"of_{d['name']}", max_tokens=3)
    if d["pick"] % 3 == 0:
        group.join("concate_and_append")
    else:
        group.join()
        values.append("+".join(s[f"of_{d['name']}"]))


def _call(s: Any, d: dict[str, Any], values: list[Any], n: Any) -> None:
    @sgc.function
    def called(t: Any, z: str, m: int) -> Any:
        t += z
        inner = [z]
        _run(t, d["steps"], inner, m)
        return inner[-1]

    state = called(_pick(d, values), n)
    values.append(state.ret_value)
    s += state.text()


def _copy(s: Any, d: dict[str, Any], values: list[Any], n: Any) -> None:
    with s.copy() as other:
        _run(other, d["steps"], list(values), n)


def _scope(s: Any, d: dict[str, Any], values: list[Any], n: Any) -> None:
    with s.var_scope(d["name"]):
        _run(s, d["steps"], values, n)
    values.append(s[d["name"]])


def _role(s: Any, d: dict[str, Any], values: list[Any], n: Any) -> None:
    if s.roles:
        return
    with (s.system, s.user, s.assistant)[d["pick"] % 3]():
        _run(s, d["steps"], values, n)


def _append(s: Any, text: Any) -> None:
    s += text


_DO: dict[str, Any] = {
    "const": lambda s, d, values, n: _append(s, d["text"]),
    "value": lambda s, d, values, n: _append(s, d["text"] + _pick(d, values)),
    "format": lambda s, d, values, n: _append(s, f"{n:>6}|{_pick(d, values)}"),
    "number": lambda s, d, values, n: _append(s, f"{n:03d}" + str(n)),
    "gen": _gen,
    "gen_stop": _gen_stop,
    "gen_n": _gen_n,
    "keep_stop": _keep_stop,
    "reason": _reason,
    "unnamed": _unnamed,
    "chosen": _chosen,
    "select": _select,
    "join_text": lambda s, d, values, n: _append(s, d["text"].join(values[:3])),
    "read": lambda s, d, values, n: values.append(s.text()),
    "set": lambda s, d, values, n: s.set_var(d["name"], [_pick(d, values), {"k": d["n"]}]),
    "scope": _scope,
    "role": _role,
    "fork": _fork,
    "call": _call,
    "copy": _copy,
}
