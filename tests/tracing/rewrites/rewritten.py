"""Programs that are refused, each beside the rewrite that the hint names.

A pair is (the construct, as the message names it; the rewrite, as the hint names it; the refused
body; the rewritten body). Lines before `---` stand in the module, before the program; `# here` ends
the line that is refused; without one, it is that of the program, which is refused when it has run.
"""

from __future__ import annotations

Pair = tuple[str, str, str, str]

# The rewritten program does what the refused one does.
SAME: list[Pair] = [
    ("hash()", "@sgc.tool",
     "return hash(x)  # here",
     "@sgc.tool\ndef hashed(t: str) -> int:\n    return hash(t)\n---\nreturn hashed(x)"),
    ("a line of a log with a traceback", "logger.error(",
     "import logging\nLOG = logging.getLogger('rewritten')\n---\n"
     "try:\n    int(x)\nexcept ValueError as error:\n    LOG.exception('no')  # here\nreturn n",
     "import logging\nLOG = logging.getLogger('rewritten')\n---\n"
     "try:\n    int(x)\nexcept ValueError as error:\n    LOG.error('no: %s', error)\nreturn n"),
    ("a logger is changed", "outside of the program",
     "import logging\nLOG = logging.getLogger('rewritten')\n---\n"
     "LOG.setLevel(10)  # here\nLOG.info(x)\nreturn n",
     "import logging\nLOG = logging.getLogger('rewritten')\nLOG.setLevel(10)\n---\n"
     "LOG.info(x)\nreturn n"),
    ("a warning of the class", "one of Python's own",
     "import warnings\nclass Odd(UserWarning): pass\n---\nwarnings.warn(x, Odd)  # here\nreturn n",
     "import warnings\n---\nwarnings.warn(x, UserWarning)\nreturn n"),
    ("whose level is known only at run time", "log it in a branch for each level",
     "import logging\n---\nlogging.log(10 if x else 20, 'a')\nlogging.log(n, 'a')  # here\n"
     "return n",
     "import logging\n---\nlogging.log(10 if x else 20, 'a')\n"
     "if n == 10:\n    logging.log(10, 'a')\nelse:\n    logging.log(20, 'a')\nreturn n"),
    ("ascii()", "{ascii(x)}",
     "return f'{x!a}'  # here",
     "return f'{ascii(x)}'"),
    ("the characters of x", "for c in text:",
     "it = iter(x)  # here\nreturn next(it, '')",
     "for c in x:\n    return c\nreturn ''"),
    ("the program reads 'DB'", "let the tool return",
     "DB = {}\n@sgc.tool\ndef save(t: str) -> str:\n    DB[t] = t + t\n    return t\n---\n"
     "save(x)  # here\nreturn DB[x]",
     "DB = {}\n@sgc.tool\ndef save(t: str) -> str:\n    DB[t] = t + t\n    return DB[t]\n---\n"
     "return save(x)"),
    ("eval()", "@sgc.tool",
     "return str(eval(x))  # here",
     "@sgc.tool\ndef calculate(t: str) -> str:\n    return str(eval(t))\n---\nreturn calculate(x)"),
    ("open()", "@sgc.tool",
     "return open(x).read() if x == '?' else ''  # here",
     "@sgc.tool\ndef read(t: str) -> str:\n    return open(t).read()\n---\n"
     "return read(x) if x == '?' else ''"),
    ("needed as a number", "xs[n]",
     "return [1, 2, 3][operator.index(n)]  # here",
     "return [1, 2, 3][n]"),
    ("cannot be pickled", "@sgc.tool",
     "return str(pickle.dumps(n))  # here",
     "@sgc.tool\ndef pickled(n: int) -> str:\n    return str(pickle.dumps(n))\n---\n"
     "return pickled(n)"),
    ("json.load()", "its text as an argument",
     "return json.load(io.StringIO(j))  # here",
     "return json.loads(j)"),
    ("draws from a value that is not a list", "a list of texts",
     "g = random.Random(n)\nreturn g.choice({0: 'a', 1: 'b'})  # here",
     "return random.Random(n).choice(['a', 'b'])"),
    ("`match`", 'isinstance(v, dict) and "key" in v',
     "match json.loads(j):  # here\n    case {'k': a, **b}:\n        return 1\nreturn 2",
     "v = json.loads(j)\nif isinstance(v, dict) and 'k' in v:\n    return 1\nreturn 2"),
    ("finditer with a position", "search in text[start:end]",
     "for m in re.compile('a').finditer(x, 1):  # here\n    s += m.group() + sgc.gen('g')",
     "for m in re.compile('a').finditer(x[1:]):\n    s += m.group() + sgc.gen('g')"),
    ("a list is changed after cycle() of it was made", "cycle(list(xs))",
     "from itertools import cycle\n---\n"
     "xs = ['a', 'b']\nws = cycle(xs)\ns += next(ws)\nxs.append(x)\n"
     "s += next(ws) + sgc.gen('g', max_tokens=4)  # here",
     "from itertools import cycle\n---\n"
     "xs = ['a', 'b']\nws = cycle(list(xs))\ns += next(ws)\nxs.append(x)\n"
     "s += next(ws) + sgc.gen('g', max_tokens=4)"),
    ("keys()", "set(d)",
     "one = {c: n for c in x}\ntwo = {'k': 1, **one}\nks = one.keys() if 'z' in y else two.keys()\n"
     "two['m'] = 5\nreturn ks == {'k'}  # here",
     "one = {c: n for c in x}\ntwo = {'k': 1, **one}\nks = set(one) if 'z' in y else set(two)\n"
     "two['m'] = 5\nreturn ks == {'k'}"),
    ("islice up to a number", "give it a list, islice(list(xs), n)",
     "from itertools import islice\n---\n"
     "for c in islice({'a': 1}, n):  # here\n    s += c + sgc.gen('g', max_tokens=4)",
     "from itertools import islice\n---\n"
     "for c in islice(list({'a': 1}), n):\n    s += c + sgc.gen('g', max_tokens=4)"),
    ("zip()", "for … in zip(xs):",
     "z = iter(zip(xs, xs))  # here\nreturn next(z, None)",
     "for z in zip(xs, xs):\n    return z\nreturn None"),
    ("enumerate()", "for … in enumerate(xs):",
     "z = iter(enumerate(xs))  # here\nreturn next(z, None)",
     "for z in enumerate(xs):\n    return z\nreturn None"),
    ("a range to n", "for i in range(n):",
     "it = iter(range(n))  # here\nreturn next(it, 9)",
     "for i in range(n):\n    return i\nreturn 9"),
    ("how many calls a map makes", "len(xs) of what is mapped",
     "@sgc.function\ndef f(s, t):\n    s += t + sgc.gen('g', max_tokens=2)\n---\n"
     "return len(sgc.map(f, xs))  # here",
     "@sgc.function\ndef f(s, t):\n    s += t + sgc.gen('g', max_tokens=2)\n---\n"
     "sgc.map(f, xs)\nreturn len(xs)"),
    ("sgc.map calls f inside of f", "another function for the level below",
     "@sgc.function\ndef f(s, t):\n    s += t + sgc.gen('g', max_tokens=2)\n"
     "    if s['g'] == '?':\n        sgc.map(f, [t])  # here\n---\nsgc.map(f, xs)\nreturn 1",
     "@sgc.function\ndef below(s, t):\n    s += t + sgc.gen('g', max_tokens=2)\n"
     "@sgc.function\ndef f(s, t):\n    s += t + sgc.gen('g', max_tokens=2)\n"
     "    if s['g'] == '?':\n        sgc.map(below, [t])\n---\nsgc.map(f, xs)\nreturn 1"),
    ("a dict was changed after", "put it there when it is finished",
     "row = {'w': 1}\nys = x.split(',')\nys.append(row)\nrow['w'] = 2\ns += str(ys)  # here",
     "row = {'w': 1}\nys = x.split(',')\nrow['w'] = 2\nys.append(row)\ns += str(ys)"),
    ("keys(), values() or items()", "list(d.items())",
     "v = {'a': x}\nv[y] = 'b'\nk = v.items()\nv['a'] = 'c'\nreturn len(list(k))  # here",
     "v = {'a': x}\nv[y] = 'b'\nk = list(v.items())\nv['a'] = 'c'\nreturn len(k)"),
    ("changed while a loop goes over it", "a copy of it, list(xs)",
     "ys = list(xs)\nfor y in reversed(ys):  # here\n    s += y\n"
     "    if y == '?':\n        ys.append(y)\nreturn ys",
     "ys = list(xs)\nfor y in reversed(list(ys)):\n    s += y\n"
     "    if y == '?':\n        ys.append(y)\nreturn ys"),
    ("a list is changed in place by xs", "xs = xs + …",
     "a = ['k']\nb = a if n else [a]\na += xs  # here\nreturn a",
     "a = ['k']\nb = a if n else [a]\na = a + xs\nreturn a"),
    ("an iterator outside", "make it in the program",
     "IT = iter([1])\n---\nreturn next(IT, 1)  # here",
     "it = iter([1])\nreturn next(it, 1)"),
    ("whether a value that code returns", "compare them with ==",
     "ys = x.split(',')\nzs = []\nfor a in ys:\n    zs.append([a])\nreturn zs[0] is zs[-1]  # here",
     "ys = x.split(',')\nzs = []\nfor a in ys:\n    zs.append([a])\nreturn zs[0] == zs[-1]"),
    ("a child of a fork", "in one turn of one `for`",
     "fs = s.fork(n)\nfor f in fs:\n    f += 'a'\nfor f in fs:\n    f += 'b'  # here",
     "fs = s.fork(n)\nfor f in fs:\n    f += 'a'\n    f += 'b'"),
    ("f, whose results are cached", "call it without the cache",
     "import functools\n@functools.cache\ndef f(t):\n    return t.upper()\n---\nreturn f(x)  # here",  # noqa: E501
     "def f(t):\n    return t.upper()\n---\nreturn f(x)"),
    ("an `except*`", "except (ValueError, KeyError)",
     "try:\n    v = tool(x)  # here\nexcept* ValueError:\n    v = '1'\nreturn v",
     "try:\n    v = tool(x)\nexcept (ValueError, KeyError):\n    v = '1'\nreturn v"),
    ("__traceback__ of a tool's failure", "str(e)",
     "try:\n    v = tool(x)\nexcept ValueError as e:\n    v = str(e.__traceback__)  # here\nreturn v",  # noqa: E501
     "try:\n    v = tool(x)\nexcept ValueError as e:\n    v = str(e)\nreturn v"),
]  # fmt: skip

# What the refused program reads or writes outside is an argument or a variable of the rewritten one.  # noqa: E501
PASSED: list[Pair] = [
    ("input()", "as an argument", "return input()  # here", "return x"),
    ("may be no name", 'f"of_{x}"',
     "s[x] = 1  # here\nreturn s[x]",
     "s[f'of_{x}'] = 1\nreturn s[f'of_{x}']"),
    ("reads the clock", "as an argument", "return time.time()  # here", "return r"),
    ("draws a random number", "as an argument", "return random.random()  # here", "return r"),
    ("reads the environment", "as an argument", "return os.environ['HOME']  # here", "return x"),
    ("shows its state", "draw from it in the program itself",
     "g = random.Random(x)\nreturn str(g.getstate())  # here", "return random.Random(x).random()"),
    ("writes 'N'", "a variable of the stream",
     "N = 0\n---\nglobal N\nN = x  # here\nreturn N", "s['n'] = x\nreturn s['n']"),
    ("the program changes 'LOG'", "keep it in a variable of the stream",
     "LOG = []\n---\nLOG.append(x)\nreturn 1",
     "s['log'] = x\nreturn 1"),
    ("an error that f may raise", "handle it in f itself",
     "@sgc.function\ndef f(s, t):\n    s += t + sgc.gen('g', max_tokens=2)\n    return int(s['g'])\n"  # noqa: E501
     "---\ntry:\n    sgc.map(f, xs)  # here\nexcept ValueError:\n    return 2\nreturn 1",
     "@sgc.function\ndef f(s, t):\n    s += t + sgc.gen('g', max_tokens=2)\n    try:\n"
     "        return int(s['g'])\n    except ValueError:\n        return 0\n"
     "---\nsgc.map(f, xs)\nreturn 1"),
    ("all variables are read", "use plain names",
     "s[f'of_{x}'] = 1\nreturn len(list(s.variables()))  # here",
     "s['of'] = 1\nreturn len(list(s.variables()))"),
    ("sleeps", "do it outside of the program", "time.sleep(n)  # here\nreturn 1", "return 1"),
]  # fmt: skip
