"""Data on disk: the same fit as in memory, whatever the files, within the memory limit."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from marginparts import (
    NMFAlpha,
    NMFAlphaClassifier,
    SemiSupervisedNMF,
    class_start,
    margin_directions,
    nmf_alpha,
    nmf_alpha_path,
    open_rows,
)
from marginparts.files.atomic import FileProblemError
from marginparts.labels import encode_labels
from marginparts.rows.disk import RowBlocks, StoredRows
from marginparts.rows.disk._limits import (
    LIBRARIES,
    MIB,
    Problem,
    bytes_of,
    planned,
    smallest_limit,
)
from marginparts.solve.start import label_start, random_start

N, D, R = 90, 31, 5
LIMIT = "1GB"


def matrix(dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, (N, D)) * rng.random((N, D))
    X[[0, 11, 12, N - 1]] = 0
    X[:, 4] = 0
    return sp.csr_array(X.astype(dtype))


def directions():
    S = np.zeros((N, 4))
    S[20:30] = np.random.default_rng(1).random((10, 4))
    return sp.csr_array(S)


def labels():
    y = np.full(N, -1)
    y[15:45] = np.arange(30) % 3
    return y


# how a matrix gets to each kind of file


def npz_folder(X, folder):
    for i, (a, b) in enumerate([(0, 40), (40, 41), (41, N)]):
        sp.save_npz(folder / f"block{9 + i}.npz", X[a:b], compressed=i == 0)  # 9, 10, 11


def dense_npz_folder(X, folder):
    np.savez(folder / "a.npz", X=X[:50].toarray(), y=np.zeros(50))
    np.savez_compressed(folder / "b.npz", X[50:].toarray())


def npy_folder(X, folder):
    for name in ("data", "indices", "indptr", "shape"):
        np.save(folder / f"{name}.npy", np.asarray(getattr(X, name)))


def dense_npy(X, folder):
    np.save(folder / "X.npy", X.toarray())
    return folder / "X.npy"


def csr_group(X, group):
    for name in ("data", "indices", "indptr"):
        group[name] = getattr(X, name)
    group.attrs["shape"] = [*X.shape]


def hdf5(X, folder):
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "X.h5", "w") as file:
        csr_group(X, file)
    return folder / "X.h5"


def dense_hdf5(X, folder):
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "X.h5", "w") as file:
        file["X"] = X.toarray()
    return folder / "X.h5"


def h5ad(X, folder):
    pytest.importorskip("anndata").AnnData(X=sp.csr_matrix(X)).write_h5ad(folder / "X.h5ad")
    return folder / "X.h5ad"


def zarr_store(X, folder):
    zarr = pytest.importorskip("zarr")
    csr_group(X, zarr.open_group(str(folder / "X.zarr"), mode="w"))
    return folder / "X.zarr"


def anndata_zarr(X, folder):
    pytest.importorskip("zarr")
    pytest.importorskip("anndata").AnnData(X=sp.csr_matrix(X)).write_zarr(folder / "X.zarr")
    return folder / "X.zarr"


SPARSE = [npz_folder, npy_folder, hdf5, h5ad, zarr_store, anndata_zarr]
DENSE = [dense_npz_folder, dense_npy, dense_hdf5]


def saved(write, X, folder, **options):
    with np.errstate(all="ignore"):
        path = write(X, folder) or folder
    return open_rows(path, memory_limit=LIMIT, **options)


@pytest.fixture
def small_blocks(monkeypatch):
    """Cut even tiny data into blocks, and keep H where the test says."""

    def set_plan(rows=17, entries=10_000, H_on_disk=False):
        plan = RowBlocks.plan

        def cut(self, *args, **options):
            made = plan(self, *args, **options)
            bytes_ = min(made.block_bytes, 12 * entries)
            return made._replace(block_rows=rows, block_bytes=bytes_, H_on_disk=H_on_disk)

        monkeypatch.setattr(RowBlocks, "plan", cut)

    return set_plan


def fitted(X, S=None, solver="mu", **options):
    options = {"random_state": 3, "max_iter": 12, "tol": 0, **options}
    return nmf_alpha(X, R, S=S, lam=2.0, solver=solver, **options)


def assert_same_fit(result, expected, rtol=1e-10):
    assert_allclose(result.V, expected.V, rtol=rtol, atol=1e-13)
    assert_allclose(result.H, expected.H, rtol=rtol, atol=1e-13)
    assert_allclose(result.losses, expected.losses, rtol=1e-10)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("write", SPARSE + DENSE)
def test_every_kind_of_file_gives_the_fit_in_memory(write, tmp_path, small_blocks):
    small_blocks()
    X = matrix()
    rows = saved(write, X, tmp_path)
    assert rows.shape == X.shape
    assert rows.dtype == X.dtype
    assert rows.nnz == (X.nnz if write in SPARSE else N * D)
    assert_same_fit(fitted(rows), fitted(X))


@pytest.mark.parametrize("solver", ["mu", "mue"])
@pytest.mark.parametrize("supervised", [False, True])
@pytest.mark.parametrize(("rows", "entries"), [(N, 10_000), (17, 10_000), (N, 30)])
def test_any_blocks_give_the_fit_in_memory(
    tmp_path, small_blocks, solver, supervised, rows, entries
):
    small_blocks(rows, entries)
    S = directions() if supervised else None
    stored = saved(npy_folder, matrix(), tmp_path)
    assert_same_fit(fitted(stored, S, solver), fitted(matrix(), S, solver))


@pytest.mark.parametrize("solver", ["mu", "mue"])
def test_H_on_disk_has_the_bits_of_H_in_memory(tmp_path, small_blocks, solver):
    rows = saved(npz_folder, matrix(np.float32), tmp_path)
    S = directions().astype(np.float32)
    results = []
    for H_on_disk in (False, True):
        small_blocks(H_on_disk=H_on_disk)
        results.append(fitted(rows, S, solver))
    in_memory, on_disk = results
    assert not isinstance(in_memory.H, np.memmap)
    assert isinstance(on_disk.H, np.memmap)
    assert_array_equal(on_disk.H, in_memory.H)
    assert_array_equal(on_disk.V, in_memory.V)
    assert on_disk.losses == in_memory.losses
    assert [c.nonzeros for c in on_disk.history] == [c.nonzeros for c in in_memory.history]


def test_starts_are_made_by_rows(tmp_path, small_blocks):
    small_blocks()
    X, y = matrix(), encode_labels(labels())
    with saved(npy_folder, X, tmp_path).at_hand(R) as stored:
        for start in (lambda X: random_start(X, R, 5), lambda X: label_start(X, y, R, 5)):
            H, V = start(stored)
            whole_H, whole_V = start(X)
            assert_allclose(H[0:N], whole_H, rtol=1e-14)
            assert_array_equal(H[20:33], H[0:N][20:33])
            assert_allclose(H.mean(), whole_H.mean(), rtol=1e-14)
            assert_allclose((H * 2.0)[3:5], 2 * whole_H[3:5], rtol=1e-14)
            assert_allclose(V, whole_V, rtol=1e-12)


def test_stored_rows_can_be_asked_about_the_data(tmp_path, small_blocks):
    small_blocks()
    X, S = matrix(), directions()
    with saved(npy_folder, X, tmp_path).at_hand(R) as stored:
        assert stored.shape == X.shape
        assert stored.nnz == X.nnz
        wanted = np.array([40, 3, 89, 0, 3, 18])
        assert_array_equal(stored[wanted].toarray(), X[wanted].toarray())
        assert stored[np.empty(0, int)].shape == (0, D)
        assert_allclose(stored.sum(axis=1), X.sum(axis=1), rtol=1e-14)
        assert_allclose(stored.lengths, np.linalg.norm(X.toarray(), axis=1), rtol=1e-14)
        assert_allclose(stored.transposed_product(S).toarray(), (S.T @ X).toarray(), rtol=1e-13)
        assert_array_equal((stored * 2.0)[wanted].toarray(), 2 * X[wanted].toarray())


def test_extreme_data_is_scaled_as_in_memory(tmp_path, small_blocks):
    small_blocks()
    X = matrix() * 1e-20
    result = fitted(saved(npy_folder, X, tmp_path), directions())
    assert_same_fit(result, fitted(X, directions()), rtol=1e-9)
    assert 0 < result.losses[-1] < 1e-15


@pytest.mark.parametrize("options", [{}, {"features": "hellinger", "multiclass": "ovo"}])
@pytest.mark.parametrize("H_on_disk", [False, True])
def test_nmf_alpha_learns_from_labels_on_disk(tmp_path, small_blocks, options, H_on_disk):
    small_blocks(H_on_disk=H_on_disk)
    rows, X, y = saved(npz_folder, matrix(), tmp_path), matrix(), labels()
    options = {"max_iter": 10, "random_state": 0, "solver": "mu", **options}
    ours, theirs = (NMFAlpha(R, **options).fit(data, y) for data in (rows, X))
    assert_allclose(ours.components_, theirs.components_, rtol=1e-6, atol=1e-9)
    assert_allclose(ours.directions_.toarray(), theirs.directions_.toarray(), rtol=1e-6)
    assert_allclose(ours.margin_codes_, theirs.margin_codes_, rtol=1e-6, atol=1e-9)
    assert_allclose(
        ours.margin_components_.toarray(), theirs.margin_components_.toarray(), rtol=1e-6
    )


def test_nothing_is_learned_from_no_labels(tmp_path, small_blocks):
    small_blocks()
    rows = saved(npz_folder, matrix(), tmp_path)
    with pytest.warns(UserWarning, match="no labeled samples of two classes"):
        model = NMFAlpha(R, max_iter=3, random_state=0).fit(rows, np.full(N, -1))
    assert model.directions_.shape == (N, 0)


@pytest.mark.parametrize("output", ["gram", "coefficients"])
def test_transform_by_blocks_is_transform(tmp_path, small_blocks, output):
    small_blocks()
    X = matrix(np.float32)
    model = NMFAlpha(R, max_iter=8, random_state=0, output=output).fit(X)
    rows = saved(npz_folder, X, tmp_path)
    Z = model.transform(X)
    assert_array_equal(model.transform(rows), Z)
    for data, name in ((rows, "rows.npy"), (X, "memory.npy")):
        written = model.transform(data, out=tmp_path / name)
        assert isinstance(written, np.memmap)
        assert_array_equal(np.load(tmp_path / name), Z)
        assert written.dtype == Z.dtype


def test_the_classifier_takes_rows_on_disk(tmp_path, small_blocks):
    small_blocks()
    rows, X, y = saved(npz_folder, matrix(), tmp_path), matrix(), labels()
    given = {"lam": 1.0, "map_iter": 5, "C": 1.0, "normalize": True, "pseudo": None}
    ours, theirs = (
        NMFAlphaClassifier(R, random_state=0, max_iter=10, solver="mu", **given).fit(data, y)
        for data in (rows, X)
    )
    assert_allclose(ours.decision_function(rows), theirs.decision_function(X), rtol=1e-4, atol=1e-6)
    assert_array_equal(ours.predict(rows), ours.predict(X))
    assert_allclose(ours.transform(rows), ours.transform(X), rtol=1e-12)
    assert ours.score(rows, y) == ours.score(X, y)
    assert NMFAlphaClassifier(R, random_state=0, max_iter=5, pseudo=None).fit(rows, y).lam_ > 0


# what cannot work, in one sentence each


def refused(match, error=ValueError):
    return pytest.raises(error, match=match)


def test_what_needs_all_rows_says_so(tmp_path):
    rows = saved(npy_folder, matrix(), tmp_path)
    with refused("pseudo='svm' needs all rows in memory"):
        NMFAlpha(R, pseudo="svm").fit(rows, labels())
    with refused("init='nndsvda' needs all rows in memory"):
        nmf_alpha(rows, R, init="nndsvda")
    for other in (
        lambda: np.asarray(rows),
        lambda: SemiSupervisedNMF(R).fit(rows, labels()),
        lambda: margin_directions(rows, labels()),
        lambda: nmf_alpha_path(rows, R, S=directions(), lams=(1, 2)),
        lambda: class_start(rows, labels(), R),
    ):
        with refused("is on disk and cannot be taken as one array"):
            other()
    with refused("path needs X in memory"):
        NMFAlpha(R, max_iter=2).fit(rows, labels()).path(rows, (1, 2))
    model = NMFAlpha(R, max_iter=2).fit(rows)
    with refused("X has 31 features, but NMFAlpha is expecting 30"):
        model.n_features_in_ = 30
        model.transform(rows)
    with refused("X has 90 samples and y has 3"):
        NMFAlpha(R).fit(rows, [0, 1, -1])


def test_labeled_rows_must_fit(tmp_path, small_blocks, monkeypatch):
    rows = saved(npy_folder, matrix(), tmp_path)
    plan = RowBlocks.plan
    monkeypatch.setattr(
        RowBlocks, "plan", lambda *args, **o: plan(*args, **o)._replace(gather_bytes=100)
    )
    with refused("raise it or label fewer rows"):
        NMFAlpha(R).fit(rows, labels())


@pytest.mark.parametrize(
    ("value", "said"),
    [(-0.5, "-0.5"), (np.nan, "nan"), (np.inf, "inf")],
)
@pytest.mark.parametrize("write", [npz_folder, npy_folder, dense_npy])
def test_a_bad_entry_is_named(tmp_path, write, value, said):
    X = matrix().tolil()
    X[60, 6] = value
    rows = saved(write, sp.csr_array(X), tmp_path)
    place = "block11.npz, row 20" if write is npz_folder else "row 61"
    with refused(f"{place}, column 7: the entry is {said}, and", FileProblemError):
        fitted(rows)


def broken(name):
    """A folder of arrays with something wrong."""

    def write(X, folder):
        npy_folder(X, folder)
        arrays = {key: np.load(folder / f"{key}.npy") for key in ("data", "indices", "indptr")}
        if name == "index":
            arrays["indices"][7] = D
        elif name == "pointer":
            arrays["indptr"][5] = 10**6
        elif name == "short":
            arrays["data"] = arrays["data"][:-1]
        elif name == "words":
            arrays["data"] = arrays["data"].astype(str)
        elif name == "rows":
            np.save(folder / "shape.npy", [N + 1, D])
        elif name == "empty":
            arrays["data"][:] = 0
        for key, array in arrays.items():
            np.save(folder / f"{key}.npy", array)
        if name == "shape":
            (folder / "shape.npy").unlink()
        elif name == "cut":
            (folder / "indices.npy").write_bytes((folder / "indices.npy").read_bytes()[:-4])

    return write


@pytest.mark.parametrize(
    ("name", "said", "error"),
    [
        ("index", "rows 1 to 90: a column index is not in 0 to 30", FileProblemError),
        ("pointer", "is no CSR matrix: indptr must rise", FileProblemError),
        ("short", "is no CSR matrix: indptr must rise", FileProblemError),
        ("words", "save a matrix of real numbers", FileProblemError),
        ("rows", "90 rows by its indptr and 91 by its shape", FileProblemError),
        ("shape", "say n_features= or save its shape", FileProblemError),
        ("cut", "indices.npy is cut short", FileProblemError),
        ("empty", "needs at least one positive entry", ValueError),
    ],
)
def test_broken_arrays_are_one_sentence(tmp_path, name, said, error):
    with refused(said, error) as told:
        fitted(saved(broken(name), matrix(), tmp_path))
    assert str(told.value).count(". ") == 0
    assert str(tmp_path) in str(told.value)


@pytest.mark.parametrize("make", [NMFAlpha, partial(NMFAlphaClassifier, pseudo=None)])
def test_estimators_refuse_rows_without_an_entry(make, tmp_path):
    np.save(tmp_path / "zeros.npy", np.zeros((30, 6)))
    with pytest.raises(ValueError, match="needs at least one positive entry"):
        make(2).fit(open_rows(tmp_path / "zeros.npy"), [0, 1] * 15)


def test_the_number_of_columns_can_be_said(tmp_path):
    rows = saved(broken("shape"), matrix(), tmp_path, n_features=D)
    assert_same_fit(fitted(rows), fitted(matrix()))


def test_files_that_are_no_matrix_are_one_sentence(tmp_path):
    with refused("There is no file", FileProblemError):
        open_rows(tmp_path / "nowhere")
    with refused("is no matrix that can be read by rows", FileProblemError):
        open_rows(tmp_path)
    sp.save_npz(tmp_path / "a.npz", matrix())
    sp.save_npz(tmp_path / "b.npz", matrix()[:, :7])
    with refused("b.npz has 7 columns and a.npz has 31", FileProblemError):
        open_rows(tmp_path)
    (tmp_path / "b.npz").write_bytes(b"nothing")
    with refused("b.npz is cut short or is no npz file", FileProblemError):
        open_rows(tmp_path)
    np.save(tmp_path / "columns.npy", np.asfortranarray(np.ones((4, 3))))
    with refused("is stored by columns", FileProblemError):
        open_rows(tmp_path / "columns.npy")


def test_a_store_by_columns_is_refused(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "X.h5", "w") as file:
        csr_group(matrix(), file.create_group("layers/counts"))
        file["layers/counts"].attrs["encoding-type"] = "csc_matrix"
    with refused("stored by columns", FileProblemError):
        open_rows(tmp_path / "X.h5", group="layers/counts")
    with refused("has no 'X'; it has layers: say group=", FileProblemError):
        open_rows(tmp_path / "X.h5")


# the memory limit


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("2GB", 2 * 10**9),
        ("1.5 GiB", 3 * 2**29),
        ("800mb", 8 * 10**8),
        ("64MiB", 2**26),
        (12345, 12345),
        ("7", 7),
    ],
)
def test_amounts_of_memory_are_read(said, meant):
    assert bytes_of(said) == meant


@pytest.mark.parametrize("said", ["", "GB", "-2GB", "0", 0, -1, True, "2 parsecs", None, 1.5])
def test_other_amounts_are_refused(said):
    with refused("is no amount of memory"):
        bytes_of(said)


def test_a_limit_that_is_too_small_names_the_smallest_that_works(tmp_path):
    rows = saved(npy_folder, matrix(), tmp_path)
    rows.memory_limit = LIBRARIES
    with refused("cannot hold V") as told:
        rows.plan(R)
    rows.memory_limit = bytes_of(re.search(r"works is (\S+)\.$", str(told.value))[1])
    assert rows.plan(R).block_bytes > 0
    rows.memory_limit -= 2 * 10**6  # the sentence rounds up to a megabyte
    with refused("cannot hold V"):
        rows.plan(R)


@pytest.mark.parametrize("limit", [600 * MIB, 1 << 30, 4 << 30])
@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("n", [10_000, 1_000_000, 3_000_000])
def test_what_is_planned_fits(limit, copies, n):
    problem = Problem((n, 20_000), 100 * n, 4, 32, copies)
    if limit < smallest_limit(problem, 800):
        with refused("cannot hold V"):
            planned(limit, problem, 800)
        return
    plan = planned(limit, problem, 800)
    H = 0 if plan.H_on_disk else n * 32 * 4 * max(copies, 2)
    assert problem.fixed + H + 4 * plan.block_bytes <= limit
    assert 3 * plan.block_rows * 32 * 4 <= plan.block_bytes or not plan.H_on_disk


def test_a_file_that_must_be_read_whole_must_fit(tmp_path, monkeypatch):
    rows = saved(npz_folder, matrix(), tmp_path)
    plan = rows.plan(R)
    with refused("block9.npz holds 1MB, and the memory limit leaves", FileProblemError):
        next(rows.blocks(plan._replace(file_bytes=100)))
    with refused("block9.npz, row 2 takes 1MB", FileProblemError):
        list(rows.blocks(plan._replace(block_bytes=24)))


# the scratch folder


def test_the_scratch_folder_is_removed(tmp_path, small_blocks):
    small_blocks(H_on_disk=True)
    (tmp_path / "data").mkdir()
    (tmp_path / "scratch").mkdir()
    rows = saved(npy_folder, matrix(), tmp_path / "data", scratch=tmp_path / "scratch")
    seen = []

    def look(progress):
        seen.append({path.name for path in (tmp_path / "scratch").rglob("*") if path.is_file()})
        return False

    result = fitted(rows, callback=look)
    assert {"rows", "columns", "factor0"} <= set.union(*seen)
    assert not list((tmp_path / "scratch").iterdir())
    assert np.isfinite(result.H).all()  # it outlives its file

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(rows, callback=stop)
    assert not list((tmp_path / "scratch").iterdir())


def test_a_scratch_folder_that_is_not_there_is_one_sentence(tmp_path):
    rows = saved(npy_folder, matrix(), tmp_path, scratch=tmp_path / "nowhere")
    with refused("There is no file", FileProblemError):
        fitted(rows)


def test_what_happens_to_the_scratch_files_is_told(tmp_path, small_blocks):
    small_blocks()
    with saved(npy_folder, matrix(), tmp_path).at_hand(R) as stored:
        blocks = stored.read(transposed=False)
        next(blocks)
        blocks.close()  # a pass that is not finished leaves no thread behind
        Path(stored.by_rows.path).write_bytes(b"")
        with refused("cannot be read: it is cut short", FileProblemError):
            list(stored.read(transposed=False))
        assert isinstance(stored, StoredRows)


def test_teachers_see_fewer_unlabeled_rows_where_memory_is_tight(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 2
    X = rng.random((3000, 100), dtype=np.float32) * (1 + (np.arange(100) % 2 == y[:, None]))
    np.save(tmp_path / "X.npy", X)
    problem = Problem(X.shape, X.size, 4, R, 3)
    rows = open_rows(tmp_path / "X.npy", memory_limit=smallest_limit(problem, 400))
    known = np.where(np.arange(3000) < 40, y, -1)
    with rows.at_hand(R) as stored:
        assert not stored.fits(np.arange(3000))
        assert stored.fits(np.arange(40))
    model = NMFAlphaClassifier(R, max_iter=3, rehearse=False, random_state=0).fit(rows, known)
    assert model.teachers_
    assert model.score(X, y) > 0.8
