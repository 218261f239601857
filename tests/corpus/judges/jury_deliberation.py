"""Six jurors vote until they are unanimous or the third ballot is over; arguments are passed on."""

from collections import Counter
from contextlib import contextmanager

import sgc

N = 6


@contextmanager
def session(s, title):
    s += "--- " + title + " ---\n"
    try:
        yield
    finally:
        s += "--- closed ---\n"


@sgc.function
def program(s, case: str, charge: str):
    s += "You are a juror.\n"
    s += "The case: " + case + "\n"
    s += "The charge: " + charge + "\n"

    arguments = []
    for ballot in range(1, 4):
        jurors = s.fork(N)
        for k in range(N):
            juror = jurors[k]
            if arguments:
                juror += "What other jurors said:\n"
                for a in arguments[-3:]:
                    juror += "* " + a + "\n"
            juror += "I am juror number " + str(k + 1) + " and I vote "
            juror += sgc.select("vote", choices=["guilty", "not guilty"])
            juror += ". My argument:" + sgc.gen("argument", max_tokens=30, stop=["\n", "."])
        votes = [j["vote"] for j in jurors]
        (favourite, count), *others = Counter(votes).most_common()
        with session(s, "Ballot %d" % ballot):
            s += "%d of %d vote %s\n" % (count, N, favourite)
        if not others:
            verdict = favourite
            break
        # the minority explains itself
        minority, _ = others[-1]
        for j in jurors:
            if j["vote"] == minority and j["argument"].strip() != "":
                arguments.append(j["argument"].strip())
    else:
        s += "The jury is hung."
        return "hung", len(arguments)

    s += "The verdict is: " + verdict + "\nThe foreman explains:"
    s += sgc.gen("explanation", max_tokens=60)
    return verdict, len(arguments)


ARGUMENTS = [
    {"case": "A cake vanished from a shop. Crumbs were found in Mr Hill's car.", "charge": "theft"},
    {"case": "", "charge": "none"},
]
REPLIES = [
    " the crumbs prove it.",
    " anyone could have put them there",
    " ",
    " he was at home\nall day",
    " I am tired.",
]
