"""Redacts secrets with re.sub and a counting function, finditer with named groups, sha1 ids."""

import base64
import hashlib
import re
import uuid

import sgc

SECRET = re.compile(
    r"(?P<email>[\w.]+@[\w.]+)|(?P<phone>\+?\d[\d -]{6,}\d)|(?P<iban>[A-Z]{2}\d{2}[A-Z0-9]{4,})"
)


class Redactor:
    def __init__(self):
        self.found = {}

    def __call__(self, m):
        kind = m.lastgroup
        text = m[0]
        token = f"<{kind}-{hashlib.sha1(text.encode()).hexdigest()[:6]}>"
        self.found[token] = text
        return token


@sgc.function
def program(s, mail: str):
    redact = Redactor()
    safe = SECRET.sub(redact, mail)
    s += f"Mail: {safe}\nReply, keep the tokens:" + sgc.gen("reply", max_tokens=48)
    reply = s["reply"]
    kinds = [m.lastgroup for m in SECRET.finditer(mail)]
    leaks = [m["email"] for m in SECRET.finditer(reply) if m["email"]]
    for token, text in redact.found.items():
        reply = reply.replace(token, text)
    if leaks:
        s += "\nThat leaks. Again:" + sgc.gen("reply", max_tokens=48)
    key = base64.b64encode(reply.encode("utf-8")).decode("ascii")
    ident = str(uuid.uuid5(uuid.NAMESPACE_URL, mail))
    return {"reply": reply, "kinds": kinds, "key": key[:16], "id": ident[:8], "leaks": len(leaks)}


ARGUMENTS = [{"mail": "Write to ann@x.org or call +49 30 1234567"}, {"mail": "nothing here"}]
REPLIES = [" Dear <email-2f6d49>, thanks.", " Write bob@y.org", ""]
