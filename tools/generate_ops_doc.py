"""Generates `docs/ops.md` from the table of ops.

Run from the repository's root after a change of `ir/ops.py`:
`PYTHONPATH=. python -P tools/generate_ops_doc.py`. A test compares.
"""

import argparse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    from sgc.ir.text.docs_table import ops_markdown

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "ops.md")
    parser.parse_args().out.write_text(ops_markdown(), encoding="utf-8")


if __name__ == "__main__":
    main()
