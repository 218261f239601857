"""A refund agent with limits: small sums are paid, large ones need a reviewer, all are audited."""

from contextlib import contextmanager

import sgc

AUTO_LIMIT = 50.0


@sgc.tool
def refund(order_id: str, amount: float) -> dict:
    if not order_id.startswith("A"):
        raise ValueError(f"unknown order {order_id}")
    return {"paid": round(amount, 2), "ref": f"R-{order_id[1:]}"}


class Audit:
    def __init__(self):
        self.lines = []
        self.depth = 0

    @contextmanager
    def section(self, title):
        self.note(title)
        self.depth += 1
        try:
            yield self
        finally:
            self.depth -= 1

    def note(self, text):
        self.lines.append("  " * self.depth + text)


@sgc.function
def review(s, complaint: str, amount: float):
    s += sgc.user(f"You are a strict reviewer. {amount:,.2f} EUR: {complaint}")
    s += sgc.assistant("Decision: " + sgc.select("decision", ["approve", "reduce", "reject"]))
    return s["decision"]


@sgc.function
def program(s, order_id: str, complaint: str):
    audit = Audit()
    s += sgc.user("How much, in EUR, does this customer ask for?\n" + complaint)
    s += sgc.assistant(sgc.gen("amount", dtype=float))
    amount = abs(float(s["amount"]))
    with audit.section(f"order {order_id}"):
        if amount > AUTO_LIMIT:
            with audit.section("review"):
                decision = review(complaint, amount).ret_value
                audit.note(decision)
            if decision == "reject":
                return {"status": "rejected", "audit": audit.lines}
            amount = amount if decision == "approve" else min(amount / 2, AUTO_LIMIT)
        audit.note(f"pay {amount:.2f}")
    try:
        receipt = refund(order_id, amount)
    except ValueError as e:
        return {"status": f"failed: {e}", "audit": audit.lines}
    s += sgc.user(f"Refunded {receipt['paid']} ({receipt['ref']}). Tell the customer.")
    s += sgc.assistant(sgc.gen("mail", max_tokens=80))
    return {"status": "paid", "audit": audit.lines}


ARGUMENTS = [
    {"order_id": "A1009", "complaint": "The kettle (39.90) leaks."},
    {"order_id": "X1", "complaint": ""},
]
REPLIES = ["39.90", "120", "250.50", "Dear customer, the money is on its way.", "5"]
