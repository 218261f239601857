"""Names that a `with` block binds itself: they are no inputs of code that the block becomes."""

from __future__ import annotations

import io
from contextlib import suppress

from control_flow import agree

import sgc


class Store:
    def __init__(self, first):
        self.items = [*first]

    def list(self):
        return self.items


def test_a_copy_that_a_block_makes_and_appends_to():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        kept = Store([q])
        for _ in range(3):
            s += sgc.gen("y")
            if s["y"] == "yes":
                break
            d = kept.list()
            d += s["y"].split(",")
        s += str(kept.items)
        with s.copy() as outer:  # noqa: SIM117
            with outer.copy() as inner:
                inner += inner["x"].replace("e", "i")
        s += sgc.gen("z")

    graph = agree(program, ["yes", "no", "x,y"], q="a")
    assert not [node for node in graph.nodes() if node.op == "fail"]


def test_a_text_that_a_block_writes():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        parts = s["x"].split(",")
        kept = parts
        with io.StringIO() as out:
            out.write(";".join(parts))
            text = out.getvalue()
            text += "!"
            n = len(text)
        kept.append(text)
        s += f"{text} {parts} {n}" + sgc.gen("z")

    agree(program, ["yes", "x,y"], q="a")


def test_a_name_that_a_block_may_leave_unset():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        parts = s["x"].split(",")
        kept = parts
        n = 0
        with suppress(ValueError):
            n = int(parts[0])
            n += 1
        kept.append(n)
        s += str(parts) + sgc.gen("z")

    agree(program, ["7", "no", "7,8"], q="a")
