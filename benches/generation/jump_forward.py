"""What jumping over forced tokens is worth: the character in JSON of SGLang's paper.

    python -P benches/generation/jump_forward.py [--models default,S,M] [--reps 8] [--out FILE.json]

The constraint is a regex, or a schema as pydantic makes it. Two servers of a model, one with
`--no-jump-forward`, run in turn; the first also generates as many tokens without a constraint.
Sampling is seeded, at temperature 1; ratios are within a repetition. The exit status is 1 if an
answer breaks its constraint.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
from generation import serving
from generation.cases import (
    CONSTRAINTS,
    MAX_TOKENS,
    REGEX,
    SCHEMA,
    Run,
    ask,
    prompts_of,
    short,
    unconstrained,
)
from generation.corpus import validate
from generation.serving import bars
from summary import paired_ratio

from sgc.runtime.engine.guides.grammar import composed, grammar_of
from sgc.runtime.engine.guides.guides import Compiled, Vocabulary
from sgc.runtime.engine.text.tokenizer import Tokenizer
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import FinishReason, Generated, Sampling

JUMPS, NO_JUMPS, FREE = "jumping", "not jumping", "unconstrained"
BATCHES = (1, 16)
AT_LEAST = 4  # requests of a repetition, one after another if the batch is 1


async def jump_rep(
    with_jumps: EngineBackend,
    without: EngineBackend,
    asked: dict[str, str],
    batch: int,
    n: int,
    rep: int,
) -> dict[str, Run]:
    """Runs the arms in turn, alternating the first; the unconstrained arm is the last."""
    prompts = prompts_of(rep, n)
    samplings = [Sampling(MAX_TOKENS, seed=1000 * rep + i, **asked) for i in range(n)]  # type: ignore[arg-type]
    found: dict[str, Run] = {}
    for arm in (JUMPS, NO_JUMPS) if rep % 2 else (NO_JUMPS, JUMPS):
        backend = with_jumps if arm == JUMPS else without
        found[arm] = await ask(backend, prompts, samplings, batch)
    lengths = [len(each.ids) for each in found[JUMPS].found]
    free = [unconstrained(length, 1000 * rep + i) for i, length in enumerate(lengths)]
    found[FREE] = await ask(with_jumps, prompts_of(rep + 50_000, n), free, batch)
    return found


class Jumps:
    """The tokens that jumping would append along a generation."""

    def __init__(self, tokenizer: Tokenizer, asked: dict[str, str]) -> None:
        ((field, text),) = asked.items()
        grammar = composed(grammar_of(field, text))
        self._compiled = Compiled(grammar, Vocabulary(tokenizer, tokenizer.vocab_size))

    def is_of(self, ids: Sequence[int]) -> bool:
        """Whether drawn tokens are those that jumping would have made with the same draws: every
        forced token is where it is forced."""
        guide = self._compiled.start()
        for i, token in enumerate(ids):
            forced = guide.forced()
            if forced != list(ids[i : i + len(forced)]):
                return False
            guide.take([token])
        return True


def is_valid(found: Generated, name: str) -> bool:
    if found.finish_reason is not FinishReason.STOP:
        return False
    if name == "regex":
        return validate.regex_holds(REGEX, found.text)
    return validate.schema_holds(SCHEMA, found.text)


def jump_figures(runs: Sequence[dict[str, Run]], name: str, path: Jumps) -> dict[str, Any]:
    """The figures of one constraint and batch.

    Texts may differ even if their paths coincide: bfloat16 rounds forced tokens that run at once
    differently from tokens that run one by one, which can change the draw among thousands of almost
    equally likely tokens.
    """
    made = {arm: [g for run in runs for g in run[arm].found] for arm in (JUMPS, NO_JUMPS, FREE)}
    pairs = list(zip(made[JUMPS], made[NO_JUMPS], strict=True))
    n_tokens = sum(len(each.ids) for each in made[JUMPS])
    figures: dict[str, Any] = {
        "requests_a_second": {
            arm: short(statistics.median(run[arm].requests_a_second for run in runs))
            for arm in made
        },
        "steps_a_repetition": {
            arm: statistics.median(run[arm].steps for run in runs) for arm in made
        },
        "tokens_a_request": {
            arm: short(statistics.fmean(len(each.ids) for each in of)) for arm, of in made.items()
        },
        "forced_share": short(sum(g.usage.forced_tokens for g in made[JUMPS]) / n_tokens),
        "text_equal": short(statistics.fmean(a.text == b.text for a, b in pairs)),
        "ids_equal": short(statistics.fmean(a.ids == b.ids for a, b in pairs)),
        "paths_coincide": short(statistics.fmean(path.is_of(g.ids) for g in made[NO_JUMPS])),
        "valid": {
            arm: short(statistics.fmean(is_valid(each, name) for each in made[arm]))
            for arm in (JUMPS, NO_JUMPS)
        },
    }
    for arm in (NO_JUMPS, FREE):
        ratios = [run[JUMPS].requests_a_second / run[arm].requests_a_second for run in runs]
        times, interval = paired_ratio(np.array(ratios))
        figures[f"times {arm}"] = {
            "times": times,
            "times_95": interval,
            "all": [short(r) for r in ratios],
        }
    return figures


async def of_model(
    uris: dict[str, str], reps: int, model: str, tokenizer: Tokenizer
) -> dict[str, Any]:
    """{constraint and batch: figures}; fewer repetitions for M, which is slow."""
    is_large = model == "M"
    found: dict[str, Any] = {}
    async with EngineBackend(uris[JUMPS]) as with_jumps, EngineBackend(uris[NO_JUMPS]) as without:
        for batch in BATCHES:
            for name, asked in CONSTRAINTS.items():
                if is_large and name != "regex":
                    continue
                n = max(batch, 1 if is_large else AT_LEAST)
                runs = [
                    await jump_rep(with_jumps, without, asked, batch, n, rep)
                    for rep in range(-1, max(2, reps // 3) if is_large else reps)
                ]
                row = jump_figures(runs[1:], name, Jumps(tokenizer, asked))
                found[f"{name}, batch {batch}"] = row
                tell(model, f"{name}, batch {batch}", row)
    return found


def tell(model: str, what: str, row: dict[str, Any]) -> None:
    low, high = row[f"times {NO_JUMPS}"]["times_95"]
    free_low, free_high = row[f"times {FREE}"]["times_95"]
    print(
        f"{model}, {what}: {row['requests_a_second']} requests a second, "
        f"{row[f'times {NO_JUMPS}']['times']} times not jumping ({low} to {high}), "
        f"{row[f'times {FREE}']['times']} times unconstrained ({free_low} to {free_high})\n"
        f"  steps {row['steps_a_repetition']}, tokens {row['tokens_a_request']}, forced "
        f"{row['forced_share']}, text equal {row['text_equal']}, ids equal {row['ids_equal']}, "
        f"paths coincide {row['paths_coincide']}, valid {row['valid']}",
        flush=True,
    )


def draw(path: Path, found: dict[str, dict[str, Any]]) -> None:
    """Plots the requests per second of each arm, relative to not jumping."""
    rows = {f"{m}: {what}": row for m, of in found.items() for what, row in of.items()}
    per_s = [row["requests_a_second"] for row in rows.values()]
    bars.draw(
        path,
        "The character of SGLang's paper in JSON: requests a second",
        list(rows),
        {
            NO_JUMPS: [1.0] * len(rows),
            "as many tokens, unconstrained": [each[FREE] / each[NO_JUMPS] for each in per_s],
            JUMPS: [each[JUMPS] / each[NO_JUMPS] for each in per_s],
        },
        "times not jumping",
    )


def main() -> None:
    options = serving.common_arguments(__doc__, models="default,S,M", reps=8).parse_args()
    found: dict[str, dict[str, Any]] = {}
    for model in options.models.split(","):
        with ExitStack() as stack:
            engines = {
                JUMPS: stack.enter_context(serving.engine(model, options)),
                NO_JUMPS: stack.enter_context(serving.engine(model, options, "--no-jump-forward")),
            }
            uris = {arm: engine.uri for arm, engine in engines.items()}
            tokenizer = serving.tokenizer_of(model, options.folder)
            found[model] = asyncio.run(of_model(uris, options.reps, model, tokenizer))
        if options.out:
            serving.save(options.out, serving.report("jump_forward", options, models=found))
    if options.out:
        draw(options.out.with_suffix(".png"), found)
    rows = [row for of in found.values() for row in of.values()]
    sys.exit(any(share < 1 for row in rows for share in row["valid"].values()))


if __name__ == "__main__":
    main()
