"""Cells in AnnData objects: what is read, how counts are prepared, what is written."""

import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from packaging.version import Version

import marginparts.sc as mp
from marginparts import NMFAlphaClassifier
from marginparts.sc._counts import Wanted, cells_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what AnnData says of other libraries
    import anndata

TYPES = ["T", "B", "NK"]  # neither sorted nor in the order of their cells
HOW = {"n_components": 4, "max_iter": 10}


def made(n=90, d=36):
    """Counts of three types, each with genes of its own, of cells that are not equally deep."""
    rng = np.random.default_rng(0)
    types = np.arange(n) % 3
    rates = rng.gamma(0.6, size=(3, d))
    rates[np.arange(d) % 3, np.arange(d)] += 3
    depth = rng.uniform(0.5, 2, n)
    X = rng.poisson(depth[:, None] * rates[types]).astype(np.float32)
    known = np.where(np.arange(n) < 36, np.array(TYPES)[types], "Unknown")
    obs = pd.DataFrame(
        {
            "truth": np.array(TYPES)[types],
            "cell_type": pd.Categorical(known, categories=[*TYPES, "Unknown"]),
            "depth": X.sum(axis=1),
        },
        index=[f"c{i}" for i in range(n)],
    )
    var = pd.DataFrame({"variable": np.arange(d) % 4 != 3}, index=[f"g{j}" for j in range(d)])
    return anndata.AnnData(sp.csr_matrix(X), obs=obs, var=var)


@pytest.fixture(scope="module")
def fitted():
    adata = made()
    adata.uns["cell_type_colors"] = ["#111111", "#222222", "#333333", "#444444"]
    assert mp.tl.nmf_alpha(adata, "cell_type", **HOW) is None
    return adata


def results(adata, key="nmf_alpha"):
    return adata.obsm[f"X_{key}"], adata.varm[key], adata.obs[key].to_numpy(str)


def assert_alike(one, other, **tolerance):
    for a, b in zip(results(one)[:2], results(other)[:2], strict=True):
        np.testing.assert_allclose(a, b, **{"rtol": 1e-3, "atol": 1e-5, **tolerance})
    assert (results(one)[2] == results(other)[2]).mean() > 0.95


def test_types_parts_and_codes_are_written_beside_the_counts(fitted):
    before = made()
    assert (fitted.X != before.X).nnz == 0
    codes, parts, types = results(fitted)
    assert codes.shape == (90, 4)
    assert parts.shape == (36, 4)
    assert (types == fitted.obs["truth"]).mean() > 0.9
    assert list(fitted.obs["nmf_alpha"].cat.categories) == TYPES
    np.testing.assert_allclose(parts.sum(axis=0), 1, rtol=1e-5)
    told = fitted.uns["nmf_alpha"]
    assert sorted(told["classes"]) == sorted(TYPES)
    assert len(told["part_labels"]) == 4
    assert told["n_labeled"] == 36
    assert told["prepared"] == "log(1 + x / size factor)"


def test_codes_times_parts_rebuild_what_was_factorized(fitted):
    X = cells_of(fitted, Wanted()).X.toarray()
    codes, parts, _ = results(fitted)
    rebuilt = codes @ parts.T
    assert np.linalg.norm(X - rebuilt) < 0.6 * np.linalg.norm(X)
    np.testing.assert_allclose(rebuilt.sum(axis=1), X.sum(axis=1), rtol=0.05)


def test_probabilities_are_those_of_the_predicted_types(fitted):
    chances = fitted.obsm["nmf_alpha_probabilities"]
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-5)
    best = np.asarray(fitted.uns["nmf_alpha"]["classes"])[chances.argmax(axis=1)]
    np.testing.assert_array_equal(best, results(fitted)[2])
    np.testing.assert_array_equal(fitted.obs["nmf_alpha_probability"], chances.max(axis=1))


def test_predicted_types_have_the_colors_of_the_known_ones(fitted):
    assert list(fitted.uns["nmf_alpha_colors"]) == ["#111111", "#222222", "#333333"]


def test_results_survive_writing_and_reading(fitted, tmp_path):
    fitted.write_h5ad(tmp_path / "cells.h5ad")
    read = anndata.read_h5ad(tmp_path / "cells.h5ad")
    for one, other in zip(results(fitted), results(read), strict=True):
        np.testing.assert_array_equal(one, other)
    assert read.obs["nmf_alpha"].dtype == fitted.obs["nmf_alpha"].dtype
    np.testing.assert_array_equal(
        read.obs["nmf_alpha_probability"], fitted.obs["nmf_alpha_probability"]
    )
    told, before = read.uns["nmf_alpha"], fitted.uns["nmf_alpha"]
    assert set(told) == set(before)
    for name in ("classes", "part_labels", "n_labeled", "honest_score", "version"):
        np.testing.assert_array_equal(told[name], before[name])
    assert set(told["params"]) == set(before["params"])
    assert told["params"]["label"] == "cell_type"
    assert told["teachers"] == before["teachers"]
    mp.pl.parts(read)
    mp.pl.codes(read)


def test_it_is_the_classifier_on_prepared_counts(fitted):
    counts = made().X.toarray().astype(np.float64)
    totals = counts.sum(axis=1)
    X = np.log1p(counts / (totals / np.median(totals))[:, None]).astype(np.float32)
    names = made().obs["cell_type"].to_numpy(str)
    y = np.where(names == "Unknown", None, names)
    model = NMFAlphaClassifier(**HOW, random_state=0).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(model.parts_.components_.T, results(fitted)[1], rtol=1e-2, atol=1e-4)
    assert (model.predict(sp.csr_array(X)) == results(fitted)[2]).mean() > 0.95


def test_a_copy_has_the_results_and_the_original_has_not():
    adata = made()
    adata.obs["cell_type"] = adata.obs["cell_type"].astype(object)
    found = mp.tl.nmf_alpha(adata, "cell_type", key_added="parts", copy=True, **HOW)
    assert "X_parts" in found.obsm
    assert "parts" in found.varm
    assert not {"parts", "parts_probability"} & set(adata.obs)
    assert not adata.obsm
    assert not adata.uns


@pytest.mark.wide
@pytest.mark.parametrize("unknown", [np.nan, None, "none yet"])
def test_unknown_is_nan_or_a_name(fitted, unknown):
    adata = made()
    names = adata.obs["cell_type"].astype(object).to_numpy()
    names[names == "Unknown"] = unknown
    adata.obs["cell_type"] = pd.Categorical(names, categories=[*TYPES, "none yet"])
    mp.tl.nmf_alpha(adata, "cell_type", unlabeled=["none yet"], **HOW)
    for one, other in zip(results(fitted), results(adata), strict=True):
        np.testing.assert_array_equal(one, other)


def test_numbers_are_names_and_minus_one_is_unknown():
    adata = made()
    numbers = adata.obs["cell_type"].cat.codes.to_numpy(dtype=int)
    adata.obs["cluster"] = np.where(numbers == 3, -1, numbers)
    mp.tl.nmf_alpha(adata, "cluster", **HOW)
    assert list(adata.obs["nmf_alpha"].cat.categories) == ["0", "1", "2"]


def prepared(adata, **wanted):
    X = cells_of(adata, Wanted(**wanted)).X
    return X.toarray() if sp.issparse(X) else X


def test_counts_are_divided_by_size_factors_and_logarithms_are_left_alone():
    adata = made()
    X = prepared(adata)
    deep = adata.X.toarray()
    deep[::2] *= 3  # the same cells, some of them three times as deep
    adata.layers["deep"] = sp.csr_matrix(deep)
    ratio = np.expm1(prepared(adata, layer="deep")) / np.maximum(np.expm1(X), 1e-30)
    np.testing.assert_allclose(ratio[X > 0], ratio[X > 0][0], rtol=1e-4)
    adata.layers["log"] = adata.X.log1p()
    np.testing.assert_array_equal(prepared(adata, layer="log"), adata.layers["log"].toarray())
    np.testing.assert_array_equal(prepared(adata, size_factors=None), adata.X.toarray())
    np.testing.assert_array_equal(prepared(adata, size_factors="depth"), X)
    depth = adata.obs["depth"].to_numpy()
    np.testing.assert_array_equal(prepared(adata, size_factors=depth), X)


@pytest.mark.parametrize("form", [np.asarray, sp.csc_matrix, sp.csr_array], ids=str)
def test_all_forms_of_a_matrix_are_the_same_cells(form):
    if form is sp.csr_array and Version(version("anndata")) < Version("0.11"):
        pytest.skip("AnnData before 0.11 has no place for sparse arrays")
    adata = made()
    X = prepared(adata)
    adata.X = form(adata.X.toarray())
    np.testing.assert_allclose(prepared(adata), X, rtol=1e-6)


def test_genes_are_left_out_but_count_for_the_size_of_a_cell():
    adata = made()
    kept = adata.var["variable"].to_numpy()
    np.testing.assert_array_equal(prepared(adata, mask_var="variable"), prepared(adata)[:, kept])
    mp.tl.nmf_alpha(adata, "cell_type", mask_var=kept, **HOW)
    assert (adata.varm["nmf_alpha"][~kept] == 0).all()
    assert (adata.varm["nmf_alpha"][kept].sum(axis=1) > 0).all()
    assert adata.uns["nmf_alpha"]["params"]["mask_var"] == "given as an array"


def test_raw_counts_have_genes_of_their_own(tmp_path):
    adata = made()
    adata.raw = adata
    adata = adata[:, ::-2].copy()  # some genes, in another order
    adata.X = adata.X.toarray() - 1  # as if scaled
    with pytest.raises(ValueError, match=r"below 0 or NaN, as after sc\.pp\.scale"):
        mp.tl.nmf_alpha(adata, "cell_type", **HOW)
    mp.tl.nmf_alpha(adata, "cell_type", use_raw=True, **HOW)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    adata = anndata.read_h5ad(tmp_path / "cells.h5ad")
    whole = pd.DataFrame(adata.raw.varm["nmf_alpha"], index=adata.raw.var_names)
    assert whole.shape == (36, 4)
    np.testing.assert_array_equal(adata.varm["nmf_alpha"], whole.loc[adata.var_names])
    words = {text.get_text().strip() for axis in mp.pl.parts(adata).axes for text in axis.texts}
    assert words - set(adata.var_names)  # raw's own genes are shown too


def test_a_view_becomes_an_object_of_its_own():
    adata = made()
    some = adata[:60]
    mp.tl.nmf_alpha(some, "cell_type", **HOW)  # a warning of AnnData would be an error
    assert some.obsm["X_nmf_alpha"].shape == (60, 4)
    assert not adata.obsm


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("wanted", [{}, {"mask_var": "variable"}, {"use_raw": True}], ids=str)
def test_a_backed_matrix_is_prepared_as_one_in_memory(tmp_path, wanted, dense):
    adata = made()
    adata.X = adata.X.toarray() if dense else adata.X
    adata.raw = adata
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    rows = cells_of(backed, Wanted(**wanted)).X
    blocks = [sp.csr_array(block).toarray() for block in rows.blocks(rows.plan(4))]
    np.testing.assert_array_equal(np.concatenate(blocks), prepared(adata, **wanted))
    assert rows.shape == prepared(adata, **wanted).shape
    backed.file.close()


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_a_backed_object_is_fitted_from_its_file(tmp_path, monkeypatch, mode):
    adata = made()
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed=mode)

    def loaded(self, *args):
        raise AssertionError("X was loaded")

    with monkeypatch.context() as patch:
        patch.setattr(type(backed.X), "to_memory", loaded)
        patch.setattr(type(backed.X), "__getitem__", loaded)
        mp.tl.nmf_alpha(backed, "cell_type", **HOW)
    assert (backed.obs["nmf_alpha"].to_numpy(str) == adata.obs["truth"]).mean() > 0.9
    assert backed.isbacked
    if mode == "r+":
        backed.write()
        backed.file.close()
        assert "X_nmf_alpha" in anndata.read_h5ad(tmp_path / "cells.h5ad").obsm
    else:
        with pytest.raises(ValueError, match="write it to a file of its own"):
            mp.tl.nmf_alpha(backed[:50], "cell_type", **HOW)
        with pytest.raises(ValueError, match="use copy=False"):
            mp.tl.nmf_alpha(backed, "cell_type", copy=True, **HOW)
        backed.file.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"label": "type"}, "no column 'type'; there are: truth, cell_type, depth"),
        ({"layer": "counts"}, "no 'counts'; there are: none"),
        ({"use_raw": True}, "there is none"),
        ({"use_raw": True, "layer": "counts"}, "give one of them"),
        ({"mask_var": "highly_variable"}, "no column of adata.var"),
        ({"mask_var": np.ones(5, dtype=bool)}, "one bool for each of 36 genes"),
        ({"mask_var": np.zeros(36, dtype=bool)}, "leaves no gene"),
        ({"size_factors": "total"}, "neither 'auto' nor a column"),
        ({"size_factors": np.zeros(90)}, "one number above 0 for each cell"),
        ({"unlabeled": [*TYPES, "Unknown"]}, "needs labeled samples"),
    ],
    ids=str,
)
def test_what_cannot_work_is_one_sentence(options, said):
    with pytest.raises(ValueError, match=said):
        mp.tl.nmf_alpha(made(), **{"label": "cell_type", **options})


def test_an_array_is_no_annotated_data():
    with pytest.raises(TypeError, match="is no AnnData object"):
        mp.tl.nmf_alpha(np.eye(3), "cell_type")


def test_parts_are_drawn_by_their_genes(fitted):
    figure = mp.pl.parts(fitted, n_parts=3, n_genes=5)
    assert len(figure.axes) == 3
    labels = fitted.uns["nmf_alpha"]["part_labels"]
    shares = fitted.obsm["X_nmf_alpha"].sum(axis=0)
    for axis, k in zip(figure.axes, np.argsort(-shares), strict=False):
        assert axis.get_title(loc="left") == f"part {k + 1}: {labels[k]}"
        assert {text.get_text().strip() for text in axis.texts} <= set(fitted.var_names)


def test_codes_are_drawn_by_groups(fitted):
    axis = mp.pl.codes(fitted, "truth").axes[0]
    assert [text.get_text() for text in axis.get_yticklabels()] == sorted(TYPES)
    shown = axis.images[0].get_array()
    np.testing.assert_allclose(shown.sum(axis=1), 1, rtol=1e-6)
    assert [t.get_text() for t in mp.pl.codes(fitted).axes[0].get_yticklabels()] == TYPES


def test_pictures_need_results(fitted):
    with pytest.raises(ValueError, match=r"run marginparts\.sc\.tl\.nmf_alpha first"):
        mp.pl.parts(made())
    with pytest.raises(ValueError, match="no column 'louvain'"):
        mp.pl.codes(fitted, "louvain")
