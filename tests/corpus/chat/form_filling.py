"""Fills a form slot by slot, each with a validator out of a table; retries with the error text."""

import re
from collections.abc import Callable

import sgc


def phone(text: str) -> str:
    digits = re.sub(r"\D", "", text)
    if len(digits) < 6:
        raise ValueError("too few digits")
    return f"{digits[:3]}-{digits[3:]}"


def email(text: str) -> str:
    if not re.fullmatch(r"[^@\s]+@[^@\s]+\.\w+", text):
        raise ValueError(f"{text!r} is no address")
    return text.lower()


def party(text: str) -> int:
    n = int(text)
    if n not in range(1, 9):
        raise ValueError("1 to 8 people")
    return n


SLOTS: dict[str, tuple[str, Callable[[str], object]]] = {
    "phone": ("What is your phone number?", phone),
    "email": ("And your email?", email),
    "party": ("How many are you?", party),
}


@sgc.function
def program(s, greeting: str, tries: int = 2):
    form, problems = {}, []
    s += greeting + "\n"
    for slot, (question, check) in SLOTS.items():
        for attempt in range(1, tries + 1):
            s += f"Bot: {question}\nUser:" + sgc.gen(slot, max_tokens=16, stop="\n") + "\n"
            try:
                form[slot] = check(s[slot].strip())
                break
            except ValueError as e:
                s += f"Bot: Sorry, {e}.\n"
                problems.append((slot, attempt))
        else:
            form[slot] = None
    missing = [slot for slot, value in form.items() if value is None]
    if missing:
        s += f"Bot: We will ask again for {' and '.join(missing)}."
    return form, problems


ARGUMENTS = [{"greeting": "Welcome!"}, {"greeting": "", "tries": 1}]
REPLIES = ["030 1234567", "Ann@Example.org", "4", "many", "12"]
