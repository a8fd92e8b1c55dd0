"""The server answers its own page and nobody else, and nothing in it becomes markup."""

import http.client
import json
import re
import socket
import threading
from importlib.resources import files

import pytest

from marginparts import Labeling
from marginparts.labeling.page import rendered
from marginparts.labeling.server import LabelServer

DOCS = ["cats purr", "cats sleep and purr", "dogs bark", "dogs bark and run"] * 10
NASTY = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


@pytest.fixture
def server(tmp_path):
    labeling = Labeling(DOCS, who="ann", background=False, journal=tmp_path / "x.labels.jsonl")
    with LabelServer(labeling) as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.01,))
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def request(server, path="/api/status", body=None, token=None, **headers):
    link = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    sent = {"X-Token": server.token if token is None else token, **headers}
    if body is not None:
        sent = {"Content-Type": "application/json", **sent}
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
    link.request("GET" if body is None else "POST", path, body, sent)
    answer = link.getresponse()
    content = answer.read()
    link.close()
    return answer, content


def test_the_page_itself_is_answered(server):
    answer, page = request(server, server.address.split("/", 3)[3].join(["/", ""]))
    assert answer.status == 200
    assert b"<!doctype html>" in page
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert request(server)[0].status == 200


@pytest.mark.parametrize("token", ["", "wrong", "é".encode().decode("latin-1")])
@pytest.mark.parametrize("path", ["/", "/report", "/api/status", "/api/next", "/?token=wrong"])
def test_without_the_token_nothing_is_answered(server, path, token):
    answer, content = request(server, path, token=token)
    assert answer.status == 403
    assert b"cats" not in content
    assert request(server, "/api/undo", {}, token=token)[0].status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:80"},
    ],
)
def test_other_pages_are_refused(server, headers):
    sample = server.labeling.next()["id"]
    body = {"sample": sample, "labels": ["cat"]}
    assert request(server, "/api/answer", body, **headers)[0].status in (403, 421)
    assert request(server, **headers)[0].status in (403, 421)
    assert not server.labeling.state.answers


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd", "/api/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/label.js",
        "//etc/passwd", "/api/", "/api/close", "/api/__class__", "/api/journal", "/report/x",
    ],
)  # fmt: skip
def test_paths_outside_are_refused(server, path):
    assert request(server, path)[0].status == 404
    assert request(server, path, {})[0].status == 404


def test_a_large_body_is_refused_before_it_is_read(server):
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as link:
        link.sendall(
            f"POST /api/answer HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n"
            f"X-Token: {server.token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {100 * 2**20}\r\n\r\n".encode()
        )
        assert link.recv(100).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400), (b"[1]", {}, 400), (b"[" * 60_000, {}, 400), (b"\xff", {}, 400),
        (b"{}", {"Content-Type": "text/plain"}, 415), ({"labels": ["a"]}, {}, 400),
        ({"sample": 3, "labels": ["a"]}, {}, 400), ({"sample": "x", "labels": ["a"]}, {}, 400),
        ({"sample": "x", "labels": [1]}, {}, 400), ({"sample": "x"}, {}, 400),
        (b"{}", {"Content-Length": "-5"}, 411),
    ],
)  # fmt: skip
def test_bodies_that_make_no_sense_are_refused(server, body, headers, status):
    answer, content = request(server, "/api/answer", body, **headers)
    assert answer.status == status
    assert json.loads(content)["error"]
    assert not server.labeling.journal.events


def test_html_in_a_label_stays_text(server):
    sample = server.labeling.next()["id"]
    answer, content = request(
        server, "/api/answer", {"sample": sample, "labels": [NASTY], "note": NASTY}
    )
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert json.loads(content)["status"]["labels"] == [[NASTY, 1]]
    assert b"alert(1)" not in server.page
    page, _ = rendered(NASTY)
    assert b"<img" not in page


def test_half_characters_and_commands_of_a_terminal_are_cleaned(server):
    sample = server.labeling.next()["id"]
    body = b'{"sample": "%s", "labels": ["a\\ud800\\u001b[31m\\u0000b"]}' % sample.encode()
    assert request(server, "/api/answer", body)[0].status == 200
    assert server.labeling.state.names == ["a? [31m b"]


def test_the_whole_loop_by_requests(server):
    _, content = request(server, "/api/next?tab=t")
    for _ in range(12):
        sample = json.loads(content)["next"]
        label = "cat" if "purr" in sample["text"] else "dog"
        body = {"sample": sample["id"], "labels": [label], "tab": "t", "event": sample["id"]}
        for _ in range(2):  # sent twice, as a page may
            _, content = request(server, "/api/answer", body)
    found = json.loads(content)
    assert found["status"]["labeled"] == 12
    for path, more in {
        "rename": {"label": "cat", "into": "kitten"}, "undo": {}, "export": {},
        "merge": {"labels": ["cat", "dog"], "into": "pet"},
        "split": {"label": "pet", "into": "cat", "having": "purr"}, "forbid": {"label": "cat"},
        "confirm": {"sample": sample["id"]}, "note": {"sample": sample["id"], "text": "odd"},
    }.items():  # fmt: skip
        answer, content = request(server, f"/api/{path}", more)
        assert answer.status == 200, content
    for path in ("parts", "suspects", f"sample?id={sample['id']}"):
        assert request(server, f"/api/{path}")[0].status == 200
    assert "label" in server.finish.table.read_text().splitlines()[0]


def test_a_model_that_cannot_be_made_is_a_sentence(server):
    request(server, "/api/finish", {})
    for _ in range(100):
        status = json.loads(request(server)[1])["finish"]
        if not status["stage"]:
            break
    assert "two labels" in status["problem"]
    assert request(server, f"/report?token={server.token}")[0].status == 400


def test_the_script_makes_no_markup_from_text():
    folder = files("marginparts.labeling.page")
    script = (folder / "label.js").read_text("utf-8")
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
        "Function(",
    ):
        assert word not in script
    page = (folder / "label.html").read_text("utf-8")
    assert not re.search(r"https?://|src=|\son\w+=|style=", page)
    assert "</script" not in script
