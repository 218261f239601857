"""Puts a newsletter together: links are summarised at once, the intro comes last."""

import sgc

STYLE = {"developers": "dry and precise", "parents": "warm", "everyone": "simple"}


def interest(item):
    """Sort key: the higher the rating the earlier; ties by the shorter title."""
    return (-item["rating"], len(item["title"]))


@sgc.function
def program(s, audience: str, links: list[dict], max_items: int = 3):
    s += sgc.system(
        f"You write a weekly newsletter for {audience}. Style: {STYLE.get(audience, 'plain')}."
    )

    items = []
    forks = s.fork(len(links)) if links else []
    for f, link in zip(forks, links):
        f += sgc.user(f"{link['title']}\n\n{link.get('text') or '(no text, only the title)'}")
        with f.assistant():
            if link.get("text"):
                f += "Summary: " + sgc.gen("summary", max_tokens=40, stop="\n") + "\n"
            f += "Interest from 1 to 5: " + sgc.select("rating", choices=list("12345"))
        items.append(
            {
                "title": link["title"],
                "summary": f["summary"].strip() if link.get("text") else "",
                "rating": int(f["rating"]),
            }
        )
    items.sort(key=interest)
    top, rest = items[:max_items], items[max_items:]
    top = [item for item in top if item["rating"] > 1]
    if not top:
        s += sgc.user("There is nothing interesting this week. Write an apology.")
        s += sgc.assistant(sgc.gen("intro", max_tokens=48))
        return

    titles = ", ".join(item["title"] for item in top)
    s += sgc.user(f"An intro of two sentences that leads to: {titles}.")
    s += sgc.assistant(sgc.gen("intro", max_tokens=64))
    letter = [s["intro"].strip(), ""]
    for n, item in enumerate(top, 1):
        stars = "★" * item["rating"] + "☆" * (5 - item["rating"])
        letter.append(f"{n}. {item['title']} {stars}")
        if item["summary"]:
            letter.append(f"   {item['summary']}")
    if rest:
        letter += ["", "Also: " + "; ".join(item["title"] for item in rest)]
    pages, lines = divmod(len(letter), 40)
    s += sgc.user("\n".join(letter) + f"\n-- {pages} pages and {lines} lines --")


ARGUMENTS = [
    {
        "audience": "developers",
        "links": [
            {"title": "A faster parser", "text": "It reads 2 GB a second."},
            {"title": "Why tabs"},
            {"title": "Postgres tips", "text": "Use indexes."},
            {"title": "Old news", "text": ""},
        ],
        "max_items": 2,
    },
    {"audience": "cats", "links": []},
]
REPLIES = [
    "A parser that reads two gigabytes a second.",
    "This week: speed.",
    "",
    "Sorry, nothing happened.\nReally",
]
