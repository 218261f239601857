"""Hostile grammars in Lark's notation and in GBNF, with a function for each kind."""

from __future__ import annotations

from collections.abc import Callable

from generation.corpus.hostile_drawing import Rng, size, word
from generation.corpus.hostile_patterns import PATTERNS


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
    body = "\n".join(f"r{x}: r{x + 1} r{x + 1} | r{x + 1}" for x in range(size(rng, 60)))
    last = body.count("\n") + 1
    return f'start: r0+\n{body}\nr{last}: "a" | "a" "a" | start'


def undefined_rules(rng: Rng) -> str:
    return rng.choice(["start: nope", "a: b", "", "start:", "start: A\nA: B\nB: A", "%import x.y"])


def empty_loops(rng: Rng) -> str:
    return rng.choice(
        ['start: ""*', 'start: (""*)*', "start: a*\na: b*\nb: a*", 'start: (a | "")+\na:']
    )


def counted_rules(rng: Rng) -> str:
    return f'start: a{{{size(rng, 10**6)}}}\na: "x"{{0,{size(rng, 10**6)}}} b?\nb: a{{1,9}}'


def doubling_rules(rng: Rng) -> str:
    depth = size(rng, 60)
    rules = "\n".join(f"r{x}: r{x + 1} r{x + 1}" for x in range(depth))
    return f'start: r0\n{rules}\nr{depth}: "a"'


def doubling_terminals(rng: Rng) -> str:
    depth = size(rng, 60)
    rules = "\n".join(f"T{x}: T{x + 1} T{x + 1}" for x in range(depth))
    return f'start: T0\n{rules}\nT{depth}: "a" | /b+/'


def many_terminals(rng: Rng) -> str:
    n_terminals = size(rng, 2_000)
    names = " | ".join(f"T{x}" for x in range(n_terminals))
    rules = "\n".join(f"T{x}: /{word(rng, 2)}.*/" for x in range(n_terminals))
    return f"start: ({names})+\n{rules}"


def terminal_set_algebra(rng: Rng) -> str:
    depth = size(rng, 30)
    rules = "\n".join(f"T{x}: ~T{x + 1} & /(.|\\n)*{word(rng, 2)}.*/" for x in range(depth))
    return f"start: T0\n{rules}\nT{depth}: /.*{word(rng, 2)}/"


def deep_parentheses(rng: Rng) -> str:
    depth = size(rng, 20_000)
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
            f'root ::= "a"{{{size(rng, 10**6)}}}',
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
    return "start: " + " ".join(rng.choices(parts, k=size(rng, 200)))


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
