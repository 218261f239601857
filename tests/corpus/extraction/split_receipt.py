"""Splits the bill of a restaurant: each item of the receipt is given to the persons who had it."""

from decimal import ROUND_HALF_UP, Decimal

import sgc

CENT = Decimal("0.01")


def money(value) -> Decimal:
    return Decimal(value).quantize(CENT, rounding=ROUND_HALF_UP)


def read_receipt(receipt: str) -> list[tuple[str, Decimal]]:
    items = []
    for line in receipt.splitlines():
        name, _, price = line.rpartition(" ")
        if name and price.replace(".", "", 1).isdigit():
            items.append((name.strip(), money(price)))
    return items


@sgc.function
def program(s, receipt: str, story: str, people: list[str], tip_percent: int = 10):
    items = read_receipt(receipt)
    owes = {person: Decimal(0) for person in people}
    unknown = []
    s += f"{story}\n"
    for name, price in items:
        s += f"Who had the {name} ({price})? Names or 'all':"
        s += sgc.gen("who", max_tokens=12, stop="\n") + "\n"
        answer = s["who"].strip().rstrip(".")
        if answer.lower() in {"all", "everybody", "everyone"}:
            eaters = people
        else:
            eaters = [p for p in people if p.lower() in answer.lower()]
        if not eaters:
            unknown.append(name)
            continue
        share = price / len(eaters)
        for person in eaters:
            owes[person] += share
    if unknown and people:
        s += f"Nobody had {' and '.join(unknown)}. Who pays for that? "
        s += sgc.select("payer", choices=people) + "\n"
        prices = dict(items)
        owes[s["payer"]] += sum(prices[name] for name in unknown)
    bill = {p: money(v * (100 + tip_percent) / 100) for p, v in owes.items()}
    total = sum(bill.values(), Decimal(0))
    for person, amount in bill.items():
        s += f"{person:.<12}{amount:.>8}\n"
    expected = money(sum((p for _, p in items), Decimal(0)) * (100 + tip_percent) / 100)
    return {p: str(a) for p, a in bill.items()}, abs(total - expected) <= CENT * 3


ARGUMENTS = [
    {
        "receipt": "Pizza 11.50\nWine 20\nThank you!\nTiramisu 6.40",
        "story": "Lea had pizza, Max shared the wine with her.",
        "people": ["Lea", "Max", "Kim"],
    },
    {"receipt": "Water 1", "story": "", "people": []},
]
REPLIES = [" Lea", " Lea and Max.", " all", " the dog", ""]
