"""Reviews a unified diff hunk by hunk; the worst comment decides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import sgc

HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@", re.MULTILINE)
SEVERITIES = ("nit", "minor", "major")
SMELLS = {
    "print(": "leftover debug output",
    "except:": "bare except",
    "TODO": "open task",
    "eval(": "evaluates text",
}


@dataclass(frozen=True, order=True)
class Comment:
    severity: int
    line: int
    text: str

    def __str__(self) -> str:
        return f"[{SEVERITIES[self.severity]}] line {self.line}: {self.text}"


def hunks(diff: str) -> Iterator[tuple[int, list[str]]]:
    """The first new line number of each hunk, and its lines."""
    starts = list(HUNK.finditer(diff))
    for m, following in zip(starts, [*starts[1:], None]):
        body = diff[m.end() : following.start() if following else None]
        yield int(m.group(1)), body.strip("\n").split("\n")


def lint(start: int, lines: list[str]) -> list[Comment]:
    added = [(n, line) for n, line in enumerate(lines, start) if line.startswith("+")]
    return [Comment(1, n, why) for n, line in added for k, why in SMELLS.items() if k in line]


@sgc.function
def program(s, title: str, diff: str):
    s += sgc.system("You review code. You are brief and kind.")
    comments: list[Comment] = []
    for start, lines in hunks(diff):
        known = lint(start, lines)
        comments += known
        notes = "; ".join(map(str, known)) or "-"
        s += sgc.user(f"{title}\n" + "\n".join(lines) + f"\nKnown: {notes}")
        with s.assistant():
            s += "Severity: " + sgc.select("severity", choices=[*SEVERITIES, "none"]) + "\n"
            if s["severity"] != "none":
                s += "Comment:" + sgc.gen("comment", max_tokens=48, stop="\n")
                level = SEVERITIES.index(s["severity"])
                comments.append(Comment(level, start, s["comment"].strip()))

    if not comments:
        return "APPROVE", []
    worst = max(comments)
    decision = "REQUEST_CHANGES" if worst.severity == 2 or len(comments) > 4 else "COMMENT"
    s += sgc.user(f"Sum up {len(comments)} comments; the most serious one is {worst}.")
    s += sgc.assistant(sgc.gen("summary", max_tokens=64))
    return decision, [asdict(c) for c in sorted(comments, key=lambda c: c.line)]


DIFF = """--- a/app.py
+++ b/app.py
@@ -1,3 +1,4 @@
 import sys
-x = 1
+x = eval(sys.argv[1])
+print(x)  # TODO remove
@@ -20,2 +21,3 @@ def run():
+    except: pass
"""
ARGUMENTS = [{"title": "Read x from argv", "diff": DIFF}, {"title": "Empty", "diff": ""}]
REPLIES = [
    " Use int() here.",
    " This hides errors.\nAll of them",
    "",
    " Well done, but please test it.",
]
