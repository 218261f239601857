"""Hangman. The computer picks the word, the model guesses letters."""

import sgc

PICTURES = ["", "|", "|-", "|-o", "|-o<", "|-o<-", "|-o<-<"]


def show(word, guessed):
    result = ""
    for letter in word:
        if letter in guessed:
            result = result + letter + " "
        else:
            result = result + "_ "
    return result


@sgc.function(max_turns=15)
def program(s, word: str):
    word = word.lower()
    guessed = []
    wrong = 0
    s += "Let's play hangman! The word has " + str(len(word)) + " letters.\n"
    while True:
        s += show(word, guessed) + "   " + PICTURES[wrong] + "\n"
        s += "Letters so far: " + " ".join(sorted(guessed)) + "\n"
        s += "Your guess: "
        s += sgc.gen("letter", regex="[a-z]")
        s += "\n"
        letter = s["letter"]
        if letter in guessed:
            s += "You already said that!\n"
            wrong = wrong + 1
        elif letter in word:
            s += "Yes!\n"
            guessed.append(letter)
        else:
            s += "No!\n"
            guessed.append(letter)
            wrong = wrong + 1

        missing = 0
        for c in word:
            if c not in guessed:
                missing = missing + 1
        if missing == 0:
            s += "You won! The word was " + word + "."
            return "won"
        if wrong == len(PICTURES) - 1:
            s += "You lost! The word was " + word + "."
            return "lost"


ARGUMENTS = [{"word": "tea"}, {"word": "Mississippi"}, {"word": "a"}]
REPLIES = ["a", "e", "t", "s", "i", "z"]
