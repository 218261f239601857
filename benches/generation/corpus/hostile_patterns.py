"""Hostile regexes, with a function for each kind."""

from __future__ import annotations

import string
from collections.abc import Callable

from generation.corpus.hostile_drawing import UNICODE_CLASSES, Rng, corpus_of, size, word


def nested_quantifiers(rng: Rng) -> str:
    pattern = rng.choice(["a", "[ab]", r"\w", ".", "(?:a|ab)"])
    for _ in range(rng.randint(2, 8)):
        pattern = f"(?:{pattern}){rng.choice(['*', '+', '?', '*?', '+?', '{1,9}', '{2,}'])}"
    return pattern


def nested_counts(rng: Rng) -> str:
    pattern = rng.choice(["a", "ab|c", r"\d", "[a-f]x?", r"\w"])
    for _ in range(rng.randint(2, 5)):
        pattern = f"(?:{pattern}){{{rng.randint(0, 9)},{size(rng, 1000) + 9}}}"
    return pattern


def huge_count(rng: Rng) -> str:
    count = rng.choice([999, 10_000, 65_536, 10**6, 2**31, 2**32, 2**63, 10**30])
    body = rng.choice(["a", ".", r"\w", "(?:ab?)", r"[^\n]", "(?:a|b|cd)"])
    return body + rng.choice([f"{{{count}}}", f"{{0,{count}}}", f"{{{count},}}", f"{{9,{count}}}"])


def counted_chain(rng: Rng) -> str:
    return "".join(f"[a-z]{{0,{size(rng, 500)}}}{word(rng, 1)}" for _ in range(size(rng, 100)))


def giant_alternation(rng: Rng) -> str:
    return "|".join(word(rng, rng.randint(1, 12)) for _ in range(size(rng, 10_000)))


def giant_ignorecase(rng: Rng) -> str:
    return "(?i)" + giant_alternation(rng)


def alternation_of_stars(rng: Rng) -> str:
    return "(?:" + "|".join(f"{word(rng, 3)}.*" for _ in range(size(rng, 300))) + ")*z"


def deep_groups(rng: Rng) -> str:
    depth = size(rng, 50_000)
    opening = rng.choice(["(", "(?:", "(a|", "(?:a(?:b)?"])
    return opening * depth + "x" + ")" * depth + rng.choice(["", "*"])


def deep_right_nesting(rng: Rng) -> str:
    depth = size(rng, 5_000)
    return "".join(f"(?:{char}|" for char in rng.choices("abcdef", k=depth)) + "z" + ")*" * depth


def giant_class(rng: Rng) -> str:
    chars = {chr(rng.randint(0x100, 0xD7FF)) for _ in range(size(rng, 20_000))}
    return "[" + rng.choice(["", "^"]) + "".join(sorted(chars)) + "]" + rng.choice(["", "+", "{9}"])


def unicode_soup(rng: Rng) -> str:
    parts = (rng.choice(UNICODE_CLASSES) for _ in range(size(rng, 100)))
    return "".join(part + rng.choice(["", "+", "?", "{0,30}", "*"]) for part in parts)


def unicode_set_soup(rng: Rng) -> str:
    parts = (rng.choice(UNICODE_CLASSES) for _ in range(rng.randint(1, 6)))
    return "(?i)(?:[" + "".join(parts) + "]{0," + str(size(rng, 2000)) + "}x)*"


def far_lookback(rng: Rng) -> str:
    # The smallest deterministic automaton has 2**count states.
    return f"(?:a|b)*a(?:a|b){{{size(rng, 1000)}}}"


def backtracking_bomb(rng: Rng) -> str:
    body = rng.choice(
        ["(a+)+", "(a|a)*", "(a|aa)+", "(.*a){20}", "(a*)*b", "([a-z]+)*", "(x+x+)+y"]
    )
    return "^" + body * rng.randint(1, 9) + rng.choice(["$", "b$", "!"])


def optional_tower(rng: Rng) -> str:
    n_chars = size(rng, 5_000)
    return "a?" * n_chars + "a" * n_chars


def long_literal(rng: Rng) -> str:
    return "".join(rng.choices(string.ascii_letters + " é漢", k=size(rng, 100_000)))


def intersecting_runs(rng: Rng) -> str:
    return ".*".join(word(rng, 3) for _ in range(size(rng, 200)))


def look_around(rng: Rng) -> str:
    return rng.choice(["(?=a)", "(?!a)", "(?<=a)", "(?<!a)", r"\b", r"\B", "^", "$"]).join("abcd")


def back_reference(rng: Rng) -> str:
    return rng.choice([r"(a+)\1", r"(?P<x>\w)(?P=x)", r"(a)?(?(1)b|c)", r"\99", r"\k<x>", r"(?1)"])


def bytes_as_text(rng: Rng) -> str:
    return rng.randbytes(size(rng, 1_000)).decode(rng.choice(["latin-1", "utf-16"]), "replace")


def syntax_soup(rng: Rng) -> str:
    return "".join(rng.choices(r"()[]{}|*+?.^$\,-:=!<>P0123abcxuwd/&~#" + "\n", k=size(rng, 300)))


def mutated_corpus(rng: Rng) -> str:
    return _mutated(rng, rng.choice(corpus_of("regexes.json", "pattern")))


def truncated_corpus(rng: Rng) -> str:
    pattern: str = rng.choice(corpus_of("regexes.json", "pattern"))
    return pattern[: rng.randrange(len(pattern))]


def repeated_corpus(rng: Rng) -> str:
    return f"(?:{rng.choice(corpus_of('regexes.json', 'pattern'))}){{0,{size(rng, 1000)}}}"


def _mutated(rng: Rng, text: str) -> str:
    for _ in range(rng.randint(1, 6)):
        start, end = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        middle = rng.choice(["", text[start:end] * 2, word(rng, 2), "{1,999}", "*", "(", "]", "\\"])
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
