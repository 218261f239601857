"""`sgc new`: a project that runs at once. Nothing that is there is overwritten."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

import click

from sgc.errors import UsageError

PROGRAM = '''"""The sentiment of a review. `sgc run program.py --arg review="Lovely!"`"""

import sgc


@sgc.function
def program(s, review: str):
    s += "Classify the sentiment of the text as positive, negative or neutral.\\n"
    s += "Text: " + review + "\\n"
    s += "Sentiment: " + sgc.select("sentiment", choices=["positive", "negative", "neutral"])
    return s["sentiment"]
'''
ROWS = """\
{"custom_id": "soup", "review": "The soup was wonderful and the staff were kind."}
{"custom_id": "room", "review": "The room was dirty and the bed was broken."}
{"custom_id": "bus", "review": "I hated the bus: it was late and cold."}
"""
TESTS = """\
# sgc test    (docs/testing.md lists what can be expected)
program: program.py
defaultTest:
  assert:
    - type: regex
      value: ^(positive|negative|neutral)$
tests:
  - description: praise is positive
    vars:
      review: The soup was wonderful and the staff were kind.
    assert:
      - type: equals
        value: positive
  - description: a complaint is not positive
    vars:
      review: The room was dirty and the bed was broken.
    assert:
      - type: not-equals
        value: positive
  - description: an answer is short
    vars:
      review: The bus was late.
    assert:
      - type: tokens
        threshold: 200
"""
CONFIG = """\
# Defaults of options; `sgc run --no-config` reads none.
temperature = 0
seed = 1
# model = "Qwen/Qwen2.5-0.5B-Instruct"   # without it a small demo model answers
# engine = "openai:gpt-4o"               # or a provider; its key is in the environment
# max-cost = 1                           # dollars
"""
README = """\
# {name}

```sh
sgc run program.py --arg review="Lovely!"          # one run
sgc run program.py --rows rows.jsonl -o out.jsonl  # a table
sgc test                                           # tests.yaml
sgc test --record tests.rec                        # keeps the replies
sgc test --replay tests.rec                        # for CI: no model, no key, no network
```
"""
IGNORED = """\
.env
.sgc-cache/
*.log
*.log.rows
*.sgir
out.*
"""
FILES = {
    "program.py": PROGRAM,
    "rows.jsonl": ROWS,
    "tests.yaml": TESTS,
    "sgc.toml": CONFIG,
    "README.md": README,
    ".gitignore": IGNORED,
}


def new_project(folder: Path) -> None:
    """Writes the files of a project into a new or empty folder."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", hint="name a folder that is not there yet")
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty", hint="name a folder that is not there yet")
    if not folder.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {folder.absolute().parent}", hint="make it first")
    folder.mkdir(exist_ok=True)
    for name, text in FILES.items():
        filled = text.replace("{name}", folder.absolute().name) if name == "README.md" else text
        with (folder / name).open("x", encoding="utf-8", newline="\n") as file:
            file.write(filled)
    click.echo(f"{folder}: {', '.join(FILES)}")
    click.echo(f'  cd {quote(str(folder))}; sgc run program.py --arg review="Lovely!"; sgc test')
