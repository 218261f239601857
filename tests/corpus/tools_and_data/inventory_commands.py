"""Free text to commands for a warehouse: commands are checked, applied, undone when they fail."""

from contextlib import contextmanager
from copy import deepcopy

import sgc


class OutOfStock(Exception):
    pass


class Warehouse:
    def __init__(self, stock: dict[str, int]):
        self.stock = dict(stock)
        self.log: list[str] = []

    def apply(self, verb: str, item: str, n: int) -> None:
        have = self.stock.get(item, 0)
        if verb == "add":
            self.stock[item] = have + n
        elif verb == "remove":
            if n > have:
                raise OutOfStock(f"{item}: {have} left, {n} wanted")
            self.stock[item] = have - n
        elif verb != "count":
            raise ValueError(f"unknown command {verb}")
        self.log.append(f"{verb} {n} {item}")

    @contextmanager
    def transaction(self):
        before = deepcopy(self.stock)
        try:
            yield
        except OutOfStock:
            self.stock = before
            raise


@sgc.function
def program(s, stock: dict[str, int], orders: list[str]):
    house = Warehouse(stock)
    s += "Commands: add N ITEM, remove N ITEM, count ITEM. One a line.\n"
    failed = 0
    for order in orders:
        s += f"{order}\nCommands:\n" + sgc.gen("commands", max_tokens=40, stop="\n\n") + "\n"
        try:
            with house.transaction():
                for line in s["commands"].splitlines():
                    match line.lower().split():
                        case ["add" | "remove" as verb, n, item] if n.isdigit():
                            house.apply(verb, item, int(n))
                        case ["count", item]:
                            house.apply("count", item, 0)
                            s += f"There are {house.stock.get(item, 0)} {item}.\n"
                        case [verb, *_]:
                            house.apply(verb, "", 0)
        except (OutOfStock, ValueError) as e:
            failed += 1
            s += f"Not done ({e})." + sgc.gen("sorry", max_tokens=24, stop="\n") + "\n"
    empty = [item for item, n in house.stock.items() if n == 0]
    s += "Reorder: " + (", ".join(sorted(empty)) or "nothing")
    return {"stock": house.stock, "failed": failed, "log": house.log}


ARGUMENTS = [
    {"stock": {"bolts": 100, "nuts": 5}, "orders": ["100 bolts", "How many nuts?", "6 nuts!"]},
    {"stock": {}, "orders": []},
]
REPLIES = ["remove 100 bolts\nadd 10 nuts", "count nuts", "add 1 bolts\nremove 60 nuts", "sell", ""]
