"""BabyAGI in small: tasks are done, new ones are created from results, the queue is reordered."""

import logging
from collections import deque
from contextlib import contextmanager

import sgc

logger = logging.getLogger("babyagi")
OBJECTIVE_TEMPLATE = "You are an AI working towards this objective: {objective}."


@contextmanager
def banner(s, title):
    s += f"\n*** {title} ***\n"
    yield s
    s += "\n"


def clean(line):
    return line.lstrip("-*0123456789. ").strip()


@sgc.function
def program(s, objective: str, first_task: str, max_iterations: int = 3):
    tasks = deque([first_task])
    done = []
    s += OBJECTIVE_TEMPLATE.format(objective=objective) + "\n"

    iteration = 0
    for iteration in range(max_iterations):
        if not tasks:
            break
        task = tasks.popleft()
        with banner(s, f"task {iteration + 1}".upper()):
            s += f"{task}\nResult:"
            s += sgc.gen("result", max_tokens=80, stop="***")
        result = s["result"].strip()
        logger.info("%s: %s", task, result)
        done.append({"task": task, "result": result})

        # task creation agent
        pending = ", ".join(tasks) or "none"
        s += f"Incomplete tasks: {pending}\nNew tasks, one a line:\n"
        s += sgc.gen("created", max_tokens=60, stop="\n\n")
        for line in s["created"].split("\n"):
            new = clean(line)
            if new and new not in tasks and all(new != d["task"] for d in done):
                tasks.append(new)
        if len(tasks) > 1:
            s += "\nMost urgent task number (1-%d): " % len(tasks)
            s += sgc.gen("first", regex=r"[1-9]")
            k = int(s["first"]) - 1
            if k < len(tasks):
                tasks.rotate(-k)
    s += f"\nDone {len(done)} tasks, {len(tasks)} left.\n"
    return done


ARGUMENTS = [
    {"objective": "Plan a village fair", "first_task": "Make a todo list"},
    {"objective": "Solve world hunger", "first_task": "", "max_iterations": 0},
]
REPLIES = [
    "1. Book the band\n2. Rent tables\n3. Print posters",
    "Booked.",
    "- Make a todo list\n- Rent tables",
    "",
    "We need more volunteers",
]
