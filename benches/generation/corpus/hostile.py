"""Seeded hostile regexes, schemas and grammars: what a service must survive, compiled or refused.

The same count and seed give the same items. Nothing here is meant to be sensible. Called by the
tests and benches that put limits on compiling and on masks.
"""

import json
import random
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

CORPUS = Path(__file__).parent
Item = TypeVar("Item")
Rng = random.Random
UNICODE_CLASSES = (r"\p{L}", r"\p{Lu}", r"\p{Han}", r"\p{Greek}", r"\P{Cyrillic}", r"\w", r"\W")
KEYWORDS = ("type", "enum", "properties", "items", "required", "minimum", "pattern", "$ref")
WRONG_VALUES: tuple[Any, ...] = (None, True, -1, 1e308, "x", "", [], [None], {}, {"": 0}, 2**70)


def hostile_patterns(n: int, seed: int) -> Iterator[str]:
    """Give n hostile regexes."""
    return _draw(PATTERNS, n, seed)


def hostile_schemas(n: int, seed: int) -> Iterator[Any]:
    """Give n hostile JSON schemas; some are no schemas at all."""
    return _draw(SCHEMAS, n, seed)


def hostile_grammars(n: int, seed: int) -> Iterator[str]:
    """Give n hostile grammars, in Lark's notation or in GBNF."""
    return _draw(GRAMMARS, n, seed)


def _draw(kinds: tuple[Callable[[Rng], Item], ...], n: int, seed: int) -> Iterator[Item]:
    rng = Rng(seed)
    for index in range(n):
        yield kinds[index % len(kinds)](rng)


def _size(rng: Rng, largest: int) -> int:
    """Draw a size from 1 to `largest`, every magnitude alike."""
    return max(1, int(largest ** rng.random()))


def _word(rng: Rng, length: int = 6) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=length))


def _corpus(name: str, key: str) -> list[Any]:
    return [entry[key] for entry in json.loads((CORPUS / name).read_text(encoding="utf-8"))]


# Regexes


def nested_quantifiers(rng: Rng) -> str:
    pattern = rng.choice(["a", "[ab]", r"\w", ".", "(?:a|ab)"])
    for _ in range(rng.randint(2, 8)):
        pattern = f"(?:{pattern}){rng.choice(['*', '+', '?', '*?', '+?', '{1,9}', '{2,}'])}"
    return pattern


def nested_counts(rng: Rng) -> str:
    pattern = rng.choice(["a", "ab|c", r"\d", "[a-f]x?", r"\w"])
    for _ in range(rng.randint(2, 5)):
        pattern = f"(?:{pattern}){{{rng.randint(0, 9)},{_size(rng, 1000) + 9}}}"
    return pattern


def huge_count(rng: Rng) -> str:
    count = rng.choice([999, 10_000, 65_536, 10**6, 2**31, 2**32, 2**63, 10**30])
    body = rng.choice(["a", ".", r"\w", "(?:ab?)", r"[^\n]", "(?:a|b|cd)"])
    return body + rng.choice([f"{{{count}}}", f"{{0,{count}}}", f"{{{count},}}", f"{{9,{count}}}"])


def counted_chain(rng: Rng) -> str:
    return "".join(f"[a-z]{{0,{_size(rng, 500)}}}{_word(rng, 1)}" for _ in range(_size(rng, 100)))


def giant_alternation(rng: Rng) -> str:
    return "|".join(_word(rng, rng.randint(1, 12)) for _ in range(_size(rng, 10_000)))


def giant_ignorecase(rng: Rng) -> str:
    return "(?i)" + giant_alternation(rng)


def alternation_of_stars(rng: Rng) -> str:
    return "(?:" + "|".join(f"{_word(rng, 3)}.*" for _ in range(_size(rng, 300))) + ")*z"


def deep_groups(rng: Rng) -> str:
    depth = _size(rng, 50_000)
    opening = rng.choice(["(", "(?:", "(a|", "(?:a(?:b)?"])
    return opening * depth + "x" + ")" * depth + rng.choice(["", "*"])


def deep_right_nesting(rng: Rng) -> str:
    depth = _size(rng, 5_000)
    return "".join(f"(?:{char}|" for char in rng.choices("abcdef", k=depth)) + "z" + ")*" * depth


def giant_class(rng: Rng) -> str:
    chars = {chr(rng.randint(0x100, 0xD7FF)) for _ in range(_size(rng, 20_000))}
    return "[" + rng.choice(["", "^"]) + "".join(sorted(chars)) + "]" + rng.choice(["", "+", "{9}"])


def unicode_soup(rng: Rng) -> str:
    parts = (rng.choice(UNICODE_CLASSES) for _ in range(_size(rng, 100)))
    return "".join(part + rng.choice(["", "+", "?", "{0,30}", "*"]) for part in parts)


def unicode_set_soup(rng: Rng) -> str:
    parts = (rng.choice(UNICODE_CLASSES) for _ in range(rng.randint(1, 6)))
    return "(?i)(?:[" + "".join(parts) + "]{0," + str(_size(rng, 2000)) + "}x)*"


def far_lookback(rng: Rng) -> str:
    # The smallest automaton has two to the power of the count states.
    return f"(?:a|b)*a(?:a|b){{{_size(rng, 1000)}}}"


def backtracking_bomb(rng: Rng) -> str:
    body = rng.choice(
        ["(a+)+", "(a|a)*", "(a|aa)+", "(.*a){20}", "(a*)*b", "([a-z]+)*", "(x+x+)+y"]
    )
    return "^" + body * rng.randint(1, 9) + rng.choice(["$", "b$", "!"])


def optional_tower(rng: Rng) -> str:
    n_chars = _size(rng, 5_000)
    return "a?" * n_chars + "a" * n_chars


def long_literal(rng: Rng) -> str:
    return "".join(rng.choices(string.ascii_letters + " é漢", k=_size(rng, 100_000)))


def intersecting_runs(rng: Rng) -> str:
    return ".*".join(_word(rng, 3) for _ in range(_size(rng, 200)))


def look_around(rng: Rng) -> str:
    return rng.choice(["(?=a)", "(?!a)", "(?<=a)", "(?<!a)", r"\b", r"\B", "^", "$"]).join("abcd")


def back_reference(rng: Rng) -> str:
    return rng.choice([r"(a+)\1", r"(?P<x>\w)(?P=x)", r"(a)?(?(1)b|c)", r"\99", r"\k<x>", r"(?1)"])


def bytes_as_text(rng: Rng) -> str:
    return rng.randbytes(_size(rng, 1_000)).decode(rng.choice(["latin-1", "utf-16"]), "replace")


def syntax_soup(rng: Rng) -> str:
    return "".join(rng.choices(r"()[]{}|*+?.^$\,-:=!<>P0123abcxuwd/&~#" + "\n", k=_size(rng, 300)))


def mutated_corpus(rng: Rng) -> str:
    return _mutated(rng, rng.choice(_corpus("regexes.json", "pattern")))


def truncated_corpus(rng: Rng) -> str:
    pattern: str = rng.choice(_corpus("regexes.json", "pattern"))
    return pattern[: rng.randrange(len(pattern))]


def repeated_corpus(rng: Rng) -> str:
    return f"(?:{rng.choice(_corpus('regexes.json', 'pattern'))}){{0,{_size(rng, 1000)}}}"


def _mutated(rng: Rng, text: str) -> str:
    for _ in range(rng.randint(1, 6)):
        start, end = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        middle = rng.choice(
            ["", text[start:end] * 2, _word(rng, 2), "{1,999}", "*", "(", "]", "\\"]
        )
        text = text[:start] + middle + text[end:]
    return text


PATTERNS: tuple[Callable[[Rng], str], ...] = (
    nested_quantifiers,
    nested_counts,
    huge_count,
    counted_chain,
    giant_alternation,
    giant_ignorecase,
    alternation_of_stars,
    deep_groups,
    deep_right_nesting,
    giant_class,
    unicode_soup,
    unicode_set_soup,
    far_lookback,
    backtracking_bomb,
    optional_tower,
    long_literal,
    intersecting_runs,
    look_around,
    back_reference,
    bytes_as_text,
    syntax_soup,
    mutated_corpus,
    truncated_corpus,
    repeated_corpus,
)


# Schemas


def _object(properties: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, **others}


def deep_schema(rng: Rng) -> Any:
    # Deeper than this Python's own json gives up.
    wrap = rng.choice(["object", "array", "anyOf", "allOf"])
    schema: Any = {"type": "integer"}
    for _ in range(_size(rng, 400)):
        schema = _wrapped(wrap, schema)
    return schema


def _wrapped(wrap: str, schema: Any) -> Any:
    match wrap:
        case "object":
            return _object({"a": schema})
        case "array":
            return {"type": "array", "items": schema}
        case _:
            return {wrap: [schema, {"type": ["array", "integer", "object"]}]}


def many_properties(rng: Rng) -> Any:
    names = [f"{_word(rng)}{index}" for index in range(_size(rng, 5_000))]
    required = names if rng.random() < 0.3 else rng.sample(names, k=len(names) // 3)
    others = rng.choice([False, True, {"type": "integer"}])
    return _object(
        {name: {"type": rng.choice(["string", "integer", "number"])} for name in names},
        required=required,
        additionalProperties=others,
    )


def huge_enum(rng: Rng) -> Any:
    values = [_word(rng, rng.randint(1, 30)) for _ in range(_size(rng, 20_000))]
    return {"enum": [json.dumps(value) if rng.random() < 0.1 else value for value in values]}


def many_branches(rng: Rng) -> Any:
    return {
        rng.choice(["anyOf", "oneOf", "allOf"]): [
            _object({"kind": {"const": index}, _word(rng): {"type": "string"}}, required=["kind"])
            for index in range(_size(rng, 1_000))
        ]
    }


def all_of_any_of(rng: Rng) -> Any:
    # Multiplied out this is width ** depth branches.
    width = rng.randint(2, 5)
    return {
        "allOf": [
            {"anyOf": [_object({f"p{part}": {"const": index}}) for index in range(width)]}
            for part in range(_size(rng, 40))
        ]
    }


def endless_reference(rng: Rng) -> Any:
    return rng.choice(
        [
            {"$ref": "#"},
            {
                "$ref": "#/$defs/a",
                "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
            },
            {"allOf": [{"$ref": "#"}, {"type": "integer"}]},
            {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
            {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
            _object({"a": {"$ref": "#"}}, required=["a"]),
            {"type": "object", "additionalProperties": {"$ref": "#"}, "minProperties": 1},
            {"oneOf": [{"$ref": "#/oneOf/1"}, {"$ref": "#/oneOf/0"}]},
        ]
    )


def reference_bomb(rng: Rng) -> Any:
    depth, width = _size(rng, 60), rng.randint(2, 4)
    defs = {
        f"d{level}": _object({f"p{x}": {"$ref": f"#/$defs/d{level + 1}"} for x in range(width)})
        for level in range(depth)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{depth}": {"type": "null"}}}


def all_of_bomb(rng: Rng) -> Any:
    # Inlining doubles at every level.
    depth = _size(rng, 30)
    defs = {f"d{x}": {"allOf": [{"$ref": f"#/$defs/d{x + 1}"}] * 2} for x in range(depth)}
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{depth}": {"type": "integer", "minimum": 1}}}


def unsatisfiable(rng: Rng) -> Any:
    return rng.choice(
        [
            False,
            {"not": {}},
            {"enum": []},
            {"type": "integer", "minimum": 5, "maximum": 4},
            {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
            {"type": "string", "minLength": 5, "maxLength": 4},
            {"type": "string", "pattern": "^a$", "minLength": 5},
            {"allOf": [{"type": "integer"}, {"type": "string"}]},
            {"type": "array", "minItems": 3, "maxItems": 2},
            {"type": "array", "items": False, "minItems": 1},
            _object({"a": False}, required=["a"]),
            _object({}, required=["a"]),
            {"type": "integer", "multipleOf": 7, "minimum": 8, "maximum": 13},
            {"anyOf": [False, {"const": 1, "type": "string"}]},
        ]
    )


def giant_count(rng: Rng) -> Any:
    count = rng.choice([1_000, 20_000, 10**6, 2**31, 2**32, 2**63, 2**64, 10**30])
    return rng.choice(
        [
            {"type": "array", "minItems": count},
            {"type": "array", "items": {"type": "integer"}, "minItems": count, "maxItems": count},
            {"type": "array", "items": {"enum": ["a", "ab"]}, "maxItems": count},
            {"type": "string", "maxLength": count},
            {"type": "string", "minLength": count},
            {"type": "string", "minLength": count, "maxLength": count},
            {"type": "string", "pattern": "^[a-z]*$", "maxLength": count},
            {"type": "object", "additionalProperties": True, "minProperties": count},
            {"type": "object", "additionalProperties": {"type": "null"}, "maxProperties": count},
            {"type": "integer", "minimum": -count, "maximum": count},
            {"type": "integer", "multipleOf": count},
            {"type": "number", "multipleOf": 1 / count},
        ]
    )


def nested_arrays_counted(rng: Rng) -> Any:
    schema: Any = {"type": "string", "maxLength": 50}
    for _ in range(rng.randint(2, 6)):
        schema = {"type": "array", "items": schema, "minItems": 2, "maxItems": _size(rng, 100) + 2}
    return schema


def odd_numbers(rng: Rng) -> Any:
    bounds = [rng.choice([-1, 1]) * 10 ** rng.uniform(-320, 308) for _ in range(2)]
    return {
        "type": rng.choice(["number", "integer"]),
        rng.choice(["minimum", "exclusiveMinimum"]): min(bounds),
        rng.choice(["maximum", "exclusiveMaximum"]): max(bounds),
    }


def odd_multiples(rng: Rng) -> Any:
    divisor = rng.choice([0, -1, 1e-300, 1e300, 7919, 999_983, 0.1 + 0.2, 2**63])
    schema = {"type": rng.choice(["number", "integer"]), "multipleOf": divisor}
    return (
        {"allOf": [schema, {"multipleOf": rng.choice([3, 997, 0.7])}]}
        if rng.random() < 0.5
        else schema
    )


def hostile_pattern_schema(rng: Rng) -> Any:
    pattern = rng.choice(PATTERNS)(rng)
    return rng.choice(
        [
            {"type": "string", "pattern": pattern},
            {"type": "string", "pattern": pattern, "maxLength": _size(rng, 10_000)},
            {"type": "object", "patternProperties": {pattern: {}}, "additionalProperties": False},
            {
                "type": "string",
                "allOf": [{"pattern": pattern}, {"pattern": rng.choice(PATTERNS)(rng)}],
            },
        ]
    )


def many_pattern_properties(rng: Rng) -> Any:
    patterns: dict[str, Any] = {
        f"^{_word(rng, 3)}.*{_word(rng, 1)}": {} for _ in range(_size(rng, 300))
    }
    return {
        "type": "object",
        "patternProperties": patterns,
        "additionalProperties": {"type": "null"},
    }


def unknown_keywords(rng: Rng) -> Any:
    return {
        "type": "string",
        _word(rng): 1,
        rng.choice(["contains", "not", "if", "uniqueItems"]): {},
    }


def wrong_types(rng: Rng) -> Any:
    return {
        keyword: rng.choice(WRONG_VALUES) for keyword in rng.sample(KEYWORDS, k=rng.randint(1, 3))
    }


def no_schema(rng: Rng) -> Any:
    return rng.choice(WRONG_VALUES)


def outside_reference(rng: Rng) -> Any:
    targets = ("http://127.0.0.1:1/s", "file:///etc/hostname", "../x.json", "#/$defs/none", "#nope")
    return {"$ref": rng.choice((*targets, "urn:x", "https://json-schema.org/draft-07/schema#"))}


def odd_names(rng: Rng) -> Any:
    names = [
        "\0",
        '"',
        "\\",
        "\n",
        "é" * 1000,
        "\ud7ff",
        "a" * _size(rng, 50_000),
        "</s>",
        "\u2028",
    ]
    return _object({name: {"const": name} for name in rng.sample(names, k=4)})


def mutated_schema(rng: Rng) -> Any:
    text = json.dumps(rng.choice(_corpus("schemas.json", "schema")))
    for _ in range(20):
        try:
            return json.loads(_mutated(rng, text))
        except ValueError:
            continue
    return {}


def crossed_schemas(rng: Rng) -> Any:
    every = [
        schema for schema in _corpus("schemas.json", "schema") if "$ref" not in json.dumps(schema)
    ]
    return {rng.choice(["anyOf", "allOf"]): rng.sample(every, k=rng.randint(2, 20))}


SCHEMAS: tuple[Callable[[Rng], Any], ...] = (
    deep_schema,
    many_properties,
    huge_enum,
    many_branches,
    all_of_any_of,
    endless_reference,
    reference_bomb,
    all_of_bomb,
    unsatisfiable,
    giant_count,
    nested_arrays_counted,
    odd_numbers,
    odd_multiples,
    hostile_pattern_schema,
    many_pattern_properties,
    unknown_keywords,
    wrong_types,
    no_schema,
    outside_reference,
    odd_names,
    mutated_schema,
    crossed_schemas,
)


# Grammars


def left_recursion(rng: Rng) -> str:
    return rng.choice(
        [
            'start: start "a" | "a"',
            'start: a\na: b "x" | "y"\nb: a "z" | "w"',
            "start: start start | /[a-z]/",
            "start: start",
            'start: start? "a"',
        ]
    )


def ambiguity(rng: Rng) -> str:
    body = "\n".join(f"r{x}: r{x + 1} r{x + 1} | r{x + 1}" for x in range(_size(rng, 60)))
    last = body.count("\n") + 1
    return f'start: r0+\n{body}\nr{last}: "a" | "a" "a" | start'


def undefined_rules(rng: Rng) -> str:
    return rng.choice(["start: nope", "a: b", "", "start:", "start: A\nA: B\nB: A", "%import x.y"])


def empty_loops(rng: Rng) -> str:
    return rng.choice(
        ['start: ""*', 'start: (""*)*', "start: a*\na: b*\nb: a*", 'start: (a | "")+\na:']
    )


def counted_rules(rng: Rng) -> str:
    return f'start: a{{{_size(rng, 10**6)}}}\na: "x"{{0,{_size(rng, 10**6)}}} b?\nb: a{{1,9}}'


def doubling_rules(rng: Rng) -> str:
    depth = _size(rng, 60)
    rules = "\n".join(f"r{x}: r{x + 1} r{x + 1}" for x in range(depth))
    return f'start: r0\n{rules}\nr{depth}: "a"'


def doubling_terminals(rng: Rng) -> str:
    depth = _size(rng, 60)
    rules = "\n".join(f"T{x}: T{x + 1} T{x + 1}" for x in range(depth))
    return f'start: T0\n{rules}\nT{depth}: "a" | /b+/'


def many_terminals(rng: Rng) -> str:
    n_terminals = _size(rng, 2_000)
    names = " | ".join(f"T{x}" for x in range(n_terminals))
    rules = "\n".join(f"T{x}: /{_word(rng, 2)}.*/" for x in range(n_terminals))
    return f"start: ({names})+\n{rules}"


def terminal_set_algebra(rng: Rng) -> str:
    depth = _size(rng, 30)
    rules = "\n".join(f"T{x}: ~T{x + 1} & /(.|\\n)*{_word(rng, 2)}.*/" for x in range(depth))
    return f"start: T0\n{rules}\nT{depth}: /.*{_word(rng, 2)}/"


def deep_parentheses(rng: Rng) -> str:
    depth = _size(rng, 20_000)
    return "start: " + "(" * depth + '"a"' + ")" * depth


def regex_grammar(rng: Rng) -> str:
    return "start: (/" + rng.choice(PATTERNS)(rng).replace("/", r"\/").replace("\n", r"\n") + "/)*"


def gbnf(rng: Rng) -> str:
    return rng.choice(
        [
            'root ::= "a" root | "b"',
            'root ::= root "a"',
            "root ::= [a-z]+ undefined-rule",
            'root ::= ("a" | "")* ("b" | "")*',
            f'root ::= "a"{{{_size(rng, 10**6)}}}',
            'root ::= "\\x00" [^\\x00]* "\\U0010FFFF',
        ]
    )


def directives(rng: Rng) -> str:
    return rng.choice(
        [
            "start: %json {}",
            'start: %json {"$ref": "#"}',
            "start: %json {",
            "start: %regex { }",
            '%llguidance {"x": 1}\nstart: "a"',
            "start: @1",
            "start: <[0-9999999999]>",
            "start: <nope>",
            'start[max_tokens=99999999999]: "a"',
            'start[temperature=x]: "a"',
            "%ignore /.*/\nstart: /a/*",
            "%ignore /()/\nstart: /a/*",
        ]
    )


def grammar_soup(rng: Rng) -> str:
    parts = (
        "start:",
        "a",
        "A",
        ":",
        "|",
        '"x"',
        "/y/",
        "*",
        "+",
        "{3}",
        "(",
        ")",
        "\n",
        "%ignore",
        "~",
    )
    return "start: " + " ".join(rng.choices(parts, k=_size(rng, 200)))


GRAMMARS: tuple[Callable[[Rng], str], ...] = (
    left_recursion,
    ambiguity,
    undefined_rules,
    empty_loops,
    counted_rules,
    doubling_rules,
    doubling_terminals,
    many_terminals,
    terminal_set_algebra,
    deep_parentheses,
    regex_grammar,
    gbnf,
    directives,
    grammar_soup,
)
