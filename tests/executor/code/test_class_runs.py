"""Instances are values of runs: they keep their class, and no run sees what another changed."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from sgc.errors import ProgramError
from sgc.ir.code import CodeError
from sgc.runtime.executor.code.classes.making import _KINDS
from sgc.runtime.executor.code.fuel import NotAllowed
from sgc.runtime.executor.code.run import run_code

CLASSES = """
from dataclasses import dataclass, field
from typing import NamedTuple
NOTES = []
def noted(x):
    NOTES.append(x)
    return list(NOTES)
@dataclass
class Doc:
    title: str
    words: list = field(default_factory=list)
    def add(self, word):
        self.words.append(word)
        return noted(word)
    def __lt__(self, other):
        return self.title < other.title
class Tree:
    seen = []
    def __init__(self, name, parent=None):
        self.name, self.parent, self.children = name, parent, []
        if parent:
            parent.children.append(self)
    def visit(self):
        self.seen.append(self.name)
        return list(self.seen)
class Pair(NamedTuple):
    left: int
    right: list
class Fault(ValueError):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code
    def __str__(self):
        return f"fault {self.code}"
class Plain:
    def __init__(self, x):
        self.x = x
    def take(self, items):
        items.append(self.x)
"""


def run(body: str, *args: Any, classes: str = CLASSES) -> Any:
    names = ", ".join("abc"[: len(args)])
    return run_code(f"{classes}\ndef f({names}):\n    {body}\n", list(args))


def test_a_later_run_calls_methods_of_a_class_that_its_text_does_not_have() -> None:
    doc = run("return Doc('a', ['x'])")
    assert run("return a.add('y'), a.words, a.title", doc, classes="") == (["y"], ["x", "y"], "a")
    assert doc.words == ["x"]


def test_the_same_text_is_the_same_class_in_all_runs() -> None:
    doc = run("return Doc('a')")
    others = CLASSES.replace("class Pair", "# a comment\n\nclass  Pair") + "\nOTHER = 1\n"
    for classes in (CLASSES, others):
        made = run("return Doc('a'), isinstance(a, Doc), a == Doc('a'), max(a, Doc('b'))", doc,
                   classes=classes)  # fmt: skip
        assert made[1:3] == (True, True)
        assert type(made[0]) is type(made[3]) is type(doc)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("return list(NOTES)", "return NOTES"),
        ("title: str", "title: int"),
        ("NOTES = []", "NOTES = [0]"),
        ("self.title < other.title", "self.title > other.title"),
    ],
)
def test_what_a_class_uses_is_a_part_of_it(before: str, after: str) -> None:
    doc = run("return Doc('a')")
    assert before in CLASSES
    body = "return type_is(a, Doc)".replace("type_is", "isinstance")
    changed = CLASSES.replace(before, after)
    with pytest.raises(NotAllowed, match="another class Doc"):
        run(body, doc, classes=changed)


def test_runs_do_not_see_changes_of_what_classes_share() -> None:
    tree = run("return Tree('a')")
    for _ in range(2):
        assert run("return a.visit()", tree, classes="") == ["a"]
        assert run("Tree('b').visit(); return a.visit(), Tree.seen", tree) == (
            ["b", "a"],
            ["b", "a"],
        )
        assert run("a.add(1); return a.add(2)", run("return Doc('d')"), classes="") == [1, 2]


def test_methods_of_the_class_and_functions_of_its_text_see_the_same_globals() -> None:
    assert run("Doc('a').add(1); noted(2); return Doc('b').add(3), NOTES") == ([1, 2, 3], [1, 2, 3])
    doc = run("return Doc('a')")
    assert run("a.add(1); return noted(2), NOTES", doc) == ([1, 2], [1, 2])


def test_copies_keep_what_is_shared_and_circles() -> None:
    tree = run("t = Tree('a'); Tree('b', t); Tree('c', t); return t")
    assert tree.children[0].parent is tree
    copy = run("a.children[0].name = 'z'; return a", tree)
    assert copy is not tree
    assert copy.children[0].parent is copy
    assert [each.name for each in copy.children] == ["z", "c"]
    assert [each.name for each in tree.children] == ["b", "c"]
    twice = run("d = Doc('a'); return [d, d, {'k': (d,)}]")
    again = run("a[0].title = 'b'; return a", twice)
    assert again[0] is again[1] is again[2]["k"][0]
    assert again[0].title == "b"
    assert twice[0].title == "a"


def test_a_list_that_an_object_in_it_holds_stays_the_same_list() -> None:
    items = run("x = []; p = Plain(x); x.append(p); return x")
    copy = run("a[0].x.append(1); return a", items)
    assert len(copy) == 2
    assert copy[0].x is copy
    assert len(items) == 1


def test_changes_by_methods_of_frozen_objects_stay_in_the_run() -> None:
    classes = "from typing import NamedTuple\nclass Taker(NamedTuple):\n    x: int\n"
    classes += "    def take(self, items):\n        items.append(self.x)\n"
    taker = run("return Taker(3)", classes=classes)
    given: list[int] = []
    run("a.take(b)", taker, given, classes="")
    plain = run("return Plain(3)")
    run("a.take(b)", plain, given, classes="")
    assert given == []


def test_frozen_objects_of_plain_values_are_not_copied() -> None:
    classes = (
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass P:\n    x: object\n"
    )
    point = run("return P((1, 'a'))", classes=classes)
    assert run("return a", point, classes="") is point
    held = run("return P([1])", classes=classes)
    assert run("return a", held, classes="") is not held


def test_an_error_that_leaves_keeps_its_class_and_attributes() -> None:
    with pytest.raises(ValueError, match="fault 3") as caught:
        run("raise Fault(3)")
    error = caught.value
    assert type(error).__name__ == "Fault"
    assert (error.code, error.args) == (3, ("code 3",))  # type: ignore[attr-defined]
    again = run(
        "try:\n        raise a\n    except Fault as e:\n        return e.code, str(e)", error
    )
    assert again == (3, "fault 3")


def test_methods_work_outside_of_runs() -> None:
    one, other = run("return Doc('a'), Doc('b')")
    assert one < other
    assert one.add(1) == [1]
    with pytest.raises(NotAllowed):
        hash(run("return Plain(1)"))
    endless = run("return Ever()", classes="class Ever:\n def __str__(self):\n  while 1: pass\n")
    with pytest.raises(ProgramError):
        str(endless)


def test_a_class_lives_as_long_as_its_instances() -> None:
    classes = "class Rare:\n    def name(self): return 'rare'\n"
    rare = run("return Rare()", classes=classes)
    from sgc.runtime.executor.code.run import _program

    _program.cache_clear()
    gc.collect()
    assert run("return a.name(), isinstance(a, Rare)", rare, classes=classes) == ("rare", True)
    del rare
    _program.cache_clear()
    gc.collect()
    assert not [key for key in _KINDS if key.startswith("Rare\n")]


CHANGED = """
Doc.title = 1
Doc.new = 1
del Doc.add
Tree.seen += [1]
setattr(Doc, "add", 1)
Color.RED.value = 3
Color.RED.new = 3
Color.BLUE = 3
Fault(1).args = (1,)
Fault(1).with_traceback = 1
ValueError(1).code = 1
noted.x = 1
Doc("a").__dict__ if 0 else setattr(Doc("a"), "__dict__", {})
copy.copy(Fault(1))
copy.deepcopy([Fault(1)])
""".strip().splitlines()


@pytest.mark.parametrize("change", CHANGED)
def test_classes_and_errors_of_python_are_not_changed(change: str) -> None:
    classes = f"import copy\nfrom enum import Enum\n{CLASSES}class Color(Enum):\n    RED = 1\n"
    with pytest.raises((NotAllowed, CodeError)):
        run(change, classes=classes)


IDENTITY = """
return Plain(1) == Plain(1)
return Plain(1) != Plain(1)
return Plain(1) in [Plain(1)]
return [Plain(1)].index(Plain(1))
return [Plain(1)] == [Plain(1)]
return (1, Plain(1)) < (1, Plain(1))
return {"a": Plain(1)} == {"a": Plain(1)}
return Plain(1) is Plain(1)
x, y = Plain(1), Plain(1); return x is not y
return {Plain(1)}
return {Plain(1): 1}
return hash(Plain(1))
return {}.get(Plain(1))
return repr(Plain(1))
return str(Plain(1))
return f"{Plain(1)}"
return format(Plain(1), "")
return "%s" % Plain(1)
return str([Plain(1)])
return "{}".format(Plain(1))
return Doc("a", [Plain(1)]) == Doc("a", [Plain(1)])
return repr(Doc("a", [Plain(1)]))
return repr(Doc("a", [lambda: 0]))
return repr(Doc(lambda: 0))
return str(Pair(1, len))
return Fault(1) == Fault(1)
return repr(ValueError(lambda: 0))
return str(ValueError(len, 1))
import copy
""".strip().splitlines()


@pytest.mark.sweep
@pytest.mark.parametrize("body", IDENTITY[:-1])
def test_what_depends_on_identity_is_refused(body: str) -> None:
    with pytest.raises(NotAllowed):
        run(body)


RESULTS = """
return Doc
return [Doc]
return Doc("a").add
return [Doc("a").add]
return Doc("a", [lambda: 0])
return Plain(Plain)
return Plain(iter([]))
return Plain(x for x in [1])
return NotImplemented
return Pair(1, [print_ for print_ in [len]])
from collections import defaultdict
""".strip().splitlines()


@pytest.mark.parametrize("body", RESULTS[:-1])
def test_results_that_are_no_data_are_refused(body: str) -> None:
    with pytest.raises(NotAllowed):
        run(body)


def test_a_defaultdict_of_a_class_is_no_result() -> None:
    with pytest.raises(NotAllowed):
        run("return defaultdict(Plain)", classes=f"from collections import defaultdict\n{CLASSES}")


def test_a_defaultdict_in_an_object_must_not_grow_by_reading() -> None:
    classes = f"from collections import defaultdict\n{CLASSES}"
    plain = run("return Plain(defaultdict(int))", classes=classes)
    with pytest.raises(NotAllowed, match="not there"):
        run_code("def f(a):\n    return a.x['new']\n", [plain], fixed=[0])


def test_restored_takes_no_other_class() -> None:
    for args in ("int, {}", "Doc, []", "Doc, {1: 2}", "Doc, {'__class__': 2}", "ValueError, {}",
                 "Pair, {'left': 1}", "Pair, {'left': 1, 'up': 2}", "Doc('a'), {}"):  # fmt: skip
        with pytest.raises(NotAllowed):
            run(f"return restored({args})")
