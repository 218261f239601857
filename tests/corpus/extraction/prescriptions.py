"""Doses out of a doctor's note: strength, times a day, and a check against the daily maximum."""

import json

import sgc

# mg a day; from the leaflet
MAX_DAILY = {"ibuprofen": 2400, "paracetamol": 4000, "amoxicillin": 3000}
TIMES = {"once": 1, "twice": 2, "three times": 3, "four times": 4}
ADVICE = {"ibuprofen:warfarin": "take paracetamol", "amoxicillin:insulin": "no need to worry"}
DOSE = {
    "type": "object",
    "properties": {"mg": {"type": "integer", "minimum": 800}, "times": {"enum": list(TIMES)}},
    "required": ["mg", "times"],
}


@sgc.tool(effect="pure", on_error={"risk": "", "severe": False})
def interaction(first: str, second: str) -> dict:
    pairs = {("ibuprofen", "warfarin"): "bleeding"}
    risk = pairs.get(tuple(sorted((first, second))))
    return {"risk": risk or "", "severe": risk is not None}


@sgc.function
def program(s, note: str, taking: list[str]):
    s += "Note: " + note + "\n"
    s += "Drugs in it, comma separated:" + sgc.gen("drugs", max_tokens=20, stop="\n") + "\n"
    drugs = list(dict.fromkeys(d.strip().lower() for d in s["drugs"].split(",") if d.strip()))
    if not drugs:
        return [], ["no drugs were found"]

    plan, warnings = [], []
    for drug in drugs[:3]:
        s += f"{drug}: " + sgc.gen("dose", json_schema=DOSE, max_tokens=24) + "\n"
        try:
            dose = json.loads(s["dose"])
        except ValueError as e:
            warnings.append(f"{drug}: no dose ({e})")
            continue
        mg, times = dose["mg"], TIMES[dose["times"]]
        daily = mg * times
        limit = MAX_DAILY.get(drug)
        if limit is None:
            warnings.append(f"{drug} is not in the table")
        elif daily > limit:
            over = daily / limit - 1
            warnings.append(f"{drug}: {daily} mg a day, {over:.0%} above the maximum")
            # as often, but less of it
            mg = limit // times
        plan.append(f"{drug} {mg} mg, {dose['times']} a day")
        for other in taking:
            found = interaction(drug, other)
            if found["severe"]:
                advice = ADVICE.get(f"{drug}:{other}", "ask a doctor")
                warnings.append(f"{drug} with {other}: {found['risk']}, {advice}")
    if warnings:
        s += "Warnings:\n" + "\n".join("! " + w for w in warnings) + "\n"
        s += "Call the doctor first? " + sgc.select("call", choices=["yes", "no"])
        if s["call"] == "yes":
            return [], warnings
    s += "\nLabel:" + sgc.gen("label", max_tokens=40)
    return plan, warnings


ARGUMENTS = [
    {"note": "Ibu 800 tds, amoxi 500 bd for 7/7", "taking": ["warfarin", "insulin"]},
    {"note": "rest", "taking": []},
]
REPLIES = [" Ibuprofen, amoxicillin", " ibuprofen, honey, ibuprofen", "", "800", "50", "2000"]
