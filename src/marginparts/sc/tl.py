"""Tools: what is computed from an AnnData object and written into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy as shallow_copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginparts._types import Array, Seed
from marginparts._version import __version__
from marginparts.estimators import NMFAlphaClassifier
from marginparts.sc._counts import Cells, Wanted, cells_of
from marginparts.topics import part_weights

#: Parts where nobody says how many, if there are cells and genes enough.
_PARTS = 64


def nmf_alpha(
    adata: Any,
    label: str,
    *,
    key_added: str = "nmf_alpha",
    n_components: int | None = None,
    layer: str | None = None,
    use_raw: bool = False,
    mask_var: str | NDArray[np.bool_] | None = None,
    unlabeled: str | Sequence[str] = "Unknown",
    size_factors: str | Array | None = "auto",
    random_state: Seed = 0,
    copy: bool = False,
    **options: Any,
) -> Any:
    """Find parts (gene programs) that keep the margin between cell types, and label all cells.

    Learns from all cells, and from the types of those that have one. Of a backed object the matrix
    stays on disk.

    Parameters
    ----------
    adata : AnnData
        Annotated data; cells are rows.
    label : str
        The column of ``obs`` with the types that are known, of some cells. NaN is unknown.
    key_added : str
        Under which name results are written, see Returns.
    n_components : int or None
        The number r of parts; None is 64, or half of the cells or genes where these are fewer.
    layer : str or None
        The layer to take in the place of ``X``.
    use_raw : bool
        Take ``adata.raw`` in the place of ``X``.
    mask_var : str, (d,) bool array or None
        Take some genes only: a column of ``var``, such as ``"highly_variable"``, or a mask. None
        takes all.
    unlabeled : str or sequence of str
        Names in the column that mean unknown, besides NaN (and -1 in a column of numbers).
    size_factors : "auto", str, (n,) array or None
        How counts are prepared. ``"auto"``: if entries are whole numbers, they are divided by each
        cell's total over all genes (in units of the median) and become log(1 + x); others are
        taken for prepared. A column of ``obs`` or an array: the same with these factors. None:
        entries as they are.
    random_state : int, RandomState or None
        The seed; the same gives the same results.
    copy : bool
        Return a copy with the results in the place of writing into ``adata``.
    **options
        Further parameters of `NMFAlphaClassifier`, such as ``class_weight="balanced"`` or
        ``callback=``; and ``memory_limit``, about what the process may take with a backed object
        (``"2GB"``; up to one and a half times as much was measured).

    Returns
    -------
    None or AnnData
        None, unless ``copy``. With ``key_added="nmf_alpha"`` these are set:

        ``obs["nmf_alpha"]`` : categorical
            The predicted type of each cell, known or not.
        ``obs["nmf_alpha_probability"]`` : float
            Its probability; NaN where too few labels could be hidden to learn probabilities.
        ``obsm["X_nmf_alpha"]`` : (n, r) float array
            The codes: how much of each part a cell has.
        ``obsm["nmf_alpha_probabilities"]`` : (n, c) float array
            Those of all types, in the order of ``uns["nmf_alpha"]["classes"]``, if there are any.
        ``varm["nmf_alpha"]`` : (d, r) float array
            The parts, columns that sum to one over the genes that were used; 0 for others. With
            ``use_raw`` those of all its genes are in ``adata.raw.varm``.
        ``uns["nmf_alpha"]`` : dict
            ``params``, ``classes``, ``part_labels`` (the type that each part speaks for most),
            ``n_labeled``, ``honest_score`` and ``honest_score_error`` (the accuracy to be
            expected, by hidden labels), ``teachers``, ``prepared`` and ``version``.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import pandas as pd
    >>> import marginparts.sc as mp
    >>> rng = np.random.default_rng(0)
    >>> rates = rng.gamma(0.5, size=(2, 30))
    >>> types = np.repeat([0, 1], 40)
    >>> obs = pd.DataFrame({"cell_type": np.array(["B", "T"])[types]}, index=map(str, range(80)))
    >>> obs.loc[rng.permutation(80)[:60].astype(str), "cell_type"] = "Unknown"
    >>> adata = anndata.AnnData(rng.poisson(3 * rates[types]).astype("float32"), obs=obs)
    >>> mp.tl.nmf_alpha(adata, "cell_type", n_components=4)
    >>> adata.obsm["X_nmf_alpha"].shape, adata.varm["nmf_alpha"].shape
    ((80, 4), (30, 4))
    >>> float((adata.obs["nmf_alpha"] == np.array(["B", "T"])[types]).mean()) > 0.9
    True
    """
    _check(adata, label, copy=copy)
    adata = adata.copy() if copy else adata
    limit = options.pop("memory_limit", "2GB")
    wanted = Wanted(layer, use_raw, mask_var, size_factors, limit)
    names = [unlabeled] if isinstance(unlabeled, str) else [str(name) for name in unlabeled]
    y, classes = _labels(adata.obs[label], names)
    cells = cells_of(adata, wanted)
    r = n_components or max(1, min(_PARTS, min(cells.X.shape) // 2))
    model = NMFAlphaClassifier(r, random_state=random_state, **options).fit(cells.X, y)
    if adata.is_view:  # results are written into an object of its own, as scanpy does
        adata._init_as_actual(adata.copy())
    _write_cells(adata, key_added, model, cells, classes)
    _write_parts(adata, key_added, model, cells, use_raw=use_raw)
    said = {"label": label, "n_components": r, "unlabeled": names, **wanted._asdict()}
    about = {**said, "random_state": random_state, **options}
    adata.uns[key_added] = _summary(model, cells, about, int(sum(each is not None for each in y)))
    _carry_colors(adata, label, key_added)
    return adata if copy else None


def _check(adata: Any, label: str, *, copy: bool) -> None:
    """Refuse what is no annotated data, or has no such labels."""
    if not all(hasattr(adata, name) for name in ("obs", "obsm", "varm", "uns", "isbacked")):
        raise TypeError(
            f"A {type(adata).__name__} is no AnnData object; for arrays take NMFAlphaClassifier. "
            "AnnData comes with pip install 'marginparts[h5ad]'."
        )
    if label not in adata.obs:
        known = ", ".join(map(str, adata.obs.columns)) or "none"
        raise ValueError(f"adata.obs has no column {label!r}; there are: {known}.")
    if copy and adata.isbacked:
        raise ValueError("A backed object cannot be copied in memory; use copy=False.")


def _labels(column: Any, unlabeled: Sequence[str]) -> tuple[NDArray[Any], list[str]]:
    """Return the labels as str or None, and the types in the order of the column."""
    known = ~np.asarray(column.isna())
    values = column.to_numpy(dtype=object)
    if column.dtype.kind in "if":
        known &= values != -1
    y = np.array([str(v) if k else None for v, k in zip(values, known, strict=True)], dtype=object)
    y[np.isin(y.astype(str), unlabeled)] = None
    found = {each for each in y if each is not None}
    order = map(str, column.cat.categories) if hasattr(column, "cat") else sorted(found)
    return y, [name for name in order if name in found]


def _write_cells(
    adata: Any, key: str, model: NMFAlphaClassifier, cells: Cells, order: Sequence[str]
) -> None:
    """Write what is known of each cell: codes, type, probability."""
    import pandas as pd

    coefficients = shallow_copy(model.parts_).set_params(output="coefficients")
    adata.obsm[f"X_{key}"] = np.asarray(coefficients.transform(cells.X), dtype=np.float32)
    values = model._values(cells.X)
    best = values.argmax(axis=1) if values.shape[1] > 1 else (values[:, 0] > 0).astype(np.intp)
    names = np.asarray(model.classes_, dtype=str)
    adata.obs[key] = pd.Categorical(names[best], categories=list(order))
    chance = np.full(len(best), np.nan, dtype=np.float32)
    adata.obsm.pop(f"{key}_probabilities", None)  # of an earlier fit
    if model.calibration_ is not None:
        all_chances = np.asarray(model.probabilities(values), dtype=np.float32)
        adata.obsm[f"{key}_probabilities"] = all_chances
        chance = all_chances[np.arange(len(best)), best]
    adata.obs[f"{key}_probability"] = chance


def _write_parts(
    adata: Any, key: str, model: NMFAlphaClassifier, cells: Cells, *, use_raw: bool
) -> None:
    """Write the parts, with zeros for genes that were left out."""
    holder, parts = adata.raw if use_raw else adata, model.parts_.components_
    whole = np.zeros((holder.n_vars, len(parts)), dtype=np.float32)
    whole[slice(None) if cells.genes is None else cells.genes] = parts.T
    if use_raw:
        holder.varm[key] = whole
        places = holder.var_names.get_indexer(adata.var_names)
        whole = np.where((places >= 0)[:, None], whole[places], np.float32(0))
    adata.varm[key] = whole


def _summary(
    model: NMFAlphaClassifier, cells: Cells, params: Mapping[str, Any], n_labeled: int
) -> dict[str, Any]:
    """Return what is written to ``uns``: plain values alone, which survive writing and reading."""
    classes = np.asarray(model.classes_, dtype=str).astype(object)
    plain = (str, bool, int, float, np.integer, np.floating)
    kept: dict[str, Any] = {
        name: value for name, value in params.items() if isinstance(value, plain)
    }
    kept["unlabeled"] = np.array(params["unlabeled"], dtype=object)
    if params["mask_var"] is not None and "mask_var" not in kept:
        kept["mask_var"] = "given as an array"
    if params["size_factors"] is not None and "size_factors" not in kept:
        kept["size_factors"] = "given as an array"
    return {
        "params": kept,
        "classes": classes,
        "part_labels": classes[part_weights(model).argmax(axis=1)],
        "n_labeled": n_labeled,
        "honest_score": float(model.honest_score_),
        "honest_score_error": float(model.honest_score_error_),
        "teachers": {name: float(share) for name, share in model.teachers_.items()},
        "prepared": cells.prepared,
        "version": __version__,
    }


def _carry_colors(adata: Any, label: str, key: str) -> None:
    """Give predicted types the colors that the known ones have in scanpy's figures."""
    colors, column = adata.uns.get(f"{label}_colors"), adata.obs[label]
    adata.uns.pop(f"{key}_colors", None)
    if colors is None or not hasattr(column, "cat") or len(colors) < len(column.cat.categories):
        return
    color_of = dict(zip(map(str, column.cat.categories), colors, strict=False))
    adata.uns[f"{key}_colors"] = np.array(
        [color_of[name] for name in adata.obs[key].cat.categories], dtype=object
    )
