"""Python's constructs on abstract values: those that are computed, and those that are refused."""

from __future__ import annotations

# By what they are about: the names of `dir(str)` and the like are looked up in the keys.
COMPUTED: dict[str, list[str]] = {
    # -- str: methods
    **{
        name: [f"x.{name}()"]
        for name in (
            "capitalize", "casefold", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit",
            "isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper",
            "lower", "swapcase", "title", "upper",
        )
    },
    **{
        name: [f"x.{name}()", f"x.{name}('xa ')", f"x.{name}(y)", f"x.{name}(None)"]
        for name in ("strip", "lstrip", "rstrip")
    },
    **{
        name: [f"x.{name}('b')", f"x.{name}(y)", f"x.{name}('a', 1)", f"x.{name}(y, n, None)"]
        for name in ("find", "rfind", "index", "rindex", "count")
    },
    **{
        name: [
            f"x.{name}('a')", f"x.{name}(y)", f"x.{name}(('a', y))", f"x.{name}('b', 1, -1)",
            f"'yes' if x.{name}(y, n) else 'no'",
        ]
        for name in ("startswith", "endswith")
    },
    **{
        name: [
            f"x.{name}()", f"x.{name}(',')", f"x.{name}(',', 1)", f"x.{name}(sep=None, maxsplit=1)",
            f"x.{name}(y)", f"x.{name}(',')[0]", f"x.{name}()[-1]", f"len(x.{name}('b'))",
            f"x.{name}('b')[1:]", f"'a' in x.{name}(',')", f"join('+', x.{name}(','))",
            f"x.{name}(',') == ['a', 'b']", f"bool(x.{name}())", f"x.{name}(maxsplit=n % 3)",
        ]
        for name in ("split", "rsplit")
    },
    **{
        name: [f"x.{name}(5)", f"x.{name}(n % 9, '*')", f"x.{name}(True)"]
        for name in ("center", "ljust", "rjust")
    },
    **{name: [f"x.{name}(',')", f"x.{name}(y)", f"x.{name}('b')[1]"]
       for name in ("partition", "rpartition")},
    "splitlines": ["x.splitlines()", "x.splitlines(True)", "x.splitlines(keepends=b)"],
    "zfill": ["x.zfill(6)", "x.zfill(n % 9)"],
    "expandtabs": ["x.expandtabs()", "x.expandtabs(3)", "x.expandtabs(tabsize=2)"],
    "removeprefix": ["x.removeprefix('a')", "x.removeprefix(y)"],
    "removesuffix": ["x.removesuffix('c')", "x.removesuffix(y)"],
    "replace": ["x.replace('a', 'bb')", "x.replace(y, 'z')", "x.replace('', y, 2)"],
    "join": ["x.join(['a', 'b', y])", "x.join(y.split(','))", "', '.join([x, y])", "x.join(())"],
    "maketrans": ["str(x.maketrans('a', 'b')) + x"],
    # -- str: texts of f-strings, and plain ones that are given abstract arguments
    "f-strings": [
        "f'{x} '.strip()", "f'{x}, {y}'.split(', ')", "f'{x}!'.upper()", "f'{x}a'.startswith('b')",
        "f'{n} '.strip()", "'in' if f'{x}!' == 'abc!' else 'out'", "f'{x}|{y}'[:5]",
        "f'{x}.' == f'{y}.'", "f'{x}{y}' in 'abc abc'", "'12' in f'{x}{n}'", "f'{x:<4}.'[::-1]",
    ],
    "arguments of plain texts": [
        "'abc'.startswith(x)", "'a b'.replace('b', x)", "'abc'.find(x.lower())", "'abc'.strip(x)",
        "PLAIN.split(x)", "'abc'.count(s['choice'])", "str.strip(x)", "','.join(xs)",
        "', '.join(x.split())", "x in 'plain abc'", "x not in 'abc'", "'abc'.endswith((x, 'c'))",
        "str.upper(f'{x}!')", "'-'.join(f'{t}.' for t in (x, y))[2:]", "'abc'.center(n % 9, '*')",
        "'{:>5}|{!r}'.format(x, y)[:9]", "'{a} {b}'.format(a=x, b=n).split()",
        "'{a:^7}'.format_map({'a': x})",
    ],
    # -- str: operators
    "__add__": ["x + y", "'a' + x", "x + 'b'", "(x + ' ').strip()", "x.strip() + x.upper()"],
    "__mul__": ["x * 2", "2 * x", "x * 0", "x * (n % 4)", "'ab' * (n % 4)", "x * -1"],
    "__rmul__": ["(n % 3) * x"],
    "__mod__": [
        "'%i%%' % n", "'%s!' % x", "'%s%%%s' % (x, n)", "'%s %(a)s'[3:] % {'a': x}",
        "('%s' % x)[:2]",
        "'%.2s|%5s|%-5s|%r' % (x, y, x, y)", "'%d %5d %-5d|%+d %05d' % (n, n, n, n, n)",
        "'%x %o' % (abs(n), abs(n))", "'%.2f %8.3f %e %g' % (r, r, r, r)", "'%f' % n",
        "'%(a)s %(b)d' % {'a': x, 'b': n}", "'%*d|%-*s|%.*s' % (6, n, 4, x, 2, y)",
        "'%s %s' % (x,)", "'%d' % x", "'%s' % b", "'%6.2s|' % y", "'%d %s' % (b, r)", "'%%' % (x,)",
    ],
    "__rmod__": ["'<%s>' % x.upper()", "('%s' % (x,)).lower()"],
    "__contains__": ["'a' in x", "y in x", "'' in x", "',' not in x"],
    "__eq__": ["x == 'abc'", "'abc' == x", "x == y", "x == 5", "x == None", "x in ['abc', '']"],
    "__ne__": ["x != 'abc'", "x != y", "x != 5"],
    "__lt__": ["x < 'b'", "x < y", "'b' < x"],
    "__le__": ["x <= 'b'", "x <= y"],
    "__gt__": ["x > 'b'", "x > y"],
    "__ge__": ["x >= 'b'", "x >= y"],
    "__getitem__": [
        "x[0]", "x[-1]", "x[n]", "x[1:3]", "x[:-1]", "x[::-1]", "x[n:]", "x[:n]", "x[::n]", "x[b]",
        "x[:]",
    ],
    "__len__": ["len(x)", "len(x + 'é')", "len(f'{x}!')", "len(f'{n}')"],
    "__format__": [
        "f'{x}'", "f'{x:>8}'", "f'{x!r:^9}'", "f'a{x}b'", "'{} {y}'.format(x, y=y)", "format(x)",
        "format(x, '.2')",
    ],
    "__str__": ["str(x)", "str(x) + str(n) + str(r) + str(b)"],
    "__repr__": ["repr(x)", "f'{x!r}'", "str([x, n])"],
    # -- numbers
    "__radd__": ["1 + n", "1.5 + n", "True + n", "r + n", "b + n", "sum([n, r, b])"],
    "__sub__": ["n - 1", "n - r", "n - b", "r - 0.5"],
    "__rsub__": ["1 - n", "1.5 - r", "True - b"],
    "__truediv__": ["n / 2", "n / n", "r / n", "n / b", "n / 0"],
    "__rtruediv__": ["1 / n", "1.0 / r", "True / n"],
    "__floordiv__": ["n // 3", "n // n", "r // 2", "n // r"],
    "__rfloordiv__": ["7 // n", "7.5 // r"],
    "__divmod__": ["divmod(n, 7)", "divmod(r, 2)", "divmod(n, n)"],
    "__rdivmod__": ["divmod(7, n)", "divmod(2.5, r)"],
    "__pow__": ["n ** 2", "n ** -1", "n ** 0", "r ** 2", "r ** -1", "n ** b", "pow(n, 2)"],
    "__rpow__": ["2 ** (n % 70)", "2.0 ** (n % 9)", "(-2) ** (n % 5 - 2)"],
    "__neg__": ["-n", "-r", "-b"],
    "__pos__": ["+n", "+r", "+b"],
    "__abs__": ["abs(n)", "abs(r)", "abs(b)"],
    "__invert__": ["~n", "~r"],
    "__and__": ["n & 6", "b & True", "(x == 'abc') & (n == 3)"],
    "__rand__": ["6 & n", "True & b"],
    "__or__": ["n | 6", "b | False"],
    "__ror__": ["6 | n"],
    "__xor__": ["n ^ 6", "b ^ True"],
    "__rxor__": ["6 ^ n"],
    "__lshift__": ["n << 3", "n << (n % 5)", "n << n % 5 - 2"],
    "__rlshift__": ["1 << (n % 70)"],
    "__rshift__": ["n >> 2", "n >> (n % 5)", "n >> -1"],
    "__rrshift__": ["1000 >> (n % 20)"],
    "__round__": ["round(n)", "round(r)", "round(r, 1)", "round(n, -1)", "round(n, 2)", "round(b)"],
    "__floor__": ["math.floor(n)", "math.floor(r)"],
    "__ceil__": ["math.ceil(n)", "math.ceil(r)"],
    "__trunc__": ["math.trunc(n)", "math.trunc(r)"],
    "__int__": ["int(n)", "int(r)", "int(b)", "int(x)", "int(x, 16)", "int('3')", "int(f'{n}1')"],
    "__float__": ["float(n)", "float(r)", "float(b)", "float(x)"],
    "__bool__": ["bool(n)", "bool(r)", "not n", "n and r", "n or 'zero'", "not b", "b and n"],
    # -- numbers compared, shown, in builtins
    "comparisons of numbers": [
        "n == 3", "3 == n", "n != r", "n < r", "n <= 3", "2.5 > r", "r >= 0", "0 < n < 10",
        "n == '3'", "b == True", "b == (n == 3)", "n in (3, 255)", "b == 1",
    ],
    "formats of numbers": [
        "f'{n}!'", "f'{n:>5}'", "f'{r:.2f}'", "f'{b}!'", "f'{n:x}'", "str(n)", "repr(r)", "str(b)",
        "'%s' % n", "str(n).zfill(4)", "f'{n!r:>4}'",
    ],
    "builtins": [
        "min(n, 3)", "max(n, r)", "max(x, y)", "min([n, 3, 7])", "sum([n, n, 1])", "sorted([n, 3])",
        "any([x == 'a', n > 2])", "all([x, y])", "isinstance(x, str)", "isinstance(n, int)",
        "isinstance(r, (int, str))", "isinstance(b, int)", "isinstance(xs, list)", "type(n) is int",
        "type(x) is str", "type(3) is int", "type(n).__name__", "isinstance(n, int | str)",
        "list(map(int, ['1', '2'])) + [n]", "list(map(len, [x, y]))", "[len(t) for t in (x, y)]",
        "{'a': x}['a']", "[x, y][0]", "ord(x[:1])", "chr(n)", "issubclass(bool, int) and n",
        "list(enumerate([x, y]))", "dict(a=x)", "x if b else y", "x or y", "x and y", "not x",
        "max([x, y], key=len)", "int.__name__ + x", "int is int and n",
        "isinstance(True, int) and n",
        "(lambda t: t.upper())(x)", "next(iter([x]))", "[t for t in [x, y] if t]", "abs(-n)",
    ],
    "lists": [
        "xs[0]", "xs[-1]", "xs[n]", "len(xs)", "xs[1:]", "'a' in xs", "x in xs", "join(', ', xs)",
        "[t + '!' for t in xs if t]", "any(t == 'a' for t in xs)", "', '.join(t for t in xs)",
        "[t for t in json.loads(x)]", "all(t != y for t in xs)",
        "[f'{i}{t}' for i, t in enumerate(xs, 1)]", "sum(len(t) for t in xs)",
        "{'a': 1, 'abc': 2}.get(x, 3)", "{'a': 1, 'abc': 'b'}.get(x)", "{'': 1, 'a': 2}[x]",
        "[1, 2][n]", "'abc'[n]", "[1, None][n]", "(1, None)[n]", "(1, 2)[n]", "(x, y)[n % 2]",
        "x in {'a', 'b'}",
        "{'a': 1}[x]", "{'a': 1}.get(x)", "{'a': 1, 2: 3}.get(n)",
        "x in {'a', 'abc'}", "x in {'a': 1}", "n not in {1, 2, 7}", "{1: 'a', 7: 'b'}.get(n, 'c')",
        "xs + ['a']", "['a'] + xs", "xs.count('a')", "list(xs)", "sorted(xs)", "max(xs)", "min(xs)",
        "sorted(xs, reverse=b)", "xs * 2", "(n % 3) * xs", "xs.index('a')", "any(xs)", "all(xs)",
        "xs.copy()", "', '.join([xs[0], x])", "xs == ['a']", "bool(xs)", "str(xs)", "f'{xs}'",
        "x.join(xs)",
    ],
    # -- modules
    "re": [
        "bool(re.match('a', x))", "re.search(r'\\w+', x) is None",
        "bool(re.fullmatch('[a-z]+', x))",
        "re.search(r'(\\w)(,)?', x).group(1)", "re.findall('[a-c]', x)", "re.split('[ ,]', x)",
        "re.sub(r'(\\w)', r'<\\1>', x)", "re.sub('b', '', x, count=1)", "re.escape(x)",
        "PATTERN.findall(x)", "bool(PATTERN.search(x))", "PATTERN.sub('-', x)",
        "re.compile('B', re.I).findall(x)", "bool(re.match('A', x, re.I))",
        "m.groups() if (m := re.match(r'(\\w)(,)?', x)) else 'none'",
        "m.span() if (m := re.search('b', x)) else (0, 0)", "re.search('(?P<k>b)', x)['k']",
        "re.search('z|$', x).end()", "re.match('a', 'abc').group() + x", "PATTERN.pattern + x",
    ],
    "json": [
        "json.loads(x)", "str(json.loads(x)['a'])", "str(json.loads(x)['a'][1])",
        "len(json.loads(x))",
        "json.loads(x)['t'].lower()", "json.loads(x).get('zz', 'none')", "'a' in json.loads(x)",
        "json.loads(x) == [1]", "bool(json.loads(x))", "f\"{json.loads(x)['n']}!\"",
        "isinstance(json.loads(x), dict)", "json.loads(x) is None", "int(json.loads(x)['n'])",
        "float(json.loads(x)['n'])", "'t: ' + json.loads(x)['t']", "json.loads(x)[0]",
        "json.dumps({'a': [x, n], 'b': (r, b)}, indent=1)", "json.dumps(x)",
        "json.dumps(json.loads(x))",
        "json.dumps([x], ensure_ascii=False, separators=(',', ':'))", "json.dumps({'a': 1}) + x",
        "join(',', json.loads(x).keys())", "f\"{json.loads(x)['n']:.1f}\"",
        "type(json.loads(x)) is list",
        "'%s' % json.loads(x)", "repr(json.loads(x))",
    ],
    "tables": ["table({'abc': 1, '': 2})[x]", "table({'12': 'a'}).get(x, 'none')",
    "x in table({'': 0})"],
    # -- statements
    "statements": [
        "a, b2 = x.split(',')\nv = b2 + a",
        "first, _, third = x.partition(',')\nv = third + first",
        "v = 'none'\nmatch x:\n    case 'abc' | '': v = 'one'\n    case str(): v = 'text'",
        "v = 0\nmatch n:\n    case 3: v = 1\n    case int(): v = 2",
        "v = 0\nmatch xs:\n    case [a, b3]: v = a\n    case [a, *_]: v = 2",
        "class A(int): pass\nv = A(3) + n",
        "v = x\nfor part in ('a', 'b'):\n    if part in x:\n        v = v + part.upper()",
        "try:\n    v = int(x)\nexcept ValueError as e:\n    v = str(e)",
        "try:\n    v = json.loads('[' + x)[0]\nexcept (ValueError, LookupError):\n    v = 'bad'",
        "try:\n    v = xs[5]\nexcept IndexError as e:\n    v = f'{e}'",
        "try:\n    v = table({'a': 1})[x]\nexcept KeyError as e:\n    v = f'{e}'",
        "try:\n    v = int(x)\nexcept:\n    v = 'bare'",
        "v = helper(x)",
        "t = x.strip()\nt += '!'\nv = t",
        "c = s['choice']\nv = {'yes': 1, 'no': 2}[c] + (c == 'maybe') + len(c.upper())",
        "c = s['choice']\nv = 'in' if c in {'yes', 'other'} else 'out'",
        "v = ''\nfor c in x:\n    v = c + v[:9]",
    ],
}  # fmt: skip


# What the graph has no function of: pieces of code, which are data.
AS_CODE: dict[str, list[str]] = {
    # -- str
    "encode": ["x.encode()"],
    "format": ["x.format(1)", "(x + '{}').format(y)"],
    "format_map": ["x.format_map({})"],
    "translate": ["x.translate({97: 'b'})"],
    "__iter__": ["[c for c in x]", "list(x)", "sorted(x)", "set(x)", "''.join(c for c in x)"],
    "__hash__": ["{x: 1}", "{n: 1}", "{x, 'a'}"],
    "__mod__ of a template": ["x % 3"],
    "__getnewargs__": ["copy.deepcopy(x)"],
    # -- numbers
    "__index__": ["hex(n)", "math.sqrt(r)"],
    "methods of ints": [
        "n.bit_length()", "n.bit_count()", "n.conjugate()", "n.real", "n.imag", "n.numerator",
        "n.denominator", "n.as_integer_ratio()",
    ],
    "methods of floats": ["r.is_integer()", "r.hex()", "r.as_integer_ratio()"],
    "powers": ["pow(n, 2, 5)"],
    # -- lists and JSON
    "lists": ["{t for t in xs}", "dict(zip(xs, xs))", "list(reversed(xs))"],
    "json": [
        "{k for k in json.loads(x)}", "json.loads(x)['n'] + 1", "json.loads(x) < 3",
        "json.loads(x).items()", "json.dumps({x: 1})", "json.dumps(x, default=str)",
        "{'a': 1}[json.loads(x)]", "json.loads(x).update(a=1)",
    ],
    "re": [
        "re.sub('a', lambda m: m[0], x)", "re.findall('(a)(b)', x)", "re.split('(,)', x)",
        "re.subn('a', 'b', x)", "re.search('b', x).lastgroup",
    ],
    "other modules": ["textwrap.dedent(x)"],
    "statements": [
        "try:\n    v = x.encode()\nexcept Exception:\n    v = 'swallowed'",
        "first, *rest = x.split(',')\nv = first",
        "v = {}\nfor t in xs:\n    v[t] = v.get(t, 0) + 1",
    ],
}  # fmt: skip


REFUSED: dict[str, list[str]] = {
    "__hash__": ["hash(x)"],
    "__getnewargs__": ["pickle.dumps(x)"],
    "what a library does to texts": ["by_c(operator.contains, 'plain abc', x)"],
    "methods of ints": ["n.to_bytes(2)", "n.from_bytes(b'a')"],
    "methods of floats": ["r.fromhex('1')"],
    "lists": ["xs.append('a')", "xs.pop()"],
    "json": ["json.loads(x, parse_int=float)", "json.load(x)"],
    "re": [
        "re.search(r'(a)\\1', x)", "re.search('(?=a+)', x)",
        "re.sub('a*?', '', x)",
    ],
    "other modules": ["other_helper(x)", "other_number(n)"],
    "statements": [
        "match json.loads(x):\n    case {'a': a, **b}: v = 1",
    ],
}  # fmt: skip
