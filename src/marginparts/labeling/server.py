"""The page and what it asks for, on this machine only.

Python's own server is enough for one person: it listens on 127.0.0.1, and refuses whatever does
not carry the token of the address that was printed, or comes from another page. Nothing is ever
fetched from elsewhere, and no path of a request becomes that of a file.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from marginparts.app.preparation import PreparationError
from marginparts.app.writers import plain
from marginparts.files.atomic import FileProblemError
from marginparts.labeling.finish import Finish
from marginparts.labeling.page import rendered
from marginparts.labeling.session import Labeling

#: Bytes of a request at most, and of what is read of a larger one to be able to answer it.
_BODY = 1 << 16

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}

_log = logging.getLogger("marginparts")


class RefusedError(Exception):
    """A request that is not answered, with its status and one sentence."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class LabelServer(ThreadingHTTPServer):
    """Serves one labeling.

    Parameters
    ----------
    labeling : Labeling
    port : int
        0 for any that is free.

    Attributes
    ----------
    address : str
        What to open in a browser; it holds the token.
    """

    daemon_threads = True

    def __init__(self, labeling: Labeling, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.labeling, self.finish = labeling, Finish(labeling)
        self.token = secrets.token_urlsafe(24)
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}
        self.address = f"http://127.0.0.1:{self.server_port}/?token={self.token}"
        source = labeling.pool.source
        self.page, self.policy = rendered("Samples" if source is None else source.name)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of browsers that went away."""
        _log.debug("A request ended early.", exc_info=True)

    # ---- what can be asked for ----

    def read(self, path: str, asked: dict[str, str]) -> Any:
        """Answer a question."""
        labeling, tab = self.labeling, asked.get("tab", "")[:64]
        found: dict[str, Callable[[], Any]] = {
            "next": lambda: self._next(tab),
            "sample": lambda: labeling.sample(asked.get("id", "")),
            "status": self._status,
            "suspects": labeling.suspects,
            "parts": labeling.parts,
        }
        return _chosen(found, path)()

    def write(self, path: str, body: dict[str, Any]) -> Any:
        """Do what is asked, and say what is known then."""
        labeling = self.labeling
        how = {"tab": _text(body, "tab", "")[:64]}
        found: dict[str, Callable[[], Any]] = {
            "answer": lambda: labeling.answer(
                _text(body, "sample"), _texts(body, "labels", none=True),
                note=_text(body, "note", ""), event=_text(body, "event", "")[:64] or None,
                checked=body.get("checked") is True, **how,
            ),
            "note": lambda: labeling.note(_text(body, "sample"), _text(body, "text"), **how),
            "confirm": lambda: labeling.confirm(_text(body, "sample"), **how),
            "undo": lambda: labeling.undo(**how),
            "rename": lambda: labeling.rename(_text(body, "label"), _text(body, "into"), **how),
            "merge": lambda: labeling.merge(_texts(body, "labels"), _text(body, "into"), **how),
            "split": lambda: labeling.split(
                _text(body, "label"), _text(body, "into"), _text(body, "having"), **how
            ),
            "forbid": lambda: labeling.forbid(_text(body, "label"), **how),
            "export": lambda: {"table": str(labeling.export(self.finish.table))},
            "finish": self.finish.begin,
        }  # fmt: skip
        done = _chosen(found, path)()
        undone = done.get("undone") if isinstance(done, dict) else None
        more = done if path == "export" else {}
        return {**self._next(how["tab"]), "undone": undone and undone["kind"], **more}

    def _next(self, tab: str) -> dict[str, Any]:
        return {"next": self.labeling.next(tab), "status": self._status()}

    def _status(self) -> dict[str, Any]:
        found = self.labeling.status()
        # pairs: in an object JavaScript would put labels that are numbers first
        return {
            **found, "labels": list(found["labels"].items()), "finish": self.finish.status(),
            "version": self.labeling.refit.version,
        }  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: LabelServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "marginparts", ""
    timeout = 60

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _get(self) -> tuple[str, bytes]:
        url = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path in ("/", "/report"):
            self._check(asked.get("token", ""))
            if url.path == "/":
                return "text/html; charset=utf-8", self.server.page
            return "text/html; charset=utf-8", self.server.finish.page_bytes()
        self._check(self.headers.get("X-Token", ""))
        return _json(self.server.read(url.path.removeprefix("/api/"), asked))

    def _post(self) -> tuple[str, bytes]:
        self._check(self.headers.get("X-Token", ""))
        if self.headers.get_content_type() != "application/json":
            raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send JSON.")
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdecimal():
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "Say how long the request is.")
        if int(length[:20]) > _BODY:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The request is too large.")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError) as error:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "That is no JSON.") from error
        if not isinstance(body, dict):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "Send a JSON object.")
        return _json(self.server.write(urlsplit(self.path).path.removeprefix("/api/"), body))

    def _check(self, token: str) -> None:
        """Refuse all but the page itself: by host, by origin, by token."""
        if self.headers.get("Host", "") not in self.server.hosts:
            raise RefusedError(HTTPStatus.MISDIRECTED_REQUEST, "That is another host.")
        origin = self.headers.get("Origin")
        if origin is not None and origin.removeprefix("http://") not in self.server.hosts:
            raise RefusedError(HTTPStatus.FORBIDDEN, "Other pages may not ask.")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
            raise RefusedError(HTTPStatus.FORBIDDEN, "Other pages may not ask.")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise RefusedError(HTTPStatus.FORBIDDEN, "Open the address that was printed.")

    def _answer(self, made: Callable[[], tuple[str, bytes]]) -> None:
        status = HTTPStatus.OK
        try:
            kind, content = made()
        except RefusedError as error:
            status, (kind, content) = error.status, _json({"error": str(error)})
        except (ValueError, FileProblemError, PreparationError) as error:
            status, (kind, content) = HTTPStatus.BAD_REQUEST, _json({"error": str(error)})
        except Exception:
            _log.exception("A request failed.")
            said = "Something went wrong; the terminal says what."
            status, (kind, content) = HTTPStatus.INTERNAL_SERVER_ERROR, _json({"error": said})
        if status != HTTPStatus.OK:
            self.close_connection = True  # what was sent behind the head was not read
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if kind.startswith("text/html") and urlsplit(self.path).path == "/":
            self.send_header("Content-Security-Policy", self.server.policy)
        if self.close_connection:
            self.send_header("Connection", "close")
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


def _json(found: Any) -> tuple[str, bytes]:
    text = json.dumps(plain(found), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return "application/json", text.encode()


def _chosen(found: dict[str, Callable[[], Any]], path: str) -> Callable[[], Any]:
    if path not in found:
        raise RefusedError(HTTPStatus.NOT_FOUND, "There is no such page.")
    return found[path]


def _text(body: dict[str, Any], name: str, instead: str | None = None) -> str:
    value = body.get(name, instead)
    if not isinstance(value, str):
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"{name} must be a text.")
    return value


def _texts(body: dict[str, Any], name: str, *, none: bool = False) -> Any:
    value = body.get(name)
    if value is None and none and name in body:
        return None
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"{name} must be a list of texts.")
    return value
