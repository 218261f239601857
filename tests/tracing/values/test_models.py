"""pydantic's models in compiled programs: parsed, built, read, changed, dumped; their validators
and errors."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar, Literal, Optional

import pytest
from control_flow import agree, replying, traced
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    computed_field,
    field_validator,
    model_validator,
)

import sgc
from sgc.errors import ProgramError, TraceError
from sgc.passes.pipeline import optimize
from sgc.programs.program import Program
from sgc.runtime.executor.code.fuel import NotAllowed
from sgc.runtime.executor.code.library import pydantic_names
from sgc.runtime.executor.code.run import run_code
from sgc.tracing.pieces.text.classes import NoClass, user_class

POOL = (
    '{"title": "x"}',
    '{"title": "yy", "priority": "high", "parts": [{"n": 1}, {"n": "2", "label": " q "}]}',
    '{"title": ""}',
    '{"title": "x", "priority": "mid", "tags": [1]}',
    '{"title": "x", "priority": "high"}',
    '{"title": "z", "parts": [{"n": -1, "label": "too long", "more": 1}], "tags": ["a", "b"]}',
    "no json",
    "[]",
    "7",
    "-3",
)


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)
    n: int = Field(ge=0)
    label: Optional[str] = None  # noqa: UP045

    @field_validator("label")
    @classmethod
    def is_short(cls, value):
        if value is not None and len(value) > 3:
            raise ValueError(f"{value} is too long")
        return value


class Titled(BaseModel):
    title: str = Field(min_length=1, pattern="^[a-z]+$")

    def shout(self) -> str:
        return self.title.upper()


class Ticket(Titled):
    """What somebody wants."""

    priority: Literal["low", "high"] = "low"
    tags: list[str] = []
    parts: list[Part] = Field(default_factory=list)

    @model_validator(mode="after")
    def has_parts(self):
        if self.priority == "high" and not self.parts:
            raise ValueError("no parts")
        return self

    @property
    def total(self) -> int:
        return sum(part.n for part in self.parts)


@sgc.function
def parsed(s, q: str):
    s += q + sgc.gen("out", max_tokens=40)
    try:
        ticket = Ticket.model_validate_json(s["out"])
    except ValidationError as e:
        s += f"bad: {e}"
        return len(e.errors()), [(p["loc"], p["msg"]) for p in e.errors()], e.error_count()
    s += ticket.title + ticket.shout() + ticket.priority
    s += sgc.gen("b", max_tokens=40, json_schema=Ticket)
    for part in ticket.parts:
        s += f"{part.n + 1} {part.label or 'none'}"
    data = ticket.model_dump() | {"q": q}
    return data, ticket.model_dump_json(), repr(ticket), ticket == Ticket(title="x"), ticket.total


def explained(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())


@sgc.function
def repeated(s, q: str):
    problems = []
    for attempt in range(3):
        s += q + sgc.gen("out", max_tokens=40)
        try:
            ticket = Ticket.model_validate(json.loads(s["out"]))
        except json.JSONDecodeError as e:
            problems.append(f"no JSON: {e.msg}")
        except ValidationError as e:
            problems.append(explained(e))
        else:
            break
        s += f"{attempt}: {problems[-1]}"
    else:
        return problems
    other = ticket.model_copy(update={"title": "other"})
    s += other.shout() + sgc.gen("b", max_tokens=4)
    return ticket.model_dump(exclude_none=True), [part.n for part in ticket.parts], other.title


@sgc.function
def built(s, q: str):
    s += q + sgc.gen("out", max_tokens=40)
    try:
        part = Part(n=s["out"], label=q)
    except ValueError as e:
        return str(e)
    s += f"{part.n} {part!r}" + sgc.gen("b", max_tokens=4)
    known = Part(**json.loads('{"n": 3}'))
    known.n += part.n
    return part.model_dump_json(), known.n, [Part(n=1), part][1].label


@sgc.function
def numbered(s, q: str):
    s += q + sgc.gen("out", max_tokens=4, regex="-?[0-9]")
    try:
        part = Part(n=int(s["out"]))
    except ValidationError as e:
        return e.errors()[0]["type"]
    known = Part(n=3)
    known.label = s["out"]
    s += sgc.gen("b", max_tokens=2)
    return part.n, known.model_dump_json(), known.model_dump()


@sgc.function
def given(s, ticket: Ticket, all: list[Part], q: str):
    s += ticket.title + ticket.priority + q + sgc.gen("out", max_tokens=4)
    mine = ticket.model_copy()
    mine.title = s["out"]
    for part in all:
        s += f"{part.n} {part.label}"
    return mine.title, mine.shout(), ticket.model_dump(), [p.model_dump() for p in all]


TICKET = Ticket(title="abc", parts=[Part(n=1)], tags=["t"])
PARTS = [Part(n=2), Part(n=3, label="x")]
RUNS: dict[Any, list[dict[str, Any]]] = {
    given: [{"q": "q", "ticket": TICKET, "all": PARTS}, {"q": "", "ticket": TICKET, "all": []}],
    parsed: [{"q": "q"}],
    repeated: [{"q": "q"}],
    built: [{"q": "q"}, {"q": "too long"}],
    numbered: [{"q": "q"}],
}


@pytest.mark.sweep
@pytest.mark.parametrize("program", RUNS, ids=lambda each: each.name)
def test_runs_equal_interpreted_ones(program):
    for each in RUNS[program]:
        agree(program, POOL, n=10, graph=traced(program), **each)


READ = """
import json, sys
from control_flow import replying
import sgc
for file, seed, arguments in json.load(open("rows.json")):
    backend = replying(seed, json.load(open("pool")))
    run = sgc.load(file).run(backend=backend, seed=seed, **arguments)
    print(json.dumps([run.text(), run.ret_value]))
assert "test_models" not in sys.modules
"""


@pytest.mark.slow
def test_files_need_no_module_of_the_program(tmp_path):
    rows, wanted = [], []
    (tmp_path / "pool").write_text(json.dumps(POOL))
    for program, arguments in RUNS.items():
        for level in (0, 2):
            file = f"{program.name}-{level}.sgir"
            Program(optimize(traced(program), level)).save(tmp_path / file)
            for seed, each in enumerate(arguments * 2):
                as_data = json.dumps(each, default=lambda model: model.model_dump())
                rows.append([file, seed, json.loads(as_data)])
                run = program.run(**each, backend=replying(seed, POOL), seed=seed)
                wanted.append(json.loads(json.dumps([run.text(), run.ret_value])))
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    support = Path(__file__).resolve().parents[2] / "support"
    path = os.pathsep.join(map(str, (support, support.parents[1])))
    found = subprocess.run(
        [sys.executable, "-c", READ], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [json.loads(line) for line in found.stdout.splitlines()] == wanted


# -- what code may say of a model ---------------------------------------------------------------

MODEL = """
from pydantic import BaseModel
class Model(BaseModel):
    _described = {described}
    def check(cls, value):
        return value
def piece(data):
    return Model.model_validate(data).x
"""
FIELDS = {"fields": {"x": {"type": "int"}}, "config": {}, "validators": {}}
DESCRIBED: dict[str, tuple[Any, str]] = {
    "a text as a type": (FIELDS | {"fields": {"x": {"type": "__import__('os')"}}}, "no type of"),
    "a text in a type": (FIELDS | {"fields": {"x": {"type": ("list", "os.x")}}}, "no type of"),
    "another option": (FIELDS | {"fields": {"x": {"type": "int", "json": 1}}}, "json=1 is not"),
    "a function as an option": (
        FIELDS | {"fields": {"x": {"type": "int", "ge": [len]}}},
        "ge=.* is not allowed",
    ),
    "another configuration": (FIELDS | {"config": {"regex_engine": "python-re"}}, "regex_engine="),
    "a validator that calls others": (
        FIELDS | {"validators": {"check": ("field", "wrap", ("x",), 2)}},
        "a 'wrap' validator",
    ),
    "a private name": (FIELDS | {"fields": {"_x": {"type": "int"}}}, "'_x' is no field"),
    "no description": ({}, "has no description"),
}


def code_of(described: Any) -> str:
    return MODEL.replace("{described}", repr(described).replace(repr(len), "len"))


@pytest.mark.sweep
@pytest.mark.parametrize("case", DESCRIBED)
def test_other_descriptions_are_refused(case):
    described, message = DESCRIBED[case]
    with pytest.raises(NotAllowed, match=message):
        run_code(code_of(described), [{"x": 1}])


def test_what_has_no_end_is_no_input():
    code = code_of(FIELDS | {"fields": {"x": {"type": ("list", "int")}}})
    assert run_code(code, [{"x": ["1"]}]) == [1]
    endless = code.replace("def piece", "import itertools\ndef piece")
    endless = endless.replace("(data).x", "({'x': itertools.count()}).x")
    with pytest.raises(NotAllowed, match="is given to a model"):
        run_code(endless, [1])


def test_code_with_models_says_that_pydantic_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic", None)
    monkeypatch.setattr(pydantic_names, "_loaded", pydantic_names._loaded.__wrapped__)
    with pytest.raises(ProgramError, match="pydantic is not installed"):
        run_code(code_of(FIELDS) + "\n", [{"x": 1}])


# -- what is no code ---------------------------------------------------------------------------


class Wrapping(BaseModel):
    n: int

    @field_validator("n", mode="wrap")
    @classmethod
    def call(cls, value, handler):
        return handler(value)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    n: int


class Private(BaseModel):
    n: int
    _hidden: int = PrivateAttr(default=1)


class Computed(BaseModel):
    n: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.n


class Made(BaseModel):
    n: list[int] = Field(default_factory=lambda: [1])


class Initialised(BaseModel):
    n: int

    def model_post_init(self, context: Any) -> None:
        self.n += 1


class Titling(BaseModel):
    model_config = ConfigDict(json_encoders={int: str})
    n: int


class Sets(BaseModel):
    n: set[str]


class Constant(BaseModel):
    limit: ClassVar[int] = 3
    n: int


NO_CODE = {
    Wrapping: "a validator that calls others",
    Open: "takes other attributes than its fields",
    Private: "has private attributes",
    Computed: "has computed fields",
    Made: "default_factory of Made.n",
    Initialised: "has more than fields, validators and methods",
    Titling: "json_encoders of the configuration",
    Sets: "a field of type",
}


@pytest.mark.sweep
@pytest.mark.parametrize("kind", NO_CODE, ids=lambda each: each.__name__)
def test_models_that_are_more_than_their_fields_are_no_code(kind):
    with pytest.raises(NoClass, match=NO_CODE[kind]):
        user_class(kind)


@sgc.function
def wrapped(s, q: str):
    s += q + sgc.gen("out", max_tokens=4)
    return Wrapping.model_validate_json(s["out"]).n


@sgc.function
def unset(s, q: str):
    s += q + sgc.gen("out", max_tokens=4)
    return Ticket.model_validate_json(s["out"]).model_fields_set


@pytest.mark.parametrize("program", [wrapped, unset], ids=lambda each: each.name)
def test_their_use_is_refused_at_its_line(program):
    with pytest.raises(TraceError, match=r"test_models\.py:\d+"):
        program.compile()
