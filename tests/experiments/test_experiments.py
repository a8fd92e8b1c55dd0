"""The experiments: splits as in the paper, records that survive a kill, choices on validation."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import TruncatedSVD

from marginparts.experiments import plan, tables
from marginparts.experiments.climbing import COSTS, climb
from marginparts.experiments.data import load_data
from marginparts.experiments.edges import at_edge, edges
from marginparts.experiments.grid import SearchGrid
from marginparts.experiments.linear import leading_axes
from marginparts.experiments.plan import Study, quick, with_methods
from marginparts.experiments.preprocessing import PREPROCESSING, preprocess
from marginparts.experiments.protocol import Codes, draw_trial
from marginparts.experiments.registry import METHODS, method_named
from marginparts.experiments.runner import run_unit, run_units
from marginparts.experiments.scoring import Board, Parts, Search, score_all
from marginparts.experiments.store import Store, StoreError
from marginparts.labels import UNKNOWN

SMALL = SearchGrid(
    lams=(1.0, 10.0), lam=3.0, literal_lam=30.0, lda_inputs=(5, 20), map_iter=5, max_iter=20,
    warm_iter=5, steps=1, direction_steps=1,
)  # fmt: skip
DIGITS = Study(
    "digits", "digits", "counts", (0.1, 0.3, 1.0), (2, 4),
    methods=("svm", "pca", "nmf", "nmf_alpha"), splits=(0, 1), grid=SMALL,
)  # fmt: skip


@pytest.fixture(scope="module")
def digits():
    return load_data("digits")


@pytest.fixture(scope="module")
def trial(digits):
    return draw_trial(digits, "counts", 0)


def without_seconds(records):
    kept = [{k: v for k, v in record.items() if k != "seconds"} for record in records]
    return sorted(json.dumps(record, sort_keys=True) for record in kept)


def scored(name, trial):
    return list(METHODS[name].run(trial, (0.1,), (4,), SMALL))


def column(records, name):
    return [record[name] for record in records]


class TestProtocol:
    def test_a_split_divides_the_pool(self, digits, trial):
        assert trial.X_train.shape[0] == digits.n_train
        assert trial.X_validation.shape[0] == digits.n_validation
        rows = np.vstack([trial.X_train, trial.X_validation])
        assert_array_equal(np.sort(rows.sum(axis=1)), np.sort(digits.X_train.sum(axis=1)))

    def test_the_test_rows_stay(self, digits):
        first, second = (draw_trial(digits, "counts", split) for split in (0, 1))
        assert_array_equal(first.X_test, second.X_test)
        assert not np.array_equal(first.X_train, second.X_train)

    def test_fewer_labels_are_a_subset_of_more(self, trial):
        few, many = trial.labels(0.1), trial.labels(0.3)
        assert few.labeled.sum() == trial.n_labeled(0.1) < many.labeled.sum()
        assert_array_equal(few.codes[few.labeled], many.codes[few.labeled])

    @pytest.mark.parametrize("name", METHODS)
    def test_hidden_labels_do_not_reach_a_method(self, trial, name):
        """Scrambling them changes nothing."""
        m = trial.n_labeled(0.1)
        codes = trial.train.codes.copy()
        codes[m:] = 1 - codes[m:]
        scrambled = replace(trial, train=replace(trial.train, codes=codes))
        assert scored(name, scrambled) == scored(name, trial)

    @pytest.mark.parametrize("name", METHODS)
    def test_what_is_learned_depends_on_training_rows_alone(self, trial, name):
        """Other test rows leave validation scores as they are, and the other way round."""
        backward = trial.X_test[::-1].copy()
        other = replace(trial, X_test=backward, counts=(*trial.counts[:2], backward))
        assert column(scored(name, other), "validation") == column(
            scored(name, trial), "validation"
        )
        backward = trial.X_validation[::-1].copy()
        counts = (trial.counts[0], backward, trial.counts[2])
        other = replace(trial, X_validation=backward, counts=counts)
        # what is tried after the first setting depends on validation rows
        assert scored(name, other)[0]["test"] == scored(name, trial)[0]["test"]

    def test_scores_are_those_of_a_perfect_code(self, trial):
        def perfect(labels):
            return np.eye(2, dtype=np.float32)[labels.codes]

        codes = Codes({}, *map(perfect, (trial.train, trial.validation, trial.test)))
        for scored in score_all(trial, (0.1, 1.0), [codes], Search(1.0, 2)):
            assert scored["validation"] == scored["test"] == 100


class TestPreprocessing:
    @pytest.mark.parametrize("name", PREPROCESSING)
    def test_dense_and_sparse_agree(self, name):
        X = np.random.default_rng(0).poisson(0.7, (30, 12)).astype(np.float64)
        dense, sparse = preprocess(name, X)[0], preprocess(name, sp.csr_array(X))[0]
        assert_allclose(sparse.toarray(), np.asarray(dense), rtol=1e-12)

    @pytest.mark.parametrize("name", ["l2-log", "tf-idf", "hellinger"])
    def test_rows_have_length_one(self, name):
        X = sp.csr_array(np.random.default_rng(1).poisson(1.5, (30, 12)).astype(np.float64))
        assert_allclose(np.sqrt(preprocess(name, X)[0].power(2).sum(axis=1)), 1)

    def test_idf_is_learned_on_training_rows(self):
        X = sp.csr_array(np.random.default_rng(2).poisson(1.5, (30, 12)).astype(np.float64))
        alone = preprocess("tf-idf", X[:20], X[20:25])[1]
        beside = preprocess("tf-idf", X[:20], X[20:])[1][:5]
        assert_allclose(alone.toarray(), beside.toarray())


class TestMethods:
    @pytest.mark.parametrize("name", METHODS)
    def test_every_method_scores_every_share_and_rank(self, trial, name):
        found = list(METHODS[name].run(trial, (0.3, 1.0), (2, 4), SMALL))
        assert {record["fraction"] for record in found} == {0.3, 1.0}
        assert all(0 <= record[part] <= 100 for record in found for part in ("validation", "test"))
        if METHODS[name].ranks != "none":
            assert {record["rank"] for record in found} == {2, 4}
        assert max(record["test"] for record in found) > 70  # better than chance

    @pytest.mark.parametrize(
        "name",
        [
            "lda", "nmf_alpha", "lee2010", "tsvm", "nb_em", "self_training", "label_spreading",
        ],
    )  # fmt: skip
    def test_multilabel(self, name):
        rng = np.random.default_rng(0)
        Y = rng.random((120, 3)) < 0.4
        X = (Y @ rng.random((3, 30)) + 0.1 * rng.random((120, 30))).astype(np.float32)
        data = replace(
            load_data("digits"), kind="multilabel", X_train=X[:100], y_train=Y[:100].astype(int),
            X_test=X[100:], y_test=Y[100:].astype(int), n_train=60, n_validation=40,
        )  # fmt: skip
        found = METHODS[name].run(draw_trial(data, "counts", 0), (0.5,), (6,), SMALL)
        assert max(record["test"] for record in found) > 60

    def test_tsvm_with_all_labels_is_the_svm(self, trial):
        svm, tsvm = (list(METHODS[name].run(trial, (1.0,), (), SMALL)) for name in ("svm", "tsvm"))
        assert svm == tsvm

    def test_a_small_rank_of_pca_is_the_start_of_a_large_one(self, trial):
        both = list(METHODS["pca"].run(trial, (0.3,), (2, 4), SMALL))
        alone = list(METHODS["pca"].run(trial, (0.3,), (2,), SMALL))
        assert [record for record in both if record["rank"] == 2] == alone

    @pytest.mark.parametrize("centered", [True, False])
    @pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
    def test_leading_axes_are_those_of_the_whole_decomposition(self, trial, centered, kind):
        X = np.asarray(trial.X_train, dtype=float)
        mean = X.mean(axis=0) if centered else None
        axes = leading_axes(kind(X), 5, 0, mean)
        wanted = np.linalg.svd(X - X.mean(axis=0) if centered else X)[2][:5]
        assert_allclose(np.abs(axes @ wanted.T), np.eye(5), atol=1e-3)

    @pytest.mark.parametrize("name", ["pca", "lda", "lsa", "label_spreading"])
    def test_sparse_data_has_the_scores_of_dense_data(self, trial, name):
        rows = {part: getattr(trial, part) for part in ("X_train", "X_validation", "X_test")}
        sparse = {part: sp.csr_array(X) for part, X in rows.items()}
        other = replace(trial, **sparse, counts=tuple(sparse.values()))
        found, wanted = (column(scored(name, each), "test") for each in (other, trial))
        assert_allclose(found[0], wanted[0], atol=2)

    def test_your_own_transformer(self, trial):
        own = method_named("sklearn.decomposition:TruncatedSVD")
        found = list(own.run(trial, (0.3,), (4,), SMALL))
        m = trial.n_labeled(0.3)
        reduce = TruncatedSVD(4, random_state=0).fit(trial.X_train)
        codes = Codes({"rank": 4}, *(
            reduce.transform(X) for X in (trial.X_train[:m], trial.X_validation, trial.X_test)
        ))  # fmt: skip
        assert found == list(score_all(trial, (0.3,), [codes], Search(SMALL.C, SMALL.steps)))

    def test_your_own_transformer_sees_minus_one(self, trial, monkeypatch):
        seen = {}

        class Spy(TruncatedSVD):
            def fit(self, X, y=None):
                seen["y"] = y
                return super().fit(X)

        monkeypatch.setattr(sys.modules[__name__], "Spy", Spy, raising=False)
        list(method_named(f"{__name__}:Spy").run(trial, (0.3,), (2,), SMALL))
        assert np.sum(seen["y"] != UNKNOWN) == trial.n_labeled(0.3)

    def test_your_own_transformer_may_give_sparse_codes(self, trial):
        own = method_named("sklearn.random_projection:SparseRandomProjection")
        sparse = replace(
            trial,
            X_train=sp.csr_array(trial.X_train),
            X_validation=sp.csr_array(trial.X_validation),
            X_test=sp.csr_array(trial.X_test),
        )
        assert max(column(own.run(sparse, (1.0,), (20,), SMALL), "test")) > 70

    @pytest.mark.parametrize(
        "name",
        [
            "svn", "no.such.module:Class", "sklearn.decomposition:Nope",
            "sklearn.svm:LinearSVC", "sklearn.preprocessing:Normalizer", "math:sqrt",
        ],
    )  # fmt: skip
    def test_an_unknown_method_is_refused_in_one_sentence(self, name):
        with pytest.raises(ValueError, match=name) as error:
            method_named(name)
        assert str(error.value).endswith(".")


class TestClimbing:
    LADDER = (1, 3, 10, 30, 100, 300)

    def climb(self, scores, start=10, steps=5):
        return climb(self.LADDER, start, dict(zip(self.LADDER, scores, strict=True)).get, steps)

    @pytest.mark.parametrize(
        ("scores", "tried"),
        [
            ((0, 1, 2, 1, 5, 9), (3, 10, 30)),  # the best lies inside
            ((0, 1, 2, 3, 4, 5), (3, 10, 30, 100, 300)),  # upwards to the end of the ladder
            ((5, 6, 2, 1, 0, 0), (1, 3, 10, 30)),  # downwards until it falls
            ((0, 1, 2, 2, 9, 9), (3, 10, 30)),  # no better than its neighbor
            ((0, 1, 2, 3, 3, 9), (3, 10, 30, 100)),
        ],
    )
    def test_it_goes_on_while_the_best_is_at_an_end(self, scores, tried):
        assert tuple(self.climb(scores)) == tried

    def test_it_goes_no_further_than_it_may(self):
        assert tuple(self.climb((0, 1, 2, 3, 4, 5), steps=2)) == (3, 10, 30, 100)
        assert tuple(self.climb((0, 1, 2, 3, 4, 5), steps=0)) == (10,)

    def test_costs_are_wide(self):
        assert COSTS[0] <= 1e-4
        assert COSTS[-1] >= 1e5


class TestBoard:
    def test_parts_first_then_the_map_then_the_cost(self, trial):
        """The codes of the better parts are the better, the more updates they had up to 60."""

        def codes(quality, n):
            noise = 10 / (quality * min(n, 60))
            rows = [
                np.eye(2)[labels.codes] + noise * np.random.default_rng(3).random((len(X), 2))
                for X, labels in (
                    (trial.X_train, trial.train),
                    (trial.X_validation, trial.validation),
                    (trial.X_test, trial.test),
                )
            ]
            return Codes({"lam": quality, "map_iter": n}, *rows)

        board = Board(trial, (0.3,), Search(10.0, 10, map_iter=1))
        for quality in (1, 2):
            board.enter(Parts({}, lambda n, quality=quality: codes(quality, n)))
        records = board.finish()
        maps = {(r["lam"], r["map_iter"]) for r in records}
        assert {lam for lam, n in maps if n > 1} == {2}
        best = max(records, key=lambda r: r["validation"])
        assert best["validation"] == 100
        assert best["map_iter"] > 1
        costs = {r["C"] for r in records if r["map_iter"] == best["map_iter"]}
        assert len(costs) >= 3

    def test_all_of_the_named_maps_are_tried_each_with_its_cost(self, trial):
        found = list(METHODS["nmf"].run(trial, (0.3,), (4,), SMALL._replace(map_iters=(2, 5, 9))))
        for n in (2, 5, 9):
            assert len({r["C"] for r in found if r["map_iter"] == n}) >= 3


class TestPlan:
    def test_methods_may_have_ranks_of_their_own(self):
        study = replace(DIGITS, own_ranks={"nmf": (8,), "pca": (3, 5)})
        ranks = {(unit.method, unit.ranks) for unit in study.units()}
        assert ranks == {("svm", ()), ("pca", (3, 5)), ("nmf", (8,)), ("nmf_alpha", (2, 4))}
        assert quick(study).own_ranks == study.own_ranks

    def test_what_is_dear_is_sought_at_the_first_rank_alone(self, trial):
        grid = SMALL._replace(steps=2, direction_steps=2)
        for name, field in (("nmf_alpha", "direction_C"), ("lee2010", "lam")):
            found = list(METHODS[name].run(trial, (0.3,), (4, 2), grid))
            values = {rank: {r[field] for r in found if r["rank"] == rank} for rank in (4, 2)}
            assert len(values[4]) >= 3
            assert len(values[2]) == 1
            best = max((r for r in found if r["rank"] == 4), key=lambda r: r["validation"])
            first_stage = [r for r in found if r["rank"] == 4 and r["C"] == grid.C]
            assert values[2] <= {r[field] for r in first_stage}
            assert best["validation"] >= max(r["validation"] for r in first_stage)

    def test_the_model_of_a_weight_does_not_depend_on_what_else_is_tried(self, trial):
        """It is fitted from the same start, as the classifier's own race and fit do."""
        down, up = (
            {
                record["lam"]: record["test"]
                for record in METHODS["nmf_alpha"].run(
                    trial, (0.3,), (4,), SMALL._replace(lam=lam, direction_steps=0)
                )
                if record["C"] == SMALL.C and record["normalize"] and record["map_iter"] == 5
            }
            for lam in (3.0, 10.0)
        )
        both = set(down) & set(up)
        assert len(both) >= 2
        assert [down[lam] for lam in both] == [up[lam] for lam in both]

    def test_units_cover_every_cell_once(self):
        cells = [
            (unit.method, unit.split, fraction, rank)
            for unit in DIGITS.units()
            for fraction in unit.fractions
            for rank in unit.ranks or (None,)
        ]
        assert len(cells) == len(set(cells)) == 2 * 3 * (1 + 2 + 2 + 2)

    def test_keys_tell_units_apart(self):
        keys = [unit.key for study in plan.STUDIES.values() for unit in study.units()]
        assert len(keys) == len(set(keys))

    def test_a_larger_grid_is_other_work_for_those_who_use_it(self):
        larger = replace(DIGITS, grid=SMALL._replace(lam=10.0))
        known = {u.key for u in DIGITS.units()}
        again = {u.method for u in larger.units() if u.key not in known}
        assert again == {"nmf_alpha"}

    @pytest.mark.parametrize("name", METHODS)
    def test_methods_use_the_settings_they_name(self, trial, name):
        """A grid that has nothing else is enough."""
        named = {setting: getattr(SMALL, setting) for setting in METHODS[name].settings}
        nothing = SearchGrid(**dict.fromkeys(SearchGrid._fields))
        run = METHODS[name].run
        some = list(run(trial, (0.1,), (4,), nothing._replace(**named)))
        assert some == list(run(trial, (0.1,), (4,), SMALL))

    def test_quick_is_less_work(self):
        for study in plan.TABLE_2:
            small = quick(study)
            assert sum(u.weight for u in small.units()) < sum(u.weight for u in study.units()) / 3
            assert small.grid.steps < study.grid.steps

    def test_more_methods(self):
        every = replace(DIGITS, methods=plan.PAPER_METHODS)
        assert with_methods(every, ["svm", "a.b:C"]).methods == (*every.methods, "a.b:C")
        assert with_methods(DIGITS, ["a.b:C"]) == DIGITS  # no comparison of all methods


class TestStore:
    def test_a_unit_cut_short_does_not_count(self, tmp_path):
        store = Store(tmp_path / "a.jsonl")
        store.append("one", [{"x": 1}, {"x": 2}])
        store.append("two", [{"x": 3}, {"x": 4}])
        whole = store.path.read_bytes()
        second = whole.index(b'"two"')
        for length in range(len(whole)):
            store.path.write_bytes(whole[:length])
            assert store.units() <= {"one", "two"}
            assert ("two" in store.units()) == (length >= len(whole) - 1)
            if length > second:
                assert [record["x"] for record in store][:2] == [1, 2]

    def test_what_follows_a_cut_is_read(self, tmp_path):
        store = Store(tmp_path / "a.jsonl")
        store.append("one", [{"x": 1}, {"x": 2}])
        store.path.write_bytes(store.path.read_bytes()[:-20])
        store.append("two", [{"x": 3}])
        store.append("one", [{"x": 1}, {"x": 2}])
        assert store.units() == {"one", "two"}
        assert sorted(record["x"] for record in store) == [1, 2, 3]

    def test_damage_in_the_middle_costs_that_unit_alone(self, tmp_path):
        store = Store(tmp_path / "a.jsonl")
        for name in ("one", "two", "three"):
            store.append(name, [{"x": name}, {"x": name}])
        lines = store.path.read_text().splitlines()
        for damage in ("null", "3", '{"x": 1}', "\x00\x00", lines[2][:15]):
            store.path.write_text("\n".join([*lines[:2], damage, *lines[3:]]) + "\n")
            assert store.units() == {"one", "three"}

    def test_two_runs_do_not_write_to_one_file(self, tmp_path):
        store = Store(tmp_path / "a.jsonl")
        with store.writing(), pytest.raises(StoreError, match="Another run"):
            run_units(DIGITS.units(), store, n_jobs=1)
        with store.writing():
            pass

    def test_a_folder_that_cannot_be_made_is_said_at_once(self, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(StoreError, match="cannot be written"):
            run_units(DIGITS.units(), Store(tmp_path / "file" / "a.jsonl"), n_jobs=1)

    def test_an_empty_unit_is_refused(self, tmp_path):
        with pytest.raises(ValueError, match="no records"):
            Store(tmp_path / "a.jsonl").append("none", [])

    def test_no_file_is_no_records(self, tmp_path):
        store = Store(tmp_path / "a.jsonl")
        assert store.units() == set()
        assert list(store) == []


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory):
    """The records of a run in one process that nobody disturbed."""
    store = Store(tmp_path_factory.mktemp("alone") / "a.jsonl")
    assert run_units(DIGITS.units(), store, n_jobs=1) == (0, [])
    return without_seconds(store)


@pytest.mark.wide
class TestRunner:
    def test_parallel_equals_serial_and_nothing_is_done_twice(self, tmp_path, left_alone):
        parallel = Store(tmp_path / "2.jsonl")
        told = []
        run_units(DIGITS.units(), parallel, n_jobs=2, on_unit=lambda *a: told.append(a))
        assert without_seconds(parallel) == left_alone
        assert len(told) == len(list(DIGITS.units()))
        run_units(DIGITS.units(), parallel, n_jobs=2, on_unit=lambda *a: pytest.fail("again"))

    def test_records_say_what_was_done(self):
        unit = next(u for u in DIGITS.units() if u.method == "nmf_alpha")
        for record in run_unit(unit):
            wanted = {
                "method", "data", "preprocessing", "split", "fraction", "rank", "lam", "C",
                "map_iter", "normalize", "validation", "test", "seconds", "versions", "seed",
            }  # fmt: skip
            assert wanted <= set(record)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_a_unit_that_fails_does_not_stop_the_others(self, tmp_path, monkeypatch, n_jobs):
        (tmp_path / "breaks.py").write_text(
            "from sklearn.decomposition import TruncatedSVD\n"
            "class Breaks(TruncatedSVD):\n"
            "    def fit(self, X, y=None):\n"
            "        raise RuntimeError('out of order')\n"
        )
        monkeypatch.chdir(tmp_path)
        study = replace(DIGITS, methods=("breaks:Breaks", "svm"), ranks=(2,), fractions=(1.0,))
        left, failures = run_units(study.units(), Store(tmp_path / "a.jsonl"), n_jobs=n_jobs)
        assert left == len(failures) == 2
        assert {r["method"] for r in Store(tmp_path / "a.jsonl")} == {"svm"}
        assert re.fullmatch(
            r"breaks:Breaks failed on digits, split \d, rank 2: RuntimeError: out of order",
            str(failures[0]),
        )

    def test_no_work_is_begun_after_the_deadline(self, tmp_path):
        store = Store(tmp_path / "a.jsonl")
        left, _ = run_units(DIGITS.units(), store, n_jobs=1, deadline=time.monotonic() - 1)
        assert left == len(list(DIGITS.units()))
        assert store.units() == set()

    @pytest.mark.wide
    @pytest.mark.parametrize("seed", range(2))
    def test_a_killed_run_goes_on(self, tmp_path, left_alone, seed):
        """SIGKILL at a random moment, then resumed: the records are those of a run left alone."""
        store = Store(tmp_path / "killed.jsonl")
        script = tmp_path / "run.py"
        script.write_text(
            textwrap.dedent(f"""
            from marginparts.experiments.grid import SearchGrid
            from marginparts.experiments.plan import Study
            from marginparts.experiments.runner import run_units
            from marginparts.experiments.store import Store, StoreError

            if __name__ == "__main__":
                study = {DIGITS!r}
                run_units(study.units(), Store({str(store.path)!r}), n_jobs=2)
            """)
        )
        process = subprocess.Popen([sys.executable, script], start_new_session=True)
        rng = np.random.default_rng(seed)
        wanted = rng.integers(1, len(list(DIGITS.units())) - 1)
        while len(store.units()) < wanted and process.poll() is None:
            time.sleep(0.01)
        time.sleep(rng.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        done = len(store.units())
        assert wanted <= done
        wait_until_gone(process.pid)
        # what a kill in the middle of a write leaves
        store.path.write_bytes(store.path.read_bytes()[: -int(rng.integers(1, 300))])
        assert run_units(DIGITS.units(), store, n_jobs=2) == (0, [])
        assert without_seconds(store) == left_alone


def wait_until_gone(session):
    """Wait until no process of a session is left: workers end with their parent."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            os.killpg(session, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("workers outlived their parent")


def record(method, rank, split, validation, test, **more):
    return {
        "method": method, "rank": rank, "split": split, "validation": validation, "test": test,
        "data": "mnist", "preprocessing": "counts", "fraction": 0.02, "map_iter": 5, **more,
    }  # fmt: skip


class TestTables:
    RECORDS = (
        record("nmf_alpha", 16, 0, 80, 70, C=1),
        record("nmf_alpha", 16, 0, 70, 99, C=2),  # good on test rows, which do not count
        record("nmf_alpha", 16, 1, 90, 72, C=1),
        record("nmf_alpha", 32, 0, 81, 74, C=1),
        record("nmf_alpha", 32, 1, 91, 78, C=1),
        record("nmf_alpha", 64, 1, 99, 99, C=1),  # one split only
    )

    def test_choices_are_made_on_validation_scores(self):
        (cell,) = found = tables.curves(self.RECORDS)
        points = found[cell]["nmf_alpha"]
        assert [(point.rank, point.test) for point in points] == [(16, 71), (32, 76)]
        best = tables.chosen(points)
        assert best.rank == 32
        assert_allclose(best.std, np.std([74, 78], ddof=1))

    def test_table2(self):
        table = tables.table2(tables.curves(self.RECORDS))
        assert table["mnist"]["2%"]["nmf_alpha"] == {
            "mean": 76.0, "std": 2.83, "validation": 86.0, "splits": 2, "rank": 32, "paper": 93.3,
        }  # fmt: skip

    def test_another_preparation_is_not_mixed_in(self):
        other = [{**record, "preprocessing": "l1", "test": 0} for record in self.RECORDS]
        table = tables.table2(tables.curves([*self.RECORDS, *other]))
        assert list(table) == ["mnist", "mnist, l1"]
        assert table["mnist"] == tables.table2(tables.curves(self.RECORDS))["mnist"]
        assert table["mnist, l1"]["2%"]["nmf_alpha"]["mean"] == 0
        assert "paper" not in table["mnist, l1"]["2%"]["nmf_alpha"]

    def test_open_goal_names_the_best_rival_by_validation_and_the_plainest_of_equals(self):
        ours = [record("nmf_alpha", 32, 0, 90, 80, dimensions=32)]
        raw = [
            record(name, None, 0, validation, test)
            for name, validation, test in (
                ("tsvm", 70, 60),
                ("svm", 70, 60),
                ("tsvm_shares", 60, 99),
            )
        ]
        row = tables.open_goal(ours, raw)["mnist"]["2%"]
        assert (row["mean"], row["dims"]) == (80, 32)
        assert (row["best_rival"]["mean"], row["best_rival"]["method"]) == (60, "raw SVM, counts")

    def test_table1_is_the_papers(self):
        rows = {row["data"]: row for row in tables.table1()}
        assert list(rows["mnist"].values())[2:] == [5000, 6791, 1991, 784, 2]
        assert list(rows["news"].values())[2:] == [9007, 2262, 7505, 53975, 20]
        assert list(rows["aviation"].values())[2:] == [12912, 8607, 7077, 28426, 22]

    def test_ablation_compares_split_by_split(self):
        some = (
            record("nmf_alpha", 32, 0, 80, 70),
            record("nmf_alpha", 32, 0, 79, 60, map_iter=15),
            record("nmf_alpha", 32, 1, 90, 76),
            record("nmf_alpha", 32, 1, 89, 74, map_iter=15),
            record("nmf_alpha_class", 32, 0, 80, 71),
            record("nmf_alpha_class", 32, 1, 80, 73),
        )
        rows = {row["what"]: row for row in tables.ablation(some)["mnist 2%"]}
        assert rows["NMF-alpha"]["change"] is None
        assert rows["NMF-alpha, class sums"]["change"] == -1
        assert_allclose(rows["NMF-alpha, class sums"]["change_std"], np.std([1, -3], ddof=1), 0.01)
        assert rows["NMF-alpha, 15 mapping updates"]["mean"] == 67


class TestEdges:
    def count(self, *records):
        return edges(tables.curves(records), records)["mnist, counts"]

    def test_a_choice_at_the_end_is_counted(self):
        row = self.count(
            record("svm", None, 0, 80, 0, C=1.0),
            record("svm", None, 0, 90, 0, C=10.0),
            record("svm", None, 1, 80, 0, C=1.0),
            record("svm", None, 1, 90, 0, C=3.0),
            record("svm", None, 1, 85, 0, C=10.0),
        )["svm"]
        assert row == {"C": {"choices": 2, "at_edge": 1}}

    def test_what_is_no_better_than_its_neighbor_is_not(self):
        row = self.count(
            record("svm", None, 0, 90, 0, C=10.0), record("svm", None, 0, 90, 0, C=1.0)
        )["svm"]
        assert row["C"]["at_edge"] == 0

    def test_the_rank_is_one_choice_for_all_splits(self):
        some = [
            record("pca", rank, split, score, 0, C=1.0)
            for split in (0, 1)
            for rank, score in ((8, 70), (16, 80), (32, 90))
        ]
        assert self.count(*some)["pca"] == {"rank": {"choices": 1, "at_edge": 1}}
        some += [record("pca", 64, split, 85, 0, C=1.0) for split in (0, 1)]
        assert self.count(*some)["pca"] == {"rank": {"choices": 1, "at_edge": 0}}

    def test_what_was_sought_at_another_rank_is_judged_there(self):
        row = self.count(
            record("lee2010", 8, 0, 70, 0, lam=1.0),
            record("lee2010", 8, 0, 75, 0, lam=10.0),
            record("lee2010", 16, 0, 90, 0, lam=10.0),
        )["lee2010"]
        assert row["lam"] == {"choices": 1, "at_edge": 1}

    def test_natural_ends_are_none(self):
        assert not at_edge({0.0: 90.0, 0.1: 80.0}, 0.0, natural=(0.0, 1.0))
        row = self.count(
            record("nb_em", None, 0, 90, 0, weight=1.0), record("nb_em", None, 0, 80, 0, weight=0.3)
        )["nb_em"]
        assert row["weight"]["at_edge"] == 0
