"""The loop: what is asked, what answers do, what can be undone, what is believed."""

import csv
import time
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

from marginparts import Labeling, load
from marginparts.commands.label import _end
from marginparts.labeling import asking
from marginparts.labeling.finish import Finish
from marginparts.labeling.learning import HeldOut, labels_of
from marginparts.labeling.progress import Measurement, advice, enough, estimate, most_ahead
from marginparts.labeling.server import LabelServer
from marginparts.labeling.state import UNDOABLE
from marginparts.labeling.suspicion import suspects

WORDS = {
    "cat": "purr paw whisker meow kitten tail", "dog": "bark bone leash fetch puppy tail",
    "bird": "wing feather nest egg song beak",
}  # fmt: skip


def documents(n=150, seed=0):
    rng = np.random.default_rng(seed)
    kinds = rng.choice(list(WORDS), n)
    words = [
        [*rng.choice(WORDS[kind].split(), 5), f"number{k % 7}"] for k, kind in enumerate(kinds)
    ]
    texts = [" ".join(each) for each in words]
    return texts, dict(zip(texts, kinds, strict=True))


TEXTS, TRUTH = documents()


def started(n=0, **options):
    labeling = Labeling(TEXTS, who="ann", background=False, **options)
    for _ in range(n):
        answer(labeling)
    return labeling


def answer(labeling, wrong=None):
    sample = labeling.next()
    labeling.answer(sample["id"], [wrong or TRUTH[sample["text"]]])
    return sample


def test_next_is_the_same_until_it_is_answered():
    labeling = started()
    first = labeling.next()
    assert labeling.next()["id"] == first["id"]
    labeling.answer(first["id"], ["cat"])
    assert labeling.next()["id"] != first["id"]


def test_tabs_are_shown_different_samples():
    labeling = started(3)
    assert labeling.next("one")["id"] != labeling.next("two")["id"]
    labeling.learn()
    assert labeling.next("one")["id"] != labeling.next("two")["id"]


def test_what_a_closed_tab_was_shown_is_asked_in_the_end():
    labeling = started()
    labeling.next("closed")
    count = 0
    while sample := labeling.next("open"):
        labeling.answer(sample["id"], ["cat"], tab="open")
        count += 1
    assert count == len(TEXTS)


def test_all_samples_are_asked_once_and_then_none():
    labeling = started()
    seen = []
    while sample := labeling.next():
        labeling.answer(sample["id"], ["cat"] if len(seen) % 2 else None)
        seen.append(sample["id"])
    assert sorted(seen) == sorted(labeling.pool.ids)


def test_every_kind_of_answer_is_counted():
    labeling = started()
    for labels in (["cat"], [], None):
        labeling.answer(labeling.next()["id"], labels)
    status = labeling.status()
    assert [status[name] for name in ("labeled", "none", "skipped")] == [1, 1, 1]


def test_the_table_tells_none_of_these_from_skipped_and_never_asked(tmp_path):
    labeling = started()
    for labels in (["cat"], [], None):
        labeling.answer(labeling.next()["id"], labels)
    with labeling.export(tmp_path / "out.csv").open(newline="") as source:
        given = Counter((row["answer"], row["label"]) for row in csv.DictReader(source))
    one = [("label", "cat"), ("none", ""), ("skip", "")]
    assert given == {**dict.fromkeys(one, 1), ("", ""): len(TEXTS) - 3}


def test_gaps_of_a_table_are_not_known_and_no_obstacle(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X = rng.gamma(2, 1, (60, 8)) * (1 + 4 * (y[:, None] == np.arange(8) % 2))
    X[rng.random(X.shape) < 0.1] = np.nan
    np.save(tmp_path / "rows.npy", X)
    with pytest.raises(Exception, match="missing"):
        Labeling(tmp_path / "rows.npy", background=False)
    labeling = Labeling(tmp_path / "rows.npy", missing="nan", background=False)
    for _ in range(16):
        sample = labeling.next()
        shown = [value for _, value, _ in sample["cells"]]
        expected = X[sample["row"] - 1]
        assert [v is None for v in shown] == np.isnan(expected).tolist()
        labeling.answer(sample["id"], [f"kind {y[sample['row'] - 1]}"])
    beliefs = labeling.learn().beliefs
    truth = np.array([f"kind {k}" for k in y])
    assert np.mean(np.array(beliefs.names)[beliefs.P.argmax(axis=1)] == truth) > 0.8
    assert labeling.fit().layout.gaps


def content(labeling):
    state = labeling.state
    return dict(state.answers), list(state.names), dict(state.notes), set(state.forbidden)


@pytest.mark.parametrize("kind", UNDOABLE)
def test_everything_can_be_undone(kind):
    labeling = started(12)
    before = content(labeling)
    name = labeling.state.names[0]
    some = next(s for s, a in labeling.state.answers.items() if a.labels == (name,))
    word = labeling.pool.samples[labeling.pool.rows[some]].split()[0]
    {
        "label": lambda: answer(labeling),
        "none": lambda: labeling.answer(labeling.next()["id"], []),
        "skip": lambda: labeling.answer(labeling.next()["id"], None),
        "note": lambda: labeling.note(some, "odd"),
        "rename": lambda: labeling.rename(name, "new"),
        "merge": lambda: labeling.merge(labeling.state.names[:2], "both"),
        "split": lambda: labeling.split(name, "other", word),
        "forbid": lambda: labeling.forbid(name),
        "confirm": lambda: labeling.confirm(some),
    }[kind]()
    assert content(labeling) != before
    labeling.undo()
    assert content(labeling) == before


def test_undo_takes_back_what_the_tab_itself_did():
    labeling = started()
    mine, yours = labeling.next("a")["id"], labeling.next("b")["id"]
    labeling.answer(mine, ["cat"], tab="a")
    labeling.answer(yours, ["dog"], tab="b")
    labeling.undo(tab="a")
    assert set(labeling.state.answers) == {yours}
    assert labeling.next("a")["id"] == mine


def test_labels_in_the_journal_of_two_processes_are_one(tmp_path):
    path = tmp_path / "x.jsonl"
    one, two = started(journal=path), started(journal=path)
    for labeling in (one, two, one, two):
        answer(labeling)
    assert one.status()["labeled"] == two.status()["labeled"] == len(one.state.answers)
    one.undo()
    assert two.status()["labeled"] == one.status()["labeled"]


def test_renaming_and_merging_keep_the_keys_of_the_others():
    labeling = started(20)
    first, second, third = labeling.state.names
    counts = labeling.state.counts
    labeling.rename(second, "new")
    assert labeling.state.names == [first, "new", third]
    labeling.merge([first, "new"], first)
    assert labeling.state.counts == {first: counts[first] + counts[second], third: counts[third]}
    with pytest.raises(ValueError, match="merge the two"):
        labeling.rename(first, third)


def test_a_forbidden_label_is_refused_and_its_samples_are_asked_again():
    labeling = started(12)
    name = labeling.state.names[0]
    labeling.forbid(name)
    assert name not in labeling.state.counts
    with pytest.raises(ValueError, match="not to be given"):
        labeling.answer(labeling.next()["id"], [name])


@pytest.mark.parametrize("name", ["", "   ", "x" * 101])
def test_names_of_labels_are_names(name):
    labeling = started()
    with pytest.raises(ValueError, match="1 to 100"):
        labeling.answer(labeling.next()["id"], [name])


def test_one_label_means_one():
    labeling = started()
    with pytest.raises(ValueError, match="several"):
        labeling.answer(labeling.next()["id"], ["a", "b"])


def test_the_beginning_finds_all_kinds():
    """Without any label, a few samples of the plain parts have all kinds."""
    labeling = started()
    labeling.learn()
    few = labeling.refit.insight.queue[:8]
    assert {TRUTH[labeling.pool.samples[row]] for row in few} == {*WORDS}


def test_it_learns_and_says_how_good_it_is():
    labeling = started()
    for k in range(100):
        answer(labeling)
        if k % 20 == 19:
            labeling.learn()
    status = labeling.status()
    assert status["estimate"]["accuracy"] > 0.9
    assert status["advice"]["stop"]
    assert [h["labeled"] for h in status["history"]] == [20, 40, 60, 80, 100]
    beliefs = labeling.refit.insight.beliefs
    guesses = [beliefs.names[k] for k in beliefs.P.argmax(axis=1)]
    assert np.mean([g == TRUTH[t] for g, t in zip(guesses, TEXTS, strict=True)]) > 0.95
    sample = labeling.next()
    best = sample["marked"].index(TRUTH[sample["text"]])
    own = WORDS[TRUTH[sample["text"]]].split()
    speaks = {w: sample["speaks"][labeling.pool.words[w]][best] for w in own if w in sample["text"]}
    assert max(speaks.values()) > 0
    assert any(part["labels"] for part in labeling.parts())


def test_a_label_with_a_single_sample_is_no_obstacle():
    labeling = started()
    for k in range(10):
        labeling.answer(labeling.next()["id"], ["rare" if k == 3 else "common"])
    labeling.learn()
    assert labeling.status()["estimate"]["accuracy"] <= 1
    assert len(labeling.next()["guesses"]) == 2


def test_random_samples_are_a_prefix_of_an_order_that_names_alone_decide():
    labeling = started(40)
    drawn, order = labeling.drawn(), labeling._order
    count = int(drawn.sum())
    assert count >= 8
    assert drawn[order[:count]].all()
    assert all(labeling.pool.ids[row] in labeling.state.answers for row in order[:count])
    ids = labeling.pool.ids
    again = asking.random_order(ids[::-1])
    assert [ids[::-1][k] for k in again] == [ids[k] for k in order]


def test_the_estimate_is_that_of_the_random_ones_alone():
    P = np.ones((4, 2))
    held = HeldOut(np.array([1, 3, 5, 7]), P, np.array([True, False, True, True]), {}, P)
    drawn = np.isin(np.arange(8), [1, 3])
    assert estimate(held, drawn)[::2] == (0.5, 2)
    assert estimate(held, np.zeros(8, bool)) is None


def measured(*changed, last=120, drawn=30):
    first = last - 20 * (len(changed) - 1)
    return [Measurement(first + 20 * k, 0.9, 0.03, drawn, share) for k, share in enumerate(changed)]


def test_advice_has_reasons():
    assert not advice([], {}).stop
    assert not advice(measured(0.2, 0.2, 0.2), {}).stop
    said = advice(measured(0.001, 0.001, 0.001), {"rare": 1})
    assert said.stop
    assert "rare" in said.reasons[-1]


@pytest.mark.parametrize(
    "too_early",
    [
        measured(0.001, 0.05, 0.001, 0.001),  # a step not long ago changed much
        measured(0.001, 0.001),  # two steps may be chance
        measured(0.001, 0.001, None, 0.001, 0.02),
        measured(0.0, 0.0, 0.0, last=60),
        measured(0.001, 0.001, 0.001, drawn=8),
    ],
)
def test_stopping_takes_three_quiet_steps_and_enough_random_samples(too_early):
    assert not enough(too_early)
    assert enough([*too_early, *measured(0.001, 0.001, 0.001, last=200)])


def test_what_may_come_falls_with_the_labels_and_with_the_changes():
    most = [most_ahead(measured(0.02, 0.02, 0.02, last=last)) for last in (80, 160, 320)]
    assert most[0] < most[1] < most[2]  # the same changes, later: they fall more slowly
    assert most_ahead(measured(0.01, 0.01, 0.01)) < most_ahead(measured(0.01, 0.02, 0.01))
    assert most_ahead(measured(0.02, 0.02)) is None


def test_flipped_labels_are_suspected_first():
    labeling = started(60)
    names = labeling.state.names
    flipped = list(labeling.state.answers)[10:50:13]
    for sample in flipped:
        right = labeling.state.answers[sample].labels[0]
        labeling.answer(sample, [names[(names.index(right) + 1) % len(names)]])
    labeling.learn()
    found = labeling.suspects()
    assert {each["id"] for each in found[: len(flipped)]} == set(flipped)
    assert [each["evidence"] for each in found] == sorted(e["evidence"] for e in found)[::-1]
    right = TRUTH[found[0]["shown"]["text"]]
    assert found[0]["instead"] == right
    labeling.confirm(found[0]["id"])
    labeling.answer(found[1]["id"], [TRUTH[found[1]["shown"]["text"]]], checked=True)
    assert not {found[0]["id"], found[1]["id"]} & {each["id"] for each in labeling.suspects()}


def test_suspects_are_those_less_probable_than_another():
    answers = {0: ("a",), 1: ("b",), 2: ("a",), 3: ("b",), 4: ("alone",)}
    labels, _ = labels_of(answers, 5, several=False)
    P = np.array([[0.9, 0.1, 0], [0.8, 0.2, 0], [0.1, 0.9, 0], [0.3, 0.7, 0], [0.5, 0.5, 0]])
    held = HeldOut(np.arange(5), P, np.ones(5, bool), {}, P)
    # nothing can speak for a label whose only sample is hidden
    assert [(s.row, s.instead) for s in suspects(held, labels)] == [(2, 1), (1, 0)]


def test_batches_are_doubtful_and_not_all_alike():
    Z = np.repeat(np.eye(3), 10, axis=0)
    everything = np.ones(30, bool), np.zeros(30, bool)
    doubt = np.linspace(0.5, 1, 30)
    chosen = asking.covering(doubt, np.ones(30), Z, everything, 3)
    assert [k // 10 for k in chosen] == [2, 1, 0]
    known = np.arange(30) == 25  # what is like a labeled row waits
    chosen = asking.covering(doubt, np.ones(30), Z, (~known, known), 2)
    assert [k // 10 for k in chosen] == [1, 0]


def test_several_labels():
    labeling = Labeling(TEXTS, several=True, background=False)
    for _ in range(40):
        sample = labeling.next()
        kind = TRUTH[sample["text"]]
        labels = [kind, "tailed"] if "tail" in sample["text"] else [kind]
        labeling.answer(sample["id"], [] if kind == "bird" else labels)
    labeling.learn()
    beliefs = labeling.refit.insight.beliefs
    assert set(beliefs.names) == {"cat", "dog", "tailed"}
    assert labeling.status()["estimate"]["accuracy"] > 0.5


def test_labels_in_the_file_are_known_and_the_file_stays_as_it_is(tmp_path):
    file = tmp_path / "docs.csv"
    rows = [[text, TRUTH[text] if k < 20 else ""] for k, text in enumerate(TEXTS)]
    with file.open("w", newline="") as target:
        csv.writer(target).writerows([["text", "kind"], *rows])
    before = file.read_bytes()
    labeling = Labeling(file, text="text", label="kind", background=False, who="ann")
    assert labeling.status()["labeled"] == 20
    sample = answer(labeling)
    labeling.note(sample["id"], "=odd")
    table = labeling.export(tmp_path / "out.csv")
    assert file.read_bytes() == before
    with table.open(newline="") as source:
        found = list(csv.DictReader(source))
    assert [row["text"] for row in found] == TEXTS
    mine = found[sample["row"] - 1]
    assert (mine["label"], mine["labeled_by"]) == (TRUTH[sample["text"]], "ann")
    assert mine["labeled_at"].endswith("Z")
    assert mine["note"] == "'=odd"
    assert sum(bool(row["label"]) for row in found) == 21
    again = Labeling(file, text="text", label="kind", background=False)
    assert again.status()["labeled"] == 21
    with pytest.raises(Exception, match="is the file that is read"):
        labeling.export(file)


def test_answers_follow_their_samples_when_rows_move():
    one = started(10)
    events = one.journal.events
    other = Labeling(TEXTS[::-1], background=False)
    for event in events:
        other.journal.append(event)
    other._add(events)
    label = {one.pool.samples[row]: a.labels for row, a in one.by_row().items()}
    assert label == {other.pool.samples[row]: a.labels for row, a in other.by_row().items()}


def test_rows_of_a_matrix():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X = sp.csr_array(rng.poisson(np.where(y[:, None] == np.arange(12) % 2, 3, 0.3)))
    X = X.astype(np.float32)
    labeling = Labeling(X, names=[f"gene {k}" for k in range(12)], background=False)
    for _ in range(12):
        sample = labeling.next()
        labeling.answer(sample["id"], [str(y[sample["row"] - 1])])
    labeling.learn()
    assert labeling.next()["cells"][0][0].startswith("gene")
    beliefs = labeling.refit.insight.beliefs
    assert np.mean([int(beliefs.names[k]) for k in beliefs.P.argmax(axis=1)] == y) > 0.9


def test_learning_in_a_thread_publishes_and_ends():
    labeling = Labeling(TEXTS, who="ann")
    try:
        for _ in range(15):
            answer(labeling)
        for _ in range(100):
            if labeling.refit.insight.beliefs is not None:
                break
            time.sleep(0.1)
        assert labeling.next()["guesses"]
    finally:
        labeling.close()
    assert labeling.refit._thread is None


@pytest.mark.wide
@pytest.mark.parametrize("several", [False, True])
def test_the_end_is_a_model_a_page_and_a_table(tmp_path, monkeypatch, several):
    monkeypatch.setattr("marginparts.app.evaluation._FEW_LABELS", 0)  # no other rivals: quicker
    labeling = started(40, several=several, journal=tmp_path / "docs.csv.labels.jsonl")
    finish = Finish(labeling)
    assert not finish.made
    finish.begin()
    finish.begin()  # once is enough
    for _ in range(600):
        if not finish.status()["stage"]:
            break
        assert labeling.next() is not None  # nobody waits meanwhile
        time.sleep(0.1)
    assert finish.status()["problem"] == ""
    assert "hidden labels" in finish.status()["sentence"]
    model = load(finish.model)
    found = model.predict(TEXTS)
    if several:
        found = [labels[0] if labels else "" for labels in found]
    assert np.mean([label == TRUTH[text] for label, text in zip(found, TEXTS, strict=True)]) > 0.9
    assert b"<!doctype html>" in finish.page_bytes()
    assert finish.table.exists()


def test_images(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for kind in ("left", "unlabeled"):
        (tmp_path / "photos" / kind).mkdir(parents=True)
    for k in range(24):
        pixels = rng.integers(0, 40, (8, 8))
        pixels[:, :4] += 200 * (k % 2)
        pixels[:, 4:] += 200 * (1 - k % 2)
        folder = tmp_path / "photos" / ("left" if k in (1, 3) else "unlabeled")
        image.fromarray(pixels.astype(np.uint8)).save(folder / f"{k}.png")
    labeling = Labeling(tmp_path / "photos", background=False)
    assert labeling.journal.path == tmp_path / "photos.labels.jsonl"
    for _ in range(8):
        sample = labeling.next()
        assert sample["image_shape"] == (8, 8)
        odd = int(dict(sample["beside"])["file"].split("/")[1].removesuffix(".png")) % 2
        labeling.answer(sample["id"], ["left" if odd else "right"])
    labeling.learn()
    assert labeling.status()["labels"].keys() == {"left", "right"}
    assert all("image" in part for part in labeling.parts())


def test_a_label_of_the_file_with_a_line_break_stays_one_label(tmp_path):
    file = tmp_path / "docs.csv"
    with file.open("w", newline="") as target:
        rows = [[text, ["a\nb", "=c"][k % 2] if k < 6 else ""] for k, text in enumerate(TEXTS)]
        csv.writer(target).writerows([["text", "topic"], *rows])
    labeling = Labeling(file, text="text", label="topic", background=False)
    labeling.answer(labeling.next()["id"], ["a\nb"])
    assert labeling.summary()["labels"] == {"=c": 3, "a\nb": 4}
    labeling.merge(["=c"], "a\nb")
    assert labeling.summary()["labels"] == {"a\nb": 7}


def test_joining_nothing_is_refused_and_makes_no_label():
    labeling = started(3)
    before = labeling.summary()["labels"]
    with pytest.raises(ValueError, match="which labels"):
        labeling.merge([], "new")
    assert labeling.summary()["labels"] == before


def test_the_end_counts_the_labels_that_were_given_and_not_those_of_the_file(tmp_path):
    file = tmp_path / "docs.csv"
    with file.open("w", newline="") as target:
        rows = [[text, TRUTH[text] if k < 9 else ""] for k, text in enumerate(TEXTS)]
        csv.writer(target).writerows([["text", "topic"], *rows])
    server = LabelServer(Labeling(file, text="text", label="topic", background=False))
    with server:
        assert "No label was given" in _end(server)
        answer(server.labeling)
        assert "1 label is in" in _end(server)
        answer(server.labeling)
        assert "2 labels are in" in _end(server)
