"""Valid programs that are each large in one way that could take more than linear work.

All make files of about 60 KB, unless a test chooses another size.
"""

from __future__ import annotations

from collections.abc import Callable

TEST = '%t: bool = compute "eq" [%x, "a"]'
FAMILIES: dict[str, Callable[..., str]] = {}


def family(make: Callable[..., str]) -> Callable[..., str]:
    FAMILIES[make.__name__] = make
    return make


def _program(lines: list[str], params: str = "%x: text", called: str = "") -> str:
    return f"sgir 1\nprogram @p({params}) {{\n" + "\n".join(lines) + "\n}\n" + called


@family
def chain(n: int = 600) -> str:
    """One stream of texts, generations and values."""
    lines = ['%s0 = stream "p"']
    for i in range(n):
        lines += [
            f'%a{i} = const %s{i} "a"', f"%b{i} = append %a{i} %x",
            f"%s{i + 1}, %g{i} = gen %b{i} max_tokens=4 temperature=0.0",
        ]  # fmt: skip
    return _program([*lines, f'publish %s{n} "p"', "return none"])


@family
def diamonds(n: int = 250) -> str:
    """Branches in a row: the number of paths is too large to print."""
    lines = [
        '%s0 = stream "p"',
        '%t: bool = compute "eq" [%x, "a"]',
        'branch %t then="t0" orelse="e0"',
    ]
    for i in range(n):
        lines += [
            f"^t{i}:", f'jump "j{i}" args=[%s{i}, %x]', f"^e{i}:", f'jump "j{i}" args=[%s{i}, %x]',
            f"^j{i}(%s{i + 1}: stream, %y{i}: text):", f'%q{i}: bool = compute "eq" [%y{i}, %x]',
            f'branch %q{i} then="t{i + 1}" orelse="e{i + 1}"',
        ]  # fmt: skip
    return _program([*lines, f"^t{n}:", "return none", f"^e{n}:", "return none"])


@family
def exits(n: int = 350) -> str:
    """Branches in a row; one arm of each consumes the stream and ends the run."""
    lines = [
        '%s0 = stream "p"',
        '%t: bool = compute "eq" [%x, "a"]',
        'branch %t then="t0" orelse="e0"',
    ]
    for i in range(n):
        lines += [
            f"^e{i}:", f'%d{i} = const %s{i} "no"', f'publish %d{i} "p"', "return none",
            f"^t{i}:", f'%s{i + 1} = const %s{i} "yes"',
            f'branch %t then="t{i + 1}" orelse="e{i + 1}"',
        ]  # fmt: skip
    return _program([*lines, f"^t{n}:", "return none", f"^e{n}:", "return none"])


@family
def loops(n: int = 250) -> str:
    """Nested loops, with a generation in the innermost."""
    lines = [TEST, 'jump "b0" args=[0]']
    for i in range(n):
        lines += [f"^b{i}(%i{i}: int):", f'branch %t then="e{i}" orelse="c{i}"', f"^e{i}:"]
        lines += [f'jump "b{i + 1}"' + (" args=[0]" if i + 1 < n else "")]
    lines += [f"^b{n}:", '%s = stream "p"', "%r, %g = gen %s max_tokens=4"]
    lines += [f'jump "c{n - 1}"']
    for i in reversed(range(n)):
        after = f"d{i - 1}" if i else "end"
        lines += [
            f"^c{i}:",
            f'%j{i}: int = compute "add" [%i{i}, 1]',
            f'%l{i}: bool = compute "lt" [%j{i}, 4]',
            f'branch %l{i} then="k{i}" orelse="d{i}"',
            f"^k{i}:",
            f'jump "b{i}" args=[%j{i}]',
        ]
        lines += [f"^d{i}:", f'jump "c{i - 1}"' if i else f'jump "{after}"']
    return _program([*lines, "^end:", "return none"])


@family
def one_loop(n: int = 400) -> str:
    """A loop of many blocks, each of which consumes a stream of the previous one."""
    lines = [TEST, 'jump "b0"']
    for i in range(n):
        lines += [f"^b{i}:", f'%s{i} = stream "p"']
        if i:
            lines += [f'%u{i} = const %s{i - 1} "a"']
        lines += [f'jump "b{i + 1}"']
    lines += [f"^b{n}:", 'branch %t then="back" orelse="end"', "^back:", 'jump "b0"']
    return _program([*lines, "^end:", "return none"])


@family
def switches(n: int = 60) -> str:
    """Every block has an edge to every later one."""
    lines = []
    for i in range(n):
        lines += [f"^b{i}:"] if i else []
        cases = ", ".join(f'"{k}"' for k in range(i + 1, n))
        targets = ", ".join(f'"b{k}"' for k in range(i + 1, n))
        lines += (
            [f'switch %x cases=[{cases}] targets=[{targets}] default="b{n - 1}"']
            if i < n - 1
            else []
        )
    return _program([*lines, "return none"])


@family
def upside_down(n: int = 600) -> str:
    """Blocks in reverse order, each with a value computed from its predecessor's."""
    lines = ['%v0: int = compute "add" [1, 1]', 'jump "b1"']
    for i in reversed(range(1, n)):
        lines += [f"^b{i}:", f'%v{i}: int = compute "add" [%v{i - 1}, 1]']
        lines += [f'jump "b{i + 1}"' if i < n - 1 else "return %v0"]
    return _program(lines)


@family
def doubled(n: int = 600) -> str:
    """Texts that double in length, and many made of the longest."""
    lines = ['%c0 = concat parts=["0123456789", "0123456789"]']
    lines += [f"%c{i} = concat parts=[%c{i - 1}, %c{i - 1}]" for i in range(1, 13)]
    lines += [f'%d{i} = concat parts=[%c12, "{i}"]' for i in range(n)]
    return _program([*lines, f"return [{', '.join(f'%d{i}' for i in range(n))}]"])


@family
def spans(n: int = 400) -> str:
    """A long stream, and spans from each of its states to its end."""
    lines = ['%s0 = stream "p"', *(f'%s{i + 1} = const %s{i} "a"' for i in range(n))]
    lines += [f"%t{i} = span %s{i} %s{n}" for i in range(n)]
    return _program([*lines, f"return [{', '.join(f'%t{i}' for i in range(n))}]"])


@family
def forks(n: int = 300) -> str:
    """A fork of many children with a generation each, all of which are read."""
    children = ", ".join(f"%c{i}" for i in range(n))
    lines = ['%s0 = stream "p"', f"%s1, {children} = fork %s0 {n}"]
    for i in range(n):
        lines += [f'%d{i} = const %c{i} "c{i}"', f"%e{i}, %g{i} = gen %d{i} max_tokens=4"]
    return _program([*lines, f"return [{', '.join(f'%g{i}' for i in range(n))}]"])


@family
def forks_in_forks(n: int = 500) -> str:
    """Each child is forked again."""
    lines = ['%s0 = stream "p"', *(f"%t{i}, %s{i + 1} = fork %s{i} 1" for i in range(n))]
    return _program([*lines, "return none"])


@family
def choices(n: int = 2500) -> str:
    """Many values of a type with many options."""
    options = ", ".join(f'"o{i}"' for i in range(n))
    lines = ['%s0 = stream "p"']
    lines += [
        f'%s{i + 1}, %g{i}: choice[{options}] = select %s{i} choices=["o1"]' for i in range(200)
    ]
    return _program([*lines, "return none"])


@family
def maps(n: int = 12) -> str:
    """Each called program maps the previous one many times."""
    levels = []
    for level in range(8):
        runs = [f"%a{i} = map {level - 1} %xs caller=%s0 returns=true" for i in range(n)]
        levels.append(
            f'called @f{level}(%x: text) {{\n%s0 = stream "f" path="f"\n%xs = list items=[%x, %x]\n'
            + "\n".join(runs if level else []) + "\nreturn %x\n}\n"
        )  # fmt: skip
    return _program(["return none"], called="".join(levels))


@family
def map_chain(n: int = 600) -> str:
    """Each map runs over the result of the previous one."""
    lines = ['%s0 = stream "p" path="p"', "%a0 = map 0 %x caller=%s0 returns=true"]
    lines += [f"%a{i} = map 0 %a{i - 1} caller=%s0 returns=true" for i in range(1, n)]
    called = "called @f(%x: text) {\n return %x\n}\n"
    return _program([*lines, f"return %a{n - 1}"], "%x: list[text]", called)


@family
def equal(n: int = 500) -> str:
    """Many equal streams."""
    lines = []
    for i in range(n):
        lines += [f'%s{i} = stream "p"', f'%a{i} = const %s{i} "a"']
        lines += [f"%b{i}, %g{i} = gen %a{i} temperature=0.0"]
    return _program([*lines, f"return [{', '.join(f'%g{i}' for i in range(n))}]"])


@family
def prompts(n: int = 1) -> str:
    """A long prompt after an argument: sentences, quotation marks, headings."""
    text = r"# A\nSay \"it\". Use it, or the text above: - a " * (1000 * n)
    return _program(['%s0 = stream "p"', "%s1 = append %s0 %x", f'%s2 = const %s1 "{text}"',
                     "%s3, %g = gen %s2", "return %g"])  # fmt: skip
