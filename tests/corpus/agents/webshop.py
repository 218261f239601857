"""An agent in a toy web shop: it types commands, the shop answers, the episode has a reward."""

import sgc

CATALOG = {
    "B01": {"title": "red mug", "price": 8.5},
    "B02": {"title": "blue mug", "price": 7.25},
    "B03": {"title": "red lamp", "price": 30.0},
}


class Shop:
    def __init__(self, budget: float) -> None:
        self.budget = budget
        self.cart: list[str] = []
        self.bought = False

    @property
    def total(self) -> float:
        return sum(CATALOG[item]["price"] for item in self.cart)

    def step(self, command: str) -> str:
        match command.lower().split():
            case ["search", *words] if words:
                hits = [
                    f"{code} {item['title']} ${item['price']:.2f}"
                    for code, item in CATALOG.items()
                    if any(w in item["title"] for w in words)
                ]
                return "\n".join(hits) or "No results."
            case ["add", code] if code.upper() in CATALOG:
                self.cart.append(code.upper())
                return f"Added. Total: ${self.total:.2f}"
            case ["add", code]:
                return f"There is no item {code}."
            case ["buy"] if not self.cart:
                return "Your cart is empty."
            case ["buy"]:
                if self.total > self.budget:
                    return f"Over budget by ${self.total - self.budget:.2f}"
                self.bought = True
                return "Thank you!"
            case []:
                return "Type a command."
            case _:
                return "Commands: search WORDS, add CODE, buy"


@sgc.function(max_turns=8)
def program(s, wish: str, budget: float, max_commands: int = 5):
    shop = Shop(budget)
    s += f"You shop online. Instruction: {wish} Budget: ${budget:.2f}.\n"
    n = 0
    while not shop.bought and n < max_commands:
        s += "> " + sgc.gen("command", max_tokens=12, stop="\n") + "\n"
        s += f"{shop.step(s['command'])}\n[{len(shop.cart)} in the cart]\n".lstrip()
        n += 1
    reward = 0.0
    if shop.bought and shop.cart:
        s += "Does the cart fulfil the instruction? " + sgc.select("ok", ["yes", "no"])
        reward = 1.0 if s["ok"] == "yes" else 0.5
    return {"cart": shop.cart, "reward": reward, "commands": n}


ARGUMENTS = [
    {"wish": "Red mugs.", "budget": 45.0, "max_commands": 7},
    {"wish": "Anything.", "budget": 0.0, "max_commands": 3},
]
REPLIES = ["search red mug", "add B01", "add b03", "buy", "", "please help", "add b99"]
