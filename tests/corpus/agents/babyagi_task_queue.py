"""BabyAGI in small: tasks are done, new ones are created from results, the queue is reordered."""

from collections import deque

import sgc

OBJECTIVE_TEMPLATE = "You are an AI working towards this objective: {objective}."


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
        s += f"\n*** TASK {iteration + 1} ***\n{task}\nResult:"
        s += sgc.gen("result", max_tokens=80, stop="***")
        result = s["result"].strip()
        done.append({"task": task, "result": result})

        # task creation agent
        pending = ", ".join(tasks) or "none"
        s += f"\nIncomplete tasks: {pending}\nNew tasks, one a line:\n"
        s += sgc.gen("created", max_tokens=60, stop="\n\n")
        for line in s["created"].split("\n"):
            new = clean(line)
            if new and new not in tasks and all(new != d["task"] for d in done):
                tasks.append(new)

        # prioritisation agent: only if there is something to prioritise
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
    "3",
]
