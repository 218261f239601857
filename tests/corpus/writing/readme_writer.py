"""Writes a README from signatures and docstrings, section by section."""

import inspect
from functools import partial
from textwrap import dedent, indent

import sgc


def slugify(title: str, sep: str = "-") -> str:
    """Makes an anchor of a title."""
    return sep.join("".join(c for c in w if c.isalnum()) for w in title.lower().split())


def chunked(xs: list, size: int) -> list:
    """Cuts a list into parts of `size`."""
    return [xs[i : i + size] for i in range(0, len(xs), size)]


def undocumented(x, *rest, **options):
    return x


MODULE = {f.__name__: f for f in (slugify, chunked, undocumented)}
anchor = partial(slugify, sep="-")


def signature(name: str) -> str:
    return f"{name}{inspect.signature(MODULE[name])}"


@sgc.function
def program(s, project: str, functions: list[str], badges: bool = False):
    s += sgc.user(f"Write the README of {project}. First one sentence: what it is.")
    s += sgc.assistant(sgc.gen("pitch", max_tokens=40, stop="\n"))
    sections = {"Installation": indent(f"pip install {anchor(project)}", "    ")}

    api = []
    unknown = []
    for name in functions:
        try:
            sig = signature(name)
        except KeyError as e:
            unknown.append(str(e.args[0]))
            continue
        doc = inspect.getdoc(MODULE[name])
        if doc is None:
            s += sgc.user(f"`{sig}` has no docstring. Write one line.")
            s += sgc.assistant(sgc.gen("doc", max_tokens=24, stop="\n"))
            doc = s["doc"].strip().strip('"') or "?"
        api.append(f"### `{sig}`\n\n{doc}")
    if api:
        sections["API"] = "\n\n".join(api)
        s += sgc.user(
            "An example that uses " + ", ".join(f for f in functions if f not in unknown) + "."
        )
        s += sgc.assistant("```python\n" + sgc.gen("example", max_tokens=80, stop="```") + "```")
        sections = {"Example": indent(dedent(s["example"]).strip(), "    "), **sections}

    toc = "\n".join(f"- [{t}](#{anchor(t)})" for t in sections)
    body = "\n\n".join(f"## {t}\n\n{b}" for t, b in sections.items())
    head = f"# {project}\n\n" + ("![tests](badge.svg)\n\n" if badges else "") + s["pitch"].strip()
    return {"readme": "\n\n".join([head, toc, body]), "unknown": unknown}


ARGUMENTS = [
    {"project": "List Tools", "functions": ["chunked", "slugify", "undocumented"], "badges": True},
    {"project": "Empty", "functions": ["missing"]},
]
REPLIES = [
    "Small helpers for lists and texts.",
    '"Gives x back."',
    "    from tools import chunked\n    print(chunked([1, 2, 3], 2))\n```",
    "",
]
