"""How a fit went: its loss, and what was tried before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from marginparts.plots._fitted import Fitted, classifier_in, parts_in
from marginparts.plots._look import BLUE, COLORS, WIDTH, drawing, new_figure
from marginparts.scores import score_name
from marginparts.selection import standard_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from marginparts.selection.held_out import PartsChoice


@drawing
def plot_loss(estimator: Fitted) -> Figure:
    """Draw the loss against the iterations of the fit.

    Parameters
    ----------
    estimator : fitted estimator or Model
        Whose factorization is shown.

    Returns
    -------
    Figure

    Examples
    --------
    >>> from marginparts import NMFAlpha, plot_loss
    >>> from marginparts.datasets import load_digits_49
    >>> digits = load_digits_49()
    >>> parts = NMFAlpha(4, tol=0, max_iter=10, random_state=0).fit(digits.data, digits.target)
    >>> figure = plot_loss(parts)
    """
    parts = parts_in(estimator)
    checks = parts.history_
    figure = new_figure(0.7 * WIDTH, 2.4)
    axis = figure.add_subplot()
    axis.plot([c.iteration for c in checks], [c.loss for c in checks], color=BLUE, linewidth=1.2)
    axis.set_xlabel("iteration")
    axis.set_ylabel("loss")
    axis.set_title(str(parts.stop_), loc="left", color="0.4")
    axis.spines[["top", "right"]].set_visible(False)
    return figure


@drawing
def plot_ranks(found: PartsChoice) -> Figure:
    """Draw how well hidden entries are predicted against the number of parts.

    Parameters
    ----------
    found : PartsChoice
        What `how_many_parts` returned.

    Returns
    -------
    Figure
        Bars are standard errors of the distance from the best; a ring marks what was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from marginparts import PartsChoice, plot_ranks
    >>> tried = PartsChoice(np.array([1, 2, 4]), np.array([[3.0, 3.2], [1.0, 1.2], [0.8, 1.25]]))
    >>> figure = plot_ranks(tried)
    """
    figure = new_figure(0.7 * WIDTH, 2.4)
    axis = figure.add_subplot()
    axis.errorbar(found.ranks, found.mean, found.error, color=BLUE, linewidth=1.2, marker=".")
    chosen = found.ranks == found.best
    axis.scatter(
        found.ranks[chosen], found.mean[chosen], s=90, facecolors="none", edgecolors="black",
        zorder=4,
    )  # fmt: skip
    axis.set_xlabel("parts")
    axis.set_ylabel("divergence of a hidden entry")
    axis.spines[["top", "right"]].set_visible(False)
    return figure


@drawing
def plot_choice(estimator: Fitted) -> Figure:
    """Draw the scores of all candidates that were tried: against lam, one line a rank.

    Parameters
    ----------
    estimator : fitted NMFAlphaClassifier, NMFAlphaCV or Model
        Whose candidates are shown.

    Returns
    -------
    Figure
        Lines join the best candidate for each lam, with its standard error; hollow points were
        dropped early; a ring marks what was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from marginparts import NMFAlphaClassifier, plot_choice
    >>> from marginparts.datasets import load_digits_49
    >>> digits = load_digits_49()
    >>> y = np.where(np.arange(361) < 40, digits.target, -1)
    >>> model = NMFAlphaClassifier(4, pseudo=None, max_iter=20, random_state=0)
    >>> figure = plot_choice(model.fit(digits.data, y))
    """
    classifier = classifier_in(estimator)
    if classifier is None or not classifier.selection_:
        raise ValueError("Nothing was tried: all parameters were given, or the labels too few.")
    scores, chosen = classifier.selection_, classifier.choice_.best
    most = max(map(len, scores.values()))
    metric = score_name(classifier.scoring, classifier.multilabel_)
    figure = new_figure(0.8 * WIDTH, 2.8)
    axis = figure.add_subplot()
    ranks = sorted({setting.n_components for setting in scores})
    for rank, color in zip(ranks, COLORS * (1 + len(ranks) // len(COLORS)), strict=False):
        best: dict[float, Any] = {}
        for setting, values in scores.items():
            if setting.n_components == rank:
                # what was chosen stands for its lam even where another scored a little better
                entry = (setting == chosen, len(values), float(np.mean(values)), values)
                best[setting.lam] = max(best.get(setting.lam, (False, 0, -1.0, [])), entry)
        lams = sorted(best)
        means = [best[lam][2] for lam in lams]
        errors = [standard_error(best[lam][3]) for lam in lams]
        whole = [best[lam][1] == most for lam in lams]
        axis.errorbar(lams, means, errors, color=color, linewidth=1, elinewidth=0.6)
        fills = [color if done else "white" for done in whole]
        axis.scatter(lams, means, c=fills, edgecolors=color, s=18, zorder=3, label=f"{rank} parts")
    axis.scatter(
        chosen.lam, classifier.choice_.score, s=90, facecolors="none", edgecolors="black", zorder=4,
        label="chosen",
    )  # fmt: skip
    axis.set_xscale("symlog", linthresh=0.1)
    ticks = sorted({setting.lam for setting in scores})
    axis.set_xticks(ticks, [f"{lam:g}" for lam in ticks])
    axis.minorticks_off()
    axis.set_xlabel("lam")
    axis.set_ylabel(f"{metric} on hidden labels")
    axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    axis.spines[["top", "right"]].set_visible(False)
    return figure
