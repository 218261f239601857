"""Likert ratings of a product text by several made-up respondents, with the average and a chart."""

import sgc

scale = ["strongly disagree", "disagree", "neutral", "agree", "strongly agree"]


def average(numbers):
    total = 0
    for number in numbers:
        total = total + number
    return total / len(numbers)


@sgc.function
def program(s, product: str, text: str, respondents: list[str]):
    ratings = []
    for respondent in respondents:
        person = s.fork(1)[0]
        person += "You are " + respondent + ". You have read this about " + product + ":\n" + text
        person += "\n'I want to buy it.' I "
        person += sgc.select("rating", choices=scale)
        number = scale.index(person["rating"]) + 1
        ratings.append(number)

    s += "Survey about " + product + "\n"
    for i in reversed(range(len(scale))):
        count = ratings.count(i + 1)
        s += scale[i].rjust(17) + " " + "#" * count + "\n"
    if len(ratings) == 0:
        s += "Nobody answered.\n"
    elif average(ratings) < 3:
        s += "Average: " + str(round(average(ratings), 1)) + ". A better text:"
        s += sgc.gen("better", max_tokens=100, stop="\n\n")
    else:
        s += "Average: " + str(round(average(ratings), 1)) + ". Well done!"


ARGUMENTS = [
    {
        "product": "a kettle",
        "text": "It boils water in no time. It will change your life!",
        "respondents": ["a retired teacher", "a student", "an engineer"],
    },
    {"product": "nothing", "text": "", "respondents": []},
]
REPLIES = [" A kettle that boils a litre in three minutes.", " Honest words.\n\nThe end", "", " 42"]
