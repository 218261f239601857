"""Test cases for a function from its description; cases that the reference fails are discarded."""

from pydantic import BaseModel, ValidationError

import sgc


class Case(BaseModel):
    given: str
    expected: str


def slugify(text: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


@sgc.tool(effect="pure", on_error={"ok": False, "got": "an exception"})
def run_case(given: str, expected: str) -> dict:
    if len(given) > 40:
        raise ValueError("too long")
    return {"ok": slugify(given) == expected, "got": slugify(given)}


SPEC = "slugify(text) makes lower-case words joined by hyphens; all else is dropped."
CASE = 'One test as JSON, like {"given": "A b", "expected": "a-b"}'


@sgc.function
def program(s, themes: list[str], wanted: int = 2):
    s += sgc.system(SPEC)
    tests: dict[str, str] = {}
    stats = {"bad json": 0, "wrong": 0, "double": 0}
    for theme in themes:
        if len(tests) >= wanted:
            break
        s += sgc.user(f"{CASE}. Theme: {theme}")
        s += sgc.assistant(sgc.gen("case", max_tokens=60))
        try:
            case = Case.model_validate_json(s["case"])
        except ValidationError as e:
            stats["bad json"] += 1
            s += sgc.user(f"{e.error_count()} mistakes: {e.errors()[0]['msg']}")
            continue
        given, expected = case.given, case.expected
        stats["double"] += given in tests
        outcome = run_case(given, expected)
        if not outcome["ok"]:
            stats["wrong"] += 1
            s += sgc.user(f"It gives {outcome['got']!r}, not {expected!r}. Who is right?")
            s += sgc.assistant(sgc.select("right", choices=["the code", "the test"]))
            if s["right"] == "the test":
                s += sgc.assistant("The bug is:" + sgc.gen("bug", max_tokens=40))
                return {"bug": s["bug"].strip(), "given": given, **stats}
            expected = outcome["got"]
        tests[given] = expected
    source = "\n".join(f"assert slugify({g!r}) == {e!r}" for g, e in tests.items())
    return {"source": source, "complete": len(tests) >= wanted, **stats}


ARGUMENTS = [
    {"themes": ["spaces", "punctuation", "digits", "umlauts", "dots"], "wanted": 4},
    {"themes": ["hyphens", "capitals"], "wanted": 1},
    {"themes": [], "wanted": 0},
]
REPLIES = [
    '{"given": "Hello, World!", "expected": "hello-world"}',
    '{"given": "a_b", "expected": "a_b"}',
    "Sure! Here is a test:",
    '{"given": "a very long text that goes on and on and on", "expected": ""}',
]
