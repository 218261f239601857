"""Two models talk: an interviewer asks, a candidate answers, an observer grades each answer."""

from statistics import mean

import sgc


@sgc.function
def candidate(s, resume: str, asked: list[tuple[str, str]], question: str):
    s += sgc.system(f"You are a candidate for a job. Your resume: {resume}")
    for q, a in asked[-2:]:
        s += sgc.user(q)
        s += sgc.assistant(a)
    s += sgc.user(question)
    s += sgc.assistant(sgc.gen("answer", max_tokens=80))
    return s["answer"]


@sgc.function
def grade(s, question: str, answer: str):
    s += f"Question: {question}\nAnswer: {answer}\nGrade from 1 (bad) to 5 (great): "
    s += sgc.gen("grade", dtype=int)
    return min(max(int(s["grade"]), 1), 5)


@sgc.function
def program(s, job: str, resume: str):
    s += sgc.system(f"You interview candidates for the job: {job}. One short question at a time.")
    talk, grades = [], []
    s += sgc.user("How many questions will you ask?")
    s += sgc.assistant(sgc.gen("n", regex="[0-4]"))
    for _ in range(int(s["n"])):
        s += sgc.assistant(sgc.gen("question", max_tokens=32))
        question = s["question"].strip()
        if not question.endswith("?"):
            question += "?"
        answer = candidate(resume, talk, question).ret_value
        s += sgc.user(answer)
        talk.append((question, answer))
        grades.append(grade(question, answer).ret_value)
        if grades[-2:] == [1, 1]:
            s += sgc.assistant("Thank you, that is all.")
            return "stopped", grades
    if not grades:
        return "nothing was asked", grades
    average = mean(grades)
    s += sgc.user("Would you hire me?")
    s += sgc.assistant(sgc.select("decision", choices=["Yes", "No", "Maybe"]))
    if s["decision"] == "Maybe":
        decision = "Yes" if average >= 3 else "No"
    else:
        decision = s["decision"]
    return f"{decision} ({average:.1f})", grades


ARGUMENTS = [
    {"job": "gardener", "resume": "Ten years in a nursery for roses."},
    {"job": "pilot", "resume": ""},
]
REPLIES = ["What do you do against aphids?", "Tell me about you", "I use ladybirds.", ""]
