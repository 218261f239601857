"""Questions to SQL on a schema: the statement is checked, run by a tool, repaired, told."""

import re

import sgc

SCHEMA = {"orders": ["id", "customer", "total"], "customers": ["id", "name"]}
BANNED = {"drop", "delete", "update", "insert"}


@sgc.tool(effect="pure")
def run_sql(query: str) -> list[dict]:
    if "name" in query:
        raise ValueError("no such column: name")
    return [{"customer": "Ann", "total": 12}, {"customer": "Bo", "total": len(query)}]


def check(query: str) -> str | None:
    words = set(re.findall(r"\w+", query.lower()))
    if not query.lower().lstrip().startswith("select"):
        return "only SELECT is allowed"
    if bad := words & BANNED:
        return "not allowed: " + ", ".join(sorted(bad))
    tables = re.findall(r"(?:from|join)\s+(\w+)", query, re.I)
    unknown = [t for t in tables if t not in SCHEMA]
    if unknown:
        return f"unknown table {unknown[0]}"
    return None


def as_table(rows: list[dict]) -> str:
    if not rows:
        return "(no rows)"
    header = list(rows[0])
    lines = [" | ".join(header), "-+-".join("-" * len(h) for h in header)]
    lines += [" | ".join(str(row[h]) for h in header) for row in rows]
    return "\n".join(lines)


@sgc.function
def program(s, question: str, tries: int = 3):
    schema = "\n".join(f"{t}({', '.join(c)})" for t, c in SCHEMA.items())
    s += sgc.user(f"{schema}\n\nSQL for: {question}")
    errors = []
    while len(errors) < tries:
        s += sgc.assistant(sgc.gen("sql", max_tokens=64))
        query = s["sql"].strip().removeprefix("```sql").removesuffix("```").strip()
        problem = check(query)
        if problem is None:
            try:
                rows = run_sql(query)
            except ValueError as e:
                problem = str(e)
            else:
                s += sgc.user(as_table(rows) + "\nAnswer in a sentence.")
                s += sgc.assistant(sgc.gen("answer", max_tokens=32))
                return {
                    "answer": s["answer"],
                    "total": sum(r["total"] for r in rows),
                    "errors": errors,
                }
        errors.append(problem)
        s += sgc.user(f"Error: {problem}. Repair it.")
    return {"answer": None, "total": 0, "errors": errors}


ARGUMENTS = [{"question": "Who spent most?"}, {"question": "?", "tries": 1}]
REPLIES = [
    "SELECT customer FROM orders",
    "```sql\nselect name from customers```",
    "DROP TABLE orders",
    "select * from planets",
    "select 1; delete from orders",
    "Ann spent 12.",
]
