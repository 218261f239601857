"""The names of SGLang's `utils` that the scripts of its repository import."""

from __future__ import annotations

import base64
import io
import json as json_module
import os
import ssl
import sys
import tempfile
import traceback
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sgc.errors import SgcError
from sgc.lang.constraints import schema_text
from sgc.runtime.executor.interface.media import load_video

_TIMEOUT_S = 60.0


def read_jsonl(filename: str) -> list[Any]:
    """The values of a file of JSON lines; blank lines and lines that begin with # are skipped.

    Returns a list: SGLang's newer versions return a generator, which scripts cannot slice.
    """
    with open(filename, encoding="utf-8") as lines:
        kept = [line for line in lines if line.strip() and not line.startswith("#")]
    return [json_module.loads(line) for line in kept]


def dump_state_text(filename: str, states: Iterable[Any], mode: str = "w") -> None:
    """Writes the texts of runs to a file, each under its index."""
    with open(filename, mode, encoding="utf-8") as out:
        for index, state in enumerate(states):
            text = state.text() if hasattr(state, "text") else str(state)
            out.write(f"{'=' * 40} {index} {'=' * 40}\n{text}\n{'=' * 80}\n\n")


def download_and_cache_file(url: str, filename: str | None = None) -> str:
    """The local path of a file from the web, fetched once; an existing path is returned as it is.

    Raises SgcError, which says where to put the file, if it cannot be fetched.
    """
    if os.path.exists(url):
        return url
    path = Path(filename or os.path.join(tempfile.gettempdir(), url.rpartition("/")[2]))
    if path.exists():
        return str(path)
    print(f"Downloading from {url} to {path}", file=sys.stderr)
    part = path.with_name(path.name + ".part")
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as reply:
            part.write_bytes(reply.read())
        part.replace(path)
    except (OSError, ValueError) as error:
        raise SgcError(f"cannot fetch {url}: {error}", hint=f"put the file at {path}") from error
    finally:
        part.unlink(missing_ok=True)
    return str(path)


class HttpResponse:
    """A server's reply of any status."""

    def __init__(self, reply: Any) -> None:
        self._reply = reply
        self.status_code: int = reply.status

    @property
    def text(self) -> str:
        return str(self._reply.read().decode("utf-8", errors="replace"))

    def json(self) -> Any:
        return json_module.loads(self._reply.read())

    def iter_lines(self, decode_unicode: bool = False) -> Iterator[Any]:
        """Yields the reply's lines as they come."""
        for line in self._reply:
            stripped = line.rstrip(b"\r\n")
            yield stripped.decode("utf-8") if decode_unicode else stripped


def http_request(
    url: str,
    json: Any = None,
    stream: bool = False,
    api_key: str | None = None,
    verify: str | None = None,
    method: str | None = None,
) -> HttpResponse:
    """Sends a request, by POST if there is JSON; a reply with an error status is returned too."""
    headers = {"Content-Type": "application/json; charset=utf-8"}
    if api_key is not None:
        headers["Authorization"] = f"Bearer {api_key}"
    data = None if json is None else json_module.dumps(json).encode()
    request = urllib.request.Request(url, data=data, headers=headers, method=method)
    trust = ssl.create_default_context(cafile=verify) if isinstance(verify, str) else None
    try:
        return HttpResponse(urllib.request.urlopen(request, context=trust))
    except urllib.error.HTTPError as error:
        return HttpResponse(error)


def encode_image_base64(image_path: Any) -> str:
    """An image in base64: a path, bytes, or a PIL image (as PNG)."""
    if isinstance(image_path, (bytes, bytearray)):
        data = bytes(image_path)
    elif isinstance(image_path, (str, os.PathLike)):
        data = Path(image_path).read_bytes()
    else:
        buffer = io.BytesIO()
        image_path.save(buffer, format="PNG")
        data = buffer.getvalue()
    return base64.b64encode(data).decode("ascii")


def encode_video_base64(video_path: str, num_frames: int = 16) -> str:
    """Frames of a video in base64, with the prefix `video:`; needs OpenCV."""
    return "video:" + load_video(video_path, num_frames).base64()


def is_same_type(values: list[Any]) -> bool:
    """Whether all values are instances of the first one's type."""
    return all(isinstance(value, type(values[0])) for value in values)


def trim_overlap(existing_text: str, new_chunk: str) -> str:
    """The new chunk without its longest prefix that the existing text ends with."""
    most = min(len(existing_text), len(new_chunk))
    n = next((n for n in range(most, 0, -1) if existing_text.endswith(new_chunk[:n])), 0)
    return new_chunk[n:]


def convert_json_schema_to_str(json_schema: Any) -> str:
    """A JSON schema as text: given as text, a dict or a pydantic model."""
    return schema_text(json_schema)


def normalize_base_url(host: str, port: int | str | None = None) -> str:
    """A server's URL; `host` may already have a scheme and a port."""
    base = (host if "://" in host else f"http://{host}").rstrip("/")
    scheme, _, rest = base.partition("://")
    has_port = rest.rpartition("]")[2].rpartition(":")[2].isdigit() and ":" in rest
    return base if port is None or has_port else f"{scheme}://{rest}:{port}"


def print_highlight(html_content: Any) -> None:
    """Prints its argument; SGLang's documentation shows it in blue."""
    print(html_content)


def is_in_ci() -> bool:
    """Whether this process runs in SGLang's continuous integration."""
    return os.environ.get("SGLANG_IS_IN_CI", "").lower() in ("1", "true")


def get_exception_traceback() -> str:
    """The traceback of the exception being handled."""
    return traceback.format_exc()
