"""Text to SQL: the query runs on an in-memory database; errors go back until it works."""

import sqlite3
from contextlib import closing

import sgc

SCHEMA = """CREATE TABLE city (name TEXT, country TEXT, people INTEGER);
CREATE TABLE river (name TEXT, city TEXT, km REAL);"""
ROWS = [("Lyon", "France", 520), ("Porto", "Portugal", 230), ("Paris", "France", 2100)]


@sgc.tool(effect="pure", timeout_s=5.0)
def query(sql: str) -> list[list]:
    """Rows of a read-only query."""
    if not sql.lstrip().lower().startswith("select"):
        raise PermissionError("only SELECT is allowed")
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        db.executemany("INSERT INTO city VALUES (?, ?, ?)", ROWS)
        return [list(row) for row in db.execute(sql).fetchmany(20)]


def as_text(rows: list[list]) -> str:
    return "\n".join(" | ".join(str(cell) for cell in row) for row in rows)


@sgc.function
def program(s, question: str, max_tries: int = 3):
    s += sgc.system("You write SQLite. One statement, no explanation.\n" + SCHEMA)
    s += sgc.user(question)
    errors = []
    rows = None
    for attempt in range(max_tries):
        s += sgc.assistant(sgc.gen("sql", max_tokens=80, stop=";"))
        sql = s["sql"].strip().removeprefix("```sql").removesuffix("```").strip()
        try:
            rows = query(sql)
        except PermissionError as e:
            errors.append(f"refused: {e}")
            s += sgc.user("You may only read. Use SELECT.")
        except sqlite3.Error as e:
            errors.append(f"{type(e).__name__}: {e}")
            s += sgc.user(f"The database says: {e}. Fix the statement.")
        else:
            if rows or attempt == max_tries - 1:
                break
            s += sgc.user("There are no rows. Is a condition too strict?")
    if rows is None:
        return {"answer": None, "errors": errors}
    s += sgc.user(f"{len(rows)} rows:\n{as_text(rows)}\nAnswer in one sentence.")
    s += sgc.assistant(sgc.gen("answer", max_tokens=48))
    return {"answer": s["answer"], "rows": rows, "errors": errors}


ARGUMENTS = [
    {"question": "How many people live in French cities?"},
    {"question": "Drop everything!", "max_tries": 1},
]
REPLIES = [
    "SELECT SUM(people) FROM city WHERE country = 'France'",
    "```sql\nSELECT name, people FROM city ORDER BY people DESC```",
    "SELECT nam FROM city",
    "DROP TABLE city",
    "SELECT * FROM river",
    "About 2.6 million.",
]
