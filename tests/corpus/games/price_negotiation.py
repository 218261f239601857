"""A buyer and a seller, each with a secret limit, haggle over a used bike."""

import re
from dataclasses import dataclass, field

import sgc

MONEY = re.compile(r"\$\s?(\d+(?:\.\d\d)?)")


@dataclass
class Party:
    role: str
    limit: float
    offers: list[float] = field(default_factory=list)

    def brief(self, item: str) -> str:
        bound = "at most" if self.role == "buyer" else "at least"
        return f"You are the {self.role} of {item}. Secret limit: {bound} ${self.limit:.2f}."

    def acceptable(self, price: float) -> bool:
        return price <= self.limit if self.role == "buyer" else price >= self.limit

    def last(self) -> float | None:
        return self.offers[-1] if self.offers else None


@sgc.function
def turn(s, brief: str, history: list[str]):
    s += sgc.system(brief)
    for i, line in enumerate(history):
        if (len(history) - i) % 2:
            s += sgc.user(line)
        else:
            s += sgc.assistant(line)
    if not history:
        s += sgc.user("(You begin.)")
    s += sgc.assistant(sgc.gen("line", max_tokens=48, stop="\n"))


@sgc.function
def program(s, item: str, buyer_limit: float, seller_limit: float, max_rounds: int = 6):
    buyer, seller = Party("buyer", buyer_limit), Party("seller", seller_limit)
    history: list[str] = []
    deal = None
    for i in range(max_rounds):
        me, other = (buyer, seller) if i % 2 == 0 else (seller, buyer)
        line = turn(me.brief(item), history[-5:])["line"]
        history.append(line)
        if m := MONEY.search(line):
            me.offers.append(float(m[1]))
        price = other.last()
        if "deal" in line.lower() and price is not None and me.acceptable(price):
            deal = price
            break
        if "walk away" in line.lower():
            break
    s += f"Negotiation about {item}\n" + "".join(f"  {h}\n" for h in history)
    s += f"Outcome: {'no deal' if deal is None else f'sold for ${deal:.2f}'}\nLesson:"
    s += sgc.gen("lesson", max_tokens=32, stop="\n")
    surplus = 0 if deal is None else min(buyer_limit - deal, deal - seller_limit)
    return {"deal": deal, "rounds": len(history), "fair": deal is not None and surplus >= 0}


ARGUMENTS = [
    {"item": "a used bike", "buyer_limit": 120.0, "seller_limit": 90.0},
    {"item": "a lamp", "buyer_limit": 5, "seller_limit": 50, "max_rounds": 3},
    {"item": "air", "buyer_limit": 0, "seller_limit": 0, "max_rounds": 0},
]
REPLIES = [
    "I can offer $80 for it.",
    "It is worth $ 110.50, look at the tyres.",
    "Deal!",
    "Deal, for $100.",
    "Then I walk away.",
    "Hm, let me think.",
]
