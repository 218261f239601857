"""Quotes first: exact quotes are extracted and checked against the text before the answer."""

import sgc


def normalise(text: str) -> str:
    return " ".join(text.lower().replace("’", "'").split())


def find_quote(quote: str, document: str) -> tuple[bool, int]:
    position = normalise(document).find(normalise(quote))
    return position >= 0, position


@sgc.function
def program(s, document: str, question: str, n_quotes: int = 3, retries: int = 1):
    s += sgc.user(
        f"<doc>{document}</doc>\nFind up to {n_quotes} quotes relevant to: {question}\n"
        'One a line, in double quotes. If there are none, write "No relevant quotes".'
    )
    good: list[str] = []
    for attempt in range(retries + 1):
        s += sgc.assistant("Quotes:\n" + sgc.gen("quotes", max_tokens=120))
        if "no relevant quotes" in s["quotes"].lower():
            break
        lines = [line.strip(" -\t") for line in s["quotes"].splitlines()]
        quotes = [line[1:-1] for line in lines if len(line) > 2 and line[0] == line[-1] == '"']
        wrong = []
        for quote in quotes[:n_quotes]:
            exact, _ = find_quote(quote, document)
            if exact:
                good.append(quote)
            else:
                wrong.append(quote)
        if good and not wrong:
            break
        if attempt < retries:
            s += sgc.user(
                "These are not in the document: " + "; ".join(wrong) if wrong else "Quotes, please."
            )
    if not good:
        s += sgc.user("Then say politely that you cannot answer.")
        s += sgc.assistant(sgc.gen("answer", max_tokens=32))
        return {"answer": None, "quotes": []}
    good.sort(key=lambda q: find_quote(q, document)[1])
    s += sgc.user("Now answer with these quotes:\n" + "\n".join(f"> {q}" for q in good))
    s += sgc.assistant(sgc.gen("answer", max_tokens=64))
    return {"answer": s["answer"], "quotes": good}


ARGUMENTS = [
    {
        "document": "The tenant pays the rent by the 3rd. Pets are allowed. Smoking is not.",
        "question": "May I keep a dog?",
    },
    {"document": "", "question": "May I?", "retries": 0},
]
REPLIES = [
    '"Pets are allowed."\n"The tenant pays the rent"',
    '- "Dogs are allowed."\n- "Pets are allowed."',
    "No relevant quotes",
    "Yes, you may.",
]
