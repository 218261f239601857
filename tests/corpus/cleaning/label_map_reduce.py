"""Map-reduce over reviews: sgc.map labels, Counter and zip aggregate, a report with nested f-strings."""

from collections import Counter

import sgc


@sgc.function
def label(s, review: str):
    s += f"Review: {review}\nSentiment: " + sgc.select(
        "sentiment", choices=["good", "bad", "mixed"]
    )
    s += "\nTopic:" + sgc.gen("topic", max_tokens=4, stop="\n")
    return s["sentiment"], s["topic"].strip().lower() or "other"


@sgc.function
def program(s, reviews: list[str], top: int = 2):
    states = sgc.map(label, reviews)
    pairs = states.returns
    sentiments = Counter(sentiment for sentiment, _ in pairs)
    topics = Counter(topic for _, topic in pairs)
    width = max((len(t) for t in topics), default=0)
    for topic, n in sorted(topics.items(), key=lambda kv: (-kv[1], kv[0]))[:top]:
        s += f"{topic:<{width}} {'#' * n} {n / len(reviews):.0%}\n"
    s += f"{sentiments['good']=} {sentiments['bad']=}\nReport:" + sgc.gen("report", max_tokens=24)
    return dict(sentiments), s["report"]


ARGUMENTS = [{"reviews": ["Great food", "Slow service", "ok"]}, {"reviews": []}]
REPLIES = [" food", " Service", "", " People like it."]
