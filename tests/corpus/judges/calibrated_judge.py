"""A judge that is calibrated on human scores: its bias on known items is taken off new ones."""

import sgc


class Calibrator:
    """Keeps what the judge said and what humans said, and corrects by the mean difference."""

    def __init__(self, low=0, high=10):
        self.low = low
        self.high = high
        self.pairs = []

    def observe(self, judged, human):
        self.pairs.append((judged, human))

    @property
    def bias(self):
        if not self.pairs:
            return 0.0
        return sum(j - h for j, h in self.pairs) / len(self.pairs)

    def __call__(self, judged):
        return max(self.low, min(self.high, judged - self.bias))


@sgc.function
def rate(s, text: str, shots: list[tuple[str, int]]):
    s += "Rate how helpful each answer is, from 0 to 10.\n"
    for shot, score in shots:
        s += f"Answer: {shot}\nRating: {score}\n"
    s += f"Answer: {text}\nRating: " + sgc.gen("rating", regex=r"10|[0-9]")
    return int(s["rating"])


@sgc.function
def program(s, texts: list[str], known: list[tuple[str, int]]):
    calibrator = Calibrator()
    # leave one out: each known item is rated with the others as examples
    for i, (text, human) in enumerate(known):
        others = known[:i] + known[i + 1 :]
        calibrator.observe(rate(text, others).ret_value, human)

    rows = []
    for text in texts:
        raw = rate(text, known).ret_value
        rows.append({"text": text, "raw": raw, "score": round(calibrator(raw), 1)})
    rows.sort(key=lambda r: -r["score"])

    s += f"Bias of the judge: {calibrator.bias:+.2f}\n"
    for rank, row in enumerate(rows, start=1):
        s += "{rank}. {text} ({raw} -> {score})\n".format(rank=rank, **row)
    if abs(calibrator.bias) > 2:
        s += "The judge is too " + ("generous" if calibrator.bias > 0 else "harsh")
        s += ". A better instruction for it:" + sgc.gen("instruction", max_tokens=50, stop="\n")
    return rows


ARGUMENTS = [
    {
        "texts": ["Turn it off and on again.", "Have you tried reading the manual?"],
        "known": [("Press the red button for five seconds.", 9), ("lol", 0), ("It depends.", 3)],
    },
    {"texts": [], "known": [("ok", 5)]},
    {"texts": ["Yes."], "known": []},
]
REPLIES = ["7", "10", "0", "3", " Be strict: 10 is for answers that solve the problem."]
