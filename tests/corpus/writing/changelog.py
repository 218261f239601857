"""Groups commits into a changelog by kind, rewrites them for users, and picks the next version."""

from collections import defaultdict
from typing import NamedTuple

import sgc

HEADINGS = {"feat": "Added", "fix": "Fixed", "perf": "Faster", "docs": "Documentation"}


class Version(NamedTuple):
    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> "Version":
        return cls(*(int(part) for part in text.lstrip("v").split(".")))

    def bump(self, breaking: bool, features: bool) -> "Version":
        if breaking:
            return Version(self.major + 1, 0, 0)
        if features:
            return self._replace(minor=self.minor + 1, patch=0)
        return self._replace(patch=self.patch + 1)

    def __str__(self) -> str:
        return ".".join(map(str, self))


@sgc.function
def rewrite(s, commit: str, heading: str):
    s += f"Commit: {commit}\nSection: {heading}\nFor users, one line:"
    s += sgc.gen("line", max_tokens=32, stop="\n")
    line = s["line"].strip().rstrip(".")
    return line[:1].upper() + line[1:] if line else commit


@sgc.function
def program(s, version: str, commits: list[str]):
    sections = defaultdict(list)
    breaking = False
    for commit in commits:
        kind, sep, text = commit.partition(":")
        if not sep:
            s += f"Commit: {commit}\nKind: "
            s += sgc.select("kind", choices=[*HEADINGS, "chore"]) + "\n"
            kind, text = s["kind"], commit
        if kind.endswith("!"):
            breaking = True
            kind = kind[:-1]
        kind = kind.split("(")[0].strip()
        if kind not in HEADINGS:
            continue
        sections[kind].append(rewrite(text.strip(), HEADINGS[kind]).ret_value)

    try:
        new = Version.parse(version).bump(breaking, "feat" in sections)
    except (ValueError, TypeError):
        new = Version(0, 1, 0)
    if not sections:
        return f"## {new}\n\nNothing that users would notice.\n"
    out = [f"## {new}"]
    for kind in HEADINGS:
        if lines := sections.get(kind):
            bullets = "\n".join(f"- {x}." for x in dict.fromkeys(lines))
            out.append(f"### {HEADINGS[kind]}\n{bullets}")
    text = "\n\n".join(out)
    s += text + "\n\nHighlight in one sentence:" + sgc.gen("highlight", max_tokens=32, stop="\n")
    highlight = s["highlight"].strip()
    return text.replace("\n\n", f"\n\n> {highlight}\n\n", 1) if highlight else text


ARGUMENTS = [
    {"version": "v1.4.2", "commits": ["feat(api): pages", "fix: crash", "Speed up search"]},
    {"version": "2.0.0", "commits": ["feat!: drop Python 3.8", "chore: CI"]},
    {"version": "0.3.9", "commits": ["docs: say what a page is", "fix(ui): button"]},
    {"version": "next", "commits": []},
]
REPLIES = [
    " lists come in pages now.",
    " Python 3.8 is no longer supported",
    "",
    " Searching is twice as fast.",
]
