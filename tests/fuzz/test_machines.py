"""Whatever happens in any order, as hypothesis finds it: streams and journals lose nothing."""

import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from strange_estimators import one_case

from marginparts import Labeling, OnlineNMFAlphaClassifier, load, save
from marginparts.labeling.state import State
from mutations import is_a_sentence

RNG = np.random.default_rng(0)
X = RNG.random((60, 6)) * (RNG.random((60, 6)) < 0.7)
Y = np.where(np.arange(60) % 2, np.arange(60) % 3, -1)


class Folder(RuleBasedStateMachine):
    """A machine with a folder of its own."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())

    def teardown(self):
        shutil.rmtree(self.folder)


class Stream(Folder):
    """A stream that is saved, killed and loaded says what one says that was left in peace."""

    def __init__(self):
        super().__init__()
        self.path = self.folder / "stream.model"
        self.peaceful, self.ours = self.fresh(), self.fresh()
        self.done, self.kept = [], 0

    @staticmethod
    def fresh():
        return OnlineNMFAlphaClassifier(2, batch_size=8, memory=10, n_iter=2, random_state=0)

    def take(self, model, first):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.partial_fit(X[first : first + 7], Y[first : first + 7], classes=[0, 1, 2])

    @rule(first=st.integers(0, 50))
    def batch(self, first):
        self.take(self.ours, first)
        self.take(self.peaceful, first)
        self.done.append(first)

    @precondition(lambda self: self.done)
    @rule()
    def save_it(self):
        save(self.ours, self.path)
        self.kept = len(self.done)

    @precondition(lambda self: self.kept)
    @rule()
    def kill_and_resume(self):
        """What came after the last save is given again, as a script that goes on would."""
        self.ours = load(self.path)
        for first in self.done[self.kept :]:
            self.take(self.ours, first)

    @precondition(lambda self: self.done)
    @rule(what=st.sampled_from(["short", "negative", "unknown"]))
    def refused(self, what):
        """A batch that is refused leaves the stream as it was."""
        rows, y = (X[:3, :-1], Y[:3]) if what == "short" else (X[:3], Y[:3])
        if what == "negative":
            rows = -rows - 1
        if what == "unknown":
            y = [7, 0, 1]
        with pytest.raises(ValueError, match=r"\w"):
            self.ours.partial_fit(rows, y)

    @precondition(lambda self: self.done)
    @invariant()
    def same_bits(self):
        ours, other = self.ours.stream_, self.peaceful.stream_
        assert self.ours.n_samples_seen_ == self.peaceful.n_samples_seen_
        assert (ours.V is None) == (other.V is None)
        if ours.V is not None:
            assert ours.V.tobytes() == other.V.tobytes()
        assert ours.W.tobytes() == other.W.tobytes()


class LabelingMachine(Folder):
    """Answers on the disk are those in memory, whoever wrote them and whatever was torn."""

    DOCS = ("cats purr", "cats sleep", "dogs bark", "dogs run", "cows moo", "cows graze")

    def __init__(self):
        super().__init__()
        self.path = self.folder / "docs.labels.jsonl"
        self.open = [self.opened(), self.opened()]
        self.ids = self.open[0].pool.ids

    def opened(self):
        return Labeling(
            list(self.DOCS), journal=self.path, who="ann", background=False, several=True
        )

    who, row = st.integers(0, 1), st.integers(0, 5)
    names = st.lists(st.sampled_from(["cat", "dog", "cow"]), max_size=2)

    def tried(self, action):
        try:
            action()
        except ValueError as error:
            is_a_sentence(error)

    @rule(who=who, row=row, names=st.none() | names)
    def answer(self, who, row, names):
        self.tried(lambda: self.open[who].answer(self.ids[row], names))

    @rule(who=who)
    def undo(self, who):
        self.open[who].undo()

    @rule(who=who, old=st.sampled_from(["cat", "dog"]), new=st.sampled_from(["cow", "pet"]))
    def merge(self, who, old, new):
        self.tried(lambda: self.open[who].merge([old], new))

    @rule(who=who, name=st.sampled_from(["cat", "dog", "pet"]))
    def forbid(self, who, name):
        self.tried(lambda: self.open[who].forbid(name))

    @rule(who=who)
    def kill_and_resume(self, who):
        self.open[who] = self.opened()

    @rule(junk=st.binary(min_size=1, max_size=30).filter(lambda b: b"\n" not in b))
    def torn(self, junk):
        """A kill leaves half a line."""
        with self.path.open("ab") as file:
            file.write(b'{"id": "' + junk)

    @invariant()
    def all_know_the_same(self):
        for each in self.open:
            each.status()  # takes in what the other wrote
        fresh = self.opened()
        for each in self.open:
            assert each.state.answers == fresh.state.answers
            assert each.state.names == fresh.state.names
        again = State.of({}, [], fresh.journal.events)
        assert again.answers == fresh.state.answers


QUICK = settings(
    max_examples=15, stateful_step_count=12, deadline=None, derandomize=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
LONG = settings(QUICK, max_examples=1_000, stateful_step_count=30, derandomize=False)

MACHINES = {"stream": Stream, "labeling": LabelingMachine}


def run(machine, how):
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(machine, settings=how)


@pytest.mark.wide
@pytest.mark.parametrize("name", MACHINES)
def test_whatever_happens_in_any_order(name):
    run(MACHINES[name], QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_whatever_happens_in_any_order_many_times(name):
    run(MACHINES[name], LONG)


@pytest.mark.wide
@pytest.mark.filterwarnings("ignore")
def test_estimators_with_any_arguments():
    """The estimators' cases as hypothesis draws them, so that a failure comes out small."""
    from hypothesis import given

    @settings(QUICK, max_examples=60)
    @given(st.data(), st.integers(0, 2**32 - 1))
    def check(data, seed):
        def choose(options):
            return options[data.draw(st.integers(0, len(options) - 1))]

        with np.errstate(all="ignore"):
            one_case(choose, np.random.default_rng(seed))

    check()
