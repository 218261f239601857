"""A quiz master asks from a question bank, checks leniently, and keeps score, streaks and lives."""

import difflib
import functools

import sgc

BANK = [
    {"q": "Which metal is liquid at room temperature?", "a": ["mercury"], "points": 10},
    {"q": "Who wrote Emma?", "a": ["Jane Austen", "Austen"], "points": 20},
    {"q": "How many sides has a hexagon?", "a": ["six", "6"], "points": 10},
    {"q": "What is the chemical sign of gold?", "a": ["Au"], "points": 30},
]


def lenient(check):
    """Lets a check see answers without case, blanks and punctuation."""

    @functools.wraps(check)
    def wrapper(given, *args):
        return check(given.strip(" .!").lower(), *args)

    return wrapper


@lenient
def is_right(given: str, accepted: list[str]) -> bool:
    for a in accepted:
        if given == a.lower():
            return True
        if len(a) > 4 and difflib.SequenceMatcher(None, given, a.lower()).ratio() > 0.8:
            return True
    return False


@sgc.function
def program(s, contestant: str, bank: list[dict] = BANK, lives: int = 2):
    s += sgc.system("You are the contestant of a quiz. Answer in one or two words.")
    score = 0
    streak = best_streak = 0
    misses = []
    for number, item in enumerate(bank, start=1):
        bonus = streak * 5
        s += sgc.user(
            f"Question {number} for {item['points']} points (+{bonus} bonus): {item['q']}"
        )
        s += sgc.assistant(sgc.gen(f"answer_{number}", max_tokens=8, stop="\n"))
        if is_right(s[f"answer_{number}"], item["a"]):
            score += item["points"] + bonus
            streak += 1
            best_streak = max(best_streak, streak)
            s += sgc.user("Correct!")
        else:
            misses.append(number)
            streak = 0
            lives -= 1
            s += sgc.user(
                f"Sorry, it is {item['a'][0]}. " + (f"{lives} lives left." if lives else "")
            )
            if lives == 0:
                s += sgc.user("Game over!")
                break
    else:
        s += sgc.user(f"{contestant} has answered all the questions! Any last words?")
        s += sgc.assistant(sgc.gen("last_words", max_tokens=24))
    return {"score": score, "best_streak": best_streak, "misses": misses}


ARGUMENTS = [
    {"contestant": "Ada"},
    {"contestant": "Bob", "bank": BANK[2:], "lives": 1},
    {"contestant": "Eve", "bank": []},
]
REPLIES = ["Mercury.", "jane austin", "6", "Au", "I have no idea", "six"]
