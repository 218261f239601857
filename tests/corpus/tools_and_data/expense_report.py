"""Receipts to a report: regex with named groups, Decimal totals, dates of given texts, a template."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

import sgc

LINE = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})\s+(?P<what>[^:]+):\s*(?P<amount>\d+[.,]?\d*)\s*(?P<cur>EUR|USD)?"
)
RATE = {"EUR": Decimal("1"), "USD": Decimal("0.92")}


@dataclass
class Expense:
    day: str
    what: str
    amount: Decimal

    def line(self) -> str:
        return f"{self.day} {self.what:<12} {self.amount:>8}"


def parse(text: str) -> list[Expense]:
    found = []
    for m in LINE.finditer(text):
        amount = Decimal(m["amount"].replace(",", ".")) * RATE[m["cur"] or "EUR"]
        cents = amount.quantize(Decimal("0.01"), ROUND_HALF_UP)
        found.append(Expense(m["day"], m["what"].strip(), cents))
    return found


@sgc.function
def program(s, receipts: list[str], start: str):
    begin = datetime.strptime(start, "%Y-%m-%d")
    end = begin + timedelta(days=30)
    expenses: list[Expense] = []
    for receipt in receipts:
        f = s.fork(1)[0]
        f += "Write each item as `YYYY-MM-DD what: amount CUR`:\n" + receipt + "\n"
        f += sgc.gen("items", max_tokens=64)
        expenses += parse(f["items"])
    inside = [e for e in expenses if begin <= datetime.strptime(e.day, "%Y-%m-%d") < end]
    late = len(expenses) - len(inside)
    total = sum((e.amount for e in inside), Decimal("0"))
    body = "\n".join(e.line() for e in sorted(inside, key=lambda e: (e.day, -e.amount)))
    s += f"Expenses from {begin:%d %B} to {end:%d %B %Y}:\n{body}\nTotal {total} EUR\nRemark:"
    s += sgc.gen("remark", max_tokens=24, stop="\n")
    return {"total": str(total), "n": len(inside), "late": late, "remark": s["remark"].strip()}


ARGUMENTS = [
    {"receipts": ["Taxi on May 2, 12 euros", "Lunch"], "start": "2024-05-01"},
    {"receipts": [], "start": "2024-01-31"},
]
REPLIES = [
    "2024-05-02 taxi: 12,50 EUR\n2024-05-03 lunch: 8",
    "2024-07-01 hotel: 99.995 USD",
    "none",
    "Fine.",
]
