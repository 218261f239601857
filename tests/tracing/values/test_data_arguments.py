"""Arguments that are data: chat histories, rows, profiles. They compile without their values, and
what a program does with them is what Python does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, Literal, NotRequired, TypedDict

import pytest
from control_flow import outcome, replying

import sgc
from sgc.errors import ArgumentError, SgcWarning, TraceError
from sgc.passes.pipeline import optimize
from sgc.programs.program import Program
from sgc.runtime.executor.interface.arguments import bind_arguments
from sgc.runtime.executor.run.options import RunOptions

HISTORY = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "yo"},
    {"role": "user", "content": "more?", "name": "Al"},
]
HISTORIES = [{"history": each} for each in (HISTORY, [], [{"role": "user"}], HISTORY[:1])]


class Message(TypedDict):
    role: Literal["user", "assistant", "system"]
    content: str
    name: NotRequired[str]


class Item(TypedDict):
    title: str
    price: float
    n: int
    tags: list[str]
    meta: dict[str, Any]
    note: str | None
    ok: bool


@sgc.function
def words(s, history: list[dict[str, str]]):
    for m in history:
        s += sgc.user(m["content"]) if m["role"] == "user" else sgc.assistant(m["content"])
    s += sgc.assistant(sgc.gen("r", max_tokens=8))


@sgc.function
def scopes(s, history: list[Mapping[str, str]]):
    for m in history[-6:]:
        if m["role"] == "user":
            with s.user():
                s += m["content"]
        else:
            s.assistant(m["content"])
    s += sgc.assistant(sgc.gen("r", max_tokens=8))


@sgc.function
def unknown_parts(s, history: list[dict]):
    for m in history:
        if m["role"] == "user":
            s += sgc.user(m["content"])
        elif m["role"] == "assistant":
            s += m["content"]
    s += sgc.gen("r", max_tokens=8)


@sgc.function
def in_sequences(s, history: list[dict]):
    for m in history:
        s += m["content"] + sgc.gen("r", max_tokens=8)
        s += sgc.gen("t", max_tokens=8) + m["role"]


@sgc.function
def joined(s, history: list[dict[str, str]]):
    s += "\n".join(f"{m['role']}: {m['content']}" for m in history)
    s += f" {len(history)} {history!r} {json.dumps(history)} {history == []}"
    users = [m for m in reversed(history) if m["role"] == "user"]
    for m in users:
        s += m["content"]
    s += sgc.gen("r", max_tokens=8) + history[0]["content"]


@sgc.function
def optional_keys(s, history: list[dict[str, str]]):
    for m in history:
        s += m.get("name", "nobody") + ": " + m["content"]
        if m.get("name") is not None:
            s += " is named"
        if "name" in m:
            s += m["name"].upper()
    s += sgc.gen("r", max_tokens=8)


@sgc.function
def messages(s, history: list[Message], tone: Literal["formal", "casual"] = "formal"):
    for m in history:
        if m["role"] == "user":
            s += sgc.user(m["content"])
        elif m["role"] == "assistant":
            s += sgc.assistant(m["content"])
        else:
            s += sgc.system(m["content"] + m.get("name", "?"))
    s += "Be casual." if tone == "casual" else "Dear Sir."
    s += sgc.gen("r", max_tokens=8)
    return history[-1]["content"] if history else None


@sgc.function
def profile(s, profile: dict[str, str]):
    for key, value in profile.items():
        s += f"{key}={value}\n"
    for key in sorted(profile):
        s += key.upper() + profile[key]
    s += ", ".join(profile.values()) + ", ".join(profile.keys()) + str(len(profile))
    s += "; ".join(f"{k}: {v}" for k, v in profile.items())
    if profile and "x" in profile:
        s += profile["x"]
    s += sgc.gen("r", max_tokens=8)


@sgc.function
def item(s, row: Item):
    s += f"{row['title']}: {row['price'] * 2:.2f} x {row['n'] + 1}"
    s += " ok" if row["ok"] else ""
    for tag in row["tags"]:
        s += tag.upper()
    s += ", ".join(row["tags"])
    if row["note"] is not None:
        s += row["note"].strip()
    if row["note"]:
        s += row["note"]
    s += str(row["meta"].get("k", "none"))
    s += sgc.gen("r", max_tokens=row["n"])


ROW = {
    "title": "T", "price": 2.5, "n": 3, "tags": ["a", "b"], "meta": {"k": [1, 2]}, "note": None,
    "ok": True,
}  # fmt: skip


@sgc.function
def nested(s, grid: list[list[str]], qa: list[dict[str, list[str]]], counts: dict[str, int]):
    for line in grid:
        s += " | ".join(line) + "\n"
    for each in qa:
        for answer in each["answers"]:
            s += f"- {answer}\n"
    s += str(counts["a"] + 1) + str(sum(counts.values())) + str(max(counts.values()))
    s += sgc.gen("r", max_tokens=8)


@sgc.function
def maybe(s, hint: str | None, extra: Any):
    if hint is not None:
        s += "Hint: " + hint.strip()
    s += hint or "none"
    if extra is None:
        s += "nothing"
    elif isinstance(extra, dict):
        s += str(extra.get("k"))
    s += json.dumps(extra) + sgc.gen("r", max_tokens=8)


@sgc.function
def longer(s, history: list[dict[str, str]], q: str):
    own = [{"role": "system", "content": "Be nice."}] + history  # noqa: RUF005
    own.append({"role": "user", "content": q})
    for m in own:
        s += f"{m['role']}> {m['content']}\n"
    s += sgc.gen("r", max_tokens=8)
    return own[-3:]


@sgc.function
def appends_none(s, row: dict[str, str | None]):
    s += row["a"]
    s += sgc.gen("r", max_tokens=8)


CASES = {
    words: HISTORIES,
    scopes: HISTORIES,
    unknown_parts: [*HISTORIES, {"history": [{"role": "user", "content": 3}]},
                    {"history": [{"role": "assistant", "content": None}]},
                    {"history": [{"role": "user", "content": None}]}, {"history": [{}]}],
    in_sequences: [*HISTORIES, *({"history": [{"role": role, "content": content}]}
                                 for role, content in (("", 3), ("", []), ("", {}), ([], "")))],
    joined: HISTORIES,
    optional_keys: HISTORIES,
    messages: [{"history": HISTORY}, {"history": [], "tone": "casual"},
               {"history": [{"role": "system", "content": "x"}]}],
    profile: [{"profile": {"b": "1", "x": "2", "a": ""}}, {"profile": {}}],
    item: [{"row": ROW}, {"row": {**ROW, "note": " hm ", "ok": False, "tags": [], "meta": {}}},
           {"row": {**ROW, "price": 2}}],
    nested: [{"grid": [["a", "b"], []], "qa": [{"answers": ["x"]}], "counts": {"a": 2, "b": 5}},
             {"grid": [], "qa": [{}], "counts": {"a": 1}}, {"grid": [], "qa": [], "counts": {}}],
    maybe: [{"hint": hint, "extra": extra} for hint in (None, "", "h ")
            for extra in (None, {"k": 1}, [1, "a"], 3.5, "t")],
    longer: [{"history": HISTORY, "q": "?"}, {"history": [], "q": ""}],
    appends_none: [{"row": {"a": "x"}}, {"row": {"a": None}}, {"row": {}}],
}  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("function", CASES, ids=lambda function: function.name)
def test_programs_of_data_compile_without_it_and_do_as_python(function):
    program = function.compile(opt_level=0)
    assert not [node for node in program.graph.nodes() if node.op == "deopt"]
    for row in CASES[function]:
        for each in (program, Program(optimize(program.graph, 2))):
            runs = [
                outcome(partial(p.run_once, row, RunOptions(seed=1), replying(1, ["ab", " x", ""])))
                for p in (function, each)
            ]
            assert runs[0] == runs[1], row


def test_reads_are_of_the_annotated_type_and_what_must_be_there_is_no_test():
    @sgc.function
    def p(s, row: Item):
        s += row["title"] + str(row["n"] * 2) + sgc.gen("r", max_tokens=8)

    graph = p.compile(opt_level=0).graph
    assert len(graph.blocks) == 1
    made = [value for node in graph.nodes() for value in node.results if node.op == "compute"]
    assert {str(value.type) for value in made} == {"text", "int"}


WRONG = {
    "a part": (words, {"history": [*HISTORY, {"role": "user", "content": 3}]},
               "argument 'history' must be list[dict[str, str]]: history[3]['content'] must be "
               "str, found int 3"),
    "a whole": (words, {"history": "hi"}, "must be list[dict[str, str]], found str 'hi'"),
    "a tuple": (words, {"history": ()}, "found tuple ()"),
    "a key": (profile, {"profile": {1: "a"}}, "profile must be a dict whose keys are texts, found "
              "the key 1"),
    "a missing key": (item, {"row": {"title": "T"}}, "row must be a dict with the key 'price'"),
    "True for an int": (item, {"row": {**ROW, "n": True}}, "row['n'] must be int, found bool True"),
    "another option": (messages, {"history": [], "tone": "rude"},
                       "argument 'tone' must be 'formal' or 'casual', found str 'rude'"),
    "another option within": (messages, {"history": [{"role": "tool", "content": ""}]},
                              "history[0]['role'] must be 'user' or 'assistant' or 'system'"),
    "neither": (maybe, {"hint": 3, "extra": 1}, "'hint' must be str or None, found int 3"),
    "no data": (maybe, {"hint": "", "extra": {"a": {1}}}, "['a'] must be JSON data, found set"),
}  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("case", WRONG)
def test_a_compiled_program_takes_no_data_that_does_not_fit(case, tmp_path):
    function, row, message = WRONG[case]
    program = function.compile()
    program.save(tmp_path / "p.sgir")
    for each in (program, sgc.load(tmp_path / "p.sgir")):
        with pytest.raises(ArgumentError) as caught:
            each.run_once(row, RunOptions(), replying(1, ["a"]))
        assert message in str(caught.value)


BANK = [{"q": "1 + 1?", "a": "2"}, {"q": "2 + 2?", "a": "4"}]


@sgc.function
def with_defaults(
    s,
    name: str,
    bank: list[dict[str, str]] = BANK,
    book: dict[str, str] = {"a": "b"},  # noqa: B006
    pairs: list[tuple[str, int]] = [("a", 1)],  # noqa: B006
    none: dict[str, int] = {},  # noqa: B006
):
    for row in bank:
        s += name + row["q"] + sgc.gen("r", max_tokens=4)
        if row["a"] in s["r"]:
            s += "right"
    for word, number in pairs:
        s += word + str(number + 1) + book.get(word, "-")
    s += f"{len(none)} {none}"


@cache
def compiled_with_defaults() -> sgc.Program:
    return with_defaults.compile()


@pytest.mark.parametrize("row", [
    {}, {"bank": []}, {"bank": BANK[:1], "book": {}}, {"pairs": [("b", 2)], "none": {"x": 1}},
])  # fmt: skip
def test_defaults_that_are_data_are_taken_where_no_argument_is_given(row, tmp_path):
    program = compiled_with_defaults()
    assert len(program.graph.params) == 5
    program.save(tmp_path / "p.sgir")
    for seed in range(4):
        runs = [
            outcome(
                partial(
                    each.run_once, {"name": "n", **row}, RunOptions(seed=seed),
                    replying(seed, ["2", "4 ", "no"]),
                )
            )
            for each in (with_defaults, program, sgc.load(tmp_path / "p.sgir"))
        ]  # fmt: skip
        assert runs[0] == runs[1] == runs[2]


def test_a_default_whose_value_tracing_needs_is_fixed():
    @sgc.function
    def program(s, q: str, names: list[dict] = BANK):
        forks = s.fork(len(names))
        forks += "!"
        for child, row in zip(forks, names, strict=True):
            child += row["q"] + sgc.gen("r", max_tokens=4)

    with pytest.warns(SgcWarning, match="names of program is fixed to its default"):
        found = program.compile()
    assert [each.value.name for each in found.graph.params] == ["q"]


def test_a_default_in_a_file_that_does_not_fit_is_refused():
    graph = with_defaults.compile().graph
    guards = tuple(
        replace(each, value=each.value.replace('"default": {}', '"default": {"a": "b"}'))
        for each in graph.guards
    )
    with pytest.raises(ArgumentError, match=r"none\['a'\] must be int, found str 'b'"):
        bind_arguments(replace(graph, guards=guards), {"name": "n"})


def test_data_that_holds_itself_is_refused():
    row: dict[str, Any] = {}
    row["row"] = row
    with pytest.raises(ArgumentError, match="100 levels deep"):
        maybe.compile().run_once({"hint": "", "extra": row}, RunOptions(), replying(1, ["a"]))


def looks_into(s, profile: dict[str, str]):
    match profile:
        case {"name": name, **_rest}:
            s += name
    s += sgc.gen("r", max_tokens=8)


def changes(s, profile: dict[str, str]):
    profile["a"] = "b"
    s += sgc.gen("r", max_tokens=8)


def grows(s, history: list[dict[str, str]]):
    history.append({"role": "user"})
    s += sgc.gen("r", max_tokens=8)


REFUSED = {
    looks_into: "`match` looks into a value out of JSON",
    changes: "profile, a value out of JSON, is changed",
    grows: "history, a list of others, is changed",
}


@pytest.mark.parametrize("python", REFUSED, ids=lambda python: python.__name__)
def test_what_cannot_be_traced_of_data_says_so(python):
    with pytest.raises(TraceError) as caught:
        sgc.function(python).compile()
    assert REFUSED[python] in str(caught.value)
