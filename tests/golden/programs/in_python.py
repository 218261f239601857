"""A call of a library that cannot be traced: it runs in Python."""

import fnmatch

import sgc


@sgc.function
def in_python(s, question):
    s += question + sgc.gen("command", max_tokens=16)
    s += " | ".join(fnmatch.filter(s["command"].split(), "*.py"))
    s += sgc.gen("answer", max_tokens=16)
