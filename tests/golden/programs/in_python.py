"""A call of a library that cannot be traced: it runs in Python."""

import shlex

import sgc


@sgc.function
def in_python(s, question):
    s += question + sgc.gen("command", max_tokens=16)
    s += " | ".join(shlex.split(s["command"]))
    s += sgc.gen("answer", max_tokens=16)
