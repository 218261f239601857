"""Customer support: a ticket is sorted into a queue with a deadline, and answered or escalated."""

import sgc

QUEUES = {
    "billing": ("finance", 24),
    "technical": ("engineering", 8),
    "complaint": ("care", 4),
    "other": ("front desk", 48),
}
SLA = {"business:technical": 2, "business:billing": 12, "free:other": 96}
ANGRY = {"angry", "furious"}


@sgc.function
def program(s, ticket: str, customer: dict[str, str]):
    plan = customer.get("plan", "free")
    s += sgc.system(f"You work in the support of a web host. The customer's plan: {plan}.")
    s += sgc.user(ticket)
    with s.assistant():
        s += "Category: " + sgc.select("kind", choices=list(QUEUES)) + "\n"
        s += "Mood: " + sgc.select("mood", choices=["calm", "angry", "furious"])
    queue, hours = QUEUES[s["kind"]]
    hours = SLA.get(f"{plan}:{s['kind']}", hours)
    if s["mood"] in ANGRY:
        hours = min(hours, 2)

    priority = "high" if hours <= 4 else "normal"
    header = f"[{queue.upper()}/{priority}] due in {hours}h"
    if priority == "high" and s["kind"] != "technical":
        s += sgc.user("Write two sentences for the colleague who will call the customer.")
        s += sgc.assistant(sgc.gen("note", max_tokens=60))
        return {"header": header, "note": s["note"].strip(), "reply": None}
    s += sgc.user(f"Reply to {customer['name']} in a friendly way. Do not promise anything.")
    s += sgc.assistant(f"Dear {customer['name']},\n" + sgc.gen("reply", max_tokens=100))
    reply = s["reply"]
    if "promise" in reply or "guarantee" in reply:
        s += sgc.user("You promised something. Again, please.")
        s += sgc.assistant(sgc.gen("reply", max_tokens=100))
        reply = s["reply"]
    return {"header": header, "note": None, "reply": reply}


ARGUMENTS = [
    {"ticket": "I was charged twice in May!!", "customer": {"name": "Ines", "plan": "business"}},
    {"ticket": "", "customer": {"name": "Bo"}},
]
REPLIES = [
    "we guarantee that the money will be back tomorrow.",
    "thank you for your message. We look into it.",
    "The customer is upset. Please call today.",
    "I promise!",
]
