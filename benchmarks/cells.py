"""Cell types from 5 labels a type: ours beside CellTypist; and the memory of a backed fit.

    pip install celltypist "scikit-learn<1.8"
    python benchmarks/cells.py
    python benchmarks/cells.py --preparations
    python benchmarks/cells.py --memory

The cells are scanpy's 700 blood cells with sorted types and 765 genes (log-normalized, in ``raw``).
In each draw 5 cells of each of the 10 types are labeled, and all others are to be predicted. Both
methods see the same labels and the same genes. CellTypist learns from the labeled cells alone, as
it does; its majority voting over clusters also sees the others, as ours does. ``--preparations``
compares what can be done to counts before the fit; those of the file are had back from its
logarithms.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import marginparts.sc as mp
from common import parser

#: The backed files: cells, genes, genes counted in a cell, and labels.
SIZES = ((200_000, 2_000, 200, 500), (40_000, 20_000, 700, 500))


def cells() -> tuple[Any, Any]:
    """Return cells without their neighbors and clusters, and their types."""
    import anndata
    import scanpy

    found = scanpy.datasets.pbmc68k_reduced()
    types = found.obs["bulk_labels"].to_numpy(str)
    adata = anndata.AnnData(found.raw.X.copy(), obs=found.obs[["n_counts"]], var=found.raw.var[[]])
    return adata, types


def drawn(types: Any, seed: int, count: int = 5) -> Any:
    """Return which cells are labeled."""
    rng, known = np.random.default_rng(seed), np.zeros(len(types), dtype=bool)
    for name in np.unique(types):
        known[rng.choice(np.flatnonzero(types == name), count, replace=False)] = True
    return known


def by_celltypist(adata: Any, types: Any, known: Any) -> dict[str, Any]:
    """Return what CellTypist says of all cells, by itself and with majority voting."""
    import celltypist

    celltypist.logger.set_level("ERROR")
    logging.getLogger("marginparts").setLevel(logging.WARNING)  # it lets all others speak
    labeled = adata[known].copy()
    # the genes are a panel: their counts do not sum to 10,000, which is all that is checked
    model = celltypist.train(labeled, labels=types[known], check_expression=False)
    found = celltypist.annotate(adata.copy(), model=model, majority_voting=True)
    named = {"celltypist": "predicted_labels", "celltypist, majority voting": "majority_voting"}
    return {name: found.predicted_labels[key].to_numpy(str) for name, key in named.items()}


def by_parts(adata: Any, types: Any, known: Any, **how: Any) -> Any:
    """Return what the parts say of all cells."""
    adata = adata.copy()
    adata.obs["known"] = np.where(known, types, "Unknown")
    mp.tl.nmf_alpha(adata, "known", rehearse=False, **how)  # probabilities are not needed here
    return adata.obs["nmf_alpha"].to_numpy(str)


def preparations(n_draws: int) -> None:
    """Print the accuracy with counts as they are, their logarithms, and these by size factors."""
    adata, types = cells()
    # 10,000 counts a cell before the logarithm, of all genes and not of these alone
    size = sp.diags_array(adata.obs["n_counts"].to_numpy(float) / 1e4)
    counts = sp.csr_matrix((size @ adata.X.expm1()).rint(), dtype=np.float32)
    adata.layers.update({"counts": counts, "log": counts.log1p()})
    ways: dict[str, dict[str, Any]] = {
        "counts as they are": {"layer": "counts", "size_factors": None},
        "log(1 + x)": {"layer": "log", "size_factors": None},
        "log(1 + x / size factor)": {"layer": "counts", "size_factors": "n_counts"},
        "10,000 a cell, log(1 + x)": {"size_factors": None},
    }
    scores: dict[str, list[float]] = {name: [] for name in ways}
    for seed in range(n_draws):
        known = drawn(types, seed)
        for name, how in ways.items():
            right = by_parts(adata, types, known, **how) == types
            scores[name].append(float(right[~known].mean()))
    for name, values in scores.items():
        print(f"{name:28} mean {np.mean(values):.3f}, sd {np.std(values, ddof=1):.3f}")


def accuracy(n_draws: int) -> None:
    """Print the accuracy of each method over draws of the labels."""
    adata, types = cells()
    n, d = adata.shape
    print(f"{n} cells, {d} genes, {len(np.unique(types))} types, 5 labels a type")
    scores: dict[str, list[float]] = {}
    for seed in range(n_draws):
        known = drawn(types, seed)
        said = {"nmf_alpha": by_parts(adata, types, known), **by_celltypist(adata, types, known)}
        for name, each in said.items():
            scores.setdefault(name, []).append(float((each == types)[~known].mean()))
        row = ", ".join(f"{name} {values[-1]:.3f}" for name, values in scores.items())
        print(f"draw {seed}: {row}", flush=True)
    for name, values in scores.items():
        found = np.array(values)
        print(
            f"{name:28} mean {found.mean():.3f}, sd {found.std(ddof=1):.3f}, "
            f"from {found.min():.3f} to {found.max():.3f}"
        )
    ours = np.array(scores["nmf_alpha"])
    for name in list(scores)[1:]:
        gain = ours - np.array(scores[name])
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        print(
            f"nmf_alpha less {name}: {gain.mean():+.3f} (standard error {error:.3f}), "
            f"not less in {int((gain >= 0).sum())} of {len(gain)} draws"
        )


def write_cells(path: Path, n: int, d: int, genes: int, labels: int) -> None:
    """Write counts of cells of five types, with types for some of them."""
    import anndata
    import pandas as pd

    rng = np.random.default_rng(0)
    gap, types = d // genes, np.arange(n) % 5
    # one gene of each stretch, so that all types have genes of their own
    columns = gap * np.arange(genes, dtype=np.int32) + rng.integers(0, gap, (n, genes), np.int32)
    counts = 1 + rng.poisson(0.5, (n, genes)).astype(np.float32)
    counts[columns // (d // 5) == types[:, None]] *= 3
    indptr = np.arange(n + 1) * genes
    X = sp.csr_matrix((counts.ravel(), columns.ravel(), indptr), shape=(n, d))
    known = rng.permutation(n)[:labels]
    named = np.full(n, "Unknown", dtype=object)
    named[known] = [f"type {k}" for k in types[known]]
    obs = pd.DataFrame({"cell_type": pd.Categorical(named)}, index=[f"c{i}" for i in range(n)])
    anndata.AnnData(X, obs=obs).write_h5ad(path)


def peak() -> int:
    """Return the peak of the resident memory of this process, in bytes."""
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.split("VmHWM:")[1].split()[0])


def fit_backed(path: str, limit: str, iterations: int) -> None:
    """Fit a backed object and print what the process took."""
    import anndata

    from marginparts.rows.disk._limits import bytes_of

    began = time.perf_counter()
    adata = anndata.read_h5ad(path, backed="r")
    before = peak()
    mp.tl.nmf_alpha(adata, "cell_type", n_components=16, max_iter=iterations, memory_limit=limit)
    right = np.array([f"type {k % 5}" for k in range(adata.n_obs)]) == adata.obs["nmf_alpha"]
    print(
        f"memory_limit {limit}: peak {peak() / 1e6:.0f} MB, {peak() / bytes_of(limit):.2f} of it; "
        f"{(peak() - before) / 1e6:.0f} MB above the {before / 1e6:.0f} MB before the fit, "
        f"{(peak() - before) / bytes_of(limit):.2f} of it; {time.perf_counter() - began:.0f} s, "
        f"{right.mean():.3f} of the types right",
        flush=True,
    )


def memory(size: tuple[int, int, int, int], limits: list[str], iterations: int) -> None:
    """Print the peak memory of backed fits, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cells.h5ad"
        write_cells(path, *size)
        print(
            f"{size[0]} cells, {size[1]} genes, {size[0] * size[2] / 1e6:.0f} million counts, "
            f"{path.stat().st_size / 1e6:.0f} MB on disk; 16 parts, {iterations} iterations",
            flush=True,
        )
        for limit in limits:
            command = [sys.executable, __file__, "--backed", str(path), limit, str(iterations)]
            subprocess.run(command, check=True, env=os.environ)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--draws", type=int, default=10, help="draws of the labels")
    options.add_argument("--preparations", action="store_true", help="ways to prepare counts")
    options.add_argument("--memory", action="store_true", help="the memory of a backed fit")
    options.add_argument("--backed", nargs=3, metavar="", help="for processes of --memory")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    if given.backed:
        fit_backed(given.backed[0], given.backed[1], int(given.backed[2]))
    elif given.preparations:
        preparations(2 if given.quick else given.draws)
    elif given.memory:
        for size in ((2_000, 1_000, 50, 100),) if given.quick else SIZES:
            memory(size, ["500MB", "600MB", "1GB"], 3 if given.quick else 50)
    else:
        accuracy(2 if given.quick else given.draws)


if __name__ == "__main__":
    main()
