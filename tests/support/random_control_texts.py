"""Expressions on texts in random programs: slices, comparisons, formats, joins.

`{v}`, `{o}` are generated texts, `{a}` an argument or a variable, `{f}`, `{g}` f-strings of them.
"""

from __future__ import annotations

import random

from random_control_tree import Mark

HEAD = """\
import random_control_helpers as helpers


class Notes:
    def __init__(self, first):
        self.lines, self.n = [first], 0

    def add(self, text):
        self.lines.append(text)
        self.n += len(text)

    def last(self):
        return self.lines[-1] or "empty"

    def is_new(self, text):
        return text not in self.lines

    @property
    def shown(self):
        return f"{self.n}:" + "/".join(self.lines)


def noted(first, *texts):
    notes = Notes(first)
    for text in texts:
        if notes.is_new(text):
            notes.add(text)
    return notes


def shelved(first, second):
    shelf = helpers.Shelf(first)
    shelf.put(second)
    return shelf
"""

TEXTS: dict[str, tuple[str, ...]] = {
    "slice of a text": ("{v}[1:]", "{v}[-3:]", "{v}[::-1]", "{v}[:len({o})]", "{v}[-50:-1]"),
    "slice of an f-string": ("{f}[1:]", "{f}[:-2]", "{f}[::2]", "{f}[1:4]", "({f} + {a})[-9:]"),
    "index": ("({v} + '?')[0]", "({f})[-2]", "({a} or 'z')[0]"),
    "%": (
        '"%s-%s" % ({v}, {a})', '"%5s|" % {v}', '"%d of %s" % (len({v}), {a})', '"%.2s" % {v}',
        '"%(x)s" % {{"x": {v}}}', '"%r" % {v}', '"%-8s%%" % {a}',
    ),
    "format": (
        '"{{}}{{}}".format({v}, {a})', '"{{0:>4}}{{1}}{{0}}".format({v}, {a})', "format({v}, '>5')",
        '"{{x!r}}".format(x={v})', '"{{:.2}}".format({a})', 'f"{{{qv}:^7}}|{{{qv}!r}}"',
        'f"{{len({qv}):03}}"', 'f"{{{qf}:>9}}"',
    ),
    "join": (
        '", ".join([{v}, {a}, {o}])', '{v}.join("abc")', '{a}.join([{v}, "x"])',
        '"-".join({v}.split())', '{f}.join(("a", "b"))', '"".join([{f}, {g}])',
    ),
    "method of a plain text": (
        '"yes no 7".replace({v}, "N")', '"yes".removeprefix({v})', '"a,b".replace(",", {a})',
        'str("yes no".find({v}))', 'str("a b a".count({a}))', '"x".center(len({v}) % 9)',
        '"yes no 12".partition({f})[0]', '"a\\nb".join([{v}, {v}])', '"yes no".strip({v})',
    ),
    "method of an f-string": (
        "{f}.upper()", '{f}.strip("<>")', '{f}.replace("e", {a})', '{f}.split("e")[0]',
        "{f}.title()", 'str({f}.find("e"))', '{f}.partition(" ")[2]', "{f}.zfill(9)",
        "str(len({f}))", '{f}.removeprefix("<")', "{f}.lower().strip()", "{f} * 2",
        '{f}.rsplit(">", 1)[0]', 'str({f}.count({a}))', "{f}.swapcase()",
    ),
    "comprehension": (
        '"/".join([x + {a} for x in ("a", {v})])', '",".join(x for x in ["a", {v}] if x != "no")',
        'str([len(x) for x in ({v}, {a})])', '"".join(f"{{x}}{{{qv}}}" for x in "ab")',
        '{{x: {v} for x in "ab"}}["a"]', 'str(sum(len(x) for x in [{v}, {o}]))',
        'str([x == {v} for x in ("yes", {a})])',
    ),
    "method of a class": (
        "noted({v}, {o}).shown", "noted({a}, {v}).last()", 'noted("yes", {v}, {a}).shown',
    ),
    "helper of another module": (
        "helpers.framed({v})", "helpers.cut({v})", "helpers.kind_of({v})",
        "helpers.asked({s}, {a})", "shelved({v}, {o}).shown",
    ),
}  # fmt: skip
TESTS: dict[str, tuple[str, ...]] = {
    "comparison of f-strings": ("{f} == {g}", "{f} != {g}", "{f} < {g}", '{f} == "<yes>"'),
    "comparison": (
        '"yes" == {v}', "{v} + {a} == {a} + {v}", "{v} < {o}", '{a} >= "b"', '"n" < {v} < "z"',
        "{v} == {a}",
    ),
    "in": (
        "{v} in {f}", '"es" in {f}', "{a} in {v}", '{v} in "yes or no"', "{v} in [{a}, {f}]",
        '{v} not in ("a", {o}, {a})', "{f} in {g}", '{a} in ["yes", {v}]',
    ),
    "test of a plain text": (
        '"yes or no".startswith({v})', '"yes".endswith({a})', '"a,b,yes".count({v}) > 1',
    ),
    "test of an f-string": (
        '{f}.endswith("s>")', '{f}.startswith(("<y", {a}))', "len({f}) > 5", "{f}.isascii()",
        "bool({f}[3:])",
    ),
    "any or all": ('any("e" in x for x in ({v}, {a}))', "all(x != {v} for x in [{o}, {a}])"),
    "test of a class": ("noted({v}, {a}).is_new({o})", "noted({v}, {o}).n > 3"),
    "test in another module": ("shelved({v}, {a}).has({o})", 'helpers.kind_of({a}) == "short"'),
}  # fmt: skip
KINDS = (*TEXTS, *TESTS)


def text_form(rng: random.Random, *parts: str) -> tuple[str, Mark]:
    """A text expression, and the mark of its construct. parts: a stream, two of its texts, a
    variable.
    """
    return _form(rng, TEXTS, parts, '"?"')


def test_form(rng: random.Random, *parts: str) -> tuple[str, Mark]:
    """A test expression, and the mark of its construct."""
    return _form(rng, TESTS, parts, rng.choice(["True", "False"]))


def _form(
    rng: random.Random, forms: dict[str, tuple[str, ...]], parts: tuple[str, ...], instead: str
) -> tuple[str, Mark]:
    kind = rng.choice(list(forms))
    written = filled(rng.choice(forms[kind]), *parts)
    return written, Mark(kind, written, instead)


def filled(form: str, s: str, v: str, o: str, a: str) -> str:
    v_, o_, a_ = (each.replace('"', "'") for each in (v, o, a))
    f, g = f'f"<{{{v_}}}>"', f'f"<{{{a_}}}>"'
    return form.format(s=s, v=v, o=o, a=a, qv=v_, qo=o_, f=f, g=g, qf=f"{v_} + {a_}")
