"""Milliseconds of one update on a GPU, against torch's own gathers and the CPU of the same host.

    python benchmarks/gpu.py

Times are medians by device events after a warm-up, of an update of V and of H with their column
sums. Every kernel is compared with double precision in the same run. The floor of a sparse update
is the bytes of the gathered rows (each nonzero reads a row of a factor, twice an update) at the
card's bandwidth when nothing stays in its cache; that of a dense one is its arithmetic.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import triton

from common import parser
from marginparts import NMFAlphaClassifier, datasets, margin_directions, nmf_alpha
from marginparts.backends import get_backend
from marginparts.backends.gpu.backend import TorchBackend
from marginparts.losses.nmf_alpha import NMFAlphaProblem
from marginparts.solve.factorize import margin_components
from marginparts.weighting import l2_log
from records import Table

COLUMNS = (
    "measured", "how", "rows", "columns", "nonzeros", "rank", "milliseconds", "error", "terabytes",
    "accuracy", "loss", "peak_gib", "card", "torch", "triton",
)  # fmt: skip

#: Single precision without tensor cores, as the maker states it for an H200.
_FLOPS = 67e12


def corpus(n: int, d: int, mean_log_length: float = 4.9) -> sp.csr_array:
    """Draw documents: words by rank to the power -1.05, lengths lognormal, counts merged."""
    rng = np.random.default_rng(0)
    lengths = (rng.lognormal(mean_log_length, 0.8, n) + 5).astype(int)
    share = np.arange(1, d + 1) ** -1.05
    words = np.searchsorted(np.cumsum(share / share.sum()), rng.random(lengths.sum()))
    places = np.repeat(np.arange(n), lengths) * d + np.minimum(words, d - 1)
    found, counts = np.unique(places, return_counts=True)
    rows, columns = (part.astype(np.int32) for part in np.divmod(found, d))
    return sp.csr_array((counts.astype(np.float32), (rows, columns)), shape=(n, d))


def milliseconds(run: Callable[[], Any], repeats: int) -> float:
    """Return the median time of a call on the device."""
    for _ in range(3):
        run()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def factors(shape: tuple[int, int], r: int) -> list[np.ndarray]:
    rng = np.random.default_rng(r)
    return [rng.random((size, r), dtype=np.float32) + np.float32(0.1) for size in shape]


def update_of(backend: TorchBackend, X: Any, r: int, S: Any = None) -> Callable[[], dict[str, Any]]:
    """Return a call that updates V and H once, always from the same start."""
    problem = NMFAlphaProblem(backend, X=backend.prepare(X))
    if S is not None:
        problem.S, problem.lam = backend.coefficients(S), 1.0
        problem.XS = backend.prepare(margin_components(S, X), like=problem.X)
    state = {name: backend.factor(A) for name, A in zip("HV", factors(X.shape, r), strict=True)}
    out = {name: torch.empty_like(A) for name, A in state.items()}
    replayed = backend.adapted(problem)

    def update() -> dict[str, Any]:
        V = replayed.update(state, "V", out=out["V"]).factor
        H = replayed.update({**state, "V": V}, "H", out=out["H"]).factor
        return {"V": V, "H": H}

    return update


def error_of(backend: TorchBackend, X: Any, r: int) -> float:
    """Return how far an update is from the same in double precision."""
    single = update_of(backend, X, r)()
    problem = NMFAlphaProblem(backend, X=backend.prepare(X.astype(np.float64)))
    H, V = (backend.factor(A.astype(np.float64)) for A in factors(X.shape, r))
    exact = problem.update({"H": H, "V": V}, "V").factor
    return float((single["V"].double() - exact).abs().max() / exact.abs().max())


def gathers(X: sp.csr_array, r: int) -> Callable[[], Any]:
    """The update in plain torch: gather rows for every nonzero, and add them up by index."""
    coo = X.tocoo()
    rows, columns = (torch.from_numpy(p.astype(np.int64)).cuda() for p in (coo.row, coo.col))
    x = torch.from_numpy(coo.data).cuda()
    H, V = (torch.from_numpy(A).cuda() for A in factors(X.shape, r))

    def half(A: Any, B: Any, i: Any, j: Any) -> Any:
        a, b = A[i], B[j]
        ratio = x / (a * b).sum(1)
        return A * torch.zeros_like(A).index_add_(0, i, ratio[:, None] * b) / B.sum(0)

    def update() -> Any:
        new = half(V, H, columns, rows)
        return half(H, new, rows, columns)

    return update


def sparse_updates(table: Table, facts: dict[str, Any], name: str, X: Any, quick: bool) -> None:
    shape = {"rows": X.shape[0], "columns": X.shape[1], "nonzeros": X.nnz}
    for r in (48, 96, 200):
        for half, how in ((False, "ours"), (True, "ours, half width")):
            backend = TorchBackend(half=half)
            ms = milliseconds(update_of(backend, X, r), 5 if quick else 50)
            terabytes = 2 * X.nnz * r * (2 if half else 4) / 1e9 / ms
            error = error_of(backend, X, r)
            table.add(measured=name, how=how, rank=r, milliseconds=round(ms, 4),
                      error=f"{error:.1e}", terabytes=round(terabytes, 2), **shape,
                      **facts)  # fmt: skip
            print(f"{name} r={r}, {how}: {ms:.3f} ms, {terabytes:.2f} TB/s gathered, "
                  f"error {error:.1e}", flush=True)  # fmt: skip
        if X.nnz * r < 4e8:
            ms = milliseconds(gathers(X, r), 5)
            table.add(measured=name, how="torch gathers", rank=r, milliseconds=round(ms, 3),
                      **shape, **facts)  # fmt: skip
            print(f"    plain torch gathers: {ms:.2f} ms")


def margin(table: Table, facts: dict[str, Any], X: Any, quick: bool) -> None:
    """NMF-alpha with one direction a class against plain NMF."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(X.shape[0]) < 0.2, rng.integers(0, 20, X.shape[0]), -1)
    S = margin_directions(X, y)
    backend, repeats = TorchBackend(), 5 if quick else 50
    for r in (48, 96, 200):
        plain = milliseconds(update_of(backend, X, r), repeats)
        alpha = milliseconds(update_of(backend, X, r, S), repeats)
        table.add(measured="NMF-alpha", how="ours", rank=r, milliseconds=round(alpha, 4), **facts)
        print(f"NMF-alpha r={r}: {alpha:.3f} ms, {alpha / plain:.2f} x plain")


def dense(table: Table, facts: dict[str, Any], quick: bool) -> None:
    n, d, r = (6000 if quick else 60000), 784, 128
    X = np.random.default_rng(0).random((n, d), dtype=np.float32)
    backend = TorchBackend()
    ms = milliseconds(update_of(backend, X, r), 5 if quick else 30)
    arithmetic, memory = 8 * n * d * r / _FLOPS * 1e3, 2 * X.nbytes / 4.8e12 * 1e3
    error = error_of(backend, X, r)
    table.add(measured="dense", how="ours", rows=n, columns=d, rank=r, milliseconds=round(ms, 3),
              error=f"{error:.1e}", **facts)  # fmt: skip
    print(f"dense {n} x {d}, r={r}: {ms:.2f} ms; floors: arithmetic {arithmetic:.2f} ms, memory "
          f"{memory:.2f} ms; error {error:.1e}")  # fmt: skip


def whole_fits(table: Table, facts: dict[str, Any], X: Any) -> None:
    """A fit of 200 iterations, and the classifier with everything chosen, transfers included."""
    for backend in ("torch", "torch-half", "numba"):
        for turn in ("first", "second"):
            began = time.perf_counter()
            found = nmf_alpha(
                X, 64, backend=backend, solver="mue", max_iter=200, tol=0, random_state=0
            )
            seconds = time.perf_counter() - began
            print(f"200 iterations, {backend}, {turn} time: {seconds:.2f} s, loss "
                  f"{found.losses[-1]:.6g}", flush=True)  # fmt: skip
        table.add(measured="200 iterations", how=backend, rank=64, loss=f"{found.losses[-1]:.7g}",
                  milliseconds=round(1000 * seconds), **facts)  # fmt: skip
    try:
        news = datasets.load_paper_data("news")
    except datasets.DataError:
        print("no News data: the classifier is not timed")
        return
    X, X_test = (l2_log(part) for part in (news.X_train, news.X_test))
    labeled = np.random.default_rng(0).random(X.shape[0]) < 0.2
    y = np.where(labeled, news.y_train, -1)
    for backend in ("torch", "numba"):
        for turn in ("first", "second"):
            began = time.perf_counter()
            model = NMFAlphaClassifier(64, backend=backend, random_state=0).fit(X, y)
            seconds = time.perf_counter() - began
            accuracy = float(model.score(X_test, news.y_test))
            print(f"classifier on News, {backend}, {turn} time: {seconds:.1f} s, "
                  f"test accuracy {100 * accuracy:.1f} %", flush=True)  # fmt: skip
        table.add(measured="classifier", how=backend, rank=64, milliseconds=round(1000 * seconds),
                  accuracy=round(accuracy, 4), **facts)  # fmt: skip


def larger_than_the_card(table: Table, facts: dict[str, Any], quick: bool) -> None:
    """A dense matrix of 24 GiB and a sparse one of 16 GB (by rows and columns) in 8 GiB."""
    cap, r, iterations = (1 << 28 if quick else 8 << 30), 64, 5
    total = torch.cuda.get_device_properties(0).total_memory
    tile = np.random.default_rng(0).random((1 << 14, 3072), dtype=np.float32)
    words = corpus(2000 if quick else 100_000, 100_000, 5.4)
    for kind, X in (
        ("dense", np.tile(tile, (2 if quick else 128, 1))),
        ("sparse", sp.csr_array(sp.vstack([words] * (2 if quick else 40), format="csr"))),
    ):
        size = X.nbytes if kind == "dense" else 16 * X.nnz
        found = {}
        for how, memory in (("streamed", cap), ("whole", None)):
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            share = 1.0 if memory is None else (cap + (1 << 29)) / total  # and the libraries' own
            torch.cuda.set_per_process_memory_fraction(share)
            began = time.perf_counter()
            found[how] = nmf_alpha(
                X, r, backend=TorchBackend(memory=memory), solver="mu", max_iter=iterations, tol=0,
                random_state=0,
            )  # fmt: skip
            seconds = time.perf_counter() - began
            checks = found[how].history
            ms = 1e3 * (checks[-1].seconds - checks[0].seconds) / iterations
            peak = torch.cuda.max_memory_allocated() / 2**30
            table.add(measured=f"larger than the card, {kind}", how=how, rows=X.shape[0],
                      columns=X.shape[1], rank=r, milliseconds=round(ms),
                      terabytes=round(size / 1e12, 3), peak_gib=round(peak, 2),
                      **facts)  # fmt: skip
            print(f"{kind} {size / 2**30:.1f} GiB, {how}: {ms:.0f} ms an update with its share of "
                  f"two evaluations of the loss, {seconds:.0f} s in all, peak {peak:.1f} GiB",
                  flush=True)  # fmt: skip
        apart = np.abs(found["streamed"].V - found["whole"].V).max() / found["whole"].V.max()
        print(f"    V streamed and whole: {apart:.1e} apart", flush=True)
        torch.cuda.set_per_process_memory_fraction(1.0)


def main() -> None:
    options = parser(__doc__).parse_args()
    get_backend("torch")  # says what is missing, if anything is
    table = Table("gpu", COLUMNS, options.quick)
    facts = {
        "card": torch.cuda.get_device_name(0), "torch": torch.__version__,
        "triton": triton.__version__,
    }  # fmt: skip
    news = corpus(11269, 53975)
    sparse_updates(table, facts, "news shape", news, options.quick)
    margin(table, facts, news, options.quick)
    dense(table, facts, options.quick)
    if not options.quick:
        sparse_updates(table, facts, "large", corpus(400_000, 100_000, 4.905), False)
    whole_fits(table, facts, news)
    larger_than_the_card(table, facts, options.quick)


if __name__ == "__main__":
    main()
