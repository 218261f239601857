"""Makes `sgc-tiny`, the small model that ships. Everything it writes is under build/tiny.

python -P tools/tiny_model samples [SHAPE]   # training texts; what is generated is in [brackets]
python -P tools/tiny_model train             # tokenizer and weights; goes on where it stopped
python -P tools/tiny_model evaluate          # greedy, on held-out prompts; evaluation.json
python -P tools/tiny_model card              # README.md of the model, from the evaluation

The weights that ship were trained on, from those that shipped before, for what a first hour touches
(`first_hour/`) by

python -P tools/tiny_model train --from sgc/runtime/engine/assets/sgc_tiny \\
    --tokens 24000000 --matrix-lr 0.012 --other-lr 0.0024
python -P tools/tiny_model --folder build/tiny2 train --from build/tiny/model --seed 2 \\
    --tokens 6000000 --matrix-lr 0.008 --other-lr 0.0016 --threads 1

then `--folder build/tiny2 evaluate -n 300` and `card`, and the files of build/tiny2/model in place
of those that ship; `tests/tiny_model`, `SGC_BLESS=1` on `tests/pages`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tiny_model", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "tiny")
    commands = parser.add_subparsers(dest="command", required=True)
    samples = commands.add_parser("samples", help="training texts")
    samples.add_argument("shape", nargs="?")
    samples.add_argument("-n", type=int, default=3)
    samples.add_argument("--seed", type=int, default=1)
    train = commands.add_parser("train", help="tokenizer and weights")
    train.add_argument("--minutes", type=float, default=100.0)
    train.add_argument("--tokens", type=int, default=0, help="instead of minutes; reproducible")
    train.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    train.add_argument("--threads", type=int, default=2)
    train.add_argument("--workers", type=int, default=1, help="processes that write texts")
    train.add_argument("--seed", type=int, default=1)
    train.add_argument("--layers", type=int, default=4)
    train.add_argument("--batch-tokens", type=int, default=4096)
    train.add_argument("--batches-a-step", type=int, default=2)
    train.add_argument("--matrix-lr", type=float, default=0.02)
    train.add_argument("--other-lr", type=float, default=0.004)
    train.add_argument("--from", dest="start", type=Path, help="a model's folder to train on")
    train.add_argument("--no-compile", dest="compile", action="store_false")
    evaluate = commands.add_parser("evaluate", help="greedy, on held-out prompts")
    evaluate.add_argument("-n", type=int, default=200, help="prompts a line")
    evaluate.add_argument("--seed", type=int, default=1)
    evaluate.add_argument("--threads", type=int, default=2)
    evaluate.add_argument("--show", type=int, default=0, help="wrong answers to show a line")
    evaluate.add_argument("--only", default="", help="a pattern of lines' names; others are kept")
    commands.add_parser("card", help="the model card")
    return parser


def main() -> int:
    arguments = vars(_parser().parse_args())
    command = arguments.pop("command")
    if command == "samples":
        from tiny_model.corpus import show

        show(arguments["shape"], arguments["n"], arguments["seed"])
    elif command == "train":
        from tiny_model.train import Options, train

        train(Options(**arguments))
    elif command == "evaluate":
        from tiny_model.evaluate import evaluate

        evaluate(**arguments)
    else:
        from tiny_model.card import write_card

        write_card(arguments["folder"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
