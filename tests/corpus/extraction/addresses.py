"""Addresses in any layout to one layout; doubles are found by a key and merged."""

import re
from dataclasses import asdict, dataclass, replace

import sgc


@dataclass(frozen=True)
class Address:
    street: str
    number: str
    postcode: str
    city: str

    @property
    def key(self):
        street = re.sub(r"(str\.|straße|strasse|street|st\.)$", "", self.street.lower()).strip()
        return street, self.number, self.postcode

    def __str__(self):
        return f"{self.street} {self.number}, {self.postcode} {self.city}"


@sgc.function
def parse(s, raw: str):
    s += f"Address: {raw}\n"
    s += "Street|Number|Postcode|City: " + sgc.gen("row", max_tokens=32, stop="\n")
    return s["row"]


@sgc.function
def program(s, lines: list[str]):
    found = {}
    bad = []
    rows = sgc.map(parse, lines, width=4).returns
    for raw, row in zip(lines, rows):
        match [part.strip() for part in row.split("|")]:
            case [street, number, postcode, city]:
                address = Address(street, number, postcode, city.title())
            case [street, postcode, city]:
                address = Address(street, "", postcode, city.title())
            case [] | [""]:
                bad.append(raw)
                continue
            case [first, *rest]:
                bad.append(f"{raw} ({first}, {len(rest)} more)")
                continue
        if not re.fullmatch(r"\d{4,5}", address.postcode):
            s += f"The postcode of {address.city} {address.street}: "
            s += sgc.gen("postcode", regex=r"[0-9]{5}") + "\n"
            address = replace(address, postcode=s["postcode"])
        before = found.get(address.key)
        if before is None or len(str(before)) < len(str(address)):
            found[address.key] = address
    doubles = len(lines) - len(bad) - len(found)
    for n, address in enumerate(sorted(found.values(), key=str), 1):
        s += "%02d. %s\n" % (n, address)
    first = asdict(min(found.values(), key=str)) if found else None
    return {"n": len(found), "doubles": doubles, "bad": bad, "first": first}


ARGUMENTS = [
    {"lines": ["Hauptstr. 5 in 10115 Berlin", "Hauptstrasse 5, Berlin 10115", "Main St. 1 NY"]},
    {"lines": [""]},
    {"lines": []},
]
REPLIES = ["Hauptstr. | 5 | 10115 | berlin", "Hauptstrasse|5|10115|BERLIN", "A|B|C", "Elm|1", ""]
