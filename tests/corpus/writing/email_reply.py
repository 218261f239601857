"""Answers an e-mail thread: mood and intent, facts about the order, a reply, a check of words."""

import sgc

SIGNATURE = "Kind regards\nThe Team"
TONES = {"angry": "calm and apologetic", "neutral": "friendly", "happy": "warm"}
FORBIDDEN = ["guarantee", "legal", "100%"]


@sgc.tool(effect="pure")
def find_order(order_id: str) -> dict:
    orders = {"A17": {"status": "shipped", "days": 2}, "B20": {"status": "lost", "days": 14}}
    if order_id not in orders:
        raise KeyError(f"no order {order_id}")
    return orders[order_id]


def quote(text: str) -> str:
    return "\n".join("> " + line for line in text.splitlines())


@sgc.function
def program(s, thread: list[dict[str, str]], customer: dict[str, str]):
    if not thread:
        return {"action": "nothing to do"}
    *earlier, last = thread
    for mail in earlier[-2:]:
        s += f"From: {mail['from']}\n{mail['body']}\n\n"
    s += f"From: {last['from']}\n{last['body']}\n\n"
    s += "Mood: " + sgc.select("mood", choices=list(TONES)) + "\n"
    s += (
        "Intent: "
        + sgc.select("intent", choices=["where is my order", "refund", "thanks", "other"])
        + "\n"
    )

    if s["intent"] == "thanks" and s["mood"] != "angry":
        return {"action": "archive"}
    facts = "nothing is known"
    if s["intent"] in ("where is my order", "refund"):
        try:
            order = find_order(customer.get("order", ""))
        except KeyError:
            facts = "we cannot find the order; ask for its number"
        else:
            facts = f"the order is {order['status']} since {order['days']} days"
            if order["status"] == "lost" or order["days"] > 10:
                facts += "; offer a new delivery"

    greeting = f"Dear {customer['name']}," if customer.get("name") else "Hello,"
    s += f"Facts: {facts}.\nTone: {TONES[s['mood']]}.\nReply:\n{greeting}\n"
    s += sgc.gen("body", max_tokens=120, stop=["Kind regards", "Best"])
    body = s["body"].strip()
    found = [w for w in FORBIDDEN if w in body.lower()]
    if found:
        s += f"\n\nThe words {', '.join(found)} are not allowed. Without them:\n{greeting}\n"
        s += sgc.gen("second", max_tokens=120, stop=["Kind regards", "Best"])
        body = s["second"].strip()
        if any(w in body.lower() for w in FORBIDDEN):
            return {"action": "escalate", "draft": body}
    reply = f"{greeting}\n\n{body}\n\n{SIGNATURE}\n\n{quote(last['body'])}"
    return {"action": "send", "reply": reply}


ARGUMENTS = [
    {
        "thread": [
            {"from": "Ann", "body": "Where is my kettle?"},
            {"from": "Ann", "body": "Hello??\nAnyone?"},
        ],
        "customer": {"name": "Ann", "order": "B20"},
    },
    {"thread": [{"from": "x@y.z", "body": ""}], "customer": {}},
    {"thread": [], "customer": {"name": "Bo"}},
    {"thread": [{"from": "Cy", "body": "Thanks!"}], "customer": {"name": "Cy", "order": "A17"}},
]
REPLIES = [
    "We are sorry. A new one is on its way.\nKind regards",
    "We guarantee that it comes tomorrow.",
    "Could you send us the order number?",
    "",
]
