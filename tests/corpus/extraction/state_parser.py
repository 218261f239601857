"""A small parser class with methods that change state, used on a reply; errors of its own class."""

from dataclasses import dataclass

import sgc


class ParseError(ValueError):
    def __init__(self, message: str, position: int):
        super().__init__(f"{message} at {position}")
        self.position = position


@dataclass
class Scanner:
    text: str
    position: int = 0

    def peek(self) -> str:
        return self.text[self.position] if self.position < len(self.text) else ""

    def take(self, char: str) -> None:
        if self.peek() != char:
            raise ParseError(f"expected {char!r}", self.position)
        self.position += 1

    def word(self) -> str:
        start = self.position
        while self.peek().isalnum():
            self.position += 1
        if start == self.position:
            raise ParseError("expected a word", start)
        return self.text[start : self.position]


def parse_pairs(text: str) -> dict[str, str]:
    """key=value;key=value"""
    scan = Scanner(text)
    pairs = {}
    while scan.peek():
        key = scan.word()
        scan.take("=")
        pairs[key] = scan.word()
        if scan.peek() == ";":
            scan.take(";")
    return pairs


@sgc.function
def program(s, text: str):
    s += f"Text: {text}\nPairs as key=value;key=value:"
    for _ in range(3):
        s += sgc.gen("pairs", max_tokens=40, stop="\n")
        try:
            pairs = parse_pairs(s["pairs"].strip())
        except ParseError as e:
            s += f"\nError: {e} (column {e.position + 1}). Again:"
        else:
            break
    else:
        return None
    s += f"\n{len(pairs)} pairs: " + ", ".join(f"{k} is {v}" for k, v in sorted(pairs.items()))
    return pairs


ARGUMENTS = [{"text": "Red car of 2020"}]
REPLIES = ["color=red;year=2020", "color:red", "a=1;=2", "", "k=v"]
