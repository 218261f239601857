"""A travel budget in several currencies: expenses are read, converted, and kept per day."""

from collections import defaultdict

import sgc

RATES = {"EUR": 1.0, "USD": 0.92, "CHF": 1.05, "CZK": 0.04}


@sgc.tool(effect="pure")
def rate(currency: str) -> float:
    """EUR for one unit."""
    if currency not in RATES:
        raise KeyError(currency)
    return RATES[currency]


def bar(value: float, limit: float, width: int = 10) -> str:
    n = min(round(width * value / limit), width) if limit else width
    return "#" * n + "." * (width - n)


@sgc.function
def program(s, diary: dict[str, list[str]], per_day: float):
    """diary: for each day the expenses as somebody noted them."""
    spent: defaultdict[str, float] = defaultdict(float)
    unread = []
    for day, notes in diary.items():
        s += f"== {day} ==\n"
        for note in notes:
            s += f"'{note}' as AMOUNT CURRENCY: "
            s += sgc.gen("expense", max_tokens=8, stop="\n") + "\n"
            amount, *currency = s["expense"].upper().split() or ["?"]
            code = currency[0] if currency else "EUR"
            try:
                euros = float(amount) * rate(code)
            except KeyError as e:
                s += f"I do not know the currency {e}.\n"
                unread.append(note)
            except ValueError:
                unread.append(note)
            else:
                spent[day] += euros
        s += f"[{bar(spent[day], per_day)}] {spent[day]:.2f} EUR\n"

    total = sum(spent.values())
    allowed = per_day * len(diary)
    over = [day for day, value in spent.items() if value > per_day]
    s += f"Total: {total:.2f} of {allowed:.2f} EUR\n"
    if total > allowed:
        s += f"{total - allowed:.2f} EUR too much, most on {max(spent, key=spent.get)}. Advice:"
        s += sgc.gen("advice", max_tokens=40, stop="\n")
    elif over:
        s += "On the whole fine, but not on " + " and ".join(over) + "."
    days = {day: round(value, 2) for day, value in spent.items()}
    return {"days": days, "unread": unread, "ok": total <= allowed}


ARGUMENTS = [
    {
        "diary": {"Mon": ["train to Zurich, 61 francs", "lunch 18"], "Tue": ["museum 300 crowns"]},
        "per_day": 9.0,
    },
    {"diary": {}, "per_day": 0.0},
]
REPLIES = ["61 CHF", "18", "300 czk", "12 gold", "a lot", "", " Eat at home."]
