"""Rows into NamedTuples, money in Decimal, a table built with str.format and textwrap."""

import textwrap
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

import sgc

ROW = "{:<12}|{:>10}|{:^7}"


class Item(NamedTuple):
    name: str
    price: Decimal
    taxed: bool = True

    def gross(self) -> Decimal:
        return self.price * Decimal("1.19") if self.taxed else self.price


def parse(line: str) -> Item:
    name, price, *rest = [cell.strip() for cell in line.split("|")]
    return Item(name.title(), Decimal(price.replace(",", ".")), "exempt" not in rest)


@sgc.function
def program(s, receipt: str):
    s += f"Receipt:\n{receipt}\nOne item a line, as name | price | exempt or nothing:\n"
    s += sgc.gen("rows", max_tokens=100)
    items, bad = [], []
    for line in s["rows"].strip().splitlines():
        try:
            items.append(parse(line))
        except (ValueError, InvalidOperation) as e:
            bad.append(f"{line!r} ({type(e).__name__})")
    table = [ROW.format("name", "price", "tax"), "-" * 31]
    table += [
        ROW.format(
            i.name[:12], str(i.gross().quantize(Decimal("0.01"))), "yes" if i.taxed else "no"
        )
        for i in items
    ]
    s += "\n" + "\n".join(table) + "\n"
    if bad:
        s += textwrap.fill("Could not read: " + ", ".join(bad), width=40) + "\n"
        s += "Apology:" + sgc.gen("sorry", max_tokens=20)
    total = sum((i.gross() for i in items), Decimal(0))
    return {"total": str(total.quantize(Decimal("0.01"))), "n": len(items), "bad": bad}


ARGUMENTS = [{"receipt": "milk 1.19 bread 2"}, {"receipt": ""}]
REPLIES = [
    "milk | 1,00\nbread | 2.50 | exempt",
    "milk | one",
    "tea",
    "",
    "cheese | 3 | x\nham | 4,5",
]
