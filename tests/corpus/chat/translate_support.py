"""Answers in the customer's language: detect, translate, answer, translate back, check length."""

from typing import Literal

import sgc

LANGUAGES = ["English", "German", "Spanish", "other"]
SORRY = {
    "German": "Entschuldigung, das habe ich nicht verstanden.",
    "Spanish": "Lo siento, no lo he entendido.",
}


@sgc.function
def translate(s, text: str, source: str, target: str):
    s += f"{source}: {text}\n{target}:"
    s += sgc.gen("translation", max_tokens=80, stop="\n")
    return s["translation"].strip()


@sgc.function(max_turns=6)
def program(s, message: str, tone: Literal["formal", "casual"] = "formal", max_chars: int = 60):
    s += f"Message: {message}\nLanguage: " + sgc.select("language", choices=LANGUAGES) + "\n"
    language = s["language"]
    if language == "other":
        return SORRY.get("English", "Sorry, I did not understand that.")

    foreign = language != "English"
    english = translate(message, language, "English").ret_value if foreign else message
    if not english:
        return SORRY[language]
    s += f"Question: {english}\n" + ("Be casual.\n" if tone == "casual" else "") + "Answer:"
    s += sgc.gen("answer", max_tokens=60, stop="\n") + "\n"
    answer = s["answer"].strip()

    tries = 0
    while len(answer) > max_chars:
        tries += 1
        if tries > 2:
            answer = answer[: max_chars - 1].rsplit(" ", 1)[0] + "…"
            break
        s += f"That has {len(answer)} characters, {len(answer) - max_chars} too many. Shorter:"
        s += sgc.gen("answer", max_tokens=40, stop="\n") + "\n"
        answer = s["answer"].strip()
    if foreign:
        answer = translate(answer, "English", language).ret_value
    return answer


ARGUMENTS = [
    {"message": "Wie lange dauert die Lieferung?"},
    {
        "message": "Hello, how do I reset the router and is it dangerous?",
        "tone": "casual",
        "max_chars": 20,
    },
    {"message": "🦊"},
]
REPLIES = [
    " How long does delivery take?",
    " Hold the button on the back for ten seconds, then wait until the light is green again.",
    " Three days.",
    "",
]
