"""A story in chapters, with a running summary that keeps prompts short, and a cast."""

import re
import textwrap

import sgc

NAME = re.compile(r"\b[A-Z][a-z]{2,}\b")
NOT_NAMES = {"The", "Then", "There", "They", "She", "When", "But", "And", "Chapter"}


@sgc.function
def summarise(s, summary: str, chapter: str):
    s += f"Story so far: {summary or 'nothing'}\nNew chapter: {chapter}\n"
    s += "The whole story so far in two sentences:" + sgc.gen("summary", max_tokens=64, stop="\n")
    return s["summary"].strip()


@sgc.function
def program(s, premise: str, titles: list[str], hero: str = "Iris"):
    summary = ""
    cast = {hero: 0}
    chapters = []
    for number, title in enumerate(titles, start=1):
        is_last = number == len(titles)
        f = s.fork(1)[0]
        f += f"Premise: {premise}\nHero: {hero}\n"
        if summary:
            f += textwrap.fill(f"So far: {summary}", 80) + "\n"
        others = [name for name in cast if name != hero]
        if others:
            f += f"Others: {', '.join(others[-4:])}\n"
        f += f"\nChapter {number}: {title}\n"
        f += "(Bring it to an end.)\n" if is_last else ""
        f += sgc.gen("chapter", max_tokens=200, stop="Chapter")
        text = f["chapter"].strip()
        if hero not in text:
            f += f"\n{hero} is missing. One more sentence about {hero}:"
            f += sgc.gen("more", max_tokens=32, stop="\n")
            text += " " + f["more"].strip()
        for name in NAME.findall(text):
            if name not in NOT_NAMES:
                cast[name] = cast.get(name, 0) + 1
        chapters.append(text)
        summary = summarise(summary, text).ret_value

    s += f"Summary: {summary}\nBlurb for the back cover:" + sgc.gen("blurb", max_tokens=48)
    s += "\n\n" + "\n\n".join(f"{n}. {t}\n{c}" for n, (t, c) in enumerate(zip(titles, chapters), 1))
    return {"blurb": s["blurb"], "cast": sorted(cast, key=cast.get, reverse=True)[:3]}


ARGUMENTS = [
    {"premise": "A town where nobody sleeps.", "titles": ["Noon at Night", "The Baker", "Dawn"]},
    {"premise": "", "titles": ["Only"], "hero": "Bo"},
    {"premise": "A blank page.", "titles": []},
]
REPLIES = [
    "Iris met the baker, Tomas, at three in the morning. Then Bo came.",
    "There was a light in every window.",
    " Iris yawned. Chapter",
    "",
    " The town never slept, and Mira knew why.",
]
