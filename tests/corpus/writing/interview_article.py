"""Turns an interview transcript into an article, with quotes that are checked word by word."""

import sgc

Turn = tuple[str, str]


def parse_transcript(text: str) -> list[Turn]:
    turns: list[Turn] = []
    for line in text.splitlines():
        speaker, colon, words = line.partition(":")
        if colon and speaker.isupper():
            turns.append((speaker.title(), words.strip()))
        elif turns and line.strip():
            # a continued line
            who, said = turns.pop()
            turns.append((who, said + " " + line.strip()))
    return turns


def is_verbatim(quote: str, said: str) -> bool:
    def norm(t):
        return "".join(c for c in t.lower() if c.isalnum())

    return bool(norm(quote)) and norm(quote) in norm(said)


@sgc.function
def pick_quote(s, question: str, answer: str):
    s += f"Question: {question}\nAnswer: {answer}\n"
    for attempt in range(2):
        s += "The best words, verbatim:" + sgc.gen("quote", max_tokens=32, stop="\n") + "\n"
        quote = s["quote"].strip().strip('"')
        if is_verbatim(quote, answer):
            return quote
        s += "That is not verbatim.\n"
    return None


@sgc.function
def program(s, transcript: str, interviewer: str = "Q"):
    turns = parse_transcript(transcript)
    pairs = []
    for (who, question), (other, answer) in zip(turns, turns[1:]):
        if who.lower() == interviewer.lower() != other.lower():
            pairs.append((question, other, answer))
    quotes = []
    for question, person, answer in pairs:
        quote = pick_quote(question, answer).ret_value
        if quote is None:
            quote = answer.split(".")[0]  # the first sentence is always right
        quotes.append((person, quote))
    people = sorted({person for person, _ in quotes})
    if not people:
        return "(no interview)"
    s += f"An article about {' and '.join(people)} with these quotes:\n"
    for person, quote in quotes:
        s += f'- {person}: "{quote}"\n'
    s += "Article:" + sgc.gen("article", max_tokens=200)
    article = s["article"].strip()
    unused = [q for _, q in quotes if q.lower() not in article.lower()]
    if unused:
        article += "\n\n" + "\n".join(f'"{q}"' for q in unused)
    return article


ARGUMENTS = [
    {"transcript": "Q: How was it?\nMAYA: It was cold\nand dark.\nQ: Now?\nMAYA: Now we are ten."},
    {"transcript": "hello"},
    {"transcript": "HOST: Well?\nBO: No.", "interviewer": "host"},
]
REPLIES = [
    ' "It was cold and dark"',
    " Now we are ten",
    " It began in a warm garage",
    " No.",
    " In a garage, says Maya, nobody is alone. Now we are ten.",
]
