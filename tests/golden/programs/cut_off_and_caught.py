"""A join that cuts off the losers, a tool's failure that is handled, and a video, for the golden
file of the ops that these are made of."""

import sgc


@sgc.tool(effect="pure")
def look_up(word: str) -> str:
    return {"tea": "a drink"}[word]


@sgc.function
def cut_off_and_caught(s, clip, word: str):
    s += sgc.user(sgc.video(clip, 4) + word)
    try:
        s += look_up(word)
    except KeyError as error:
        s += f"not found: {error}"
    forks = s.fork(3)
    for fork in forks:
        fork += sgc.gen("view", max_tokens=5)
    forks.join(mode="first", when=lambda fork: fork["view"] != "no")
    s += "First: " + s["view"][0]
