"""Self-refine: feedback and a score for each draft of a slogan, until it is good enough."""

import re

import sgc


def parse_score(text):
    found = re.search(r"(\d+)\s*/\s*10", text)
    if found:
        return min(int(found.group(1)), 10)
    return None


@sgc.function
def program(s, product: str, audience: str, target: int = 8):
    s += sgc.system("You write slogans and you are your own harshest critic.")
    s += sgc.user(f"Write a slogan for {product}. Audience: {audience}.")
    s += sgc.assistant(sgc.gen("drafts", n=3, max_tokens=32, temperature=0.9))
    draft = min(s["drafts"], key=len)
    s += sgc.user(f"Let us take this one: {draft}")
    best = draft
    best_score = 0
    history = []
    s += sgc.user("How many rounds of feedback do you want?")
    s += sgc.assistant(sgc.gen("rounds", regex="[1-3]"))
    for i in range(int(s["rounds"])):
        s += sgc.user("Give feedback on your slogan and a score as N/10.")
        s += sgc.assistant(sgc.gen("feedback", max_tokens=64))
        score = parse_score(s["feedback"])
        if score is None:
            s += sgc.user("You forgot the score. Only the number please.")
            s += sgc.assistant(sgc.gen("score", dtype=int))
            score = max(0, min(10, int(s["score"])))
        history.append(score)
        if score > best_score:
            best, best_score = draft, score
        if score >= target:
            break
        s += sgc.user(f"Improve it, please ({i + 1}).")
        s += sgc.assistant(sgc.gen("draft", max_tokens=32))
        draft = s["draft"]
    average = sum(history) / len(history)
    return f"{best.strip()} ({best_score}/10, average {average:.1f} over {len(history)})"


ARGUMENTS = [
    {"product": "a solar lamp", "audience": "campers"},
    {"product": "plain water", "audience": "everybody", "target": 11},
]
REPLIES = [
    "Light where you roam.",
    "Too long. 4/10",
    "Catchy and clear, 9 / 10.",
    "I like the rhyme.",
    "12/10!!",
]
