"""Maps the columns of an unknown table to a schema: names, aliases, then the model."""

from pydantic import BaseModel

import sgc


class Column(BaseModel):
    name: str
    description: str
    aliases: list[str] = []
    required: bool = True


SCHEMA = [
    Column(name="first_name", description="given name", aliases=["firstname", "vorname", "given"]),
    Column(name="email", description="e-mail address", aliases=["mail", "e-mail"]),
    Column(name="signup_date", description="when the customer signed up"),
    Column(name="notes", description="anything else", required=False),
]
IGNORE = "(ignore)"


def slug(header: str) -> str:
    return "_".join(header.strip().lower().split())


@sgc.function
def program(s, headers: list[str], sample: list[list[str]]):
    mapping: dict[str, str] = {}
    open_columns = {c.name: c for c in SCHEMA}

    def take(header: str, name: str) -> None:
        mapping[header] = name
        del open_columns[name]

    for header in headers:
        key = slug(header)
        for column in list(open_columns.values()):
            if key == column.name or key in column.aliases:
                take(header, column.name)
                break

    for i, header in enumerate(headers):
        if header in mapping or not open_columns:
            continue
        values = [row[i] for row in sample[:3] if i < len(row)]
        s += f"Column {header!r} with values like {', '.join(values) or '(empty)'}\nCandidates:\n"
        for c in open_columns.values():
            s += f"  {c.name}: {c.description}\n"
        s += "It is " + sgc.select("target", choices=[*open_columns, IGNORE]) + "\n\n"
        if s["target"] != IGNORE:
            take(header, s["target"])

    missing = [c.name for c in open_columns.values() if c.required]
    if missing:
        s += f"Missing: {', '.join(missing)}. An e-mail that asks for it:\n"
        s += sgc.gen("email", max_tokens=80, stop="\n\n")
    return {"mapping": mapping, "missing": missing}


ARGUMENTS = [
    {
        "headers": ["Vorname", "E-Mail", "Since", "Remarks"],
        "sample": [["Ann", "a@b.c", "2020-01-02", ""], ["Bo", "bo@b.c"]],
    },
    {"headers": ["first name", "email", "signup date", "notes", "x"], "sample": []},
    {"headers": [], "sample": []},
]
REPLIES = [
    "Dear customer,\nplease send the dates.\n\nThanks",
    "Hello!",
    "",
    "Could you export it again?",
]
