"""A fork into as many children as a list has items."""

import sgc


@sgc.function
def a_child_for_each(s, claims: list[str]):
    s += "Claims:\n"
    forks = s.fork(len(claims))
    for f, claim in zip(forks, claims, strict=True):
        f += claim + ": " + sgc.gen("verdict", max_tokens=8)
    forks.join()
    s += sgc.join("\n", s["verdict"]) + sgc.gen("summary")
