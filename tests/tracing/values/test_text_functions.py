"""Programs that work on their texts: compiled they do what they do interpreted."""

from __future__ import annotations

import json
import re

import pytest
from control_flow import agree
from tests_support import at_levels, run_both

import sgc
from sgc.ir import types
from sgc.ir.graph import Lit, Ref, Value, make_node
from sgc.lang.table import join, table
from sgc.tracing.kinds.text_types import Known, known_text

NUMBER = re.compile(r"(-?\d+)(\.\d+)?")
REPLIES = (
    "5", " 7 ", "2x", "", "٣", "a: b", '{"a": null}', '{"a": [1, 2], "b": "T"}', "[]", "yes",
    "x" * 50,
)  # fmt: skip


@sgc.function
def parses(s, x):
    s += x + sgc.gen("g")
    text = s["g"].strip()
    try:
        n = int(text)
        s += f" is {n * 2 + 1}, half of it {n / 2:.1f}"
    except ValueError as error:
        s += f" is none: {error}"
        n = -1
    match = NUMBER.search(text)
    if match is None:
        s += " without digits"
    else:
        s += " with " + match.group(1) + (match.group(2) or " and no more")
    return n


@sgc.function
def reads_json(s, x):
    s += x + sgc.gen("g")
    try:
        found = json.loads(s["g"])
        if found["a"] is None:
            s += "none"
        elif isinstance(found["a"], list):
            s += f"list of {len(found['a'])}, {found['a'][0]} first; " + found["b"].lower()
    except json.JSONDecodeError as error:
        s += f"no JSON: {error}"
    except (KeyError, TypeError, IndexError) as error:
        s += f"{type(error).__name__}: {error}"


@sgc.function
def splits(s, x):
    s += x + sgc.gen("g")
    parts = s["g"].split(":")
    if len(parts) == 2:
        key, value = parts
        s += f"{key}={value.strip()}"
    s += join("+", parts) + parts[0] + parts[-1].title()
    rest = s["g"]
    while len(rest) > 3:
        rest = rest[2:]
    return rest


@pytest.mark.sweep
@pytest.mark.parametrize("program", [parses, reads_json, splits], ids=lambda p: p.name)
def test_programs_on_replies(program, scripted):
    programs = at_levels(program)
    for reply in REPLIES:
        run_both(
            program, scripted(lambda prompt, sampling, reply=reply: reply), programs=programs, x="q"
        )


def test_a_choice_is_looked_up_in_dicts_and_sets(scripted):
    prices = {"tea": 3, "coffee": 4}

    @sgc.function
    def program(s):
        s += "drink: " + sgc.select("drink", ["tea", "coffee"])
        drink = s["drink"]
        s += f" {prices[drink]} {prices.get(drink, 0)} {drink in {'tea', 'water'}}"
        if drink.upper() == "WATER":
            s += "never"

    for index in (0, 1):
        run_both(program, scripted(prefer=lambda prompt, choices, index=index: index))


def test_a_choice_equals_only_its_options():
    @sgc.function
    def program(s):
        s += "drink: " + sgc.select("drink", ["tea", "coffee"])
        if s["drink"].upper() == "WATER" or s["drink"] == "milk":
            s += "never"

    assert "never" not in str(program.compile().graph)


def test_tables_are_dicts_for_plain_keys():
    found = table({"a": 1})
    assert (found["a"], found.get("b"), found.get("b", 2), "a" in found, len(found)) == (
        1, None, 2, True, 1,
    )  # fmt: skip
    with pytest.raises(KeyError):
        found["b"]
    assert join("-", ["a", "b"]) == "a-b"


def test_a_table_takes_an_f_string(scripted):
    @sgc.function
    def program(s, x):
        s += table({"a!": "b"}).get(f"{x}!", "c")

    for x in ("a", "b"):
        run_both(program, scripted(), x=x)


# -- what is known of generated texts ----------------------------------------------------------


def _gen(**fields):
    results = (Value("s1", types.STREAM), Value("g", types.TEXT))
    literals = {name: Lit(value) for name, value in fields.items()}
    return make_node("gen", results, None, stream=Ref("s0"), **literals)


@pytest.mark.parametrize(
    ("fields", "known"),
    [
        ({"regex": "(yes|no)", "max_tokens": 3}, Known(("yes", "no"))),
        ({"regex": "^(yes|no)$", "max_tokens": 3}, Known(("yes", "no"))),
        ({"regex": "(yes|no)", "max_tokens": 2}, None),  # cut, it may be "ye"
        ({"regex": "(yes|no)"}, None),  # the run's max_tokens may cut it
        ({"regex": "(yes|no)", "max_tokens": 3, "stop": "e"}, None),
        ({"regex": "é", "max_tokens": 1}, None),  # two bytes
        ({"regex": "(?i)a", "max_tokens": 9}, None),
        ({"regex": "[12]{1,2}", "max_tokens": 2}, Known(
            ("1", "2", "11", "12", "21", "22"), is_int=True, is_float=True)),
        ({"regex": "[0-9]+", "max_tokens": 1}, Known(is_int=True, is_float=True)),
        ({"regex": "[0-9]+", "max_tokens": 0}, None),
        ({"regex": "-?[0-9]+", "max_tokens": 1}, None),  # cut, it may be "-"
        ({"regex": "-?[0-9]+", "max_tokens": 2}, Known(is_int=True, is_float=True)),
        ({"regex": "[0-9]+(\\.[0-9]+)?", "max_tokens": 4}, Known(is_float=True)),
        ({"regex": "[0-9]*", "max_tokens": 4}, None),
        ({"regex": "[0-9]+a", "max_tokens": 4}, None),
        ({"regex": r"\d+", "max_tokens": 4}, None),  # cut, it may end within a digit's bytes
        ({"dtype": "int", "max_tokens": 2}, Known(is_int=True, is_float=True)),
        ({"dtype": "float", "max_tokens": 3}, Known(is_float=True)),
        ({"json_schema": "{}"}, Known(json_schema="{}")),
        ({"max_tokens": 4}, None),
    ],
)  # fmt: skip
def test_what_is_known_of_a_pattern(fields, known):
    assert known_text(_gen(**fields)) == known


def test_known_texts_need_no_attempts():
    @sgc.function
    def program(s):
        s += sgc.gen("n", regex="[0-9]+", max_tokens=4) + sgc.gen("w", regex="yes|no", max_tokens=4)
        if s["w"] == "maybe":
            s += "never"
        return int(s["n"]) + 1

    graph = program.compile(check=False).graph
    assert [node.op for node in graph.nodes() if node.op in ("attempt", "branch")] == []


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
        "mood": {"enum": ["good", "bad"]},
        "note": {"type": "string"},
    },
    "required": ["name", "age", "tags", "mood"],
    "$defs": {"tag": {"type": "string"}},
}


def test_json_of_a_schema_has_types(scripted):
    @sgc.function
    def program(s):
        s += sgc.gen("p", json_schema=PERSON)
        person = json.loads(s["p"])
        s += person["name"].upper() + f" {person['age'] + 1} {len(person['tags'])}"
        s += {"good": ":)", "bad": ":("}[person["mood"]]
        return isinstance(person, dict), "name" in person, person["age"] > 3, bool(person)

    reply = json.dumps({"name": "Ada", "age": 36, "tags": ["x"], "mood": "bad"})
    compiled = program.compile(check=False)
    attempts = [node for node in compiled.graph.nodes() if node.op == "attempt"]
    assert [node.text("fn") for node in attempts] == ["json_loads"]
    endpoint = scripted(lambda prompt, sampling: reply)
    ours, theirs = compiled.run(backend=endpoint), program.run(backend=endpoint)
    assert ours.text() == theirs.text() == reply + "ADA 37 1:("
    assert ours.ret_value == (True, True, True, True)


def test_what_arms_know_of_a_text_differs_and_nothing_is_taken_for_granted():
    @sgc.function
    def program(s, is_short: bool):
        if is_short:
            s += sgc.gen("n", regex="[0-9]+", max_tokens=2)
            n = s["n"]
        else:
            s += "or " + sgc.gen("m", max_tokens=2)
            n = s["m"]
        s += " then"
        s += str(int(n) + 1)

    agree(program, ["12", "no", "yes"], is_short=True)
    graph = agree(program, ["12", "no", "yes"], is_short=False)
    attempts = [node for node in graph.nodes() if node.op == "attempt"]
    assert len(attempts) == 1  # of the text that may be anything


def test_the_check_replies_as_constraints_allow():
    @sgc.function
    def program(s, text: str):
        s += text + sgc.gen("p", json_schema=PERSON)
        s += "\n" + sgc.gen("n", regex="-?[0-9]+", max_tokens=3)
        person = json.loads(s["p"])
        for tag in person["tags"]:
            s += tag + sgc.gen("t", dtype=int, max_tokens=2)
        s += {"good": ":)", "bad": ":("}[person["mood"]] + str(int(s["n"]) + person["age"])

    program.compile()
