"""Whether jumping over forced tokens changes what is drawn: fields of few outcomes, counted.

    python -P benches/generation/distributions.py [--models default,S] [--samples 2000]
        [--out FILE.json]

It draws samples of the character in JSON from a server that jumps and from one that does not. For
each field with few outcomes it reports the total variation distance between the two, beside the
distance by chance (the 95th percentile under equal distributions, by shuffling) and the distance
between the two halves of each sample.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
from generation import serving
from generation.cases import MAX_TOKENS, OUTCOMES, REGEX, ask, short
from generation.serving import bars

from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Sampling, TextRun

JUMPS, NO_JUMPS = "jumping", "not jumping"
WIDTH = 32
PROMPT = "Dobby is a character in Harry Potter. Please fill in the following information:\n"
SEEDS = {JUMPS: 10**6, NO_JUMPS: 2 * 10**6}  # equal seeds would give equal draws


async def fields_drawn(uri: str, n: int, seed: int) -> list[dict[str, str]]:
    """The fields of n answers."""
    samplings = [Sampling(MAX_TOKENS, seed=seed + i, regex=REGEX) for i in range(n)]
    async with EngineBackend(uri) as backend:
        run = await ask(backend, [(TextRun(PROMPT),)] * n, samplings, WIDTH)
    return [_outcomes(each.text) for each in run.found]


def _outcomes(text: str) -> dict[str, str]:
    """The fields with few outcomes; others may contain invalid JSON, such as a line break."""
    found = {}
    for name, of in OUTCOMES.items():
        value = text.split(f'"{name}": "', 1)[1].split('"', 1)[0]
        assert value in of, (name, value)
        found[name] = value
    return found


def variation(a: Sequence[str], b: Sequence[str]) -> float:
    """Total variation distance between two samples."""
    in_a, in_b = Counter(a), Counter(b)
    return 0.5 * sum(abs(in_a[v] / len(a) - in_b[v] / len(b)) for v in in_a | in_b)


def distances(
    with_jumps: Sequence[dict[str, Any]], without: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """The distances for each field: between the servers, and between the halves of each sample."""
    rows: dict[str, Any] = {}
    for name in OUTCOMES:
        a, b = [each[name] for each in with_jumps], [each[name] for each in without]
        half = len(a) // 2
        rows[name] = {
            "between": short(variation(a, b)),
            "between_halves": {
                JUMPS: short(variation(a[:half], a[half:])),
                NO_JUMPS: short(variation(b[:half], b[half:])),
            },
            "chance_95": short(chance(a, b)),
            "shares": {
                v: [short(a.count(v) / len(a)), short(b.count(v) / len(b))] for v in OUTCOMES[name]
            },
        }
    return rows


def chance(a: Sequence[str], b: Sequence[str], n_shuffles: int = 500) -> float:
    """The 95th percentile of the distance if both samples had the same distribution."""
    pooled = np.array([*a, *b])
    draw = np.random.default_rng(0)
    found = []
    for _ in range(n_shuffles):
        draw.shuffle(pooled)
        found.append(variation(pooled[: len(a)].tolist(), pooled[len(a) :].tolist()))
    return float(np.quantile(found, 0.95))


def of_model(model: str, options: argparse.Namespace) -> dict[str, Any]:
    """{field: figures}."""
    drawn = {}
    for arm, arguments in {JUMPS: [], NO_JUMPS: ["--no-jump-forward"]}.items():
        with serving.engine(model, options, *arguments) as engine:
            drawn[arm] = asyncio.run(fields_drawn(engine.uri, options.samples, SEEDS[arm]))
    found = distances(drawn[JUMPS], drawn[NO_JUMPS])
    for field, row in found.items():
        print(
            f"{model}, {field}: {row['between']} apart, chance {row['chance_95']}, halves "
            f"{row['between_halves']}",
            flush=True,
        )
    return found


def main() -> None:
    options = serving.common_arguments(__doc__, models="default,S", samples=2000).parse_args()
    models = options.models.split(",")
    found = {model: of_model(model, options) for model in models}
    if options.out:
        serving.save(options.out, serving.report("distributions", options, models=found))
        rows = {f"{m}: {field}": row for m, of in found.items() for field, row in of.items()}
        bars.draw(
            options.out.with_suffix(".png"),
            f"Between jumping and not, {options.samples} samples each",
            list(rows),
            {
                "between jumping and not": [row["between"] for row in rows.values()],
                "chance, 95th percentile": [row["chance_95"] for row in rows.values()],
                "halves, jumping": [r["between_halves"][JUMPS] for r in rows.values()],
                "halves, not jumping": [r["between_halves"][NO_JUMPS] for r in rows.values()],
            },
            "total variation distance",
        )


if __name__ == "__main__":
    main()
