"""Blackjack: the model bets, hits or stands; the dealer follows the rules."""

import random

import sgc

RANKS = ["A"] + [str(n) for n in range(2, 11)] + list("JQK")


def value(hand: list[str]) -> int:
    total = sum(11 if c == "A" else 10 if c in "JQK" else int(c) for c in hand)
    aces = hand.count("A")
    while total > 21 and aces:
        total -= 10
        aces -= 1
    return total


def shuffled(seed: int):
    deck = RANKS * 4
    random.Random(seed).shuffle(deck)
    return iter(deck)


@sgc.function(max_turns=10)
def program(s, purse: int, seed: int = 0):
    s += "You are playing blackjack. Win as much as you can.\n"
    s += "How many games, at most nine? " + sgc.gen("games", regex="[0-9]") + "\n"
    for number in range(int(s["games"])):
        if purse <= 0:
            s += "You are broke.\n"
            break
        deck = shuffled(seed + number)
        player, dealer = [next(deck), next(deck)], [next(deck), next(deck)]
        s += f"\nGame {number + 1}. You have {purse} coins and bet "
        s += sgc.gen("bet", regex="[1-9][0-9]?") + ".\n"
        bet = min(int(s["bet"]), purse)
        while value(player) < 21:
            s += f"You: {' '.join(player)} ({value(player)}). Dealer: {dealer[0]} ?\nYou "
            s += sgc.select("move", choices=["hit", "stand"]) + ".\n"
            if s["move"] == "stand":
                break
            player.append(next(deck))
        mine = value(player)
        while value(dealer) < 17 and mine <= 21:
            dealer.append(next(deck))
        theirs = value(dealer)
        if mine > 21:
            outcome, won = "bust", -bet
        elif theirs > 21 or mine > theirs:
            outcome, won = "win", bet
        elif mine == theirs:
            outcome, won = "push", 0
        else:
            outcome, won = "lose", -bet
        purse += won
        s += f"{mine} against {theirs}: {outcome} ({won:+d}).\n"
    s += "Comment:" + sgc.gen("comment", max_tokens=32, stop="\n")
    return purse


ARGUMENTS = [{"purse": 20, "seed": 7}, {"purse": 50, "seed": 20}, {"purse": 1}, {"purse": 0}]
REPLIES = ["5", "99", "1", " The house always wins."]
