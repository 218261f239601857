"""Pages through a flaky API with a cursor, lets the model filter each record, stops when enough."""

import logging

import sgc

log = logging.getLogger(__name__)
PEOPLE = [
    {"id": 1, "name": "Olga", "bio": "Climbs mountains and writes about it."},
    {"id": 2, "name": "Sam", "bio": "Sells insurance."},
    {"id": 3, "name": "Wei", "bio": "Photographs glaciers."},
    {"id": 4, "name": "Noor", "bio": ""},
    {"id": 5, "name": "Pia", "bio": "Runs marathons in the Alps."},
]


@sgc.tool(effect="idempotent", timeout_s=2.0)
def list_people(cursor: int, size: int) -> dict:
    if cursor == 4 and size > 1:
        raise ConnectionError("502 bad gateway")
    page = PEOPLE[cursor : cursor + size]
    return {"items": page, "next": cursor + size if cursor + size < len(PEOPLE) else None}


@sgc.function
def matches(s, bio: str, wanted: str):
    s += f"Bio: {bio}\nDoes this fit '{wanted}'? "
    s += sgc.select("fits", choices=["yes", "no", "unclear"])
    return s["fits"]


@sgc.function(max_turns=10)
def program(s, wanted: str, enough: int = 2, size: int = 2):
    found, unclear = [], []
    cursor: int | None = 0
    retries = 0
    while cursor is not None and len(found) < enough:
        try:
            page = list_people(cursor, size)
        except (ConnectionError, TimeoutError) as e:
            retries += 1
            log.warning("page at %s: %s", cursor, e)
            if retries > 1:
                return {"found": found, "error": str(e)}
            size = max(1, size // 2)
            continue
        for person in page["items"]:
            verdict = matches(person["bio"], wanted).ret_value if person["bio"] else "no"
            if verdict == "yes":
                found.append(person["name"])
                if len(found) == enough:
                    break
            elif verdict == "unclear":
                unclear.append(person["name"])
        cursor = page["next"]
    if not found and not unclear:
        return {"found": [], "note": "nobody"}
    names = found or unclear[:1]
    s += f"Write to {' and '.join(names)} about '{wanted}':"
    s += sgc.gen("mail", max_tokens=60)
    return {"found": found, "unclear": len(unclear), "mail": s["mail"].strip(), "retries": retries}


ARGUMENTS = [
    {"wanted": "somebody who knows mountains"},
    {"wanted": "", "enough": 9, "size": 4},
    {"wanted": "nobody", "enough": 0},
]
REPLIES = [" Dear both,", " Hello, we look for you.", "yes", ""]
