"""The papers' workloads as shapes: programs of calls over token ids, from a seed.

A program is a generator: it yields its next concurrent calls, and is sent their outputs. Lengths
follow the SGLang paper's benchmarks (section 6.1, appendix), shortened by `scale` for a CPU. The
tokens mean nothing; only what is shared, and when, matters.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np

Tokens = tuple[int, ...]
Program = Generator[list["Call"], list[Sequence[int]], None]


@dataclass(frozen=True, slots=True)
class Call:
    """n_out: the number of tokens to generate, 0 to compute only the prompt; choices: scored
    instead, if any.
    """

    prompt: Tokens
    n_out: int
    choices: tuple[Tokens, ...] = ()


class Words:
    """Random runs of tokens. scale: the factor of all lengths, which are at least 1."""

    def __init__(self, seed: int, vocab: int, scale: float) -> None:
        self.rng = np.random.default_rng(seed)
        self._vocab, self._scale = vocab, scale

    def own(self) -> Words:
        """A source for one program, whose draws do not depend on when other programs run."""
        return Words(int(self.rng.integers(2**60)), self._vocab, self._scale)

    def length(self, low: int, high: int | None = None) -> int:
        n = low if high is None else int(self.rng.integers(low, high + 1))
        return max(1, round(n * self._scale))

    def run(self, low: int, high: int | None = None) -> Tokens:
        return tuple(self.rng.integers(3, self._vocab, self.length(low, high)).tolist())


def few_shot(w: Words, n: int) -> list[Program]:
    """MMLU: five shared examples, a question each, four letters to choose from."""
    shots, letters = w.run(1200), tuple((3 + i,) for i in range(4))
    return [_ask(shots + w.run(60, 120), 0, letters) for _ in range(n)]


def few_shot_select(w: Words, n: int) -> list[Program]:
    """HellaSwag: twenty shared examples, a question each, four endings to choose from."""
    shots = w.run(1600)
    return [
        _ask(shots + w.run(40, 80), 0, tuple(w.run(12, 30) for _ in range(4))) for _ in range(n)
    ]


def multi_level(w: Words, n: int) -> list[Program]:
    """A shared system prompt, a task for about thirty, a document for three, a question each."""
    system, programs = w.run(300), list[Program]()
    tasks = [system + w.run(200) for _ in range(max(1, n // 30))]
    documents = [tasks[i % len(tasks)] + w.run(300, 500) for i in range(max(1, n // 3))]
    for i in range(n):
        programs.append(_ask(documents[i % len(documents)] + w.run(20, 40), w.length(16)))
    return programs


def tree_of_thought(w: Words, n: int) -> list[Program]:
    """GSM-8K: three proposals, three executions of each, a reflection on each execution."""
    shots = w.run(400)
    return [_tree(shots + w.run(60, 100), w.own()) for _ in range(n)]


def _tree(question: Tokens, w: Words) -> Program:
    propose, execute, reflect = w.run(20), w.run(20), w.run(20)
    n_out = w.length(48)
    plans = yield [Call(question + propose + w.run(2), n_out) for _ in range(3)]
    trunks = [question + propose + tuple(plan) + execute for plan in plans]
    tries = yield [Call(trunk + w.run(2), n_out) for trunk in trunks for _ in range(3)]
    ends = [trunks[i // 3] + tuple(out) + reflect for i, out in enumerate(tries)]
    yield [Call(end, w.length(8)) for end in ends]


def chat_short(w: Words, n: int) -> list[Program]:
    """Four turns, short answers."""
    return [_chat(w.own(), w.length(4, 8)) for _ in range(n)]


def chat_long(w: Words, n: int) -> list[Program]:
    """Four turns, long answers."""
    return [_chat(w.own(), w.length(128, 256)) for _ in range(n)]


def _chat(w: Words, n_out: int) -> Program:
    history: Tokens = ()
    for _ in range(4):
        history += w.run(64, 256)
        (answer,) = yield [Call(history, n_out)]
        history += tuple(answer)


def react(w: Words, n: int) -> list[Program]:
    """HotpotQA agents: shared examples, then thought, action and observation five times."""
    shots = w.run(900)
    return [_react(w.own(), shots + w.run(30, 60)) for _ in range(n)]


def _react(w: Words, history: Tokens) -> Program:
    for _ in range(5):
        (thought,) = yield [Call(history, w.length(30, 60))]
        history += tuple(thought) + w.run(40, 120)


def judge(w: Words, n: int) -> list[Program]:
    """Branch-solve-merge: an essay judged in six dimensions, then as a whole."""
    system = w.run(120)
    return [_judge(w.own(), system + w.run(300, 600)) for _ in range(n)]


def _judge(w: Words, essay: Tokens) -> Program:
    yield [Call(essay, 0)]
    notes = yield [Call(essay + w.run(12), w.length(48)) for _ in range(6)]
    merged = essay
    for note in notes:
        merged += tuple(note)
    yield [Call(merged + w.run(8), w.length(24))]


def json(w: Words, n: int) -> list[Program]:
    """A shared schema and example, a document each, its fields one after the other."""
    schema = w.run(250)
    return [_json(w.own(), schema + w.run(100, 300)) for _ in range(n)]


def _json(w: Words, text: Tokens) -> Program:
    for _ in range(6):
        text += w.run(6)
        (value,) = yield [Call(text, w.length(6, 12))]
        text += tuple(value)


def retrieval(w: Words, n: int) -> list[Program]:
    """DSPy: shared instructions and examples, three passages by popularity, a question each."""
    system = w.run(400)
    passages = [w.run(100, 180) for _ in range(max(3, n // 4))]
    weights = 1 / np.arange(1, len(passages) + 1)
    programs: list[Program] = []
    for _ in range(n):
        chosen = w.rng.choice(len(passages), 3, replace=False, p=weights / weights.sum())
        text = system + tuple(t for i in sorted(chosen) for t in passages[i])
        programs.append(_ask(text + w.run(20, 40), w.length(40)))
    return programs


def _ask(prompt: Tokens, n_out: int, choices: tuple[Tokens, ...] = ()) -> Program:
    yield [Call(prompt, n_out, choices)]


SHAPES: dict[str, Callable[[Words, int], list[Program]]] = {
    "few_shot": few_shot,
    "few_shot_select": few_shot_select,
    "multi_level": multi_level,
    "tree_of_thought": tree_of_thought,
    "chat_short": chat_short,
    "chat_long": chat_long,
    "react": react,
    "judge": judge,
    "json": json,
    "retrieval": retrieval,
}


def make(
    name: str, n: int, *, seed: int = 0, vocab: int = 4096, scale: float = 1.0
) -> list[Program]:
    """`n` programs of a shape, in a random order of arrival."""
    words = Words(seed, vocab, scale)
    programs = SHAPES[name](words, n)
    words.rng.shuffle(programs)  # type: ignore[arg-type]
    return programs
