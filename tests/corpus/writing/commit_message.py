"""Writes a Conventional Commits message for changed files, lints it, asks for corrections."""

import re

import sgc

SUBJECT = re.compile(r"^(feat|fix|docs|test|refactor|chore)(\([a-z-]+\))?(!)?: (.+)$")


def guess_scope(files):
    tops = {f.split("/")[0] for f in files if "/" in f}
    return tops.pop() if len(tops) == 1 else None


def lint(subject):
    if not (m := SUBJECT.match(subject)):
        yield "the subject has to look like `type(scope): text`"
        return
    text = m.group(4)
    if len(subject) > 72:
        yield f"the subject has {len(subject)} characters, {len(subject) - 72} too many"
    if text[0].isupper():
        yield "begin the text in lower case"
    if text.endswith("."):
        yield "no full stop at the end"


@sgc.function
def program(s, files: dict[str, int], description: str = ""):
    if not files:
        return None
    scope = guess_scope(files)
    s += "Changed files:\n"
    for path, n in sorted(files.items(), key=lambda x: -x[1]):
        s += f"  {path:<28} | {n:>4} {'+' * min(n, 20)}\n"
    if description:
        s += "The author says: " + description + "\n"
    if all(path.endswith((".md", ".rst")) for path in files):
        prefix = "docs"
    elif all("test" in path for path in files):
        prefix = "test"
    else:
        prefix = ""
    hint = f"{prefix}({scope})" if prefix and scope else prefix

    for attempt in range(3):
        s += "Subject:" + sgc.gen("subject", max_tokens=24, stop="\n") + "\n"
        subject = s["subject"].strip()
        problems = list(lint(subject))
        if prefix and not subject.startswith(prefix):
            problems.append(f"the type has to be {hint}")
        if not problems:
            break
        s += "".join(f"# {p}\n" for p in problems)
    else:
        subject = f"{hint or 'chore'}: update {len(files)} file{'s' if len(files) > 1 else ''}"

    body = ""
    if sum(files.values()) > 50:
        s += "Body:" + sgc.gen("body", max_tokens=80, stop="\n\n")
        body = "\n\n" + s["body"].strip()
    return subject + body


ARGUMENTS = [
    {"files": {"api/routes.py": 40, "api/models.py": 25}, "description": "pagination"},
    {"files": {"docs/intro.md": 3}},
    {"files": {"tests/test_a.py": 3, "tests/test_b.py": 1}},
    {"files": {}},
]
REPLIES = [
    " feat(api): add pagination to lists",
    " docs: explain the set-up",
    " test(tests): Cover the edge cases.",
    " Update stuff",
    " fix(api)!: never return more rows than were asked for by a client, of any kind",
]
