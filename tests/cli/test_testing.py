"""`sgc test`: what is expected of rows, files that are none, recordings, reports; `sgc new`."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from conftest import prompt_text

from sgc.cli.settings.asking import Asked
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend

PROGRAM = """import sgc

@sgc.function
def p(s, q: str, n: int = 1):
    s += "Question: " + q + "\\nAnswer:" + sgc.gen("answer", max_tokens=20) + "\\n"
    s += "Again:" + sgc.gen("again", max_tokens=20)
    return s["answer"]
"""
VERDICT = {"reason": "it is rude", "pass": False, "score": 0.25}


def reply(prompt, sampling):
    text = prompt_text(prompt)
    if "rubric" in text:
        assert "END" in text or "tea tea" not in text
        kind = {**VERDICT, "pass": True} if "Rubric: kind" in text else VERDICT
        return json.dumps(kind)
    return "green tea" if text.endswith("Answer:") and "tea" in text else '{"a": 1}'


class Counting(ScriptedBackend):
    """Scripted replies of ten tokens each."""

    async def generate(self, prompt, sampling, on_delta=None):
        found = await super().generate(prompt, sampling, on_delta)
        return replace(found, usage=replace(found.usage, completion_tokens=10))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A program and tests, asked of scripted replies."""
    monkeypatch.setattr(Asked, "open", lambda self: Endpoint(Counting(reply, None)))
    (tmp_path / "p.py").write_text(PROGRAM)

    def write(tests, **more):
        (tmp_path / "tests.yaml").write_text(
            json.dumps({"program": "p.py", "tests": tests, **more})
        )

    return write


def case(*asserts, q="tea", **more):
    return {"vars": {"q": q}, "assert": [*asserts], **more}


HOLDS = [
    {"type": "equals", "value": "green tea"},
    {"type": "equals", "value": {"a": 1}, "of": "again"},
    {"type": "contains", "value": "een"},
    {"type": "icontains", "value": "GREEN"},
    {"type": "contains-any", "value": ["x", "tea"]},
    {"type": "icontains-all", "value": ["TEA", "Green"]},
    {"type": "starts-with", "value": "green"},
    {"type": "ends-with", "value": "{{q}}"},
    {"type": "regex", "value": "^g.* tea$"},
    {"type": "is-json", "of": "again"},
    {"type": "is-json", "of": "again", "value": {"type": "object", "required": ["a"]}},
    {"type": "contains-json", "of": "text", "value": {"required": ["a"]}},
    {"type": "latency", "threshold": 60_000},
    {"type": "cost", "threshold": 0},
    {"type": "tokens", "threshold": 1000},
    {"type": "llm-rubric", "value": "kind"},
    {"type": "python", "value": "is_short"},
    {"type": "not-llm-rubric", "value": "polite"},
    {"type": "not-python", "value": "scored", "threshold": 0.9},
]
FAILS = [
    ({"type": "equals", "value": "tea"}, 'expected to equal "tea", found "green tea"'),
    ({"type": "is-json"}, 'JSON that fits, found "green tea"'),
    ({"type": "is-json", "of": "again", "value": {"required": ["b"]}}, "JSON that fits"),
    ({"type": "not-contains", "value": "tea"}, 'expected not to contain "tea"'),
    ({"type": "tokens", "threshold": 1}, "expected at most 1 tokens, used 20"),
    ({"type": "llm-rubric", "value": "polite"}, "it is rude"),
    ({"type": "llm-rubric", "value": "kind", "threshold": 0.5}, "it is rude"),
    ({"type": "not-llm-rubric", "value": "kind"}, "it is rude"),
    ({"type": "python", "value": "fails"}, "ZeroDivisionError"),
    ({"type": "python", "value": "scored", "threshold": 0.9}, "scored 0.5"),
    ({"type": "python", "value": "leaves"}, "SystemExit: 0"),
    ({"type": "python", "value": "unscored"}, "ValueError: could not convert string to float"),
    ({"type": "python", "value": "endless"}, "ValueError: a score is a finite number, found inf"),
    ({"type": "python", "value": "low"}, "why not"),
    ({"type": "python", "value": "empty"}, "expected a bool, a score or a dict"),
]  # fmt: skip
ASSERTS = """
def is_short(output, context):
    return len(output) < 100 and context["vars"]["q"] == "tea"
def fails(output, context):
    return 1 / 0
def scored(output, context):
    return 0.5
def leaves(output, context):
    raise SystemExit(0)
def unscored(output, context):
    return {"pass": True, "score": "high"}
def endless(output, context):
    return float("inf")
def low(output, context):
    return {"score": 0.1, "reason": "why not"}
def empty(output, context):
    return {}
"""


def test_each_type_holds_and_fails_with_a_reason(sgc_command, project, tmp_path):
    (tmp_path / "asserts.py").write_text(ASSERTS)
    negated = [{**each, "type": f"not-{each['type']}"} for each, _ in FAILS[:3]]
    project([case(*HOLDS, *negated, description="all"), *[case(each) for each, _ in FAILS]])
    code, out, err = sgc_command("test", "--asserts", "asserts.py", "--json", "--junit", "j.xml")
    assert code == 100, err
    found = json.loads(out)
    assert [each for each in found["tests"][0]["asserts"] if not each["pass"]] == []
    for test, (_, reason) in zip(found["tests"][1:], FAILS, strict=True):
        assert reason in (test["asserts"][0]["reason"] or "it passed")
    assert (found["passed"], found["failed"], found["errors"]) == (1, len(FAILS), 0)
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == (str(1 + len(FAILS)), str(len(FAILS)))
    code, out, _ = sgc_command("test", "--asserts", "asserts.py", "-k", "ALL", "-j", "2", "-t", "0")
    assert (code, out.startswith("PASS  all")) == (0, True)
    assert "1 passed, 0 failed" in out


def test_json_within_json_is_contained_too(sgc_command, project, tmp_path):
    (tmp_path / "q.py").write_text(
        'import sgc\n\n@sgc.function\ndef q(s):\n    return \'It is [1, {"a": [{"b": 2}]}].\'\n'
    )
    kinds = [("contains-json", "b"), ("contains-json", "a"), ("not-contains-json", "c")]
    kinds += [("not-contains-json", "b"), ("not-contains-json", "a"), ("contains-json", "c")]
    asserts = [
        {"type": kind, "value": {"type": "object", "required": [name]}} for kind, name in kinds
    ]
    project([{"assert": asserts}], program="q.py")
    (test,) = json.loads(sgc_command("test", "--json")[1])["tests"]
    assert [each["pass"] for each in test["asserts"]] == [True] * 3 + [False] * 3


class Billed(Counting):
    """A provider, whose replies have these costs."""

    def __init__(self, cost_usd):
        super().__init__(reply, None)
        self.cost_usd = cost_usd

    async def capabilities(self):
        return replace(await super().capabilities(), takes_messages=True)

    async def generate(self, prompt, sampling, on_delta=None):
        found = await super().generate(prompt, sampling, on_delta)
        return replace(found, usage=replace(found.usage, cost_usd=self.cost_usd))


def test_a_cost_that_is_not_known_is_not_nothing(sgc_command, project, monkeypatch):
    told = {
        0.25: "",
        0.75: "expected at most $1, cost $1.5",
        None: "expected at most $1, the cost is not known: give --prices FILE",
    }
    project([case({"type": "cost", "threshold": 1})])
    for cost_usd, why in told.items():
        monkeypatch.setattr(Asked, "open", lambda self, c=cost_usd: Endpoint(Billed(c)))
        code, out, _ = sgc_command("test")
        assert code == (100 if why else 0)
        assert why in out


def test_a_result_that_is_no_json_ends_no_other_test(sgc_command, project, tmp_path):
    (tmp_path / "q.py").write_text(
        "import sgc\n\n@sgc.function\ndef q(s, n: int):\n    s['pair'] = {(n, 2): n}\n"
    )
    project(
        [{"assert": [{"type": "contains", "value": "(1, 2)"}], "vars": {"n": 1}}], program="q.py"
    )
    code, out, err = sgc_command("test", "--json")
    assert code == 0, err
    assert json.loads(out)["tests"][0]["variables"] == {"pair": "{(1, 2): 1}"}


def test_a_judge_sees_a_whole_output_or_none(sgc_command, project, tmp_path):
    (tmp_path / "q.py").write_text(
        "import sgc\n\n@sgc.function\ndef q(s, n: int):\n    return 'tea ' * n + 'END'\n"
    )
    rubric = {"type": "llm-rubric", "value": "kind"}
    project([{"vars": {"n": n}, "assert": [rubric]} for n in (10, 10_000, 100_000)], program="q.py")
    code, out, _ = sgc_command("test", "--json")
    told = [(each["status"], each["error"] or "") for each in json.loads(out)["tests"]]
    assert code == 100
    assert [status for status, _ in told] == ["passed", "passed", "error"]
    assert "it is not shown an output of 400,003 characters; at most 200,000 are" in told[2][1]


def test_a_score_may_be_enough_and_a_row_may_fail(sgc_command, project):
    good, poor = {"type": "contains", "value": "tea"}, {"type": "contains", "value": "x"}
    heavy = {**good, "weight": 3}
    unset = {"type": "contains", "value": "x", "of": "nobody"}
    project([case(heavy, poor, threshold=0.7), case(good, poor, threshold=0.7), case(unset)])
    code, out, _ = sgc_command("test")
    assert code == 100
    assert [line[:5].strip() for line in out.splitlines() if line[0] != " "][:3] == [
        "PASS", "FAIL", "ERROR",
    ]  # fmt: skip
    assert "the program set no 'nobody'; there are: answer, again, return, text" in out


BAD = {
    "no tests": ("", "expected a list of tests"),
    "no YAML": ("tests: [", "t.yaml:1: not valid YAML"),
    "no quotes": ("tests:\n  - {q: what?}", "t.yaml:2: not valid YAML: expected ',' or '}', but got '?'\n  a text with"),
    "twice": ("tests:\n  - vars: {q: a}\n    vars: {q: b}", "t.yaml:3: not valid YAML: 'vars' comes twice"),
    "a key": ("tests:\n  - var: {q: a}", "t.yaml:2: test 1: 'var' is not known here; there are: description, vars, assert, threshold, metadata. Did you mean 'vars'?"),
    "a type": ("tests:\n  - vars: {q: a}\n    assert:\n    - type: contain\n      value: x", "t.yaml:4: assert: there is no type 'contain'. Did you mean 'contains'?"),
    "code": ("tests:\n  - assert: [{type: javascript, value: 'output > 1'}]", "JavaScript is not run here"),
    "python": ("tests:\n  - vars: {q: a}\n    assert: [{type: python, value: 'import os'}]", "a file of tests names no code"),
    "tags": ("tests: !!python/object/apply:os.system ['echo']", "could not determine a constructor"),
    "a value": ("tests:\n  - assert: [{type: contains}]", "contains: expected a text as value, found None"),
    "a list": ("tests:\n  - assert: [{type: contains-any, value: x}]", "expected a list of texts"),
    "a pattern": ("tests:\n  - assert: [{type: regex, value: '('}]", "is no pattern of RE2"),
    "a schema": ("tests:\n  - assert: [{type: is-json, value: {type: nonsense}}]", "JSON schema is invalid"),
    "a list as key": ("tests:\n  - vars:\n      ? [q]\n      : a", "t.yaml:3: not valid YAML: a key is a text"),
    "many digits": (f"tests: [{{vars: {{q: {'9' * 5000}}}}}]", "t.yaml: not valid YAML: Exceeds the limit"),
    "a tag": ("tests: [{vars: {q: !!int x}}]", "t.yaml: not valid YAML: invalid literal"),
    "a threshold": ("tests:\n  - assert: [{type: latency}]", "latency: expected a threshold"),
    "prompts": ("prompts: [x]\ntests: []", "the program is the prompt"),
    "an argument": ("tests:\n  - vars: {qq: a}", "t.yaml:2: "),
    "a type of one": ("tests:\n  - vars: {q: 3}", "argument 'q' must be text, found int"),
    "a program elsewhere": ("program: ../../p.py\ntests: [{vars: {q: a}}]", "is outside of the folder"),
    "a variable": ("tests:\n  - vars: {q: a}\n    assert: [{type: equals, value: '{{x}}'}]", "{{x}} is no variable of this test"),
    "a bomb": ("a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(f"{n}: &{n} [{','.join(['*' + p] * 10)}]\n" for p, n in zip("abcdef", "bcdefg", strict=True)), "more than 1,000,000 values"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_file_that_is_none_names_file_line_and_test(sgc_command, project, tmp_path, case):
    text, message = BAD[case]
    (tmp_path / "t.yaml").write_text(text)
    program = [] if "program:" in text else ["--program", "p.py"]
    code, out, err = sgc_command("test", "t.yaml", *program)
    assert message in err
    assert (code, out) == (2, "")
    assert "t.yaml" in err


def test_words_are_texts_as_in_yaml_1_2(sgc_command, project, tmp_path):
    (tmp_path / "t.yaml").write_text(
        "- vars: {q: no}\n- vars: {q: 12:30}\n- vars: {q: 2024-01-02}\n- vars: {q: 'x', n: 2}\n"
    )
    code, out, err = sgc_command("test", "t.yaml", "--program", "p.py", "--json")
    assert code == 0, err
    given = [each["vars"] for each in json.loads(out)["tests"]]
    assert given == [{"q": "no"}, {"q": "12:30"}, {"q": "2024-01-02"}, {"q": "x", "n": 2}]


def test_rows_of_csv_and_json_lines(sgc_command, project, tmp_path):
    (tmp_path / "t.csv").write_text(
        "q,n,__expected,__expected2,__description\n"
        'tea,2,contains: {{q}},tokens(900),one\nx,,"is-json","not-contains-any: b, c",\nx,1,{},,three\n'
    )
    code, out, err = sgc_command("test", "t.csv", "--program", "p.py", "--json")
    assert code == 100, err
    tests = json.loads(out)["tests"]
    assert [each["status"] for each in tests] == ["passed", "passed", "failed"]
    assert tests[0]["asserts"][1]["type"] == "tokens"
    assert tests[1]["asserts"][1]["value"] == ["b", "c"]
    (tmp_path / "d.csv").write_text("q,__expected,__expected\ntea,contains: x,contains: tea\n")
    code, _, err = sgc_command("test", "d.csv", "--program", "p.py")
    assert (code, "d.csv:1: the column '__expected' comes twice" in err) == (2, True), err
    (tmp_path / "z.jsonl").write_text(
        '{"vars": {"q": "x"}, "assert": [{"type": "contains", "value": "y"}], "threshold": 0}'
    )
    project("z.jsonl", defaultTest={"threshold": 1})
    assert sgc_command("test")[0] == 0  # its own threshold counts
    (tmp_path / "t.jsonl").write_text('{"vars": {"q": "tea"}}\n\n{"vars": 1}\n')
    err = sgc_command("test", "t.jsonl", "--program", "p.py")[2]
    assert "t.jsonl:3: test 2: vars: expected variables by name, found int" in err


def test_a_key_of_json_that_comes_twice_loses_no_assertion(sgc_command, project, tmp_path):
    test = '{"vars": {"q": "x"}, "assert": [{"type": "contains", "value": "y"}], "assert": []}'
    for name, text in (("t.json", f"[{test}]"), ("t.jsonl", test)):
        (tmp_path / name).write_text(text)
        code, out, err = sgc_command("test", name, "--program", "p.py")
        assert (code, out) == (2, ""), name
        assert name in err
        assert "'assert' comes twice" in err


@pytest.mark.parametrize("mark", ["\u2028", "\x85", "\x0b", "\x1c", "\r"])
def test_only_the_ends_of_lines_end_rows(sgc_command, project, tmp_path, mark):
    """`str.splitlines` cuts lines at these, too: one row became two tests."""
    text = f"green{mark}tea"
    cell = f'"{text}"' if mark == "\r" else text
    (tmp_path / "t.csv").write_bytes(f"q,__expected\r\n{cell},contains: tea\r\n\r\n".encode())
    row = json.dumps({"vars": {"q": text}}, ensure_ascii=False)
    (tmp_path / "t.jsonl").write_text(f"{row}\n\n{row}\n", encoding="utf-8")
    for name, n in (("t.csv", 1), ("t.jsonl", 2)):
        code, out, err = sgc_command("test", name, "--program", "p.py", "--json")
        assert code == 0, err
        assert [each["vars"]["q"] for each in json.loads(out)["tests"]] == [text] * n


def test_a_column_that_is_misspelt_loses_no_assertion(sgc_command, project, tmp_path):
    (tmp_path / "t.csv").write_text("q,__expectd\nx,contains: y\n")
    code, _, err = sgc_command("test", "t.csv", "--program", "p.py")
    assert code == 2
    assert "t.csv:1: unknown column '__expectd'. Did you mean '__expected'?" in err
    (tmp_path / "t.csv").write_text("q,__metadata:source\nx,mail\n")
    assert sgc_command("test", "t.csv", "--program", "p.py")[0] == 0


def test_a_recording_needs_no_model_and_says_what_changed(
    sgc_command, project, tmp_path, monkeypatch
):
    rubric = {"type": "llm-rubric", "value": "kind"}
    project([case({"type": "contains", "value": "tea"}, rubric, description="one")])
    assert sgc_command("test", "--record", "t.rec", "--seed", "1")[0] == 0
    first = (tmp_path / "t.rec").read_bytes()
    assert (
        sgc_command("test", "--record", "t.rec", "--seed", "2")[0] == 0
    )  # takes the place of the old one
    assert len((tmp_path / "t.rec").read_bytes()) == len(first)

    def refuse(self):
        raise AssertionError("a model is asked")

    monkeypatch.setattr(Asked, "open", refuse)
    (tmp_path / "sgc.toml").write_text('engine = "openai:gpt-4o"\nmax-cost = 1\n')
    code, out, err = sgc_command("test", "--replay", "t.rec")
    assert (code, "PASS  one" in out, err) == (0, True, "")  # a file's model is not asked either
    (tmp_path / "sgc.toml").unlink()
    (tmp_path / "p.py").write_text(PROGRAM.replace("Question", "Ask"))
    code, out, err = sgc_command("test", "--replay", "t.rec")
    assert code == 1
    assert "differs from character 0 of its prompt on: recorded 'Question: tea" in out
    assert "--record t.rec --model MODEL" in err
    (tmp_path / "p.py").write_text(PROGRAM)
    project([case({**rubric, "value": "polite"}, description="two")])
    code, out, _ = sgc_command("test", "--replay", "t.rec")
    assert code == 1
    assert "the judge: " in out
    assert "recorded 'Rubric: kind" in out or "does not have a generation" in out
    code, _, err = sgc_command("test", "--replay", "t.rec", "--model", "x")
    assert (code, "--replay asks no model" in err) == (2, True)


def test_a_recording_stays_if_a_row_fails(sgc_command, project, tmp_path):
    project([case(), case(q="x")])
    assert sgc_command("test", "--record", "t.rec")[0] == 0
    before = (tmp_path / "t.rec").read_bytes()
    text = PROGRAM.replace("    return", "    assert q == 'tea'\n    return")
    (tmp_path / "p.py").write_text(text)
    code, _, err = sgc_command("test", "--record", "t.rec")
    assert (code, "t.rec is not written: rows ended with errors" in err) == (100, True)
    assert (tmp_path / "t.rec").read_bytes() == before
    assert [each.name for each in tmp_path.glob(".*rec*")] == []


def test_a_judge_of_its_own_is_replayed_without_being_named(
    sgc_command, project, tmp_path, monkeypatch
):
    rubric = {"type": "llm-rubric", "value": "kind"}
    project([case(rubric)])
    assert sgc_command("test", "--record", "t.rec", "--judge", "other", "--seed", "1")[0] == 0
    with monkeypatch.context() as patched:
        patched.setattr(Asked, "open", lambda self: pytest.fail("a model is asked"))
        for more in ((), ("--judge", "other")):
            code, out, _ = sgc_command("test", "--replay", "t.rec", *more)
            assert code == 0, out
    assert sgc_command("test", "--record", "t.rec", "--seed", "1")[0] == 0  # the model judges
    assert sgc_command("test", "--replay", "t.rec", "--judge", "other")[0] == 0
    assert not (tmp_path / "t.rec.judge").exists()


def test_a_file_that_cannot_be_written_is_told_before_a_model_is_asked(
    sgc_command, project, monkeypatch
):
    project([case()])
    monkeypatch.setattr(Asked, "open", lambda self: pytest.fail("a model is asked"))
    for option, path in (("--junit", "no/j.xml"), ("--junit", "."), ("--record", ".")):
        code, _, err = sgc_command("test", option, path)
        assert (code, f"{option} {path}: " in err) == (2, True), err


def test_texts_do_not_steer_the_terminal(sgc_command, project, tmp_path, monkeypatch):
    verdict = json.dumps({**VERDICT, "reason": "a\x1b[2Jb\u202ec"})
    told = ScriptedBackend(
        lambda prompt, _: verdict if "rubric" in prompt_text(prompt) else "x", None
    )
    monkeypatch.setattr(Asked, "open", lambda self: Endpoint(told))
    project([case({"type": "llm-rubric", "value": "kind"}, description="n\x1b]0;t\x07")])
    code, out, _ = sgc_command("test", "--junit", "j.xml")
    assert code == 100
    assert not {"\x1b", "\x07", "\u202e"} & {*out}
    assert "a�[2Jb�c" in out
    assert ElementTree.parse(tmp_path / "j.xml").getroot()[0].get("failures") == "1"


def test_there_are_no_tests(sgc_command, project):
    assert "there are no tests here" in sgc_command("test")[2]
    project([case(description="one")])
    code, _, err = sgc_command("test", "-k", "two")
    assert (code, "none is named like 'two'" in err) == (2, True)
    assert sgc_command("new", "my mails")[1].splitlines()[1].startswith("  cd 'my mails'; sgc run")
    code, _, err = sgc_command("test", "my mails")
    assert (code, err.splitlines()[1:]) == (2, ["  cd 'my mails'; sgc test"])


def test_a_new_project_runs_and_overwrites_nothing(sgc_command, tmp_path, monkeypatch):
    code, out, _ = sgc_command("new", "mine")
    assert code == 0
    assert "cd mine; sgc run program.py" in out
    assert len((tmp_path / "mine" / "README.md").read_text().splitlines()) <= 10
    for name in ("mine", "mine/README.md"):
        code, _, err = sgc_command("new", name)
        assert code == 2, err
    assert sgc_command("new", "no/where")[0] == 2

    def first(prompt, choices):
        return 0 if "kind" in prompt_text(prompt) else 1

    monkeypatch.setattr(Asked, "open", lambda self: Endpoint(ScriptedBackend(reply, first)))
    monkeypatch.chdir(tmp_path / "mine")
    from sgc.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["test"])
    assert not ended.value.code
