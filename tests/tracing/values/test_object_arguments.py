"""Arguments that are objects of the user's dataclasses: compiled programs take the data of their
fields, and their methods run as in Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from control_flow import agree, replying, traced

import sgc
from sgc.errors import ArgumentError, TraceError
from sgc.passes.pipeline import optimize
from sgc.programs.program import Program
from sgc.runtime.executor.interface.argument_shapes import schemas_of, shown
from sgc.tracing.tracer import trace

POOL = ("a", "b?", "7")


@dataclass(frozen=True)
class Tag:
    name: str
    weight: float = 1.0


@dataclass
class Mail:
    sender: str
    body: str
    cc: str | None = None
    tags: list[Tag] = field(default_factory=list)

    @property
    def short(self) -> str:
        return self.body[:6]

    def weight(self, base: float) -> float:
        return base + sum(tag.weight for tag in self.tags)


@dataclass
class Box:
    owner: Mail
    n: int
    by_name: dict[str, Tag]


@sgc.function
def summary(s, thread: list[Mail], q: str):
    people: dict[str, int] = {}
    for mail in thread:
        people[mail.sender] = people.get(mail.sender, 0) + 1
        s += f"{mail.sender}: {mail.short}{q}"
        if "?" in mail.body:
            s += sgc.gen("a", max_tokens=4)
            s += f"{mail.weight(0.5)} {[tag.name for tag in mail.tags]} {mail.cc or 'nobody'}"
    long = [mail for mail in thread if len(mail.body) > 3]
    s += sgc.gen("b", max_tokens=4)
    heaviest = max(thread, key=lambda mail: mail.weight(0), default=None)
    return people, len(long), heaviest and heaviest.sender, s["b"] in {m.body for m in thread}


@sgc.function
def single(s, mail: Mail, q: str):
    s += f"{mail!r} {mail.short}" + q + sgc.gen("a", max_tokens=4)
    if mail.cc is not None and mail.cc == s["a"]:
        s += "copied"
    again = Mail(mail.sender, s["a"], tags=mail.tags)
    again.body += "!"
    return again.body, again == mail, mail.weight(1), [tag.weight for tag in mail.tags]


@sgc.function
def nested(s, box: Box, q: str):
    s += f"{box.owner.short} {box.n}" + q + sgc.gen("a", max_tokens=4)
    tag = box.by_name.get(s["a"])
    return box.owner.sender, sorted(box.by_name), tag.weight if tag else None


TAGS = [Tag("x", 2.5), Tag("y")]
THREAD = [Mail("A", "is it?", "b", TAGS), Mail("B", "no"), Mail("A", "b?", None, [Tag("z")])]
RUNS = {
    "one object": (single, "mail", THREAD),
    "lists": (summary, "thread", [THREAD, THREAD[:1], []]),
    "objects in objects": (
        nested,
        "box",
        [Box(THREAD[0], 3, {"a": TAGS[0]}), Box(THREAD[1], 0, {})],
    ),
}


def data(value):
    """What stands for objects where their classes are not known."""
    return json.loads(json.dumps(value, default=vars))


@pytest.mark.sweep
@pytest.mark.parametrize("case", RUNS)
def test_runs_on_objects_equal_interpreted_ones(case):
    program, name, given = RUNS[case]
    for each in given:
        agree(program, POOL, n=6, graph=traced(program), q="q", **{name: each})


READ = """
import json, sys
from control_flow import replying
import sgc
assert "test_object_arguments" not in sys.modules
for file, arguments in json.load(open("rows.json")):
    run = sgc.load(file).run(backend=replying(1, ("a", "b?", "7")), seed=1, **arguments)
    print(json.dumps([run.text(), run.ret_value]))
"""


@pytest.mark.slow
def test_files_take_the_data_of_objects(tmp_path):
    """They are data themselves: the program's module is not there."""
    rows, wanted = [], []
    for program, name, given in RUNS.values():
        for level in (0, 2):
            file = f"{name}-{level}.sgir"
            Program(optimize(traced(program), level)).save(tmp_path / file)
            rows += [[file, {name: data(each), "q": "q"}] for each in given]
            runs = (
                program.run(q="q", backend=replying(1, POOL), seed=1, **{name: each})
                for each in given
            )
            wanted += [data([run.text(), run.ret_value]) for run in runs]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    support = Path(__file__).resolve().parents[2] / "support"
    path = os.pathsep.join(map(str, (support, support.parents[1])))
    found = subprocess.run(
        [sys.executable, "-c", READ], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [json.loads(line) for line in found.stdout.splitlines()] == wanted


class Longer(Mail):
    pass


def made_with(**changed) -> Mail:
    mail = Mail("A", "b")
    vars(mail).update(changed)
    return mail


OTHERS = {
    "of a subclass": (Longer("A", "b"), "must be Mail, found Longer"),
    "with another attribute": (made_with(extra=1), "must be Mail, found Mail"),
    "with a field of another type": (made_with(cc=3), r"mail\['cc'\] must be str or None, found"),
    "with an object of another class": (made_with(tags=[3]), r"\['tags'\]\[0\] must be Tag, found"),
    "without a field": ({"sender": "A"}, "must be Mail, as an object of all its fields"),
}


@pytest.mark.sweep
@pytest.mark.parametrize("case", OTHERS)
def test_other_objects_are_refused(case):
    given, message = OTHERS[case]
    with pytest.raises(ArgumentError, match=message):
        Program(traced(single)).run(mail=given, q="q", backend=replying(0, POOL))


def test_calls_take_what_python_takes():
    """The data of an object is no object for a program that is called."""
    given = {"q": "q", "backend": replying(1, POOL), "seed": 1}
    found = single(mail=THREAD[0], **given)
    assert found.ret_value == single.run(mail=THREAD[0], **given).ret_value
    assert single.explain() == "single(mail: Mail, q: text): compiled"
    for run in (single, single.run):
        with pytest.raises(AttributeError, match="'dict' object has no attribute"):
            _ = run(mail=data(THREAD[0]), **given).ret_value


def test_rows_of_a_file_are_taken_as_they_are():
    """The interpreter makes no objects of them."""
    assert single.signature.names_to_bind([{"mail": THREAD[0], "q": "q"}], {}) == []
    assert single.signature.names_to_bind([{"mail": data(THREAD[0]), "q": "q"}], {}) == ["mail"]


@sgc.function
def changing(s, mail: Mail):
    s += sgc.gen("a", max_tokens=4)
    mail.body += s["a"]


@sgc.function
def appending(s, thread: list[Mail]):
    s += sgc.gen("a", max_tokens=4)
    thread.append(Mail("C", s["a"]))
    s += f"{len(thread)}"


@sgc.function
def changing_items(s, thread: list[Mail]):
    for mail in thread:
        mail.body = sgc.gen("a", max_tokens=4)
    s += "x"


@sgc.function
def identical(s, one: Tag, other: Tag):
    s += sgc.gen("a", max_tokens=4)
    return one is other


REFUSED = {
    changing: "changes 'mail'",
    appending: "a list of others, is changed",
    changing_items: "the attribute body of",
    identical: "is the same object as another",
}


@pytest.mark.sweep
@pytest.mark.parametrize("program", REFUSED, ids=lambda each: each.name)
def test_what_the_caller_would_see_is_refused(program):
    with pytest.raises(TraceError, match=REFUSED[program]) as refused:
        trace(program, is_full=True)
    assert "test_object_arguments.py:" in str(refused.value)


@dataclass(eq=False)
class Compared:
    name: str


@dataclass
class Holding:
    names: set[str]


@sgc.function
def others(s, one: Compared, other: Holding, third: list[Compared]):
    s += one.name


def test_classes_that_data_does_not_tell_must_be_known():
    """A class compared by identity, and one with a field that is no data."""
    assert [each.name for each in others.signature.static] == ["one", "other", "third"]


def test_their_schemas_name_their_classes():
    found = schemas_of(traced(single))["mail"]
    assert shown(found) == "Mail"
    assert list(found["properties"]) == ["sender", "body", "cc", "tags"]
