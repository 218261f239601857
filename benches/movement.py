"""Code movement by the rule, on templates with a verdict each.

    python benches/movement.py [--out benches/results/movement.json]

Prints what became of every template of `benches/movement/*.toml`: moved, missed (it may move and
did not, or less than three quarters of the words that could), wrong, or kept (it must not move).
The added prefix is counted in tokens of sgc-tiny's tokenizer, over the templates that moved.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benches" / "movement"))

from templates import SETS, judge, prefix, program, read  # noqa: E402

from sgc.passes.changing.movement.move import move  # noqa: E402
from sgc.runtime.engine.text.tokenizer import Text, Tokenizer, load_tokenizer  # noqa: E402


def n_tokens(tokenizer: Tokenizer, text: str) -> int:
    return len(tokenizer.encode_prompt([Text(text)])) if text else 0


def run(name: str, tokenizer: Tokenizer, shows: bool) -> dict[str, Any]:
    """The outcomes of a set; prints a line for each template if `shows`."""
    outcomes: Counter[str] = Counter()
    added: list[int] = []
    templates = read(name)
    for template in templates:
        before = program(template)
        after = move(before).graph
        verdict = judge(template, before, after)
        outcomes[verdict.outcome] += 1
        gained = n_tokens(tokenizer, prefix(after)) - n_tokens(tokenizer, prefix(before))
        if verdict.outcome == "moved":
            added.append(gained)
        if shows:
            print(f"{name:12} {verdict.outcome:6} {gained:+4d} tokens  {template.name}")
    n_movable = sum(template.may for template in templates)
    return {
        "templates": len(templates),
        "movable": n_movable,
        **{outcome: outcomes[outcome] for outcome in ("moved", "missed", "wrong", "kept")},
        "moved_share": outcomes["moved"] / n_movable,
        "mean_added_prefix_tokens": sum(added) / len(added),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "benches/results/movement.json")
    parser.add_argument("--quiet", action="store_true", help="only the sums")
    given = parser.parse_args()
    tokenizer = load_tokenizer(ROOT / "runtime/engine/assets/sgc_tiny")
    found = {name: run(name, tokenizer, not given.quiet) for name in SETS}
    sums = {
        key: sum(each[key] for each in found.values())
        for key in ("templates", "movable", "moved", "missed", "wrong", "kept")
    }
    tokens = sum(each["mean_added_prefix_tokens"] * each["moved"] for each in found.values())
    report = {
        "command": "python benches/movement.py",
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "versions": {"tokenizers": version("tokenizers")},
        "all": {**sums, "mean_added_prefix_tokens": tokens / sums["moved"]},
        "sets": found,
    }
    given.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
