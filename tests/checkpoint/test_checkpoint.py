"""Fits that survive: the same call goes on, with the same bits, and refuses what is not its own.

In-process tests crash a fit right after one of its checkpoints; those of kills are at the end.
"""

import errno
import os
import platform
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone

import marginparts
from marginparts import (
    Checkpoint,
    ConstrainedNMF,
    NMFAlpha,
    NMFAlphaClassifier,
    NMFAlphaCV,
    SemiSupervisedNMF,
    Stop,
    nmf_alpha,
)
from marginparts.checkpoint import _file, _logbook
from marginparts.files.atomic import FileProblemError
from marginparts.solve import loop as solver
from survival import CASES, campaign

RNG = np.random.default_rng(0)
DENSE = RNG.random((30, 20))
SPARSE = sp.random_array((30, 20), density=0.3, format="csr", random_state=RNG)
S = sp.random_array((30, 4), density=0.3, format="csr", random_state=RNG)
Y = np.where(np.arange(30) < 18, np.arange(30) % 2, -1)
COUNTS = RNG.poisson(1 + 3 * (np.arange(20) % 2 == (np.arange(30) % 2)[:, None])).astype(float)


class CrashError(Exception):
    pass


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.ckpt"


@pytest.fixture
def crash_after(monkeypatch):
    """Make the fit crash right after a number of checkpoints."""

    def after(count):
        written = []

        def write(*args):
            _file.write_checkpoint(*args)
            written.append(args)
            if len(written) == count:
                raise CrashError

        monkeypatch.setattr(_logbook, "write_checkpoint", write)

    return after


def often(path, **options):
    return Checkpoint(path, every_seconds=None, every_iterations=1, **options)


def same(one, other):
    """Two results are equal in every bit."""
    assert_array_equal(one.V, other.V)
    assert_array_equal(one.H, other.H)
    assert one.losses == other.losses
    assert (one.n_iter, one.stop, one.solver) == (other.n_iter, other.stop, other.solver)
    for ours, theirs in zip(one.history, other.history, strict=True):
        assert_array_equal([ours.iteration, ours.residual], [theirs.iteration, theirs.residual])
        assert ours.nonzeros == theirs.nonzeros


@pytest.mark.parametrize("every", [1, 10])  # looked at often and seldom
@pytest.mark.parametrize("supervised", [False, True])
@pytest.mark.parametrize("X", [DENSE, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", ["mu", "mue", "cd"])
@pytest.mark.parametrize("backend", ["numba", "reference"])
def test_a_fit_goes_on_to_the_same_bits(
    backend, name, X, supervised, every, path, crash_after, monkeypatch
):
    if every > 1:
        monkeypatch.setattr(solver, "_SMALL", 0)
    options = {
        "S": S if supervised else None, "solver": name, "max_iter": 27, "tol": 0,
        "random_state": 0, "backend": backend,
    }  # fmt: skip
    whole = nmf_alpha(X, 3, **options)
    for count in (1, 5, 20):  # each from the checkpoint of the crash before
        crash_after(count)
        with pytest.raises(CrashError):
            nmf_alpha(X, 3, **options, checkpoint=often(path))
    same(nmf_alpha(X, 3, **options, checkpoint=path), whole)


@pytest.mark.extra
@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("name", ["mu", "mue"])
def test_a_fit_on_a_gpu_goes_on_to_the_same_bits(name, kind, path, crash_after):
    """Where there is no GPU, Triton's interpreter runs the kernels: slowly, so there is little."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("triton", reason="triton is not installed")
    from marginparts.backends.gpu.backend import TorchBackend

    gpu = torch.cuda.is_available()
    size = (30, 20) if gpu else (5, 4)
    X = np.random.default_rng(1).random(size) + 0.1
    X = X if kind == "dense" else sp.csr_array(X * (X > 0.4))
    options = {
        "S": S[: size[0]], "solver": name, "max_iter": 40 if gpu else 5, "tol": 0,
        "random_state": 0, "backend": TorchBackend("cuda" if gpu else "cpu"),
    }  # fmt: skip
    whole = nmf_alpha(X, 3, **options)
    crash_after(20 if gpu else 2)
    with pytest.raises(CrashError):
        nmf_alpha(X, 3, **options, checkpoint=often(path))
    same(nmf_alpha(X, 3, **options, checkpoint=path), whole)


def test_a_rise_that_was_taken_back_is_remembered(path, crash_after):
    # where a step is taken back depends on the last bits, and so on the versions of libraries
    for seed in range(20):
        options = {"S": S, "lam": 1.0, "solver": "cd", "max_iter": 90, "tol": 0}
        options["random_state"] = seed
        whole = nmf_alpha(SPARSE, 6, **options)
        rises = sorted({*range(91)} - {check.iteration for check in whole.history})
        if rises:
            break
    assert rises, "no step was taken back; the test needs other data"
    for count in (rises[0] - 1, 1, 1, 1):  # before it, right after it, and among the plain steps
        crash_after(count)
        with pytest.raises(CrashError):
            nmf_alpha(SPARSE, 6, **options, checkpoint=often(path))
    same(nmf_alpha(SPARSE, 6, **options, checkpoint=path), whole)


@pytest.mark.parametrize("dtype", [pytest.param(np.float32, marks=pytest.mark.wide), np.float64])
def test_the_type_is_kept(dtype, path, crash_after):
    X = SPARSE.astype(dtype)
    crash_after(4)
    with pytest.raises(CrashError):
        nmf_alpha(X, 3, random_state=0, checkpoint=often(path))
    found = nmf_alpha(X, 3, random_state=0, checkpoint=path)
    assert found.V.dtype == dtype
    same(found, nmf_alpha(X, 3, random_state=0))


ESTIMATORS = [
    NMFAlpha(3, max_iter=30, random_state=0),
    SemiSupervisedNMF(3, max_iter=30, random_state=0),
    ConstrainedNMF(3, max_iter=30, random_state=0),
]


@pytest.mark.parametrize("X", [DENSE, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_an_estimator_goes_on_to_the_same_bits(estimator, X, path, crash_after):
    whole = clone(estimator).fit(X, Y)
    crash_after(13)
    with pytest.raises(CrashError):
        clone(estimator).set_params(checkpoint=often(path)).fit(X, Y)
    model = clone(estimator).set_params(checkpoint=path).fit(X, Y)
    assert_array_equal(model.components_, whole.components_)
    assert_array_equal(model.loss_curve_, whole.loss_curve_)
    assert_array_equal(model.transform(X), whole.transform(X))
    assert not path.exists()


# with teachers there are no trials to keep
CLASSIFIERS = [
    NMFAlphaClassifier(3, C=2.0, normalize=True, max_iter=20, random_state=0, pseudo="svm"),
    NMFAlphaCV(
        (2, 3), lam=(1.0, 3.0), map_iter=(5, 15), cv=3, max_iter=20, random_state=0, pseudo="svm"
    ),
]


def bits(model):
    return (
        model.selection_, list(model.selection_), model.coef_.tobytes(),
        model.parts_.components_.tobytes(), model.decision_function(COUNTS).tobytes(),
        model.calibration_ and model.predict_proba(COUNTS).tobytes(), model.choice_.best,
    )  # fmt: skip


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda e: type(e).__name__)
def test_trials_that_are_done_are_not_done_again(estimator, path, crash_after):
    tried, again = [], []
    whole = clone(estimator).set_params(callback=tried.append).fit(COUNTS, Y)
    for count in (1, 2, 1, 7):  # checkpoints: after each trial, then after each iteration
        crash_after(count)
        with pytest.raises(CrashError):
            clone(estimator).set_params(checkpoint=often(path)).fit(COUNTS, Y)
    model = clone(estimator).set_params(checkpoint=path, callback=again.append).fit(COUNTS, Y)
    assert bits(model) == bits(whole)
    assert [p[:3] for p in again] == [p[:3] for p in tried[-len(again) :]]  # the rest of it
    assert 0 < len(again) < len(tried)
    assert not path.exists()


# --- what stays, and what is refused


def test_a_complete_fit_removes_its_checkpoint_or_keeps_its_end(path):
    first = nmf_alpha(DENSE, 3, random_state=0, checkpoint=often(path))
    assert not path.exists()
    kept = often(path, keep_finished=True)
    second = nmf_alpha(DENSE, 3, random_state=0, checkpoint=kept)
    assert path.exists()
    looks = []
    third = nmf_alpha(DENSE, 3, random_state=0, checkpoint=kept, callback=looks.append)
    assert looks == []  # it ended at once
    same(first, second)
    same(second, third)


@pytest.fixture
def begun(path, crash_after, monkeypatch):
    """A checkpoint of a fit that crashed."""
    crash_after(3)
    with pytest.raises(CrashError):
        nmf_alpha(DENSE, 3, S=S, random_state=0, checkpoint=often(path))
    monkeypatch.undo()
    return path


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"X": DENSE + 1e-12}, "with another X;"),
        ({"X": DENSE[:, ::-1]}, "with another X;"),
        ({"X": SPARSE}, "with another X;"),
        ({"S": 2 * S}, "with another S;"),
        ({"S": None}, "with another S;"),
        ({"lam": 1.0}, r"with lam=3.0 \(here 1.0\);"),
        ({"n_components": 4}, r"with n_components=3 \(here 4\);"),
        ({"init": "nndsvda"}, r"with init='random' \(here 'nndsvda'\);"),
        ({"solver": "mu"}, r"with solver='auto' \(here 'mu'\);"),
        ({"max_iter": 100, "tol": 0}, r"with max_iter=200 \(here 100\) and tol=0.0001 \(here 0\);"),
        ({"random_state": 1}, r"with random_state=0 \(here 1\);"),
        ({"random_state": None}, r"with random_state=0 \(here None\);"),
        ({"backend": "reference"}, r"with backend='numba' \(here 'reference'\);"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused_by_name(changed, named, begun):
    before = begun.read_bytes()
    call = {"X": DENSE, "n_components": 3, "S": S, "random_state": 0, "backend": "numba", **changed}
    with pytest.raises(FileProblemError, match=named):
        nmf_alpha(**call, checkpoint=begun)
    assert begun.read_bytes() == before


def test_the_checkpoint_of_another_estimator_or_labels_is_refused(begun, path, crash_after):
    with pytest.raises(FileProblemError, match=r"fit='nmf_alpha' \(here 'NMFAlpha'\)"):
        NMFAlpha(3, checkpoint=begun).fit(DENSE, Y)
    path.unlink()
    crash_after(2)
    with pytest.raises(CrashError):
        NMFAlpha(3, random_state=0, checkpoint=often(path)).fit(DENSE, Y)
    with pytest.raises(FileProblemError, match="with another y;"):
        NMFAlpha(3, random_state=0, checkpoint=path).fit(DENSE, 1 - Y)
    # what the parts do not depend on may change
    NMFAlpha(3, random_state=0, checkpoint=path, map_iter=5, output="coefficients").fit(DENSE, Y)


def test_a_fit_without_a_seed_goes_on_with_the_one_it_had(path, crash_after):
    crash_after(1)
    with pytest.raises(CrashError):
        nmf_alpha(DENSE, 3, checkpoint=often(path))
    seed = _file.read_checkpoint(path).seed
    same(nmf_alpha(DENSE, 3, checkpoint=path), nmf_alpha(DENSE, 3, random_state=seed))


@pytest.mark.parametrize("place", [100, -100, 1000])
def test_a_damaged_checkpoint_is_refused(place, begun):
    data = bytearray(begun.read_bytes())
    data[place] ^= 1
    begun.write_bytes(data)
    with pytest.raises(FileProblemError, match=r"fit\.ckpt (is damaged|was altered)"):
        nmf_alpha(DENSE, 3, S=S, random_state=0, checkpoint=begun)


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"PK\x05\x06" + 18 * b"\0"])
def test_another_file_is_refused_and_left_alone(content, path):
    path.write_bytes(content)
    with pytest.raises(FileProblemError, match="is damaged or not a checkpoint"):
        nmf_alpha(DENSE, 3, checkpoint=path)
    assert path.read_bytes() == content


def test_a_checkpoint_of_another_version_is_refused(begun, monkeypatch):
    monkeypatch.setattr(_file, "__version__", "99.0")
    with pytest.raises(FileProblemError, match=r"was written by marginparts [\d.]+, and this is"):
        nmf_alpha(DENSE, 3, S=S, random_state=0, checkpoint=begun)


def test_what_cannot_be_a_checkpoint_is_refused_before_the_work(tmp_path):
    with pytest.raises(ValueError, match="checkpoint=3 must be a path or a Checkpoint"):
        nmf_alpha(DENSE, 3, checkpoint=3)
    with pytest.raises(ValueError, match="every_iterations=0 must be"):
        Checkpoint("x", every_iterations=0)
    with pytest.raises(ValueError, match="every_seconds=-1 must be"):
        Checkpoint("x", every_seconds=-1)
    with pytest.raises(FileProblemError, match="There is no folder"):
        nmf_alpha(DENSE, 3, checkpoint=tmp_path / "gone" / "fit.ckpt")


def test_parameters_can_be_cloned_and_models_saved(path):
    from marginparts import load, save

    given = often(path)
    model = clone(NMFAlpha(3, checkpoint=given)).fit(DENSE)
    assert model.get_params()["checkpoint"] == given
    save(model, path.with_suffix(".model"))
    assert load(path.with_suffix(".model")).checkpoint is None


# --- how often


def test_checkpoints_come_after_the_iterations_asked_for(path, monkeypatch):
    at = []
    monkeypatch.setattr(
        _logbook, "write_checkpoint", lambda path, c: at.append(c.notes["run"].tree["iteration"])
    )
    checkpoint = Checkpoint(path, every_seconds=None, every_iterations=7)
    nmf_alpha(DENSE, 3, max_iter=30, tol=0, checkpoint=checkpoint)
    assert at == [7, 14, 21, 28]


@pytest.mark.parametrize(("cost", "expected"), [(0.0, [10, 20, 30, 40]), (1.0, [10, 30])])
def test_checkpoints_come_after_seconds_and_take_a_small_share_of_them(
    cost, expected, path, monkeypatch
):
    clock, at = [0.0], []

    def write(path, content):
        at.append(content.notes["run"].tree["iteration"])
        clock[0] += cost

    def second(progress):
        clock[0] += 1

    monkeypatch.setattr(_logbook, "write_checkpoint", write)
    monkeypatch.setattr(_logbook.time, "monotonic", lambda: clock[0])
    checkpoint = Checkpoint(path, every_seconds=10)
    nmf_alpha(DENSE, 3, max_iter=45, tol=0, checkpoint=checkpoint, callback=second)
    assert at == expected


def test_a_short_fit_writes_nothing(path):
    found = []
    nmf_alpha(
        DENSE,
        3,
        max_iter=30,
        checkpoint=path,
        callback=lambda _: found.append([*path.parent.iterdir()]),
    )
    assert found
    assert not any(found)


def test_what_a_kill_left_beside_is_removed_and_nothing_else(path):
    left, other = path.with_name(".fit.ckpt.x1_y2z3w.part"), path.with_name(".fit.ckpt2.abc.part")
    left.touch()
    other.touch()
    nmf_alpha(DENSE, 3, max_iter=3, checkpoint=path)
    assert list(path.parent.iterdir()) == [other]


# --- a full disk


@pytest.mark.parametrize("stage", ["write", "fsync"])
def test_a_full_disk_stops_the_checkpoints_and_not_the_fit(stage, path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    if stage == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    else:
        monkeypatch.setattr("marginparts.files.archive._Summed.write", full)
    with pytest.warns(UserWarning, match="the disk is full; the fit goes on") as warned:
        found = nmf_alpha(DENSE, 3, random_state=0, max_iter=20, checkpoint=often(path))
    assert len(warned) == 1
    same(found, nmf_alpha(DENSE, 3, random_state=0, max_iter=20))
    assert list(path.parent.iterdir()) == []


def test_a_real_limit_on_files_does_not_stop_the_fit_and_keeps_the_last_checkpoint(path):
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    sizes = []

    def callback(progress):
        if progress.iteration == 5:
            sizes.append(path.stat().st_size)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        if progress.iteration == 15:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            sizes.append(path.stat().st_size)
        if progress.iteration == 17:  # it tried again
            assert _file.read_checkpoint(path).notes["run"].tree["iteration"] == 16

    options = {"random_state": 0, "max_iter": 20, "tol": 0, "solver": "mu"}
    with pytest.warns(UserWarning, match="cannot be written: .*; the fit goes on") as warned:
        found = nmf_alpha(DENSE, 3, **options, checkpoint=often(path), callback=callback)
    assert len(warned) == 1
    assert sizes[0] == sizes[1] > 1000  # the last whole one
    same(found, nmf_alpha(DENSE, 3, **options))


# --- Ctrl-C and SIGTERM


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """Python as it is in a terminal: in a job in the background the shell has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pressing(number, at):
    """Return a callback that sends a signal to this process at a look."""
    seen = []

    def callback(progress):
        seen.append(progress)
        if len(seen) == at:
            os.kill(os.getpid(), number)

    return callback


signals = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@signals
@pytest.mark.parametrize("seldom", [False, True])
def test_a_signal_ends_a_fit_with_a_usable_model(number, seldom, path, monkeypatch):
    if seldom:
        monkeypatch.setattr(solver, "_SMALL", 0)
    before = signal.getsignal(number)
    whole = NMFAlpha(3, max_iter=60, tol=0, random_state=0).fit(DENSE, Y)
    model = NMFAlpha(3, max_iter=60, tol=0, random_state=0, checkpoint=path)
    model.set_params(callback=pressing(number, 2 if seldom else 20))
    with pytest.warns(UserWarning, match=r"Interrupted: .* goes on from .*fit\.ckpt"):
        model.fit(DENSE, Y)
    assert model.stop_ is Stop.INTERRUPTED
    assert model.n_iter_ in (20, 21)
    assert model.transform(DENSE).shape == (30, 3)
    assert (np.diff(model.loss_curve_) <= 0).all()
    assert signal.getsignal(number) is before
    model.set_params(callback=None).fit(DENSE, Y)
    assert_array_equal(model.components_, whole.components_)
    assert_array_equal(model.loss_curve_, whole.loss_curve_)
    assert not path.exists()


@signals
def test_an_interrupted_search_leaves_a_classifier_and_goes_on(number, path):
    estimator = CLASSIFIERS[1]
    whole = clone(estimator).fit(COUNTS, Y)
    model = clone(estimator).set_params(checkpoint=path, callback=pressing(number, 150))
    with pytest.warns(UserWarning, match="Interrupted: the fit ended early"):
        model.fit(COUNTS, Y)
    assert 0 < len(model.choice_.scores[model.choice_.best]) < 3  # folds
    assert model.parts_.stop_ is Stop.INTERRUPTED
    assert model.score(COUNTS[:18], Y[:18]) > 0.8
    again = []
    model.set_params(callback=again.append).fit(COUNTS, Y)
    assert bits(model) == bits(whole)
    assert again[0].iteration > 0  # trials were kept


def test_a_second_signal_ends_the_fit_at_once(path):
    def twice(progress):
        if progress.iteration == 3:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        nmf_alpha(DENSE, 3, checkpoint=path, callback=twice)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_that_is_ignored_stays_so(path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        found = nmf_alpha(
            DENSE, 3, max_iter=30, tol=0, checkpoint=path, callback=pressing(signal.SIGINT, 3)
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert found.stop is Stop.MAX_ITER


def test_a_handler_of_ones_own_is_called_too(path):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with pytest.warns(UserWarning, match="Interrupted"):
            nmf_alpha(DENSE, 3, tol=0, checkpoint=path, callback=pressing(signal.SIGTERM, 3))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]


def test_without_a_checkpoint_ctrl_c_is_as_ever():
    with pytest.raises(KeyboardInterrupt):
        nmf_alpha(DENSE, 3, callback=pressing(signal.SIGINT, 3))


def test_a_fit_in_a_thread_keeps_checkpoints_as_well(path, crash_after):
    errors = []

    def fit():
        try:
            nmf_alpha(DENSE, 3, random_state=0, checkpoint=often(path))
        except CrashError as error:
            errors.append(error)

    crash_after(5)
    thread = threading.Thread(target=fit)
    thread.start()
    thread.join()
    assert errors
    same(nmf_alpha(DENSE, 3, random_state=0, checkpoint=path), nmf_alpha(DENSE, 3, random_state=0))


# --- the command


@pytest.fixture
def table(tmp_path):
    kinds = ["cat" if k % 2 else "dog" for k in range(30)]
    words = {"cat": "purr whiskers milk paw", "dog": "bark bone leash paw"}
    rows = [f"{words[kind]} {k % 3},{kind if k < 20 else ''}" for k, kind in enumerate(kinds)]
    path = tmp_path / "pets.csv"
    path.write_text("\n".join(["text,kind", *rows]))
    return path


@signals
@pytest.mark.parametrize("stage", [pytest.param("choosing", marks=pytest.mark.wide), "parts"])
def test_the_command_ends_well_after_a_signal_and_goes_on(
    number, stage, table, tmp_path, monkeypatch
):
    from typer.testing import CliRunner

    from marginparts import load
    from marginparts.app import fitting
    from marginparts.cli import app

    fit_model = fitting.fit_model

    def pressed(data, options, *, callback, on_stage):
        def look(progress):
            if progress.stage == stage and look.left:
                look.left -= 1
                if not look.left:
                    os.kill(os.getpid(), number)
            return callback(progress)

        look.left = 3
        return fit_model(data, options, callback=look, on_stage=on_stage)

    monkeypatch.chdir(tmp_path)
    command = ["fit", str(table), "--text", "text", "--label", "kind", "--components", "2,3",
               "--max-df", "1.0", "--max-iter", "30", "--quiet"]  # fmt: skip
    whole = CliRunner().invoke(app, [*command, "--out", "whole.model"])
    assert whole.exit_code == 0
    kept = [*command, "--checkpoint", "fit.ckpt"]  # the model's name is the default
    with monkeypatch.context() as patched:
        patched.setattr(fitting, "fit_model", pressed)
        result = CliRunner().invoke(app, kept)
    assert result.exit_code == 128 + number
    assert "the same command goes on from fit.ckpt" in result.stderr
    assert load("pets.model").card.stopped
    assert (tmp_path / "fit.ckpt").exists()
    result = CliRunner().invoke(app, kept)
    assert result.exit_code == 0
    assert not (tmp_path / "fit.ckpt").exists()
    model, expected = load("pets.model"), load("whole.model")
    assert not model.card.stopped
    assert_array_equal(model.classifier.parts_.components_, expected.classifier.parts_.components_)
    assert model.classifier.checkpoint is None


def test_the_command_refuses_a_checkpoint_of_another_fit(table, begun, monkeypatch):
    from typer.testing import CliRunner

    from marginparts.cli import app

    monkeypatch.chdir(table.parent)
    command = ["fit", str(table), "--text", "text", "--label", "kind", "--max-df", "1.0"]
    result = CliRunner().invoke(app, [*command, "--checkpoint", str(begun)])
    assert result.exit_code == 2
    assert "belongs to another fit" in result.stderr
    result = CliRunner().invoke(app, [*command, "--out", "a", "--checkpoint", "a"])
    assert result.exit_code == 2
    assert "give --checkpoint another name" in result.stderr


# --- kills


@pytest.mark.wide
def test_a_few_kills_lose_nothing(tmp_path):
    assert len(list(campaign(["mu"], 3, tmp_path, seed=1))) == 3


@pytest.mark.slow
def test_fifty_kills_lose_nothing(tmp_path):
    """The log goes to the file named in MARGINPARTS_SURVIVAL_LOG, if any."""
    log = open(os.environ.get("MARGINPARTS_SURVIVAL_LOG", os.devnull), "w")  # noqa: SIM115
    with log:
        began, kills = time.monotonic(), []
        log.write(
            f"marginparts {marginparts.__version__}, Python {platform.python_version()}, numpy "
            f"{np.__version__}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores\n"
        )
        for kill in campaign(list(CASES), 50, tmp_path):
            kills.append(kill)
            readable = "readable" if kill.size else "-"  # one that is not has raised
            writing = "while writing" if kill.while_writing else ""
            log.write(
                f"kill {len(kills):2}  {kill.case:29} after {kill.seconds:.3f} s  "
                f"{kill.at:14} {kill.size:9} bytes  {readable} {writing}".rstrip()
                + "\n"
            )
            log.flush()
        log.write(
            f"{len(kills)} kills in {time.monotonic() - began:.0f} s, "
            f"{sum(kill.while_writing for kill in kills)} of them while a checkpoint was written: "
            "every checkpoint readable, every fit with the bits of an uninterrupted one\n"
        )
    assert len(kills) == 50
    assert {kill.case for kill in kills} == set(CASES)
