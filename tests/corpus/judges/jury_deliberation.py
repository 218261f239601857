"""Six jurors vote until they are unanimous or the third ballot is over; arguments are passed on."""

import sgc

N = 6


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
        n_guilty = votes.count("guilty")
        print_line = "Ballot %d: %d guilty, %d not guilty\n" % (ballot, n_guilty, N - n_guilty)
        s += print_line
        if n_guilty == N or n_guilty == 0:
            verdict = votes[0]
            break
        # the minority explains itself
        minority = "guilty" if n_guilty <= N // 2 else "not guilty"
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
