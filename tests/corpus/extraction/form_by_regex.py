"""Fills in a form field by field under regexes, then checks the fields against each other."""

import sgc

FIELDS = {
    "sex": r"[fm]",
    "year": r"(19|20)[0-9][0-9]",
    "month": r"0[1-9]|1[0-2]",
    "postcode": r"[1-9][0-9]{3}",
    "member": r"yes|no",
}
LABELS = {"year": "Year of birth", "month": "Month of birth"}
PATTERN_OF_MEMBERS = "M-{year}-{postcode}"


class FormError(Exception):
    def __init__(self, field, why):
        super().__init__(f"{field}: {why}")
        self.field = field


def validate(form, this_year):
    age = this_year - int(form["year"])
    if age < 0:
        raise FormError("year", "is in the future")
    if age > 110:
        raise FormError("year", "is too long ago")
    if form["member"] == "yes" and age < 16:
        raise FormError("member", f"{age} is too young")
    return age


@sgc.function
def program(s, letter: str, this_year: int = 2024):
    s += "Letter:\n" + letter + "\n\nForm\n"
    form = {}
    for field, pattern in FIELDS.items():
        label = LABELS.get(field, field.capitalize())
        s += f"{label}: " + sgc.gen(field, regex=pattern, max_tokens=8) + "\n"
        form[field] = s[field]
    errors = []
    for _attempt in range(2):
        try:
            age = validate(form, this_year)
        except FormError as error:
            errors.append(str(error))
            field = error.field
            s += f"({error}) {field} again: "
            s += sgc.gen(field, regex=FIELDS[field], max_tokens=8) + "\n"
            form[field] = s[field]
        else:
            break
    else:
        return None, errors
    form["age"] = str(age)
    number = PATTERN_OF_MEMBERS.format(**form) if form["member"] == "yes" else "-"
    s += f"Membership: {number}\n"
    return number, errors


ARGUMENTS = [
    {"letter": "I was born in June 1984 in 1010 Vienna. Please let me in! Karla"},
    {"letter": "", "this_year": 1950},
    {"letter": "My name is Methuselah.", "this_year": 2110},
]
REPLIES = ["f", "1984", "06", "1010", "yes", "no", "2077", "1900"]
