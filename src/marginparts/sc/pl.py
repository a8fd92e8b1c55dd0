"""Pictures of what `marginparts.sc.tl` wrote into an AnnData object, fresh or read from a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marginparts._types import Array
from marginparts.backends.base import safe_ratio
from marginparts.plots._fitted import short
from marginparts.plots._look import WIDTH, drawing, new_figure, small_ticks
from marginparts.plots._parts import bars

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@drawing
def parts(adata: Any, *, key: str = "nmf_alpha", n_parts: int = 24, n_genes: int = 8) -> Figure:
    """Draw the parts as bars of their most telling genes, those that explain most first.

    Parameters
    ----------
    adata : AnnData
        With the results of `marginparts.sc.tl.nmf_alpha`.
    key : str
        Its ``key_added``.
    n_parts : int
        Parts at most.
    n_genes : int
        Genes a part.

    Returns
    -------
    Figure
        ``figure.savefig("parts.png")`` writes it; a notebook shows it.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import marginparts.sc as mp
    >>> counts = np.random.default_rng(0).poisson(2.0, (30, 12)).astype("float32")
    >>> adata = anndata.AnnData(counts)
    >>> adata.obs["kind"] = ["a", "b", "Unknown"] * 10
    >>> mp.tl.nmf_alpha(adata, "kind", n_components=2, max_iter=5)
    >>> figure = mp.pl.parts(adata)
    """
    codes, about = _results(adata, key)
    holder = adata.raw if about["params"].get("use_raw") else adata
    components = np.asarray(holder.varm[key]).T
    mass = codes.sum(axis=0)
    shares = mass / max(float(mass.sum()), 1e-300)
    order = np.argsort(-shares, kind="stable")
    names, labels = list(map(str, holder.var_names)), list(map(str, about["part_labels"]))
    return bars(components, names, shares=shares, labels=labels, order=order[:n_parts], n=n_genes)


@drawing
def codes(adata: Any, groupby: str | None = None, *, key: str = "nmf_alpha") -> Figure:
    """Draw how much of each part the cells of each group have, on average.

    Parameters
    ----------
    adata : AnnData
        With the results of `marginparts.sc.tl.nmf_alpha`.
    groupby : str or None
        The column of ``obs`` with the groups; None is the predicted type.
    key : str
        Its ``key_added``.

    Returns
    -------
    Figure
        A row a group and a column a part, darker for a larger share; parts stand below the group
        that has most of them.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import marginparts.sc as mp
    >>> counts = np.random.default_rng(0).poisson(2.0, (30, 12)).astype("float32")
    >>> adata = anndata.AnnData(counts)
    >>> adata.obs["kind"] = ["a", "b", "Unknown"] * 10
    >>> mp.tl.nmf_alpha(adata, "kind", n_components=2, max_iter=5)
    >>> figure = mp.pl.codes(adata)
    """
    H, _ = _results(adata, key)
    groupby = key if groupby is None else groupby
    if groupby not in adata.obs:
        raise ValueError(f"adata.obs has no column {groupby!r}.")
    column = adata.obs[groupby].astype("category")
    held = np.asarray(column.cat.codes)
    groups = [k for k in range(len(column.cat.categories)) if (held == k).any()]
    if not groups:
        raise ValueError(f"adata.obs[{groupby!r}] has no group with a cell in it.")
    shares = safe_ratio(H, H.sum(axis=1, keepdims=True))
    means = np.array([shares[held == k].mean(axis=0) for k in groups])
    order = np.lexsort((-means.max(axis=0), means.argmax(axis=0)))
    return _map(means[:, order], [str(column.cat.categories[k]) for k in groups], order)


def _results(adata: Any, key: str) -> tuple[Array, Any]:
    """Return the codes and what is said of them, or refuse."""
    if key not in adata.uns or f"X_{key}" not in adata.obsm:
        raise ValueError(
            f"adata has no results under {key!r}; run marginparts.sc.tl.nmf_alpha first."
        )
    return np.asarray(adata.obsm[f"X_{key}"], dtype=np.float64), adata.uns[key]


def _map(means: Array, groups: list[str], order: NDArray[np.intp]) -> Figure:
    """Draw shares (groups, parts), the root of which is the darkness: small ones are seen too."""
    from matplotlib.colors import PowerNorm

    figure = new_figure(WIDTH, 0.9 + 0.2 * len(groups))
    axis = figure.add_subplot()
    norm = PowerNorm(0.5, vmin=0, vmax=float(means.max()) or 1.0)
    image = axis.imshow(means, cmap="Blues", aspect="auto", norm=norm)
    axis.set_yticks(range(len(groups)), [short(name, 32) for name in groups])
    step = -(-len(order) // 40)
    axis.set_xticks(range(0, len(order), step), [str(k + 1) for k in order[::step]], rotation=90)
    axis.set_xlabel("part")
    small_ticks(axis)
    axis.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axis, shrink=0.9, aspect=12, pad=0.01)
    bar.set_label("mean share")
    small_ticks(bar.ax)
    bar.outline.set_visible(False)
    return figure
