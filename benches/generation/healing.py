"""What healing does at the border of a prompt, with and without, case by case.

    python -P benches/generation/healing.py [--model default] [--seeds 4] [--out FILE.json]

Prompts end where a token could continue: within URLs, code, numbers, words, scripts and emoji. The
measure is objective: whether the tokens of prompt and generation are the tokenizer's own for their
joint text. There are two parts. *given*: a regex with one match forces the continuation, as a model
that knows it would. *free*: the model generates freely. There only the border counts, up to the
token after it: random weights rarely continue with the rest of a word, and when they sample the
prompt's end again, they spell it in any of the possible ways.
"""

from __future__ import annotations

import asyncio
import re
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from generation import serving
from generation.serving import bars

from sgc.runtime.engine.guides.healing import healer_of
from sgc.runtime.engine.text.token_bytes import TokenBytes, token_bytes
from sgc.runtime.engine.text.tokenizer import Text, Tokenizer
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Generated, Sampling, TextRun

N_TOKENS, N_GIVEN = 6, 40
N_SHOWN = 3
TEMPERATURES = (0.0, 1.0)
CASES: dict[str, dict[str, str]] = {
    "URLs": {
        "The page is at http:": "//example.com", "See https:/": "/example.org/a",
        "Its address is www.": "example.com/index.html", "Write to me@exam": "ple.com",
    },
    "code": {
        "def main(": "): pass", "for i in ran": "ge(10):", 'print("': '");', "x = [1, 2": "34]",
        "if a =": "= b:", "import num": "ber",
    },
    "numbers": {
        "The answer is 1": "42.", "In the year 20": "26", "It costs $1,0": "00",
        "Pi is 3.": "14159",
    },
    "words": {
        "The capital of France is Par": "is.", "He said that it is im": "portant.",
        "The ": "answer is there.", "Once upon a ti": "me there was",
        "I think, there": "fore I am.", "A list:\n": "\n- one",
    },
    "other scripts": {
        "Die größte Stra": "ße", "Это хоро": "шо", "東京は日": "本の", "Ο κόσμ": "ος",
        "안녕하": "세요", "na": "ïve",
    },
    "emoji": {"So happy 🙂": "🙂!", "Flag: 🇫": "🇷", "Thumbs 👍": "🏽"},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Border:
    """One generation at one border. first: the texts of its first tokens."""

    case: str
    prompt: str
    is_given: bool
    heals: bool
    temperature: float
    n_taken_back: int
    first: tuple[str, ...]
    text: str
    is_canonical: bool


def taken_back(prompt: str, tokenizer: Tokenizer) -> int:
    """The number of the prompt's tokens that healing samples again."""
    healer = healer_of(tokenizer)
    assert healer is not None
    ids = tokenizer.encode_prompt([Text(prompt)])
    return next((n for n, _ in healer.taken_back(ids) if n < len(ids)), 0)


def border_of(
    case: str, prompt: str, found: Generated, sampling: Sampling, tokenizer: Tokenizer
) -> Border:
    """Compares the used tokens with those of the joint text."""
    prompt_ids = tokenizer.encode_prompt([Text(prompt)])
    n_back = taken_back(prompt, tokenizer) if sampling.heal else 0
    used = [*prompt_ids[: len(prompt_ids) - n_back], *found.ids]
    is_given = sampling.regex is not None
    if is_given:
        assert found.text == CASES[case][prompt], (prompt, found)
        canonical = tokenizer.encode_prompt([Text(prompt + found.text)]) == used
    else:
        canonical = is_canonical(used, prompt, tokenizer)
    return Border(
        case, prompt, is_given, sampling.heal, sampling.temperature, n_back,
        tuple(serving.text_of(tokenizer, found.ids[:N_SHOWN])), found.text, canonical,
    )  # fmt: skip


def is_canonical(used: Sequence[int], prompt: str, tokenizer: Tokenizer) -> bool:
    """Whether the joint text, up to the token after the border, has the same tokens."""
    table = token_bytes(tokenizer)
    assert table is not None
    shown = list(used[: _n_up_to(used, len(prompt.encode()), table) + 1])
    joint = b"".join(table[i] for i in shown)
    while not _is_text(joint):  # it ends inside a character
        joint = joint[: -len(table[shown.pop()])]
    return tokenizer.encode_prompt([Text(joint.decode())]) == shown


def _n_up_to(ids: Sequence[int], length: int, table: TokenBytes) -> int:
    """The number of tokens that begin in the first `length` bytes."""
    at = 0
    for n, token in enumerate(ids):
        if at >= length:
            return n
        at += len(table[token])
    return len(ids)


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


async def borders(uri: str, tokenizer: Tokenizer, n_seeds: int) -> list[Border]:
    """Every case, with and without healing."""
    found = []
    async with EngineBackend(uri) as backend:
        for case, prompts in CASES.items():
            for prompt, following in prompts.items():
                for sampling in [*given(following), *free(n_seeds)]:
                    made = await backend.generate((TextRun(prompt),), sampling)
                    found.append(border_of(case, prompt, made, sampling, tokenizer))
    return found


def given(following: str) -> list[Sampling]:
    """Samplings in which a regex forces the continuation."""
    pattern = re.escape(following)
    return [Sampling(N_GIVEN, regex=pattern, heal=heal) for heal in (False, True)]


def free(n_seeds: int) -> list[Sampling]:
    """Samplings without a constraint: a greedy one, and one for each seed."""
    return [
        Sampling(N_TOKENS, temperature=temperature, seed=seed, ignore_eos=True, heal=heal)
        for heal in (False, True)
        for temperature in TEMPERATURES
        for seed in range(n_seeds if temperature else 1)
    ]


def shares(found: Sequence[Border]) -> dict[str, dict[str, float]]:
    """The share of canonical borders by kind of case, given and free, with and without healing."""
    rows: dict[str, dict[str, float]] = {}
    for case in [*CASES, "all"]:
        of = [each for each in found if case in (each.case, "all")]
        rows[case] = {
            name: round(
                statistics.fmean(
                    b.is_canonical for b in of if (b.is_given, b.heals) == (is_given, heals)
                ), 4,
            )
            for name, (is_given, heals) in ARMS.items()
        }  # fmt: skip
    return rows


ARMS = {
    "given": (True, False), "given, healed": (True, True),
    "free": (False, False), "free, healed": (False, True),
}  # fmt: skip


def table(found: Sequence[Border]) -> str:
    """A Markdown table of the given and the greedy free continuations."""
    of = {(b.prompt, b.is_given, b.heals): b for b in found if b.is_given or not b.temperature}
    lines = [
        "| prompt's end | taken back | given: tokens | healed | canonical | healed "
        "| free: tokens | healed | canonical | healed |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for prompt in dict.fromkeys(each.prompt for each in found):
        cells = [f"`{prompt[-14:]!r}`", str(of[prompt, True, True].n_taken_back)]
        for is_given in (True, False):
            pair = [of[prompt, is_given, heals] for heals in (False, True)]
            cells += [_shown(each.first) for each in pair]
            cells += ["yes" if each.is_canonical else "no" for each in pair]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _shown(tokens: Sequence[str]) -> str:
    return " ".join(f"`{token!r}`" for token in tokens).replace("|", "\\|")


def main() -> None:
    options = serving.common_arguments(__doc__, model="default", seeds=4).parse_args()
    tokenizer = serving.tokenizer_of(options.model, options.folder)
    with serving.engine(options.model, options) as engine:
        found = asyncio.run(borders(engine.uri, tokenizer, options.seeds))
    of_cases = shares(found)
    print(table(found))
    for case, row in of_cases.items():
        print(f"{case}: {', '.join(f'{name} {100 * share:.0f}%' for name, share in row.items())}")
    if options.out:
        found_all: dict[str, Any] = {"shares": of_cases, "borders": [asdict(b) for b in found]}
        serving.save(options.out, serving.report("healing", options, **found_all))
        options.out.with_suffix(".md").write_text(table(found) + "\n", encoding="utf-8")
        bars.draw(
            options.out.with_suffix(".png"),
            f"Borders whose tokens are those of the joint text (model {options.model})",
            list(of_cases),
            {name: [100 * row[name] for row in of_cases.values()] for name in ARMS},
            "%",
        )


if __name__ == "__main__":
    main()
