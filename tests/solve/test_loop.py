"""The one loop: what it calls, when it looks, when it stops, and how it takes back a bad step."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from marginparts import Stop
from marginparts._types import Problem, Step
from marginparts.solve.loop import WARM_UP, WINDOW, Momentum, chosen, minimize


class Fake(Problem):
    """A problem without sweeps."""

    can_sweep = False
    default_solver = "cd"
    violation = 1.0

    def step(self, factor):
        return Step(factor, self.violation)

    def ahead(self, block, now, before, b, least):
        return np.maximum(now + b * (now - before), least * now)


class Approach(Fake):
    """One number that moves a share of the way to 1; the loss is the distance."""

    blocks = ("x",)

    def __init__(self, share=0.1):
        self.share, self.looks, self.updates = share, 0, 0

    def update(self, state, block, out=None, gauge=False):
        self.updates += 1
        return self.step(state["x"] + self.share * (1 - state["x"]))

    def loss(self, state):
        self.looks += 1
        return float(np.sum(np.abs(1 - state["x"])))


class Cliff(Approach):
    """Plain steps stop at 1, but a step from beyond stays there, at a hundred times the loss."""

    def __init__(self):
        super().__init__()
        self.losses = []

    def update(self, state, block, out=None, gauge=False):
        self.updates += 1
        x = state["x"]
        return self.step(np.where(x < 1, np.minimum(x + 0.1, 1), x))

    def loss(self, state):
        x = state["x"]
        self.losses.append(float(np.sum(np.where(x > 1, 100 * (x - 1), 1 - x))))
        return self.losses[-1]


class Sweeps(Approach):
    """The same, with a sweep that goes half the way."""

    can_sweep = True

    def __init__(self):
        super().__init__()
        self.sweeps = 0

    def sweep(self, state, block, out=None, gauge=False, bold=False):
        self.sweeps += 1
        return self.step(state["x"] + 0.5 * (1 - state["x"]))


class TwoBlocks(Fake):
    """Records which values each update saw."""

    blocks = ("a", "b")

    def __init__(self):
        self.seen = []

    def update(self, state, block, out=None, gauge=False):
        self.seen.append((block, float(state["a"][0]), float(state["b"][0])))
        return self.step(state[block] + 1)

    def loss(self, state):
        return 100.0 - state["a"][0]


def start(value=0.0, size=1):
    return {"x": np.full(size, value)}


def test_plain_steps_are_the_updates_and_nothing_else():
    run = minimize(Approach(), start(), solver="mu", max_iter=7, tol=0)
    assert_allclose(run.state["x"], 1 - 0.9**7, rtol=1e-14)
    assert_allclose([check.loss for check in run.history], 0.9 ** np.arange(8), rtol=1e-13)
    assert [check.iteration for check in run.history] == list(range(8))


def test_blocks_are_updated_in_order_each_from_the_newest_values():
    problem = TwoBlocks()
    minimize(problem, {"a": np.zeros(1), "b": np.zeros(1)}, solver="mu", max_iter=2, tol=0)
    assert problem.seen == [("a", 0, 0), ("b", 1, 0), ("a", 1, 1), ("b", 2, 1)]


@pytest.mark.parametrize("solver", ["mu", "mue"])
def test_a_frozen_factor_keeps_its_value(solver):
    problem = TwoBlocks()
    state = {"a": np.zeros(1), "b": np.full(1, 5.0)}
    run = minimize(problem, state, solver=solver, max_iter=3, tol=0, frozen=("b",))
    assert {block for block, *_ in problem.seen} == {"a"}
    assert run.state["b"] is state["b"]
    assert_array_equal(state["a"], 0)  # the start is not written to


def test_momentum_follows_nesterovs_sequence():
    momentum, capped, t = Momentum(least=1, cap=1), Momentum(least=1, cap=0.3), 1.0
    for _ in range(5):
        momentum.advance()
        capped.advance()
        t_next = (1 + np.sqrt(1 + 4 * t * t)) / 2
        assert_allclose(momentum.b, (t - 1) / t_next)
        assert_allclose(capped.b, min((t - 1) / t_next, 0.3))
        t = t_next
    momentum.restart()
    momentum.advance()
    assert momentum.b == 0


@pytest.mark.parametrize(
    ("least", "expected"), [(1.0, [2.5, 1.0, 3.0]), (0.1, [2.5, 0.5, 3.0]), (0.9, [2.5, 0.9, 3.0])]
)
@pytest.mark.parametrize("backend", ["reference", "numba"])
def test_a_point_ahead_follows_the_last_change_but_not_below_a_share(least, expected, backend):
    from marginparts.backends import get_backend

    now, before = np.array([[2.0, 1.0, 3.0]]), np.array([[1.0, 2.0, 3.0]])
    assert_allclose(get_backend(backend).ahead(now, before, 0.5, least), [expected])
    assert_array_equal(now, [[2.0, 1.0, 3.0]])


def test_sweeps_follow_a_few_plain_updates_where_a_problem_has_them():
    problem = Sweeps()
    run = minimize(problem, start(), solver="cd", max_iter=8, tol=0)
    assert (problem.updates, problem.sweeps) == (WARM_UP, 8 - WARM_UP)
    assert run.solver == "cd"


@pytest.mark.parametrize(
    ("solver", "with_sweeps", "without"),
    [("auto", "cd", "mue"), ("cd", "cd", "mue"), ("mue", "mue", "mue"), ("mu", "mu", "mu")],
)
def test_a_run_says_which_solver_it_used(solver, with_sweeps, without):
    assert chosen(solver, Sweeps()) == with_sweeps
    assert minimize(Approach(), start(), solver=solver, max_iter=3).solver == without


def test_a_stationary_point_ends_the_run():
    problem = Approach()
    problem.violation = 1e-5
    run = minimize(problem, start(), solver="mu", max_iter=20, tol=1e-4)
    assert (run.stop, run.n_iter) == (Stop.STATIONARY, 1)
    assert [check.residual for check in run.history[1:]] == [1e-5]
    assert run.history[0].nonzeros == {"x": 0}
    assert run.history[1].nonzeros == {"x": 1}


def test_extrapolation_gets_further_than_plain_steps():
    plain = minimize(Approach(0.01), start(), solver="mu", max_iter=50, tol=0)
    fast = minimize(Approach(0.01), start(), solver="mue", max_iter=50, tol=0)
    assert fast.history[-1].loss < 0.5 * plain.history[-1].loss


def test_a_rise_is_taken_back_and_followed_by_plain_steps():
    problem = Cliff()
    run = minimize(problem, start(), solver="mue", max_iter=30, tol=0)
    losses = np.array([check.loss for check in run.history])
    assert (np.diff(losses) <= 0).all()
    assert max(problem.losses) > losses[0]  # extrapolation did jump over the cliff
    assert_allclose(run.state["x"], 1)  # and was taken back
    assert_allclose(losses[-1], Cliff().loss(run.state))


class Rough(Approach):
    """A loss that rounding keeps from falling: every look but the first is a rise."""

    def loss(self, state):
        self.looks += 1
        return 1.0 + 1e-12 * self.looks


@pytest.mark.parametrize("size", [1, 200_000])  # looked at often and seldom
def test_a_loss_that_only_rises_ends_the_run_and_keeps_its_start(size):
    run = minimize(Rough(), start(0.5, size), solver="mue", max_iter=500, tol=1e-6)
    assert run.stop is Stop.CONVERGED
    assert run.n_iter <= 3 * WINDOW
    assert_array_equal(run.state["x"], 0.5)


class Overflow(Approach):
    """An update from beyond one half is no number, and neither is its loss."""

    def update(self, state, block, out=None, gauge=False):
        step = super().update(state, block)
        return self.step(np.where(step.factor > 0.5, np.nan, step.factor))


@pytest.mark.parametrize("size", [1, 200_000])  # looked at often and seldom
def test_a_loss_that_is_no_number_is_a_rise(size):
    run = minimize(Overflow(0.02), start(0.1, size), solver="mue", max_iter=100, tol=0)
    assert np.isfinite(run.state["x"]).all()
    losses = [check.loss for check in run.history]
    assert np.isfinite(losses).all()
    assert (np.diff(losses) < 0).all()
    assert len(losses) > 1


def test_plain_updates_that_leave_the_numbers_end_with_an_error():
    """They keep no good state to go back to, and factors that are no numbers are of no use."""
    with pytest.raises(FloatingPointError, match="left the range of numbers in iteration"):
        minimize(Overflow(), start(0.1), solver="mu", max_iter=100, tol=0)


def test_a_callback_is_asked_at_every_look_also_after_a_rise():
    seen = []
    minimize(Rough(), start(0.5), solver="mue", max_iter=12, tol=0, callback=seen.append)
    assert [progress.iteration for progress in seen] == list(range(1, 13))
    assert {progress.loss for progress in seen} == {1.0 + 1e-12}


@pytest.mark.parametrize("max_iter", [25, 30])
def test_large_problems_are_looked_at_every_tenth_iteration_and_at_the_end(max_iter):
    problem = Approach()
    run = minimize(problem, start(size=200_000), solver="mu", max_iter=max_iter, tol=0)
    assert [check.iteration for check in run.history] == sorted({0, 10, 20, max_iter})
    assert problem.looks == len(run.history)
    assert problem.updates == max_iter


def test_without_watching_the_loss_is_never_computed():
    problem = Approach()
    run = minimize(problem, start(), solver="mu", max_iter=6, watch=False)
    assert (problem.looks, problem.updates) == (0, 6)
    assert_allclose(run.state["x"], 1 - 0.9**6, rtol=1e-14)
    assert run.stop is Stop.MAX_ITER


def test_the_tolerance_is_a_share_over_a_window_of_iterations():
    share = 0.1
    decrease = 1 - 0.9**WINDOW  # constant, so it is never below a smaller tolerance
    stopped = minimize(Approach(share), start(), solver="mu", max_iter=40, tol=decrease * 1.01)
    assert (stopped.stop, stopped.n_iter) == (Stop.CONVERGED, WINDOW)
    ran = minimize(Approach(share), start(), solver="mu", max_iter=40, tol=decrease * 0.99)
    assert (ran.stop, ran.n_iter) == (Stop.MAX_ITER, 40)


def test_an_exact_fit_stops_at_once_unless_all_iterations_are_asked_for():
    exact = minimize(Approach(), start(1.0), solver="mu", max_iter=20, tol=1e-4)
    assert (exact.stop, exact.n_iter) == (Stop.EXACT, 1)
    assert minimize(Approach(), start(1.0), solver="mu", max_iter=20, tol=0).n_iter == 20


@pytest.mark.parametrize("answer", [None, False, 0])
def test_a_callback_that_does_not_answer_true_changes_nothing(answer):
    iterations = []

    def callback(progress):
        iterations.append(progress.iteration)
        return answer

    run = minimize(Approach(), start(), solver="mu", max_iter=5, tol=0, callback=callback)
    assert iterations == [1, 2, 3, 4, 5]
    assert run.stop is Stop.MAX_ITER


def test_seconds_never_run_backwards():
    run = minimize(Approach(), start(), max_iter=5, tol=0)
    assert (np.diff([check.seconds for check in run.history]) >= 0).all()


@pytest.mark.parametrize("stop", list(Stop))
def test_every_reason_to_stop_is_a_sentence(stop):
    assert str(stop)[0].isupper()
    assert str(stop).endswith(".")


class Lossy(Approach):
    """One that loses all it had, once, and says so."""

    recovered = 0

    def update(self, state, block, out=None, gauge=False):
        moved = super().update(state, block)
        if self.updates == 200:
            self.recovered += 1
            return self.step(np.zeros_like(moved.factor))
        return moved


@pytest.mark.parametrize("solver", ["mu", "mue"])
def test_what_was_lost_is_no_reason_to_go_back_or_to_stop(solver):
    problem = Lossy(share=0.01)
    run = minimize(problem, {"x": np.zeros(3)}, solver=solver, max_iter=2000, tol=1e-4)
    losses = [check.loss for check in run.history]
    rises = sum(b > a for a, b in pairwise(losses))
    assert rises == 1
    assert run.n_iter > 250
    assert losses[-1] < 1e-2
    assert losses[-1] == problem.loss(run.state)
