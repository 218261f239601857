"""Line items of an invoice as JSON; the totals are checked, and asked for again when off."""

import json

import sgc

INVOICE = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "maxItems": 4,
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "maxLength": 20},
                    "quantity": {"type": "integer", "minimum": 1, "maximum": 99},
                    "price": {"type": "number"},
                },
                "required": ["name", "quantity", "price"],
            },
        },
        "total": {"type": "number"},
    },
    "required": ["items", "total"],
}


@sgc.function
def program(s, invoice: str, vat: float = 0.2, max_tries: int = 3):
    s += "Invoice:\n" + invoice + "\n"
    problems = []
    for _ in range(max_tries):
        s += "JSON: " + sgc.gen("json", json_schema=INVOICE, max_tokens=200) + "\n"
        try:
            data = json.loads(s["json"])
        except json.JSONDecodeError as e:
            problems.append(f"cut off: {e.msg}")
            s += "That was cut off. Shorter names, please.\n"
            continue
        net = sum(item["quantity"] * item["price"] for item in data["items"])
        gross = round(net * (1 + vat), 2)
        difference = round(data["total"] - gross, 2)
        if abs(difference) < 0.01:
            break
        problems.append(f"off by {difference:+.2f}")
        s += f"The items make {net:.2f}, with VAT {gross:.2f}, but you say {data['total']}.\n"
    else:
        return {"ok": False, "problems": problems}
    rows = ["%-20s %3d x %8.2f" % (i["name"], i["quantity"], i["price"]) for i in data["items"]]
    s += "\n".join(rows) + f"\nTotal: {gross:.2f}\n"
    return {"ok": True, "total": gross, "n": len(rows), "problems": problems}


ARGUMENTS = [
    {"invoice": "3 chairs at 49.00, 1 table at 180.00. VAT 20%. Total 392.40"},
    {"invoice": "", "vat": 0.0, "max_tries": 1},
]
REPLIES = ["chair", "table", "desk lamp", "no items"]
