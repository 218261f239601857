"""Two debaters argue over a motion for some rounds; a judge who saw all of it picks the winner."""

from typing import Literal

import sgc

Side = Literal["PRO", "CON"]


def render(transcript):
    out = []
    for speaker, speech in transcript:
        out.append("%-4s: %s" % (speaker, speech))
    return "\n".join(out)


@sgc.function
def speak(s, motion: str, side: Side, so_far: str):
    s += sgc.system(
        f"You are a debater. You argue {'for' if side == 'PRO' else 'against'} the motion."
    )
    s += sgc.user(
        f"Motion: {motion}\n\nSo far:\n{so_far or '(you open)'}\n\nYour speech, two sentences:"
    )
    s += sgc.assistant(sgc.gen("speech", max_tokens=100))
    return s["speech"].strip()


@sgc.function
def program(s, motion: str, rounds: int = 2):
    transcript = []
    conceded = None
    for r in range(rounds):
        for side in ("PRO", "CON"):
            speech = speak(motion, side, render(transcript[-4:])).ret_value
            transcript.append((side, speech))
            if "i concede" in speech.lower():
                conceded = side
                break
        if conceded:
            break

    if conceded is not None:
        winner = "CON" if conceded == "PRO" else "PRO"
        s += f"{conceded} conceded in round {r + 1}. {winner} wins."
        return winner

    s += sgc.system("You are the judge of a debate. You did not have an opinion before.")
    s += sgc.user(f"Motion: {motion}\n\n" + render(transcript) + "\n\nWho was more convincing?")
    with s.assistant():
        s += "Strongest point for: " + sgc.gen("pro_point", max_tokens=48, stop="\n") + "\n"
        s += "Strongest point against: " + sgc.gen("con_point", max_tokens=48, stop="\n") + "\n"
        s += "Winner: " + sgc.select("winner", choices=["PRO", "CON"])
    words = {"PRO": 0, "CON": 0}
    for side, speech in transcript:
        words[side] += len(speech.split())
    s += sgc.user(f"(PRO used {words['PRO']} words, CON {words['CON']}.)")
    return s["winner"]


ARGUMENTS = [
    {"motion": "This house would ban homework."},
    {"motion": "Cats are better than dogs", "rounds": 1},
    {"motion": "…", "rounds": 0},
]
REPLIES = [
    "Homework takes from children the only hours that are theirs. Nobody learns while asleep.",
    "My opponent forgets that practice makes perfect.",
    "You are right, I concede.",
    "Let me give three numbers: 4, 8 and 15.",
    "",
]
