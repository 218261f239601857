"""Random programs with control flow from a seed, as readable Python source.

`random_control_runs.py` runs them.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import random_control_carried as carried
import random_control_sums as sums
from random_control_expressions import Expressions
from random_control_program import Made
from random_control_tree import Mark, Place, Statement

MAX_DEPTH = 3
SIZES = (2, 3, 5, 8, 12)  # statements, after which no block begins


class Generator(Expressions):
    """Draws one program."""

    def __init__(self, seed: int) -> None:
        super().__init__(random.Random(seed))
        self.seed = seed
        self.n_changes = 0  # of Python's variables: each may double the number of paths
        self.n_loops = 0
        self.n_left = random.Random(f"size {seed}").choice(SIZES)
        # A variable that changes in each iteration unrolls a loop, often beyond the budget.
        self.is_counting = random.Random(f"counting {seed}").random() < 0.1

    def program(self) -> Made:
        called, _ = self.block(Place("t", 2, is_called=True), self.rng.randrange(1, 3))
        self.n_changes = self.n_loops = 0
        body, _ = self.block(Place(), self.rng.randrange(2, 6))
        max_turns = self.rng.choice([100, 100, 100, 3, 2])
        return Made(self.seed, called, body, tuple(self.drawn), max_turns)

    def block(self, place: Place, n: int) -> tuple[list[Statement], Place]:
        made = []
        if not place.sure:
            statement, place = self.gen(place)
            made.append(statement)
        for _ in range(n):
            kinds = self.kinds(place)
            kind = self.rng.choices(list(kinds), list(kinds.values()))[0]
            statement, place = getattr(self, kind)(place)
            made.append(statement)
            self.n_left -= 1
            if statement.kind in ENDS:
                break
        return made, place

    def kinds(self, place: Place) -> dict[str, int]:
        kinds = dict(SIMPLE)
        n_most = 2 if place.is_dynamic and self.is_counting else 0 if place.is_dynamic else 4
        if self.n_changes >= n_most:
            for name in ("count", "add_word", "add_key", "alias"):
                del kinds[name]
        if place.is_called:
            del kinds["call"], kinds["mapped"], kinds["shows"]
        if place.outer in ARMS:
            kinds |= {"give": 1, "throw": 1}
        if place.outer in ARMS and place.is_loop:
            kinds |= {"leave": 3, "again": 2}
        if place.depth < MAX_DEPTH and self.n_left > 0:
            kinds |= BLOCKS
            if place.is_role:
                for name in ("role", "fork", "copy"):
                    del kinds[name]
            if self.n_loops >= 3:
                for name in LOOPS:
                    del kinds[name]
        return kinds

    # -- parts ----------------------------------------------------------------------------

    def inner(self, place: Place, kind: str, n: int = 0, **changes: Any) -> tuple[Any, Place]:
        deeper = replace(place, depth=place.depth + 1, outer=kind, **changes)
        return self.block(deeper, n or self.rng.choice([1, 1, 2]))

    def joined(self, place: Place, *ends: Place) -> Place:
        sure = set(ends[0].sure).intersection(*(end.sure for end in ends))
        maybe = dict.fromkeys(name for end in ends for name in (*end.maybe, *end.sure))
        return replace(
            place,
            sure=tuple(name for name in ends[0].sure if name in sure),
            maybe=tuple(name for name in maybe if name not in sure),
        )

    # -- simple statements ----------------------------------------------------------------

    def gen(self, place: Place) -> tuple[Statement, Place]:
        name = self.name(place)
        line = f'{place.stream} += "{self.rng.randrange(9)}?" + sgc.gen("{name}", max_tokens=4)'
        return Statement("gen", [line]), replace(place, sure=(*place.sure, name))

    def select(self, place: Place) -> tuple[Statement, Place]:
        name = self.name(place)
        line = f'{place.stream} += "pick" + sgc.select("{name}", choices=["yes", "no", "7"])'
        return Statement("select", [line]), replace(place, sure=(*place.sure, name))

    def number(self, place: Place) -> tuple[Statement, Place]:
        name, s = self.name(place), place.stream
        lines = [
            f'{s} += "how many" + sgc.gen("{name}", regex="[0-9]+", max_tokens=3)',
            f'{s} += str(int({s}["{name}"]) * 2)',
        ]
        return Statement("number", lines), replace(place, sure=(*place.sure, name))

    def look_up(self, place: Place) -> tuple[Statement, Place]:
        name, s = self.name(place), place.stream
        lines = [
            f'{s} += "which" + sgc.select("{name}", choices=["yes", "no", "7"])',
            f'w = {{"yes": "Y", "no": "N", "7": "S"}}[{s}["{name}"]]',
        ]
        return Statement("look_up", lines), replace(place, sure=(*place.sure, name))

    def table(self, place: Place) -> tuple[Statement, Place]:
        values = '{"yes": "Y", "no": "N"}'
        line = f'{place.stream} += sgc.table({values}).get({self.value(place)}, "?")'
        return self._simple("table", place, line)

    def data(self, place: Place) -> tuple[Statement, Place]:
        name, s = self.name(place), place.stream
        lines = [
            f'{s} += "who" + sgc.gen("{name}", json_schema=PERSON)',
            "try:",
            f'    person = json.loads({s}["{name}"])',
            f'    {s} += f"{{person[\'age\'] + 1}} of " + sgc.join("/", person["tags"])',
            "except ValueError:",
            f'    {s} += "cut"',
        ]
        return Statement("data", lines), replace(place, sure=(*place.sure, name))

    def _simple(self, kind: str, place: Place, *lines: str) -> tuple[Statement, Place]:
        return Statement(kind, list(lines)), place

    def const(self, place: Place) -> tuple[Statement, Place]:
        return self._simple("const", place, f"{place.stream} += {self.word()!r}")

    def append(self, place: Place) -> tuple[Statement, Place]:
        return self._simple("append", place, f"{place.stream} += {self.text(place)}")

    def keep(self, place: Place) -> tuple[Statement, Place]:
        value = self.rng.choice(['"z"', self.value(place), f"{self.value(place)}.upper()"])
        return self._simple("keep", place, f"w = {value}")

    def count(self, place: Place) -> tuple[Statement, Place]:
        self.n_changes += 1
        return self._simple("count", place, "k += 1")

    def add_word(self, place: Place) -> tuple[Statement, Place]:
        self.n_changes += 1
        return self._simple("add_word", place, f"words.append({self.rng.choice(['w', 'str(k)'])})")

    def add_key(self, place: Place) -> tuple[Statement, Place]:
        self.n_changes += 1
        return self._simple("add_key", place, f'd["{self.rng.choice("ab")}"] = w')

    def alias(self, place: Place) -> tuple[Statement, Place]:
        self.n_changes += 1
        return self._simple("alias", place, self.rng.choice(["d['l'] = words", "words = [*words]"]))

    def set_var(self, place: Place) -> tuple[Statement, Place]:
        name = self.name(place)
        line = f'{place.stream}["{name}"] = {self.value(place)}'
        return Statement("set_var", [line]), replace(place, sure=(*place.sure, name))

    def shows(self, place: Place) -> tuple[Statement, Place]:
        sep = self.rng.choice(["", ', sep="/"', ', end=""'])
        return self._simple("shows", place, f"print({self.text(place)}, {self.value(place)}{sep})")

    def ask_set(self, place: Place) -> tuple[Statement, Place]:
        s, name = place.stream, self.rng.choice((*place.maybe, *place.sure))
        test = f'("has" if "{name}" in {s} else "has not")'
        return self._simple("ask_set", place, f"{s} += {test}")

    def read_maybe(self, place: Place) -> tuple[Statement, Place]:
        s, name = place.stream, self.rng.choice((*place.maybe, *place.sure))
        return self._simple("read_maybe", place, f'{s} += f"{{{s}["{name}"]}}"'.replace(
            f'["{name}"]', f"['{name}']"))  # fmt: skip

    def tool(self, place: Place) -> tuple[Statement, Place]:
        return self._simple("tool", place, f"record({self.value(place)})")

    def helper(self, place: Place) -> tuple[Statement, Place]:
        return self._simple("helper", place, f"w = plain({place.stream}, {self.value(place)})")

    def call(self, place: Place) -> tuple[Statement, Place]:
        v = self.value(place)
        given = self.rng.choice([v, "q", f"word={v}", f'{v}, depth="e"'])
        shown = self.rng.choice(["r.ret_value", "r.text()", 'r["t1"]'])
        return self._simple("call", place, f"r = called({given})", f"{place.stream} += {shown}")

    def mapped(self, place: Place) -> tuple[Statement, Place]:
        v = self.value(place)
        given = self.rng.choice([
            f'{v}.split(), depth="e"', f'{v}.split(","), width=2', f'["a", {v}, "b"]', "words",
        ])  # fmt: skip
        shown = self.rng.choice(["states.returns", 'states["t1"]'])
        lines = [f"states = sgc.map(called, {given})", f'{place.stream} += sgc.join("/", {shown})']
        return self._simple("mapped", place, *lines)

    def give(self, place: Place) -> tuple[Statement, Place]:
        values = [self.value(place), '"early"']
        if not place.is_called:
            values += [f'{{"v": {self.value(place)}, "k": k}}', "[w, words]", "(k, w)"]
        return self._simple("give", place, f"return {self.rng.choice(values)}")

    def throw(self, place: Place) -> tuple[Statement, Place]:
        error = self.rng.choice(["ValueError", "KeyError", "RuntimeError"])
        message = self.rng.choice(['"no"', 'f"not {w}"', self.value(place)])
        return self._simple("throw", place, f"raise {error}({message})")

    def leave(self, place: Place) -> tuple[Statement, Place]:
        return self._simple("leave", place, "break")

    def again(self, place: Place) -> tuple[Statement, Place]:
        return self._simple("again", place, "continue")

    # -- blocks ---------------------------------------------------------------------------

    def when(self, place: Place) -> tuple[Statement, Place]:
        block, end = self.inner(place, "when")
        made = Statement("when", [f"if {self.test(place)}:"], [block])
        return made, self.joined(place, place, end)

    def when_else(self, place: Place) -> tuple[Statement, Place]:
        one, first = self.inner(place, "when_else")
        two, second = self.inner(place, "when_else")
        made = Statement("when_else", [f"if {self.test(place)}:", "else:"], [one, two])
        return made, self.joined(place, first, second)

    def chain(self, place: Place) -> tuple[Statement, Place]:
        found = [self.inner(place, "chain") for _ in range(3)]
        v = self.value(place)
        heads = [f'if {v} == "yes":', f"elif {self.test(place)}:", "else:"]
        ends = [end for _, end in found]
        return Statement("chain", heads, [block for block, _ in found]), self.joined(place, *ends)

    def matched(self, place: Place) -> tuple[Statement, Place]:
        found = [self.inner(place, "matched") for _ in range(3)]
        heads = ['    case "yes" | "7":', "    case u if len(u) > 2:", "    case _:"]
        blocks = [
            [Statement("case", [h.strip()], [b])] for h, (b, _) in zip(heads, found, strict=True)
        ]
        made = Statement("matched", [f"match {self.value(place)}:"], [[b[0] for b in blocks]])
        return made, self.joined(place, *(end for _, end in found))

    def turns(self, place: Place) -> tuple[Statement, Place]:
        counts = ["sgc.turns(2)", "sgc.turns(3)"]
        if not place.is_called:
            counts += ["sgc.turns(n)", "range(n)", "range(n, 0, -1)", "reversed(range(1, n))"]
        return self._loop(place, "turns", f"for i in {self.rng.choice(counts)}:", is_dynamic=True)

    def ranged(self, place: Place) -> tuple[Statement, Place]:
        head = self.rng.choice([
            "for i in range(2):", 'for i in ("a", "b"):', "for i, x in enumerate(['a', 'b']):",
            'for i, x in zip("ab", [1, 2]):', "for i in [k, w]:",
        ])  # fmt: skip
        return self._loop(place, "ranged", head, is_dynamic=place.is_dynamic)

    def items(self, place: Place) -> tuple[Statement, Place]:
        head = self.rng.choice(
            [
                f"for x in {self.value(place)}.split():",
                f'for i, x in enumerate({self.value(place)}.split(",")):',
                f"for x in reversed({self.value(place)}.split()):",
                f'for x, _ in zip({self.value(place)}.split(), {self.value(place)}.split("e")):',
            ]
        )
        made, end = self._loop(place, "items", head, is_dynamic=True)
        made.blocks[0].insert(0, Statement("const", [f"{place.stream} += x"]))
        return made, end

    def _loop(
        self, place: Place, kind: str, head: str, is_dynamic: bool
    ) -> tuple[Statement, Place]:
        self.n_loops += 1
        block, end = self.inner(place, kind, is_loop=True, is_dynamic=is_dynamic)
        made = Statement(kind, [head], [block])
        if self.rng.random() < 0.3:
            made.lines.append("else:")
            made.blocks.append(self.inner(place, kind)[0])
        return made, self.joined(place, place, end)

    def gather(self, place: Place) -> tuple[Statement, Place]:
        self.n_loops += 1
        first, within = self.gen(replace(place, is_dynamic=True, is_loop=True))
        x, name = f'{place.stream}["{within.sure[-1]}"]', f"a{self.n_names}"
        each = sums.gathering(self.rng, name, x, self.is_counting)
        update = Statement("update", list(each.update))
        inner = [] if self.rng.random() < 0.5 else self.inner(within, "gather", 1)[0]
        use = f"{place.stream} += {each.shown}"
        blocks = [[first, update, *inner]] if self.rng.random() < 0.7 else [[*inner, first, update]]
        self.drawn.append(Mark(each.kind, each.update[-1].strip(), "pass"))
        made = Statement("gather", [each.head], blocks, [each.before], [use])
        return made, self.joined(place, place, within)

    def carry(self, place: Place) -> tuple[Statement, Place]:
        self.n_loops += 1
        first, within = self.gen(replace(place, is_dynamic=True, is_loop=True))
        x, name = f'{place.stream}["{within.sure[-1]}"]', f"b{self.n_names}"
        each = carried.carrying(self.rng, name, x, place.stream, place.is_called)
        self.drawn += [Mark(kind, written, "pass") for kind, written in each.kinds]
        inner = [] if self.rng.random() < 0.6 else self.inner(within, "carry", 1)[0]
        block = [first, Statement("update", each.turn), Statement("update", each.inside), *inner]
        if self.rng.random() < 0.3:
            block[1], block[2] = block[2], block[1]
        made = Statement("carry", [each.head], [block], each.before, each.after)
        return made, self.joined(place, place, within)

    def forever(self, place: Place) -> tuple[Statement, Place]:
        self.n_loops += 1
        first, within = self.gen(replace(place, is_dynamic=True, is_loop=True))
        block, end = self.inner(within, "forever")
        stop = Statement("when", [f'if {place.stream}["{within.sure[-1]}"] != "no":'],
                         [[Statement("leave", ["break"])]])  # fmt: skip
        blocks = [first, stop, *block] if self.rng.random() < 0.5 else [first, *block, stop]
        return Statement("forever", ["while True:"], [blocks]), self.joined(place, place, end)

    def until(self, place: Place) -> tuple[Statement, Place]:
        self.n_loops += 1
        name, s = self.rng.choice(place.sure), place.stream
        block, end = self.inner(place, "until", is_loop=True, is_dynamic=True)
        block.append(Statement("gen", [f'{s} += "again" + sgc.gen("{name}")']))
        made = Statement("until", [f'while {s}["{name}"] == "no":'], [block])
        return made, self.joined(place, place, end)

    def fork(self, place: Place) -> tuple[Statement, Place]:
        group, child = f"g{place.depth}", f"f{place.depth}"
        if self.rng.random() < 0.4:
            return self._open_fork(place, group, child)
        block, _ = self.inner(place, "fork", stream=child, is_loop=True)
        kv = ', kv="approximate"' if self.n_names % 2 else ""
        after = self.rng.choice([
            [], [f"{group}.join()"], [f'{group}.join("concate_and_append"{kv})'],
            [f"{group}.join()", f'{group}[0] += "late" + sgc.gen("late{self.n_names}")'],
        ])  # fmt: skip
        made = Statement("fork", [f"for {child} in ({group} := {place.stream}.fork(2)):"],
                         [block], after=after)  # fmt: skip
        return made, place

    def _open_fork(self, place: Place, group: str, child: str) -> tuple[Statement, Place]:
        """A fork into a number of streams known only at run time."""
        s, v = place.stream, self.value(place)
        sizes = [f"len({v}.split()) or 1", f"1 + len({v}) % 3", *([] if place.is_called else ["n"])]
        size = self.rng.choice(sizes)
        over = self.rng.choice([
            f"for {child} in ({group} := {s}.fork({size})):",
            f"for i, {child} in enumerate({group} := {s}.fork({size})):",
            f"for {child}, _ in zip({group} := {s}.fork(len({v}) or 1), {v}.split('e')):",
        ])  # fmt: skip
        changes = {"stream": child, "is_loop": True, "is_dynamic": True}
        block, end = self.inner(place, "fork", **changes)
        new = [name for name in end.sure if name not in place.sure]
        after = [[], [f"{group}.join()"]]
        if new and "zip" not in over:
            read = f'"/".join(str(f["{self.rng.choice(new)}"]) for f in {group})'
            after += [[f"{s} += {read}"], [f"{s} += {read}", f"{group}.join()"]]
        return Statement("fork", [over], [block], after=self.rng.choice(after)), place

    def copy(self, place: Place) -> tuple[Statement, Place]:
        child = f"c{place.depth}"
        block, _ = self.inner(place, "copy", stream=child)
        return Statement("copy", [f"with {place.stream}.copy() as {child}:"], [block]), place

    def scope(self, place: Place) -> tuple[Statement, Place]:
        name = self.name(place)
        block, end = self.inner(place, "scope")
        made = Statement("scope", [f'with {place.stream}.var_scope("{name}"):'], [block])
        return made, replace(self.joined(place, end), sure=(*end.sure, name))

    def role(self, place: Place) -> tuple[Statement, Place]:
        block, end = self.inner(place, "role", is_role=True)
        made = Statement("role", [f"with {place.stream}.user():"], [block])
        return made, self.joined(place, end)

    def attempt(self, place: Place) -> tuple[Statement, Place]:
        block, end = self.inner(place, "attempt", is_safe=True)
        if self.rng.random() < 0.6:
            block.insert(0, Statement("int", [f"w = str(int({self.value(place)}) + 1)"]))
        if self.rng.random() < 0.5:
            tool = self.rng.choice(["flaky", "flaky", "shaky", "fetched"])
            call = Statement("flaky", [f"w = {tool}({self.value(place)})"])
            block.insert(self.rng.randint(0, len(block)), call)
        handler, _ = self.inner(place, "attempt", 1)
        heads = ["try:", self.rng.choice([
            "except (ValueError, RuntimeError) as error:", "except Exception as error:",
            "except (ValueError, RuntimeError, LookupError) as error:",
        ])]  # fmt: skip
        made = Statement("attempt", heads, [block, handler])
        if self.rng.random() < 0.3:
            tells = [f"{place.stream} += type(error).__name__ + str(error)", "raise"]
            made.lines.insert(1, "except Flaky as error:")
            made.blocks.insert(1, [Statement("told", tells[: self.rng.choice([1, 1, 2])])])
        if self.rng.random() < 0.3:
            made.lines.append("else:")
            made.blocks.append(self.inner(place, "attempt", 1)[0])
        if self.rng.random() < 0.4:
            made.lines.append("finally:")
            made.blocks.append([Statement("const", [f'{place.stream} += "F"'])])
        return made, self.joined(place, place, end)


SIMPLE = {
    "gen": 6, "select": 3, "const": 2, "append": 6, "keep": 3, "count": 1, "add_word": 2,
    "add_key": 1, "alias": 1, "set_var": 1, "ask_set": 1, "read_maybe": 1, "tool": 2, "helper": 2,
    "call": 3, "mapped": 1, "number": 1, "look_up": 1, "table": 1, "data": 1,
    "shows": 2,
}  # fmt: skip
BLOCKS = {
    "when": 6, "when_else": 6, "chain": 2, "matched": 2, "turns": 3, "ranged": 2, "forever": 2,
    "until": 2, "items": 2, "fork": 3, "copy": 2, "scope": 2, "role": 2, "attempt": 3,
    "gather": 4, "carry": 9,
}  # fmt: skip
LOOPS = ("turns", "ranged", "forever", "until", "items", "gather", "carry")
ARMS = ("when", "when_else", "chain", "matched", "attempt")
ENDS = ("give", "throw", "leave", "again")
NOT_IN_ROLE = ("role", "fork", "copy")
