"""Normalises postal addresses: a regular expression first, the model for what it cannot read."""

import re
from dataclasses import asdict, dataclass

import sgc

ABBREVIATIONS = {
    "st": "Street",
    "st.": "Street",
    "ave": "Avenue",
    "rd": "Road",
    "blvd": "Boulevard",
}
US = re.compile(
    r"^(?P<number>\d+)\s+(?P<street>[^,]+),\s*(?P<city>[^,]+),\s*(?P<state>[A-Z]{2})\s+(?P<zip>\d{5})$"
)


@dataclass
class Address:
    number: str = ""
    street: str = ""
    city: str = ""
    state: str = ""
    zip: str = ""

    def one_line(self) -> str:
        return f"{self.number} {self.street}, {self.city}, {self.state} {self.zip}".strip(" ,")

    def missing(self) -> list[str]:
        return [k for k, v in asdict(self).items() if not v]


def expand(street: str) -> str:
    return " ".join(ABBREVIATIONS.get(w.lower(), w.title()) for w in street.split())


@sgc.function
def program(s, raw_addresses: list[str]):
    cleaned, manual = [], []
    for raw in raw_addresses:
        m = US.match(raw.strip())
        if m:
            a = Address(**m.groupdict())
        else:
            s += f"Address: {raw}\nFill in what is known, else leave it empty.\n"
            a = Address()
            for field_name in ("number", "street", "city", "state", "zip"):
                s += f"{field_name}: " + sgc.gen(field_name, max_tokens=12, stop="\n") + "\n"
                setattr(a, field_name, s[field_name].strip())
            if not re.fullmatch(r"\d{5}", a.zip):
                a.zip = ""
            a.state = a.state.upper()[:2]
        a.street = expand(a.street)
        if gaps := a.missing():
            manual.append((raw, gaps))
        else:
            cleaned.append(a.one_line())
    return {"cleaned": cleaned, "manual": manual}


ARGUMENTS = [
    {"raw_addresses": ["12 Main St, Springfield, IL 62701", "main street twelve, springfield il"]},
    {"raw_addresses": ["", "7 elm ave., Boston, MA 02108"]},
    {"raw_addresses": []},
]
REPLIES = ["12", "main st", "Springfield", "il", "62701", ""]
