"""Parses a CV into dataclasses: one question for each section, years of experience are summed."""

import re
from dataclasses import asdict, dataclass, field

import sgc

HEADINGS = ("experience", "education", "skills")


@dataclass
class Job:
    title: str
    start: int
    end: int

    @property
    def years(self) -> int:
        return max(self.end - self.start, 0)


@dataclass
class CV:
    name: str = ""
    jobs: list[Job] = field(default_factory=list)
    skills: set[str] = field(default_factory=set)


def sections(text: str) -> dict[str, str]:
    found: dict[str, list[str]] = {"head": []}
    current = "head"
    for line in text.splitlines():
        title = line.strip().rstrip(":").lower()
        if title in HEADINGS:
            current = title
            found[current] = []
        else:
            found[current].append(line)
    return {key: "\n".join(lines).strip() for key, lines in found.items()}


@sgc.function
def program(s, text: str, now: int = 2025):
    cv = CV()
    parts = sections(text)
    s += f"{parts['head']}\nFull name:" + sgc.gen("name", max_tokens=8, stop="\n") + "\n"
    cv.name = " ".join(word.capitalize() for word in s["name"].split())
    if parts.get("experience"):
        s += parts["experience"] + "\nJobs, one a line as TITLE; FROM-TO:\n"
        s += sgc.gen("jobs", max_tokens=80) + "\n"
        for title, start, end in re.findall(r"(.+); (\d{4})-(\d{4}|now)", s["jobs"]):
            cv.jobs.append(Job(title, int(start), now if end == "now" else int(end)))
    if parts.get("skills"):
        s += parts["skills"] + "\nSkills, comma separated:"
        s += sgc.gen("skills", max_tokens=40, stop="\n")
        cv.skills = {skill.strip().lower() for skill in s["skills"].split(",") if skill.strip()}

    years = sum(job.years for job in cv.jobs)
    level = "senior" if years >= 8 else "regular" if years >= 3 else "junior"
    longest = max(cv.jobs, key=lambda job: job.years, default=None)
    result = asdict(cv)
    result["skills"] = sorted(cv.skills)
    return {**result, "years": years, "level": level, "longest": longest and longest.title}


ARGUMENTS = [
    {"text": "ada stone\nRiga\n\nExperience:\nBaker since 2015.\nSkills:\nBread, bread"},
    {"text": ""},
]
REPLIES = [" ada stone", "Baker; 2015-now\nClerk; 2012-2015", "Cook; 2001-2003", " bread, Python,,"]
