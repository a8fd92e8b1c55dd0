"""The figures show what the tables say, and draw what there is."""
# ruff: noqa: E402 - imports come after the skip

import builtins

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from marginparts.experiments.bases import Bases, Panel
from marginparts.experiments.figures import figure2, figure3, figure4, figure5
from marginparts.experiments.tables import Cell, chosen, curves, table2
from marginparts.plots import save_figure

SHOWN = {"mnist": "counts", "news": "l2-log", "aviation-500": "counts"}
SHARES = {"mnist": (0.02, 0.1, 1.0), "news": (0.2, 0.4, 1.0), "aviation-500": (0.05, 0.1, 1.0)}
RANKS = {"mnist": (16, 32, 64), "news": (20, 32), "aviation-500": (22, 44, 88)}
BARE = ("svm", "tsvm", "lda")
RIVALS = ("nmf", "pca", "lee2010", "liu_wu2010")
SPLITS = 3
OURS = "NMF-\N{GREEK SMALL LETTER ALPHA}"

#: Scores relative to the raw SVM: all near it, NMF-alpha above.
NEAR = {"svm": 0, "tsvm": 1, "lda": -1, "nmf_alpha": 2} | dict.fromkeys(RIVALS, -1)


def make_records(keep=lambda record: True, relative=NEAR):
    """One record a method, cell, rank, split and C, shaped like those of the runner."""
    rng = np.random.default_rng(0)
    for data, preprocessing in SHOWN.items():
        for fraction in SHARES[data]:
            for method, ahead in relative.items():
                for rank in (None,) if method in BARE else RANKS[data]:
                    for split in range(SPLITS):
                        for C in (1.0, 10.0):
                            record = {
                                "method": method, "data": data, "preprocessing": preprocessing,
                                "split": split, "fraction": fraction, "C": C,
                                "validation": 80 + ahead + rng.normal(),
                                "test": 80 + ahead + rng.normal(scale=0.3),
                            } | ({} if rank is None else {"rank": rank})  # fmt: skip
                            if keep(record):
                                yield record


def make_curves(*args, **options):
    return curves(make_records(*args, **options))


@pytest.fixture(scope="module")
def found():
    return make_curves()


def line(axis, label):
    (found,) = (one for one in axis.lines if one.get_label() == label)
    return found


def labels(axis):
    return {one.get_label() for one in axis.lines}


def legends(figure):
    return [[text.get_text() for text in legend.get_texts()] for legend in figure.legends]


def by_row(figure):
    """The panels of Figure 3 by data set and share of labels."""
    data, grid = None, {}
    titles = {
        "MNIST 4 v 9": "mnist",
        "20 Newsgroups": "news",
        "Aviation, 500 words": "aviation-500",
    }
    for axis in figure.axes:
        if axis.get_ylabel():
            data = titles[axis.get_ylabel().splitlines()[0]]
        grid[data, axis.get_title().removesuffix(" of labels")] = axis
    return grid


class TestFigure2:
    def make(self, lams=(0, 10, 1000), rank=9):
        rng = np.random.default_rng(0)
        made = []
        for lam in lams:
            parts = rng.random((rank, 16))
            parts /= parts.sum(axis=1, keepdims=True)
            coefficients = np.zeros(rank)
            coefficients[rng.choice(rank, 3, replace=False)] = (1.0, 2.0, 3.0)
            made.append(Panel(lam, parts.astype(np.float16), coefficients, coefficients @ parts))
        return Bases(rng.random(16), "4", tuple(made))

    def sheets(self, figure):
        return [axis for axis in figure.axes if axis.patches]

    def test_the_used_parts_are_framed(self):
        bases = self.make()
        sheets = self.sheets(figure2(bases))
        assert len(sheets) == 3
        for axis, panel in zip(sheets, bases.panels, strict=True):
            assert axis.get_title() == f"λ = {panel.lam:g}"
            frames = [patch for patch in axis.patches if isinstance(patch, Rectangle)]
            step = frames[0].get_width()
            # the column and the row of a frame's middle, in a sheet of 3 x 3
            middles = [np.array(frame.get_center()) // step for frame in frames]
            assert [int(3 * row + column) for column, row in middles] == list(panel.used)
            assert len(frames) == 3

    def test_each_part_is_at_its_place_up_to_its_largest_pixel(self):
        bases = self.make()
        axis = self.sheets(figure2(bases))[1]
        sheet = axis.images[0].get_array()
        part = bases.panels[1].parts[5].astype(float).reshape(4, 4)  # row 1, column 2
        assert_allclose(sheet[8:12, 14:18], part / part.max(), rtol=1e-6)

    def test_the_digit_and_what_was_rebuilt_stand_on_the_left(self):
        bases = self.make()
        left = figure2(bases).axes[:4]
        assert [axis.get_title() for axis in left] == ["a test 4", "λ = 0", "λ = 10", "λ = 1000"]
        pictures = [axis.images[0].get_array().ravel() for axis in left]
        assert_array_equal(pictures[0], bases.digit)
        for picture, panel in zip(pictures[1:], bases.panels, strict=True):
            assert_array_equal(picture, panel.rebuilt)
        assert len({axis.images[0].get_clim() for axis in left}) == 1

    @pytest.mark.parametrize("rank", [1, 5, 12])
    def test_any_number_of_parts_fits(self, rank):
        bases = Bases(np.ones(16), "9", (
            Panel(3, np.full((rank, 16), 1 / 16, np.float16), np.ones(rank), np.ones(16)),
        ))  # fmt: skip
        (axis,) = self.sheets(figure2(bases))
        height, width = axis.images[0].get_array().shape
        assert (height // 6) * (width // 6) >= rank

    def test_dead_parts_are_white(self):
        empty = Panel(3, np.zeros((4, 16), np.float16), np.zeros(4), np.zeros(16))
        figure = figure2(Bases(np.zeros(16), "9", (empty,)))
        assert not self.sheets(figure)
        assert figure.axes[-1].images[0].get_array().max() == 0

    def test_no_panel_is_refused(self):
        with pytest.raises(ValueError, match="no parts to draw"):
            figure2(Bases(np.ones(16), "4", ()))


class TestFigure3:
    def test_there_is_a_panel_a_data_set_and_share(self, found):
        figure = figure3(found, SHOWN)
        assert set(by_row(figure)) == {(cell.data, cell.share) for cell in found}
        units = [axis.get_ylabel().splitlines()[1] for axis in figure.axes if axis.get_ylabel()]
        assert units == ["accuracy (%)", "accuracy (%)", "F-measure (\N{MULTIPLICATION SIGN}100)"]

    def test_curves_and_lines_are_those_of_the_records(self, found):
        grid, table = by_row(figure3(found, SHOWN)), table2(found)
        for cell, methods in found.items():
            axis = grid[cell.data, cell.share]
            points = methods["nmf_alpha"]
            curve = line(axis, OURS)
            assert_array_equal(curve.get_xdata(), RANKS[cell.data])
            assert_allclose(curve.get_ydata(), [point.test for point in points])
            for method, label in (("svm", "raw SVM"), ("tsvm", "raw TSVM")):
                mean = table[cell.data][cell.share][method]["mean"]
                assert_allclose(line(axis, label).get_ydata(), mean, atol=0.006)

    def test_the_band_is_one_standard_deviation(self, found):
        cell = Cell("news", "l2-log", 0.4)
        axis = by_row(figure3(found, SHOWN))["news", "40%"]
        (band,) = axis.collections
        edges = band.get_paths()[0].vertices
        for point in found[cell]["nmf_alpha"]:
            at_rank = edges[edges[:, 0] == point.rank, 1]
            assert_allclose(at_rank.max(), point.test + point.std)
            assert_allclose(at_rank.min(), point.test - point.std)

    def test_the_square_is_at_the_validation_choice(self, found):
        grid = by_row(figure3(found, SHOWN))
        best_on_test = []
        for cell, methods in found.items():
            best = chosen(methods["nmf_alpha"])
            square = line(grid[cell.data, cell.share], "chosen on validation")
            assert (square.get_xdata()[0], square.get_ydata()[0]) == (best.rank, best.test)
            assert square.get_marker() == "s"
            assert square.get_markerfacecolor() == "none"
            best_on_test.append(best.test == max(point.test for point in methods["nmf_alpha"]))
        assert not all(best_on_test)  # or the test scores could have chosen

    def test_the_axis_is_logarithmic_with_plain_ranks(self, found):
        axis = by_row(figure3(found, SHOWN))["aviation-500", "5%"]
        assert axis.get_xscale() == "log"
        assert_array_equal(axis.get_xticks(), [22, 44, 88])
        assert [label.get_text() for label in axis.get_xticklabels()] == ["22", "44", "88"]
        assert not len(axis.get_xticks(minor=True))

    def test_further_methods_get_a_curve_or_a_line(self, found):
        plain, more = figure3(found, SHOWN), figure3(found, SHOWN, also=("pca", "lda", "svm"))
        cell = Cell("mnist", "counts", 0.1)
        assert labels(by_row(plain)["mnist", "10%"]) & {"PCA", "LDA"} == set()
        axis = by_row(more)["mnist", "10%"]
        tests = [point.test for point in found[cell]["pca"]]
        assert_allclose(line(axis, "PCA").get_ydata(), tests)
        assert_allclose(line(axis, "LDA").get_ydata(), found[cell]["lda"][0].test)
        assert line(axis, "PCA").get_color() != line(axis, OURS).get_color()
        names = [OURS, "raw SVM", "raw TSVM", "PCA", "LDA", "chosen on validation"]
        assert legends(more) == [names]

    def test_a_transformer_is_named_by_its_class(self):
        records = [
            {**record, "method": "some.package:Thing"}
            for record in make_records(lambda r: r["method"] == "pca")
        ]
        figure = figure3(curves(records), SHOWN, also=("some.package:Thing",))
        assert legends(figure) == [["Thing"]]

    def test_the_wanted_preprocessing_is_drawn_and_no_other(self, found):
        other = {
            Cell("mnist", "l1", 0.02): {
                "nmf_alpha": [point._replace(test=10.0) for point in points["nmf_alpha"]]
            }
            for cell, points in found.items()
            if cell == ("mnist", "counts", 0.02)
        }
        both = {**found, **other}
        axis = by_row(figure3(both, SHOWN))["mnist", "2%"]
        assert line(axis, OURS).get_ydata().min() > 70
        axis = by_row(figure3(both, {"mnist": "l1"}))["mnist", "2%"]
        assert_array_equal(line(axis, OURS).get_ydata(), 10)

    def test_missing_methods_and_cells_are_left_out(self):
        def keep(record):
            if record["data"] == "news":
                return record["method"] == "svm"
            return record["data"] == "mnist" and record["fraction"] == 0.1

        grid = by_row(figure3(make_curves(keep), SHOWN))
        assert set(grid) == {("mnist", "10%"), ("news", "20%"), ("news", "40%"), ("news", "100%")}
        assert labels(grid["news", "40%"]) == {"raw SVM"}
        assert OURS in labels(grid["mnist", "10%"])

    def test_the_lowest_panel_of_each_column_names_its_axis(self):
        few = make_curves(lambda record: record["data"] == "mnist" or record["fraction"] == 0.2)
        grid = by_row(figure3(few, SHOWN))
        named = {place for place, axis in grid.items() if axis.get_xlabel()}
        assert named == {("mnist", "10%"), ("mnist", "100%"), ("news", "20%")}

    @pytest.mark.parametrize(
        ("keep", "shown"),
        [
            (lambda record: False, SHOWN),
            (lambda record: True, {}),
            (lambda record: True, {"mnist": "tf-idf"}),
            (lambda record: record["method"] == "nmf", SHOWN),
        ],
    )
    def test_nothing_to_draw_is_refused(self, keep, shown):
        with pytest.raises(ValueError, match="nothing to draw"):
            figure3(make_curves(keep), shown)


def points_of(axis):
    """The points of a panel of Figure 4 or 5, with their color and shape."""
    return {
        (round(float(x), 6), round(float(y), 6)): (
            to_hex(group.get_facecolor()[0]), len(group.get_paths()[0].vertices)
        )
        for group in axis.collections
        for x, y in group.get_offsets()
    }  # fmt: skip


def expected_pairs(found, rival):
    return {
        cell: [
            (
                round(theirs.test - methods["svm"][0].test, 6),
                round(ours.test - methods["svm"][0].test, 6),
            )
            for ours, theirs in zip(methods["nmf_alpha"], methods[rival], strict=True)
        ]
        for cell, methods in found.items()
    }


class TestFigures4And5:
    @pytest.mark.parametrize(
        ("draw", "rivals"), [(figure4, ("nmf", "pca")), (figure5, ("lee2010", "liu_wu2010"))]
    )
    def test_each_rank_of_each_cell_is_a_point(self, draw, rivals, found):
        figure = draw(found, SHOWN)
        titles = {"nmf": "NMF", "pca": "PCA", "lee2010": "Lee et al. 2010",
                  "liu_wu2010": "Liu & Wu 2010"}  # fmt: skip
        for axis, rival in zip(figure.axes, rivals, strict=True):
            wanted = [pair for some in expected_pairs(found, rival).values() for pair in some]
            assert len(wanted) == 3 * (3 + 2 + 3)
            assert set(points_of(axis)) == set(wanted)
            assert axis.get_xlabel() == f"{titles[rival]} relative to raw SVM"
            assert axis.get_ylabel() == f"{OURS} relative to raw SVM"
            assert not axis.texts

    def test_color_tells_the_data_and_shape_the_share(self, found):
        axis = figure4(found, SHOWN).axes[0]
        points, cells = points_of(axis), expected_pairs(found, "nmf")
        looks = {cell: {points[pair] for pair in pairs} for cell, pairs in cells.items()}
        assert all(len(look) == 1 for look in looks.values())
        assert len(set.union(*looks.values())) == 9
        one = {cell: look.pop() for cell, look in looks.items()}
        for cell, (color, shape) in one.items():
            for other, (other_color, other_shape) in one.items():
                assert (color == other_color) == (cell.data == other.data)
                place = SHARES[cell.data].index(cell.fraction)
                same = place == SHARES[other.data].index(other.fraction)
                assert (shape == other_shape) == same

    def test_both_legends_are_there(self, found):
        assert legends(figure4(found, SHOWN)) == [
            ["few labels", "some labels", "all labels"],
            ["MNIST 4 v 9", "20 Newsgroups", "Aviation, 500 words"],
        ]

    def test_the_plan_tells_which_share_is_small(self):
        part = make_curves(lambda record: record["fraction"] == 0.1)
        assert legends(figure4(part, SHOWN))[0] == ["some labels"]

    def test_scales_are_equal_and_lines_drawn(self, found):
        figure = figure4(found, SHOWN)
        for axis in figure.axes:
            assert axis.get_aspect() == 1
            assert axis.get_xlim() == figure.axes[0].get_xlim()
            steps = {*np.diff(axis.get_xticks()), *np.diff(axis.get_yticks())}
            assert_allclose(list(steps), min(steps))
            (level, upright, diagonal) = axis.lines
            assert_array_equal(level.get_ydata(), 0)
            assert_array_equal(upright.get_xdata(), 0)
            assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())

    def far_left(self, cells):
        """Records in which NMF is far behind in some cells, and far ahead in one."""
        for record in make_records():
            cell = (record["data"], record["fraction"])
            if record["method"] == "nmf" and cell in cells:
                record["test"] -= 60
            if record["method"] == "nmf" and cell == ("news", 0.4):
                record["test"] += 9
            yield record

    def test_points_far_left_are_counted_instead_of_drawn(self):
        found = curves(self.far_left({("news", 0.2)}))
        left, right = figure4(found, SHOWN).axes
        pairs = expected_pairs(found, "nmf")
        far = set(pairs.pop(Cell("news", "l2-log", 0.2)))
        assert set(points_of(left)) == {pair for some in pairs.values() for pair in some}
        assert not far & set(points_of(left))
        assert [text.get_text() for text in left.texts] == [f"{len(far)} points further left"]
        assert not right.texts
        # where NMF is better, all is inside
        low, high = left.get_xlim()
        bottom, top = left.get_ylim()
        assert all(low < x < high and bottom < y < top for x, y in points_of(left))
        assert max(x for x, y in points_of(left)) > 7

    def test_every_point_that_is_left_out_is_counted_and_lies_to_the_left(self):
        found = curves(self.far_left({("news", 0.2), ("mnist", 0.02), ("mnist", 1.0)}))
        axis = figure4(found, SHOWN).axes[0]
        drawn = points_of(axis)
        left_out = [p for some in expected_pairs(found, "nmf").values() for p in some]
        left_out = [pair for pair in left_out if pair not in drawn]
        assert axis.texts[0].get_text() == f"{len(left_out)} points further left"
        assert all(x < axis.get_xlim()[0] and x < y for x, y in left_out)

    def test_a_missing_method_leaves_its_panel_out(self):
        part = make_curves(lambda record: record["method"] != "pca")
        (axis,) = figure4(part, SHOWN).axes
        assert axis.get_xlabel().startswith("NMF ")

    def test_only_ranks_that_both_have_are_compared(self):
        part = make_curves(lambda r: r["method"] != "nmf" or r["rank"] in (16, 32))
        left, right = figure4(part, SHOWN).axes
        assert len(points_of(left)) == 3 * (2 + 1)
        assert len(points_of(right)) == 3 * (3 + 2 + 3)

    def test_one_point_is_enough(self):
        wanted = {"svm": None, "nmf_alpha": 16, "nmf": 16}
        part = make_curves(
            lambda r: (
                (r["data"], r["fraction"]) == ("mnist", 1.0)
                and wanted.get(r["method"], 0) == r.get("rank")
            )
        )
        (axis,) = figure4(part, SHOWN).axes
        assert len(points_of(axis)) == 1

    @pytest.mark.parametrize("missing", ["svm", "nmf_alpha"])
    def test_nothing_to_compare_is_refused(self, missing):
        part = make_curves(lambda record: record["method"] != missing)
        for draw in (figure4, figure5):
            with pytest.raises(ValueError, match=r"nothing to draw.*svm, nmf_alpha and any of"):
                draw(part, SHOWN)


class TestFiles:
    def test_the_file_is_always_the_same_and_says_nothing_of_versions(self, found, tmp_path):
        for name in ("one", "two"):
            save_figure(figure4(found, SHOWN), tmp_path / "new" / f"{name}.png")
        first, second = ((tmp_path / "new" / f"{name}.png").read_bytes() for name in ("one", "two"))
        assert first == second
        assert first.startswith(b"\x89PNG")
        assert b"atplotlib" not in first
        assert b"tEXt" not in first

    def test_it_is_a_page_wide_at_200_dpi(self, found, tmp_path):
        save_figure(figure3(found, SHOWN), tmp_path / "figure.png")
        width = int.from_bytes((tmp_path / "figure.png").read_bytes()[16:20], "big")
        assert width == 200 * 7.2

    def test_own_settings_are_neither_used_nor_changed(self, found, tmp_path):
        save_figure(figure3(found, SHOWN), tmp_path / "plain.png")
        with matplotlib.rc_context({"font.size": 20, "axes.titlesize": 30}):
            save_figure(figure3(found, SHOWN), tmp_path / "own.png")
            assert matplotlib.rcParams["font.size"] == 20
        assert (tmp_path / "plain.png").read_bytes() == (tmp_path / "own.png").read_bytes()

    @pytest.mark.parametrize("draw", [figure3, figure4, figure5])
    def test_without_matplotlib_it_says_what_to_install(self, draw, found, monkeypatch):
        real = builtins.__import__

        def without(name, *args, **options):
            if name.split(".")[0] == "matplotlib":
                raise ImportError(name)
            return real(name, *args, **options)

        monkeypatch.setattr(builtins, "__import__", without)
        with pytest.raises(ImportError, match=r"pip install 'marginparts\[report\]'"):
            draw(found, SHOWN)

    @pytest.mark.parametrize("draw", [figure3, figure4, figure5])
    def test_no_panel_or_legend_lies_on_another(self, draw, found):
        figure = draw(found, SHOWN)
        figure.draw_without_rendering()
        boxes = [legend.get_window_extent() for legend in figure.legends]
        boxes += [axis.get_tightbbox() for axis in figure.axes]
        for k, box in enumerate(boxes):
            assert box.x0 >= 0
            assert box.x1 <= figure.bbox.x1
            assert not any(box.overlaps(other) for other in boxes[:k])
