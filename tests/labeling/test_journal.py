"""Nothing that was confirmed is lost: torn lines, kills, several writers, an undone event."""

import json
import os
import random
import select
import signal
import sys
import threading
import time

import pytest

from marginparts.files.atomic import FileProblemError
from marginparts.labeling import Labeling
from marginparts.labeling.journal import Journal
from marginparts.labeling.state import State

DOCS = ["cats purr", "cats sleep and purr", "dogs bark", "dogs bark and run"] * 50


def lines(path):
    return path.read_bytes().splitlines()


def test_what_was_written_is_read_again(tmp_path):
    path = tmp_path / "a.jsonl"
    journal = Journal(path)
    for k in range(5):
        journal.append({"kind": "label", "sample": f"s{k}", "labels": ["é\n"]})
    assert Journal(path).events == journal.events
    assert len(lines(path)) == 5


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_a_torn_last_line_takes_nothing_with_it(tmp_path, cut):
    path = tmp_path / "a.jsonl"
    journal = Journal(path)
    journal.append({"kind": "label", "sample": "first", "labels": ["a"]})
    journal.append({"kind": "label", "sample": "torn", "labels": ["a"]})
    path.write_bytes(path.read_bytes()[:-cut])
    again = Journal(path)
    again.append({"kind": "label", "sample": "last", "labels": ["b"]})
    for reader in (again, Journal(path)):
        found = [event["sample"] for event in reader.events]
        # a line that lacks its end alone is whole
        assert found == (["first", "torn", "last"] if cut == 1 else ["first", "last"])


@pytest.mark.parametrize(
    "junk", [b"\xff\xfe", b"[1, 2]", b"{}", b'{"id": 1}', b"null", b"[" * 100_000, b"\x00" * 50]
)
def test_lines_that_make_no_sense_are_passed_over(tmp_path, junk):
    path = tmp_path / "a.jsonl"
    Journal(path).append({"kind": "label", "sample": "a", "labels": ["x"]})
    with path.open("ab") as file:
        file.write(junk + b"\n")
    journal = Journal(path)
    assert journal.damaged == 1
    journal.append({"kind": "skip", "sample": "b"})
    assert [event["kind"] for event in Journal(path).events] == ["label", "skip"]


def test_events_that_make_no_sense_are_passed_over():
    odd = [
        {"kind": "label"}, {"kind": "label", "sample": "a", "labels": 3, "when": ""},
        {"kind": "confirm", "sample": "unknown"}, {"kind": "merge", "labels": None, "into": "x"},
        {"kind": "split", "label": "x"}, {"kind": "forbid"}, {"kind": "from the future"},
        {"kind": "undo"}, {"kind": "note", "sample": "a"},
    ]  # fmt: skip
    state = State.of({}, [], [{"id": str(k), **event} for k, event in enumerate(odd)])
    assert state.counts == {}


def test_what_is_sent_twice_counts_once(tmp_path):
    journal = Journal(tmp_path / "a.jsonl")
    event = {"id": "same", "kind": "label", "sample": "a", "labels": ["x"]}
    assert len(journal.append(event)) == 1
    assert journal.append(event) == []
    assert len(lines(tmp_path / "a.jsonl")) == 1


def test_several_writers_lose_nothing(tmp_path):
    path = tmp_path / "a.jsonl"
    writers = [Journal(path) for _ in range(4)]

    def write(k):
        for j in range(25):
            writers[k].append({"kind": "label", "sample": f"{k}/{j}", "labels": ["x"]})

    threads = [threading.Thread(target=write, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({event["sample"] for event in Journal(path).events}) == 100
    assert all(json.loads(line) for line in lines(path))
    for writer in writers:
        writer.read()
        assert len(writer.events) == 100


@pytest.mark.skipif(sys.platform != "linux", reason="sets a limit on the size of files")
def test_an_event_that_the_disk_took_half_of_is_not_confirmed(tmp_path):
    """A file that may not grow takes a part of the line and says nothing."""
    import resource

    path = tmp_path / "journal.jsonl"
    Journal(path).append({"kind": "label", "sample": "a", "labels": ["cat"]})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    heard = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, before[1]))
        with pytest.raises(FileProblemError, match="disk is full"):
            Journal(path).append({"kind": "label", "sample": "b", "labels": ["dog"]})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, heard)
    journal = Journal(path)
    journal.append({"kind": "label", "sample": "c", "labels": ["dog"]})
    assert [event["sample"] for event in Journal(path).events] == ["a", "c"]


def test_a_journal_that_cannot_be_written_is_a_sentence(tmp_path):
    with pytest.raises(FileProblemError, match="no folder"):
        Journal(tmp_path / "nowhere" / "a.jsonl")
    journal = Journal(tmp_path / "a.jsonl")
    (tmp_path / "a.jsonl").mkdir()
    with pytest.raises(FileProblemError, match="cannot be"):
        journal.append({"kind": "skip", "sample": "a"})
    assert journal.events == []


def answering(path, acknowledged):
    """Answer until killed; name each answer that was confirmed."""
    labeling = Labeling(DOCS, journal=path, who="ann", background=False)
    while sample := labeling.next():
        labeling.answer(sample["id"], ["cat" if "purr" in sample["text"] else "dog"])
        os.write(acknowledged, sample["id"].encode() + b"\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*")
def test_kills_at_random_moments_lose_no_answer(tmp_path):
    seed = random.randrange(10**6)
    print("seed", seed, file=sys.stderr)
    moments, path, told = random.Random(seed), tmp_path / "docs.labels.jsonl", set()
    for turn in range(8):
        out, into = os.pipe()
        if not (child := os.fork()):
            try:
                answering(path, into)
            finally:
                os._exit(0)
        os.close(into)
        if turn == 0:  # on a busy machine all kills might come before the first answer
            select.select([out], [], [], 60)
        time.sleep(moments.uniform(0.02, 0.15))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(out, "rb") as pipe:
            told |= set(pipe.read().decode().split())
        assert told <= {event["sample"] for event in Journal(path).events}
    assert told
    labeling = Labeling(DOCS, journal=path, background=False)
    assert told <= set(labeling.state.answers)
    assert labeling.status()["elsewhere"] == 0
