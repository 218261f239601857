"""Guess my number: higher, lower, and a comparison with the best possible strategy."""

import math

import sgc

guesses_needed = lambda low, high: math.ceil(math.log2(max(high - low + 1, 2)))  # noqa: E731


@sgc.function
def program(s, secret: int, low: int = 1, high: int = 100):
    s += "I am thinking of a number between %d and %d.\n" % (low, high)
    allowed = guesses_needed(low, high)
    wasted = 0
    for i in range(allowed):
        s += "Guess " + str(i + 1) + ": "
        s += sgc.gen("guess", regex=r"\d{1,3}") + "\n"
        guess = int(s["guess"])
        if guess == secret:
            s += "Correct! "
            if i + 1 < allowed:
                s += "And that with only " + str(i + 1) + " guesses."
            break
        if not low <= guess <= high:
            s += "You know that it is between %d and %d!\n" % (low, high)
            wasted += 1
        elif guess < secret:
            s += "Higher.\n"
            low = guess + 1
        else:
            s += "Lower.\n"
            high = guess - 1
    else:
        s += f"It was {secret}. You still had {high - low + 1} numbers to choose from.\n"
        s += "How will you do better?" + sgc.gen("plan", max_tokens=40, stop="\n")
        return {"found": False, "wasted": wasted}
    return {"found": True, "wasted": wasted, "efficiency": round(allowed / (i + 1), 2)}


ARGUMENTS = [{"secret": 42}, {"secret": 7, "low": 5, "high": 8}, {"secret": 3, "low": 3, "high": 3}]
REPLIES = ["50", "42", "25", "7", "3", "75", " I will halve the range."]
