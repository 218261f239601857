"""`sgc explain` shows code movement as a diff that a program's author can take."""

from __future__ import annotations

import json
import subprocess

import pytest

PROGRAMS = {
    "one line": (
        's += "Article: " + x + "\\n\\nSummarize the article.\\n\\nSummary:" + sgc.gen("y")',
        """\
-    s += "Article: " + x + "\\n\\nSummarize the article.\\n\\nSummary:" + sgc.gen("y")
+    s += (
+        "Summarize the article.\\n\\n"
+        f"Article: {x}\\n\\n"
+        "Summary:"
+    ) + sgc.gen('y')
""",
    ),
    "lines in a row": (
        """\
s += "Be kind.\\n"
    s += "Article: "
    s += x
    s += '\\n\\nSummarize the article with "names" in {braces}.\\n\\nSummary:'
    s += sgc.gen("y")""",
        """\
-    s += "Be kind.\\n"
-    s += "Article: "
-    s += x
-    s += '\\n\\nSummarize the article with "names" in {braces}.\\n\\nSummary:'
+    s += (
+        "Be kind.\\n\\n"
+        "Summarize the article with \\"names\\" in {braces}.\\n\\n"
+        f"Article: {x}\\n\\n"
+        "Summary:"
+    )
""",
    ),
    "triple quotes in a call": (
        '''\
s += sgc.user(f"""Article: {x}

Summarize the article as {{"text": …}}.""")
    s += sgc.assistant(sgc.gen("y"))''',
        '''\
-    s += sgc.user(f"""Article: {x}
+    s += sgc.user(f"""Summarize the article as {{"text": …}}.

-Summarize the article as {{"text": …}}.""")
+Article: {x}""")
''',
    ),
    "a call on lines of its own": (
        """\
s += sgc.user(
        "Article: "
        + x
        + "\\n\\nSummarize the article."
    )
    s += sgc.assistant(sgc.gen("y"))""",
        """\
     s += sgc.user(
-        "Article: "
-        + x
-        + "\\n\\nSummarize the article."
+        (
+            "Summarize the article.\\n\\n"
+            f"Article: {x}"
+        )
     )
""",
    ),
    "text made elsewhere": (
        """\
task = "\\n\\nSummarize the article.\\n\\nSummary:"
    s += "Article: " + x + task + sgc.gen("y")""",
        """\
+Summarize the article.
+
 Article: {x}

-Summarize the article.
-
 Summary:
""",
    ),
}
HEAD = "import sgc\n\n\n@sgc.function\ndef p(s, x):\n    "


def blank(text: str) -> list[str]:
    """Lines without the white space that a diff has on empty ones."""
    return [line.rstrip() for line in text.splitlines()]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_move_is_shown_as_a_diff(sgc_command, tmp_path, name):
    body, expected = PROGRAMS[name]
    (tmp_path / "p.py").write_text(f"{HEAD}{body}\n", encoding="utf-8")
    code, out, err = sgc_command("explain", "p.py")
    assert code == 0, err
    assert "suggestion: rows would share" in out
    assert "\n".join(blank(expected)) in "\n".join(blank(out))


@pytest.mark.parametrize("name", list(PROGRAMS)[:-1])
def test_the_diff_applies_and_leaves_nothing_to_suggest(sgc_command, tmp_path, name):
    (tmp_path / "p.py").write_text(f"{HEAD}{PROGRAMS[name][0]}\n", encoding="utf-8")
    code, out, err = sgc_command("explain", "p.py", "--json")
    assert code == 0, err
    (suggestion,) = json.loads(out)["suggestions"]
    assert suggestion["line"].startswith("p.py:")
    command = ["git", "apply", "-p0"]
    subprocess.run(command, input=suggestion["diff"] + "\n", cwd=tmp_path, text=True, check=True)
    code, out, err = sgc_command("explain", "p.py", "--json")
    assert code == 0, err
    assert json.loads(out)["suggestions"] == []


def test_a_compiled_program_gets_a_diff_of_its_prompt(sgc_command, tmp_path):
    (tmp_path / "p.py").write_text(f"{HEAD}{PROGRAMS['one line'][0]}\n", encoding="utf-8")
    assert sgc_command("compile", "p.py", "-o", "p.sgir")[0] == 0
    code, out, _ = sgc_command("explain", "p.sgir")
    assert code == 0
    assert "+Summarize the article." in out
    assert "--- prompt" in out


def test_a_prompt_in_a_loop_is_suggested_once(sgc_command, tmp_path):
    body = PROGRAMS["one line"][0].replace(
        "s +=", "for _ in range(3):\n        t = s.fork(1)[0]\n        t +="
    )
    text = f"{HEAD}{body}\n"
    (tmp_path / "p.py").write_text(text, encoding="utf-8")
    code, out, err = sgc_command("explain", "p.py", "--json")
    assert code == 0, err
    assert len(json.loads(out)["suggestions"]) == 1


def test_what_the_rule_leaves_is_not_suggested(sgc_command, tmp_path):
    body = 's += x + "\\n\\nSummarize the text above.\\n\\nSummary:" + sgc.gen("y")'
    (tmp_path / "p.py").write_text(f"{HEAD}{body}\n", encoding="utf-8")
    code, out, _ = sgc_command("explain", "p.py")
    assert code == 0
    assert "suggestion" not in out
