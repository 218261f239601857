"""Job advertisements into a validated model; errors of validation go back to the model."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError, field_validator

import sgc


class JobAd(BaseModel):
    title: str
    salary_min: int
    salary_max: int
    remote: bool = False
    languages: list[str] = []

    @field_validator("salary_max")
    @classmethod
    def ordered(cls, value: int, info) -> int:
        if value < info.data.get("salary_min", 0):
            raise ValueError("salary_max is below salary_min")
        return value


def explain(error: ValidationError) -> str:
    problems = [(".".join(map(str, e["loc"])) or "JSON", e["msg"]) for e in error.errors()]
    return "; ".join(f"{where}: {what}" for where, what in problems)


@sgc.function
def parse_ad(s, ad: str, retries: int = 2):
    fields = ", ".join(JobAd.model_fields)
    s += sgc.system(f"Give a JSON object with the fields {fields}. No other text.")
    s += sgc.user(ad)
    for attempt in range(retries + 1):
        s += sgc.assistant(sgc.gen("json", max_tokens=120))
        try:
            return JobAd.model_validate_json(s["json"]).model_dump()
        except ValidationError as error:
            if attempt == retries:
                return None
            s += sgc.user(f"That is not valid: {explain(error)}")


@sgc.function
def program(s, ads: list[str], language: str = "python"):
    parsed = sgc.map(parse_ad, ads, retries=1).returns
    good = [p for p in parsed if p is not None]
    matching = [p for p in good if language in map(str.lower, p["languages"]) or p["remote"]]
    if not matching:
        s += f"None of {len(ads)} ads fits ({len(ads) - len(good)} could not be read)."
        return []
    best = max(matching, key=lambda p: (p["salary_max"] + p["salary_min"]) / 2)
    s += f"{len(matching)} ads fit. The best is {best['title']!r}. Why?"
    s += sgc.gen("why", max_tokens=30, stop="\n")
    return [p["title"] for p in matching]


ARGUMENTS = [
    {"ads": ["Python developer, 50-70k, Berlin or remote", "Welder (m/f/d)"]},
    {"ads": [], "language": "cobol"},
]
REPLIES = [
    '{"title": "Developer", "salary_min": 50000, "salary_max": 70000, "languages": ["Python"]}',
    '{"title": "Welder", "salary_min": 40000, "salary_max": 30000}',
    '{"title": "Remote developer", "salary_min": 1, "salary_max": 2, "remote": true}',
    "Here is the JSON:",
    " It pays well.",
]
