"""What code of a graph cannot reach, however it is written."""

from __future__ import annotations

import pytest
from executor.code.comparing import by_us

from sgc.errors import ProgramError
from sgc.ir.code import CodeError
from sgc.runtime.executor.code.run import run_code

# Refused when it is read.
REFUSED = """
().__class__
(lambda: 0).__globals__
"".__class__.__mro__
__import__("os")
__builtins__
eval("1")
exec("1")
compile("1", "", "eval")
open("x")
input()
delattr(1, "a")
vars()
globals()
locals()
object()
dir()
id(1)
print(1)
super()
memoryview(b"")
breakpoint()
exit()
help()
classmethod(1)
property(1)
staticmethod(1)
issubclass(int, int)
SystemExit()
KeyboardInterrupt()
BaseException()
GeneratorExit()
RecursionError()
MemoryError()
complex(1)
bytearray(1)
undefined_name
1j
...
[await_ for await_ in 1 if __debug__]
x.__dict__
{}.__init__
f(__a=1)
(__x := 1)
(x.a, x.b)[0].__doc__
a @ b
re
re.sre_parse
re.template
""".strip().splitlines()


@pytest.mark.parametrize("expression", REFUSED)
def test_names_that_reach_python_are_refused(expression: str) -> None:
    with pytest.raises(CodeError):
        run_code(f"import re\ndef f(x, a, b):\n    return {expression}\n", [1, 2, 3])


STATEMENTS = """
import os
import sys
import subprocess
import builtins
import importlib
import ctypes
import pickle
import socket
import collections.abc
import os.path as string
from os import path
from string import Formatter
from re import _parser
from json import decoder
from json import JSONDecoder
from collections import namedtuple
from collections import UserDict
from functools import singledispatch
from functools import lru_cache
from random import SystemRandom
from random import random
from urllib.request import urlopen
from io import open
from io import BytesIO
from ast import parse
from itertools import tee
from math import *
from . import x
from copy import Error
from textwrap import re
from random import _os
class A(int): pass
class A(metaclass=type): pass
async def f(): pass
with x: pass
global x
@decorator
x.a = 1
print("x")
for x in y: pass
""".strip().splitlines()


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_beyond_the_subset_are_refused(statement: str) -> None:
    with pytest.raises(CodeError):
        run_code(f"{statement}\ndef f(): return 1\n", [])


INNER = """
class A: pass
async def g(): pass
with x: pass
global x
import os
from os import path
x.__class__ = 1
del x.__dict__
x.__dict__ += 1
def __g(): pass
def g(__a): pass
def g(__class__): pass
try: pass\\n    except ValueError as __e: pass
try: pass\\n    except* ValueError: pass
match x:\\n        case object(): pass
match x:\\n        case int(real=1): pass
match x:\\n        case Exception(): pass
match x:\\n        case {**__rest}: pass
return (yield from await x)
x: __import__ = __builtins__
lambda: (yield)
nonlocal f
""".strip().splitlines()


@pytest.mark.parametrize("statement", INNER)
def test_statements_in_functions_beyond_the_subset_are_refused(statement: str) -> None:
    body = statement.replace("\\n", "\n")
    with pytest.raises((CodeError, ProgramError)):
        run_code(f"def f(x):\n    {body}\n    return 1\n", [1])


# Refused when it runs: an attribute, a conversion or a value beyond the tables.
RUN = """
"{0.__class__}".format(x)
"{0.real}".format(x)
"{a.__init__.__globals__}".format(a=x)
"{0[0].__class__}".format([x])
"{:{0.__class__}}".format(x)
"{a.b}".format_map({"a": 1})
str.format("{0.__class__}", x)
list(map("{0.__class__}".format, [x]))
(lambda: 0).func_globals
type("A", (), {})
type(lambda: 0)
type(len)
type(int)
type(i for i in [1])
type(x).mro()
list(map(type, [len]))
partial(type, "A", ())({})
operator.attrgetter("__class__")(x)
operator.attrgetter("real.__class__")(x)
operator.methodcaller("__repr__")(x)
operator.methodcaller("mro")(int)
operator.methodcaller("format", x)("{0.__class__}")
shlex.split(None)
shlex.split(io.StringIO("a"))
x._private
getattr(x, "__class__")
hasattr(x, "__class__")
setattr(x, "__class__", 1)
setattr(x, "a", 2)
setattr(Counter(), "a", 2)
setattr(lambda: 0, "a", 2)
getattr(re.compile("a"), "_outer")
(i for i in [1]).gi_frame
(i for i in [1]).gi_code
(i for i in [1]).throw(ValueError)
ValueError("a").with_traceback(None)
ValueError("a").add_note("b")
str(lambda: 0)
f"{x.bit_length}"
repr([lambda: 0])
repr({1: {2: [str.upper, len]}})
"%s" % len
"%r" % [lambda: 0]
str(i for i in [1])
str(map(str, [1]))
json.dumps([], cls=x)
json.loads("1", object_hook=str)
json.loads("1", parse_int=str)
"".join.x
int.from_bytes(b"a", "big")
x.to_bytes(4, "big")
Counter.fromkeys([1])
Counter().default_factory
defaultdict(int).default_factory
re.compile("a").scanner("a")
re.search("a", "a").regs
partial(int).func
partial(int).args
partial.func
datetime.datetime.now()
datetime.datetime.utcnow()
datetime.date.today()
datetime.datetime.fromtimestamp(0)
datetime.datetime(2020, 1, 1).timestamp()
random.Random()
random.Random(None)
random.Random(1).getstate()
random.Random(1).seed(1)
random.SystemRandom
decimal.Decimal("1").next_plus(x)
int.mro()
str.mro()
int.real
dict[str, int]
int | str
list[int]
"a".encode("idna")
"a".encode("rot13")
b"a".decode("unicode_escape")
bytes("a", "punycode")
str(b"a", "zlib")
io.StringIO("a").seek(5)
io.StringIO("a").truncate(10)
csv.reader(["a"], dialect=list).dialect
csv.writer([]).writerow
csv.writer(io.StringIO()).writerow([lambda: 0])
difflib.SequenceMatcher(str.isspace, "a", "b")
difflib.ndiff(["a"], ["b"], str.isspace)
textwrap.indent("a", "b", str.isspace)
urllib.parse.urlencode({"a": count()}, doseq=True)
slice([1])
StopIteration([1])
OSError([1])
ValueError(a=1)
AttributeError("a", obj=x)
copy.deepcopy(lambda: 0)
copy.copy(i for i in [1])
hashlib.sha256(b"a").copy()
lambda: 0
len
str.upper
(i for i in [1])
map(str, [1])
iter([1])
[1, (lambda: 0)]
{"a": {"b": iter([])}}
partial(int)
defaultdict(lambda: 1)
defaultdict(partial(int))
int
[ValueError]
[1].append
re.finditer("a", "a")
itertools.count()
random.Random(1).random
csv.reader(["a"])
io.StringIO("a")
cmp_to_key(lambda a, b: 0)(1)
""".strip().splitlines()

IMPORTS = """
import copy, csv, datetime, decimal, difflib, hashlib, io, itertools, json, operator, random, re
import shlex, textwrap, urllib.parse
from collections import Counter, defaultdict
from functools import cmp_to_key, partial
from itertools import count
"""


@pytest.mark.parametrize("expression", RUN)
def test_values_beyond_the_tables_are_refused(expression: str) -> None:
    source = f"{IMPORTS}\ndef f(x):\n    return {expression}\n"
    kind, error, message = by_us(source, [5])
    assert kind == "error", (error, message)
    natural = {AttributeError, TypeError}
    assert issubclass(error, (ProgramError, CodeError)) or error in natural, (error, message)
    assert "0x" not in str(message)


def test_limits_cannot_be_caught() -> None:
    for body in ("while True: pass", "return f(x)", "x = 'a' * 10 ** 9", "'{0.a}'.format(x)"):
        source = f"""
def f(x):
    while True:
        try:
            {body}
        except Exception:
            return "caught"
        except:
            return "caught"
        finally:
            return "returned"
"""
        with pytest.raises(ProgramError):
            run_code(source, [1])


def test_limits_pass_through_functions_of_python() -> None:
    for call in ("sorted([1, 2], key=g)", "list(map(g, [1]))", "next((g(y) for y in [1]), 0)",
                 "max([1, 2], key=g)", "re.sub('a', g, 'a')", "reduce(g, [1, 2])"):  # fmt: skip
        source = f"""
import re
from functools import reduce
def g(*a):
    try:
        return [0] * 10 ** 9
    except Exception:
        return 0
def f(x):
    try:
        return {call}
    except Exception:
        return "caught"
"""
        with pytest.raises(ProgramError):
            run_code(source, [1])
