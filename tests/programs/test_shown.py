"""What a program prints, logs and warns of is shown once, in order, however it runs."""

from __future__ import annotations

import importlib
import io
import itertools
import logging
import sys
import threading
import warnings
from collections import Counter

import pytest

from sgc.errors import TraceError
from sgc.ir.file.sgir import from_bytes, to_bytes
from sgc.programs.program import Program

NUMBERS = itertools.count()
HEAD = """
import functools, io, logging, sys, warnings
from contextlib import redirect_stdout
import sgc
P = print
LOG = logging.getLogger("a.program")

class Held:
    def __init__(self, name): self.name = name
    def __str__(self): return f"<{self.name}>"
    def tell(self): print("held", self)

def told(x):
    print("told", len(x), end=";")
    return x

@sgc.function
def called(s, word):
    print("called", word)
    s += word + sgc.gen("c", max_tokens=3)
    return s["c"]

@sgc.tool
def tool(x: str) -> str:
    return x

@sgc.function
def program(s, q: str):
    s += q + sgc.gen("a", max_tokens=4)
"""
BODIES = [
    'print("known")',
    "print('asked', q, 3, None, sep='-', end='!')",
    "print('replied', s['a'], len(s['a']), [q])",
    "print()\nprint('', end='')",
    "if s['a'] == 'x':\n    print('x')\nelse:\n    s += 'u'\nprint('end')",
    "for n in range(3):\n    print('turn', n)\n    s += sgc.gen('b', max_tokens=3)",
    "for w in s['a'].split():\n    print('word', w)",
    "while True:\n    s += sgc.gen('b', max_tokens=3)\n    print('again', s['b'])\n"
    "    if s['b'] != 'nothing':\n        break",
    "try:\n    int(s['a'])\nexcept ValueError as error:\n    print('no number:', error)\n"
    "finally:\n    print('finally')",
    "print('out', file=sys.stderr)\nP('alias')",
    "told(s['a'])\nxs = sorted([told(s['a']), 'k'], key=told)\nprint(xs)",
    "forks = s.fork(2)\nfor i, f in enumerate(forks):\n    print('fork', i)\n"
    "    f += f'part {i}' + sgc.gen('p', max_tokens=3)\nforks.join()\n"
    "for f in forks:\n    print(f['p'])",
    "print(called(q).ret_value, called('two').ret_value)",
    "print(tool(s['a']))\ntool(q)\nprint('between')\nprint(tool('b'))",
    "held = Held(s['a'])\nheld.tell()\nheld.name += '!'\nheld.tell()",
    "with redirect_stdout(io.StringIO()) as out:\n    print('inner', s['a'])\ns += out.getvalue()",
    "out = io.StringIO()\nprint('kept', s['a'], file=out)\ns += out.getvalue()",
    "LOG.info('of %s', s['a'])\nLOG.debug('unseen')\nlogging.warning('root %d', 7)\n"
    "LOG.log(40, 'at a level')",
    "import json\nLOG.info('%d of %.2f: %r %5s', len(s['a']), len(s['a']) / 3, s['a'], 'w')\n"
    "rows = json.loads('[{\"k\": 2}]')\nLOG.warning('%s and %s', rows[0]['k'], rows)\n"
    "try:\n    int(s['a'])\nexcept ValueError as error:\n    LOG.error('at %s: %s', q, error)",
    "log = logging.getLogger('another')\nif s['a']:\n    log.error('%(x)s', {'x': s['a']})",
    "warnings.warn('odd ' + q)\nwarnings.warn(DeprecationWarning('old'), stacklevel=2)",
    "sys.stdout.write('w')\nn = sys.stderr.write(s['a'] + '\\n')\nsys.stdout.flush()\n"
    "sys.stdout.writelines(['x', q])\nreturn n",
    "print('before', s['a'])\nLOG.info('too')\nn = int(s['a'])\nprint('never')",
    "print('before')\nif s['a'] != 'never':\n    raise ValueError('wrong')",
]


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name != "asyncio":
            place = f"{record.funcName}:{record.lineno}"
            self.lines.append(f"{record.name} {record.levelname} {place} {record.getMessage()}")


@pytest.fixture
def shown(capsys):
    """Runs something: its result or error, and what it shows."""
    root, handler = logging.getLogger(), Lines()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)

    def show(run):
        handler.lines.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = run()
            except Exception as error:
                found = type(error).__mro__[-3].__name__, isinstance(error, ValueError)
        printed = capsys.readouterr()
        told = [f"{each.category.__name__} {each.message}" for each in caught]
        return found, (printed.out, printed.err, [*handler.lines], told)

    yield show
    root.removeHandler(handler)
    root.setLevel(before)


@pytest.fixture
def written(tmp_path, monkeypatch):
    def write(body: str):
        name = f"shown_program_{next(NUMBERS)}"
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        (tmp_path / f"{name}.py").write_text(HEAD + lines)
        monkeypatch.syspath_prepend(str(tmp_path))
        return importlib.import_module(name)

    return write


@pytest.mark.parametrize("body", BODIES)
def test_it_is_shown_once_a_run(body, written, shown, scripted):
    module, reply = written(body), "x y"
    wanted = shown(lambda: module.program.run("q", backend=scripted(lambda *_: reply)).text())
    assert any(wanted[1]) or "StringIO" in body
    called = shown(lambda: module.program("q", backend=scripted(lambda *_: reply)).text())
    assert called == wanted
    assert shown(lambda: module.program("q", backend=scripted(lambda *_: reply)).text()) == wanted
    assert module.program.explain().endswith(": compiled")
    silent = shown(lambda: module.program.compile(partial=True))
    assert not any(silent[1])
    graph = from_bytes(to_bytes(silent[0].graph))
    tools = [module.tool]
    alone = shown(
        lambda: (
            Program(graph).run("q", backend=scripted(lambda *_: reply), allow_tools=tools).text()
        )
    )
    assert alone == wanted


def test_a_run_gives_what_it_shows_to_who_asks(written, shown, scripted):
    module = written("print('a', s['a'])\nLOG.info('b')\nwarnings.warn('c')")
    found = []
    program = module.program.compile()
    _, told = shown(
        lambda: program.run("q", backend=scripted(lambda *_: "x"), on_show=found.append)
    )
    assert not any(told)
    assert [(each.to, each.name, each.text) for each in found] == [
        ("stdout", "", "a x\n"), ("log", "a.program", "b"), ("warnings", "UserWarning", "c"),
    ]  # fmt: skip


def test_a_warning_may_be_an_error(written, shown, scripted):
    handles = "try:\n    warnings.warn('odd')\nexcept UserWarning:\n    print('handled')"
    for body in (handles, "warnings.warn('odd')"):
        module = written(body)
        with warnings.catch_warnings():
            for action in ("ignore", "error", "ignore", "error"):
                warnings.simplefilter(action)
                runs = module.program.run, module.program
                found = [_ended(run, scripted()) for run in runs]
                assert found[0] == found[1]


def _ended(run, endpoint):
    try:
        return run("q", backend=endpoint).text()
    except UserWarning:
        return "odd"


def test_what_was_shown_before_the_interpreter_goes_on_is_shown_once(written, shown, scripted):
    body = "print('first', s['a'])\nif s['a'] == 'x':\n    print(hash(s['a']) and 'second')"
    module = written(body)
    for reply, wanted in (("x", "first x\nsecond\n"), ("y", "first y\n")):
        _, told = shown(
            lambda reply=reply: module.program("q", backend=scripted(lambda *_: reply)).text()
        )
        assert told[0] == wanted


@pytest.mark.parametrize("line", ["__import__('pprint').pprint({1: 2})",
                                  "logging.LoggerAdapter(LOG, {}).info('adapted')",
                                  "LOG.addFilter(len)\n    LOG.filters.clear()",
                                  "LOG.propagate = True", "LOG.disabled = False",
                                  "logging.disable(0)"])  # fmt: skip
def test_what_a_library_shows_or_sets_up_is_not_compiled(line, written, shown, scripted):
    module = written(f"if s['a']:\n    {line}")
    wanted = shown(lambda: module.program.run("q", backend=scripted(lambda *_: "x")).text())
    assert shown(lambda: module.program("q", backend=scripted(lambda *_: "x")).text()) == wanted
    with pytest.raises(TraceError):
        module.program.compile()
    assert sys.stdout is not None


class Plain:
    """A stream as some libraries put it in place of stdout."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


def test_a_stream_of_a_librarys_own(written, scripted, monkeypatch):
    module = written("print('p', s['a'])\nsys.stdout.write('w\\n')")
    for run in (module.program.run, module.program, module.program):
        monkeypatch.setattr(sys, "stdout", out := Plain())
        run("q", backend=scripted(lambda *_: "x")).text()
        assert out.text == "p x\nw\n"
    assert module.program.explain().endswith(": compiled")


def test_a_warning_is_of_the_programs_module(written, scripted):
    module = written("warnings.warn('odd')")
    for ignored, n in ((module.__name__, 0), ("another", 1)):
        for run in (module.program.run, module.program):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                warnings.filterwarnings("ignore", module=ignored)
                run("q", backend=scripted()).text()
            assert len(caught) == n


def test_threads_that_compile_and_print_at_once(written, scripted, monkeypatch):
    """Each line comes once, from programs that are being checked and from others."""
    body = "print('P', s['a'])\nsys.stderr.write('E' + s['a'] + '\\n')\nLOG.warning('L')"
    modules = [written(body) for _ in range(4)]
    monkeypatch.setattr(sys, "stdout", out := io.StringIO())
    monkeypatch.setattr(sys, "stderr", err := io.StringIO())
    handler, over, n = Lines(), threading.Event(), 0
    logging.getLogger().addHandler(handler)

    def print_on() -> None:
        nonlocal n
        while not over.wait(0.001):
            n += 1
            print("other")
            logging.getLogger("other").error("other")

    def call(module) -> None:
        for _ in range(2):
            module.program("q", backend=scripted(lambda *_: "x y")).text()

    other = threading.Thread(target=print_on)
    threads = [threading.Thread(target=call, args=[module]) for module in modules]
    for each in (other, *threads):
        each.start()
    for each in threads:
        each.join()
    over.set()
    other.join()
    logging.getLogger().removeHandler(handler)
    assert (sys.stdout, sys.stderr) == (out, err)
    assert Counter(out.getvalue().splitlines()) == {"P x y": 8, "other": n}
    assert err.getvalue() == "Ex y\n" * 8
    assert sum("L" in line.split() for line in handler.lines) == 8
    assert sum(line.startswith("other") for line in handler.lines) == n
