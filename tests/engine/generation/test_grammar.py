"""Constraints as grammars: what is refused, how soon and in which words, and what JSON comes of."""

from __future__ import annotations

import json
from typing import Any

import pytest
from engine.generation.conftest import ByteMatcher, Rig
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from property_tests import examples
from waiting import cpu_below

from sgc.runtime.engine.guides.grammar import (
    MAX_GRAMMAR_CHARS,
    MAX_REGEX_CHARS,
    MAX_SCHEMA_CHARS,
    ConstraintError,
    check_constraint,
    composed,
    grammar_of,
)
from sgc.runtime.engine.guides.guides import Compiled
from sgc.runtime.engine.guides.json_schemas import prepared


def nested(depth: int, inner: Any = None) -> Any:
    schema: Any = inner or {"type": "integer"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


def text_of(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)


DIGITS_50 = {"anyOf": [{"const": i} for i in range(50)]}
BAD_SCHEMAS: list[tuple[Any, str]] = [
    ("false", "allows nothing"),
    ("{", "is not valid JSON"),
    ("", "is not valid JSON"),
    ("nope", "is not valid JSON"),
    ("[" * 10_000, "is not valid JSON|nested"),
    ('{"minimum": 1, "minimum": 2}', "has the name 'minimum' twice"),
    ('{"$defs": {"a": {"const": {"b": 1, "b": 1}}}}', "has the name 'b' twice"),
    ('{"const": NaN}', "NaN is not a JSON number"),
    ("null", "must be an object or a bool"),
    ("[]", "must be an object or a bool"),
    ('"x"', "must be an object or a bool"),
    ({"type": "foo"}, "Invalid type: foo"),
    ({"type": 3}, "json_schema cannot be used"),
    ({"type": "integer", "minimum": 3, "maximum": 1}, "minimum .3. is greater than maximum"),
    ({"type": "string", "minLength": 5, "maxLength": 4}, "minLength .5. is greater"),
    ({"type": "array", "minItems": 3, "maxItems": 2}, "(?i)minItems"),
    ({"allOf": [{"type": "integer"}, {"type": "string"}]}, "(?i)unsatisfiable"),
    ({"$ref": "http://127.0.0.1:1/s"}, "does not fetch"),
    ({"$ref": "file:///etc/hostname"}, "does not fetch|not present"),
    ({"$ref": "#/$defs/none"}, "#/\\$defs/none|none"),
    (nested(70), "nested more than 64 deep"),
    ('{"items": ' * 5000 + "{}" + "}" * 5000, "nested|not valid JSON"),
    ({"type": "string", "pattern": "(?=a)b"}, "pattern .*looks ahead"),
    ({"type": "string", "pattern": r"(a)\1"}, "pattern .*refers back"),
    ({"type": "string", "pattern": "("}, "pattern .*is invalid"),
    ({"type": "object", "patternProperties": {"(?!a)": {}}}, "pattern .*looks ahead"),
    ({"type": "string", "pattern": "a" * 9000}, "characters of patterns"),
    ({"type": "integer", "minimum": 2**60}, "minimum 1.15292e.18, beyond"),
    ({"type": "number", "maximum": 1e-300}, "maximum 1e-300, beyond"),
    ({"type": "number", "exclusiveMaximum": 10**400}, "exclusiveMaximum inf, beyond"),
    ({"type": "integer", "multipleOf": 999_983}, "multipleOf 999983"),
    ({"type": "integer", "multipleOf": 0}, "multipleOf|division|zero"),
    ({"type": "number", "multipleOf": -1}, "multipleOf -1"),
    ({"allOf": [{"multipleOf": n} for n in (997, 991)]}, "multipleOf together"),
    ({"allOf": [DIGITS_50] * 3}, "allOf of over 128 combinations"),
    ({"x-guidance": {"whitespace_pattern": "x"}}, "whitespace_flexible"),
    ({"x-guidance": 1}, "whitespace_flexible"),
    ({"properties": {"a": {"x-guidance": {}}}}, "only at the top"),
    ({"type": "object", "patternProperties": {f"^a{i}": {} for i in range(40)}}, "over 32"),
    ({"type": "string", "not": {"const": "a"}}, "not"),
    ({"type": "array", "uniqueItems": True}, "uniqueItems"),
    ({"type": "array", "contains": {}}, "contains"),
    ({"if": {}, "then": {}}, "if|then"),
    ({"type": "object", "propertyNames": {"pattern": "a"}}, "propertyNames"),
    ({"type": "object", "properties": {"a": False}, "required": ["a"]}, "(?i)unsatisfiable"),
    ('{"description": "' + "x" * MAX_SCHEMA_CHARS + '"}', "characters, of at most 65536"),
]
BAD_REGEXES = [
    ("(?=a)b", "looks ahead or behind; make it part"),
    (r"(a)\1", "refers back to a group"),
    ("(", "is invalid"),
    (r"a\b", "word boundary"),
    ("a" * (MAX_REGEX_CHARS + 1), "has 8193 characters, of at most 8192"),
    ("(?:" * 2000 + "a" + ")" * 2000, "nested too deeply"),
    ("(?:(?:(?:a{0,900}){0,900}){0,900}b?){900}x?" * 150, "over 500 repeats|too|fuel|large"),
]
BAD_GRAMMARS = [
    ('root ::= "a', "EBNF grammar is invalid: Unexpected end of input at line 1"),
    ("root ::= (", "EBNF grammar is invalid"),
    ("root ::= [a-", "EBNF grammar is invalid"),
    ("::=", "ebnf cannot be used"),
    ('root ::= "a" )', "EBNF grammar is invalid"),
    ('other ::= "a"', "No 'root' rule"),
    ("root ::= b", "'b' not found"),
    ("root ::= [a-z]+ undefined-rule", "undefined-rule"),
    ("start: nope", "nope"),
    ("start: NOPE", "NOPE"),
    ("start: (", "ebnf cannot be used"),
    ("a: b", "ebnf cannot be used"),
    ('other: "x"', "start"),
    ("", "ebnf cannot be used"),
    ("start: A\nA: B\nB: A", "ebnf cannot be used"),
    ('start: "a"\nstart: "b"', "ebnf cannot be used"),
    ('start: "a' + "a" * MAX_GRAMMAR_CHARS + '"', "characters, of at most 16384"),
    ("%import x.y\nstart: x", "ebnf cannot be used"),
    ("start: " + "(" * 5000 + '"a"' + ")" * 5000, "ebnf cannot be used"),
    ("start: /(?=a)b/", "ebnf cannot be used"),
    ('start: %json {"type": "null", "type": "integer"}', "has the name 'type' twice"),
    ('start: %json {"$ref": "http://127.0.0.1:1/"}', "does not fetch|not present"),
]
CASES = (
    [("json_schema", text_of(schema), reason) for schema, reason in BAD_SCHEMAS]
    + [("regex", text, reason) for text, reason in BAD_REGEXES]
    + [("ebnf", text, reason) for text, reason in BAD_GRAMMARS]
)


@pytest.mark.parametrize(("field", "text", "reason"), CASES, ids=lambda value: value[:32])
def test_what_cannot_be_followed_is_refused_at_once(field: str, text: str, reason: str) -> None:
    with cpu_below(1), pytest.raises(ConstraintError, match=reason) as caught:
        check_constraint(field, text)
    message = str(caught.value)
    assert "\n" not in message.strip()
    assert len(message) < 500


EMPTY = [
    ("regex", "[^\\x00-\\U0010ffff]"),
    ("regex", r"a[^\s\S]b"),
    ("json_schema", '{"enum": []}'),
    ("json_schema", '{"type": "integer", "multipleOf": 7, "minimum": 8, "maximum": 13}'),
    ("json_schema", '{"type": "string", "pattern": "^a$", "minLength": 5}'),
    ("json_schema", '{"type": "array", "items": false, "minItems": 1}'),
    ("grammar", "start: start"),
    ("grammar", 'root ::= root "a"'),
    ("grammar", "start: /[^\\s\\S]/"),
]


@pytest.mark.parametrize(("field", "text"), EMPTY, ids=lambda value: value[:32])
def test_what_nothing_satisfies_is_refused(rig: Rig, field: str, text: str) -> None:
    with cpu_below(1), pytest.raises(ConstraintError):
        Compiled(composed(grammar_of(field, text)), rig.vocabulary)


def accepts_text(schema: Any, text: str) -> bool:
    made = ByteMatcher("json_schema", text_of(schema))
    assert not made.error, made.error
    return made.accepts(text)


def accepts(schema: Any, value: Any) -> bool:
    return accepts_text(schema, json.dumps(value, ensure_ascii=False))


CLOSED = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}
OPENERS: list[dict[str, Any]] = [
    {"additionalProperties": True},
    {"additionalProperties": {}},
    {"additionalProperties": {"type": "integer"}},
    {"patternProperties": {"^z": {"type": "integer"}}},
]


def test_an_object_that_lists_its_properties_has_no_others() -> None:
    assert accepts(CLOSED, {"a": 1})
    assert accepts(CLOSED, {"a": 1, "b": [None, {"z": 2}]})
    assert not accepts(CLOSED, {"a": 1, "z": 2})
    assert not accepts(CLOSED, {"b": 1})
    inner = {"type": "array", "items": CLOSED}
    assert not accepts(inner, [{"a": 1, "z": 2}])
    refers = {"$defs": {"x": CLOSED}, "$ref": "#/$defs/x"}
    assert accepts(refers, {"a": 1})
    assert not accepts(refers, {"a": 1, "z": 2})
    either = {"anyOf": [CLOSED, {"type": "null"}]}
    assert accepts(either, None)
    assert not accepts(either, {"a": 1, "z": 2})


@pytest.mark.parametrize("opener", OPENERS, ids=str)
def test_unless_it_says_so(opener: dict[str, Any]) -> None:
    assert accepts(CLOSED | opener, {"a": 1, "z": 2})
    assert not accepts(CLOSED | {"additionalProperties": False}, {"a": 1, "z": 2})


def test_or_has_an_all_of_anywhere() -> None:
    extra = {"properties": {"c": {"type": "integer"}}, "required": ["c"]}
    assert accepts({"allOf": [CLOSED, extra]}, {"a": 1, "b": 2, "c": 3})
    outside = {"type": "object", "properties": {"x": CLOSED, "y": {"allOf": [{}]}}}
    assert accepts(outside, {"x": {"a": 1, "z": 2}})


def test_or_requires_what_it_does_not_list() -> None:
    assert accepts(CLOSED | {"required": ["a", "q"]}, {"a": 1, "q": 2})


def test_data_is_not_taken_for_schemas() -> None:
    value = {"properties": {"a": 1}, "x-guidance": 3, "multipleOf": 0}
    assert accepts({"const": value}, value)
    assert accepts({"enum": [value, 1]}, value)
    assert accepts({"default": value, "examples": [value], "type": "integer"}, 5)
    named = {"type": "object", "properties": {"properties": {"type": "integer"}}}
    assert accepts(named, {"properties": 1})
    assert not accepts(named, {"properties": 1, "z": 1})
    formatted = {"type": "object", "properties": {"format": {"type": "string"}}}
    assert accepts(formatted, {"format": "x"})
    odd = {"type": "object", "properties": {"allOf": {"type": "integer"}}}
    assert not accepts(odd, {"allOf": 1, "z": 2})
    pattern = {"type": "object", "properties": {"pattern": {"type": "string"}}}
    assert accepts(pattern, {"pattern": "(?=x)"})


def test_the_layout_is_that_of_json_dumps() -> None:
    schema = {"type": "array", "items": CLOSED}
    value = [{"a": 1, "b": "x"}, {"a": -2}]
    assert accepts_text(schema, json.dumps(value))
    assert not accepts_text(schema, json.dumps(value, separators=(",", ":")))
    assert not accepts_text(schema, json.dumps(value, indent=1))
    assert not accepts_text(schema, " " + json.dumps(value))
    assert not accepts_text(schema, json.dumps(value) + " ")
    assert not accepts_text({"type": "string"}, '"\\u0041"')
    assert accepts_text({"type": "string"}, '"\\n\\"\\\\é🙂"')


def test_white_space_may_be_asked_for() -> None:
    schema = {**CLOSED, "x-guidance": {"whitespace_flexible": True}}
    for text in ('{"a": 1}', '{ "a" :  1,  "b": 2 }', '{\n "a": 1, "b": [ 1, 2\n]\n}'):
        assert accepts_text(schema, text)
    for text in ('{"a":1}', '{"a": 1,"b": 2}', '{\n  "a": 1,\n  "b": [\n 1\n]}'):
        assert accepts_text(schema, text), text


def test_the_layout_is_fixed_where_that_is_asked_for() -> None:
    assert not accepts_text({**CLOSED, "x-guidance": {"whitespace_flexible": False}}, '{"a":1}')
    assert "x-guidance" in prepared(True)


def test_unknown_formats_are_remarks() -> None:
    assert accepts({"type": "string", "format": "color"}, "any")
    assert not accepts({"type": "string", "format": "date"}, "any")
    assert accepts({"type": "string", "format": "date"}, "2024-02-29")


def test_patterns_in_schemas_are_python_s_and_search() -> None:
    schema = {"type": "string", "pattern": r"\d\S"}
    assert accepts(schema, "a1b!")
    assert accepts(schema, "x٣é")
    assert not accepts(schema, "1")


@pytest.mark.parametrize("prefix", ["http:", "a", " ", "/", '"\\', "é🙂", "a.b*", "\n", "start: {"])
def test_composed_with_a_prefix(prefix: str) -> None:
    digits = ByteMatcher("regex", r"\d+", prefix)
    assert digits.accepts(prefix + "12")
    assert not digits.accepts("12")
    assert not digits.accepts(prefix)
    assert not digits.accepts(prefix + prefix + "1")
    value = ByteMatcher("json_schema", text_of(CLOSED), prefix)
    assert value.accepts(prefix + '{"a": 1}')
    assert not value.accepts(prefix + '{"a": 1, "z": 2}')
    assert not value.accepts('{"a": 1}')
    rules = ByteMatcher("grammar", 'start: ("x" y)+\ny: /[0-9]/', prefix)
    assert rules.accepts(prefix + "x1x2")
    assert not rules.accepts("x1x2")
    ebnf = ByteMatcher("grammar", 'root ::= "x" y\ny ::= [0-9]*', prefix)
    assert ebnf.accepts(prefix + "x12")
    main = ByteMatcher("grammar", 'start: main PREFIX\nmain: "m"\nPREFIX: "p"', prefix)
    assert main.accepts(prefix + "mp")


def test_composed_with_nothing_but_a_prefix(rig: Rig) -> None:
    made = Compiled(composed(None, "http:"), rig.vocabulary)
    guide = made.start()
    guide.take(rig.ids("http"))
    assert not guide.may_end
    guide.take(rig.ids("://x\n🙂"))
    assert guide.may_end
    assert not guide.is_over


SCALARS = st.sampled_from(
    [
        {"type": "integer"},
        {"type": "integer", "minimum": -3, "maximum": 12},
        {"type": "string"},
        {"type": "string", "minLength": 1, "maxLength": 3},
        {"type": "boolean"},
        {"type": "null"},
        {"enum": [1, "a", None, [1, {"b": 2}]]},
        {"const": "x"},
        {"type": ["string", "null"]},
        {"type": "string", "pattern": "^[a-c]+$"},
        {"type": "number", "exclusiveMinimum": 0},
    ]
)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "b", "c"])
    objects = st.builds(
        lambda listed, n: {
            "type": "object",
            "properties": listed,
            "required": [*listed][:n],
            "additionalProperties": False,
        },
        st.dictionaries(names, inner, max_size=3),
        st.integers(0, 3),
    )
    arrays = st.builds(
        lambda items, low: {"type": "array", "items": items, "minItems": low, "maxItems": 3},
        inner,
        st.integers(0, 2),
    )
    return objects | arrays


SCHEMAS = st.recursive(SCALARS, _containers, max_leaves=4)
VALUES = st.recursive(
    st.sampled_from([None, True, 0, -3, 5, 100, 0.5, "", "a", "x", "abc", "héllo", "🙂"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), inner, max_size=3)
    ),
    max_leaves=5,
)


@examples(150)
@given(SCHEMAS, st.lists(VALUES, min_size=4, max_size=4))
def test_values_are_accepted_as_a_validator_says(schema: Any, values: list[Any]) -> None:
    made = ByteMatcher("json_schema", json.dumps(schema))
    validator = Draft202012Validator(schema)
    for value in values:
        in_order = _in_order(schema, value)
        text = json.dumps(in_order, ensure_ascii=False)
        assert made.accepts(text) == validator.is_valid(value), (schema, text)


def _in_order(schema: Any, value: Any) -> Any:
    """With the properties in the schema's order, as generated texts have them."""
    if isinstance(value, dict):
        listed = schema.get("properties", {})
        names = sorted(value, key=lambda name: [*listed, name].index(name))
        return {name: _in_order(listed.get(name, {}), value[name]) for name in names}
    if isinstance(value, list):
        return [_in_order(schema.get("items", {}), each) for each in value]
    return value
