"""Writes a README from the docstrings of some functions."""

import inspect
import logging

import sgc

logging.basicConfig(level=logging.WARNING)


def slugify(title):
    """Makes an anchor of a title."""
    return "-".join(title.lower().split())


def chunked(xs, size=10):
    """Cuts a list into parts of the same size."""
    return [xs[i : i + size] for i in range(0, len(xs), size)]


FUNCTIONS = {"slugify": slugify, "chunked": chunked}


@sgc.function
def program(s, project: str, names: list[str]):
    s += "# " + project + "\n\n" + sgc.gen("pitch", max_tokens=40, stop="\n") + "\n"
    toc = []
    for name in names:
        if name not in FUNCTIONS:
            logging.warning("no such function: %s", name)
            continue
        f = FUNCTIONS[name]
        arguments = ", ".join(inspect.signature(f).parameters)
        s += f"\n## {name}({arguments})\n\n{f.__doc__}\n"
        s += "Example: `" + sgc.gen("example", max_tokens=32, stop=["`", "\n"]) + "`\n"
        if not s["example"].strip().startswith(name):
            s += f"(see also `{name}`)\n"
        toc.append(f"- [{name}](#{slugify(name)})")
    if toc:
        s += "\n## Contents\n\n" + "\n".join(toc)
    return s["pitch"]


ARGUMENTS = [
    {"project": "List Tools", "names": ["chunked", "slugify"]},
    {"project": "Empty", "names": ["missing"]},
]
REPLIES = [
    "Small helpers for lists.",
    "chunked([1, 2, 3], 2)`",
    'slugify("A b")',
    "",
    " import tools\n",
]
