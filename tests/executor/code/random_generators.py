"""Random generators that yield inside of try, except and finally, and consumers that stop early."""

from __future__ import annotations

from random import Random

_ERRORS = ["StopIteration", "ValueError", "KeyError", "RuntimeError"]
_TAKEN = ["StopIteration", "ValueError", "LookupError", "(KeyError, RuntimeError)", "Exception"]
# Functions that raise, or look at what is being handled: each raises in another way.
_HELPERS = [
    "def stops(): return next(iter([]))",
    "def fails(n): return {}[n]",
    "def again(): raise",
    "def kept(): raise errors[-1]",
    "def sees():",
    "    try: raise",
    "    except Exception as e: return str(e)",
    "    except: return 'closing'",
]
_RISKS = ["stops()", "fails(1)", "again()", "kept()", "t.append(sees())", "int('x')", "next(it)",
          "raise", "raise ValueError(a)"]  # fmt: skip


class GeneratorWriter:
    """Writes one random module; what it does is noted in the order in which it is done."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)
        self._n_notes = 0
        self._n_generators = 0

    def module(self) -> str:
        lines = ["t, errors = [], [ValueError('first')]", *_HELPERS]
        for number in range(self._rng.randint(1, 3)):
            self._n_generators = number
            body = [*self._block(self._rng.randint(2, 3)), "yield t.append('last')"]
            lines += [f"def g{number}(a, it):", *_indented(body)]
        self._n_generators += 1
        lines += ["try:", *_indented(self._consumer(2)), "except StopIteration as e:"]
        lines += ["    t.append(('stop', e.value))", "except Exception as e:"]
        lines += ["    t.append(str(e))", "return [*t]"]
        return "\n".join(["def f(a):", *_indented(lines), ""])

    def _note(self) -> str:
        self._n_notes += 1
        return f"t.append({self._n_notes})"

    def _block(self, depth: int, in_loop: bool = False) -> list[str]:
        lines: list[str] = []
        for _ in range(self._rng.choice([1, 1, 2, 2, 3])):
            lines += self._statement(depth, in_loop)
        return lines

    def _statement(self, depth: int, in_loop: bool) -> list[str]:
        kinds = ["note", "wait", "wait", "wait", "risk", "leave"]
        if depth:
            kinds += ["try", "try", "try", "loop", "choice"]
        kind = self._rng.choice(kinds)
        if kind == "leave":
            return self._leave(in_loop)
        if kind in ("try", "loop", "choice"):
            body = getattr(self, f"_{kind}")(depth - 1, in_loop)
            return list(body)
        return [getattr(self, f"_{kind}")()]

    def _wait(self) -> str:
        inner = self._inner()
        forms = ["yield a", "a = yield 5", "yield from [1, 2]", "yield from it", "yield next(it)",
                 "yield stops()", f"yield from {inner}", f"a = yield from {inner}",
                 f"yield list({inner})"]  # fmt: skip
        return self._rng.choice(forms)

    def _inner(self) -> str:
        """What a generator takes items from: one that is written before it."""
        if not self._n_generators:
            return "it"
        return f"g{self._rng.randrange(self._n_generators)}(a, it)"

    def _risk(self) -> str:
        if self._rng.random() < 0.3:
            return f"if a: raise {self._rng.choice(_ERRORS)}({self._note_number()})"
        return self._rng.choice(_RISKS)

    def _note_number(self) -> int:
        self._n_notes += 1
        return self._n_notes

    def _leave(self, in_loop: bool) -> list[str]:
        ways = ["return", f"return {self._note_number()}", "return (yield 7)"]
        ways += ["break", "continue"] * 2 if in_loop else []
        return [f"if {self._rng.choice(['a', 'not a', 't'])}: {self._rng.choice(ways)}"]

    def _try(self, depth: int, in_loop: bool) -> list[str]:
        lines = ["try:", *_indented(self._block(depth, in_loop))]
        handlers = self._rng.sample(_TAKEN, self._rng.randint(0, 2))
        for taken in handlers:
            keeps = ["errors.append(e)"] if self._rng.random() < 0.4 else []
            lines += [f"except {taken} as e:", *_indented(keeps)]
            lines += _indented([self._note(), *self._block(depth, in_loop)])
        if self._rng.random() < 0.3:
            handlers.append("")
            lines += ["except:", *_indented([self._note(), *self._block(depth, in_loop)])]
        if handlers and self._rng.random() < 0.3:
            lines += ["else:", *_indented([self._note(), *self._block(depth, in_loop)])]
        if not handlers or self._rng.random() < 0.5:
            lines += ["finally:", *_indented([self._note(), *self._block(depth, in_loop)])]
        return lines

    def _loop(self, depth: int, in_loop: bool) -> list[str]:
        items = self._rng.choice(["range(2)", "it", self._inner()])
        lines = [f"for a in {items}:", *_indented(self._block(depth, True))]
        if self._rng.random() < 0.3:
            lines += ["else:", *_indented([self._note(), *self._block(depth, in_loop)])]
        return lines

    def _choice(self, depth: int, in_loop: bool) -> list[str]:
        head = self._rng.choice([["if a:"], ["match a:", "    case 1 | None:"]])
        lines = [*head, *_indented(self._block(depth, in_loop), len(head))]
        if len(head) == 1:
            lines += ["else:", *_indented(self._block(depth, in_loop))]
        return lines

    def _consumer(self, depth: int) -> list[str]:
        lines: list[str] = []
        for number in range(self._rng.randint(1, 3)):
            made = f"g{self._rng.randrange(self._n_generators)}(a, iter([1, 0, None]))"
            lines += [f"i{number} = {made}", *self._uses(number, depth)]
        return lines

    def _uses(self, number: int, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self._rng.randint(1, 5)):
            lines += self._use(f"i{self._rng.randint(0, number)}", depth)
        return lines

    def _use(self, name: str, depth: int) -> list[str]:
        forms = [
            [f"t.append(next({name}))"],
            [f"t.append(next({name}, 'end'))"],
            [f"t.append({name}.send(a))"] if depth % 2 else [f"next({name}, 0)"],
            [f"{name}.close()", self._note()],
            [f"for x in {name}:", f"    {self._note()}", f"    {self._rng.choice(_STOPS)}"],
            [f"t.extend({name})"],
            [f"t.append([y for y in {name}])"],
            [f"x, *y = {name}", "t.append(y)"],
        ]
        lines = self._rng.choice(forms)
        if not depth or self._rng.random() < 0.4:
            return lines
        number = int(name[1:])
        again = [self._rng.choice(["again()", "raise", "t.append(sees())", "pass", "kept()"])]
        form = self._rng.randrange(3)
        if form == 0:
            return ["try:", *_indented(lines), "except Exception as e:",
                    *_indented(["t.append(str(e))", *self._uses(number, depth - 1)])]  # fmt: skip
        if form == 1:
            return ["try:", "    int(a)", "except TypeError:", *_indented([*lines, *again])]
        return ["try:", *_indented(lines), "finally:", *_indented(self._uses(number, depth - 1))]


_STOPS = ["break", "if x: break", "return [*t]", "raise KeyError(x)", "t.append(x)", "stops()"]


def _indented(lines: list[str], n: int = 1) -> list[str]:
    return ["    " * n + line for line in lines]
