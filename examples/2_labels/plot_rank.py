"""
Choosing the rank
=================

How many parts? Two answers, without labels and with them.
"""

import numpy as np

from marginparts import NMFAlphaCV, how_many_parts, plot_choice, plot_ranks
from marginparts.datasets import load_digits_49

# %%
# Without labels: hide some entries of the matrix, fit the others, and see how well the hidden ones
# are predicted. Too few parts miss what is there, and too many learn noise. Here are counts that
# were made of six parts, so that we know what should come out.

rng = np.random.default_rng(0)
counts = rng.poisson(rng.gamma(0.3, 4.0, (200, 6)) @ rng.gamma(0.3, 1.0, (6, 120)))
found = how_many_parts(counts, range(2, 11), folds=2, max_iter=100, random_state=0)
print("the best number of parts:", found.best)
figure = plot_ranks(found)

# %%
# Real data seldom has a number of parts: each further one describes the pixels a little better,
# until it does not. ``best`` is the smallest number within one standard error of the best.

digits = load_digits_49()
found = how_many_parts(digits.data, [2, 4, 8, 12, 16, 32], folds=2, max_iter=100, random_state=0)
print("fours and nines:", found.best)
figure = plot_ranks(found)

# %%
# With labels: what describes the pixels best need not tell a four from a nine best. ``NMFAlphaCV``
# lets numbers of parts and weights race over folds of the labels, and drops those that fall behind.

y = np.where(np.arange(len(digits.target)) < 60, digits.target, -1)
model = NMFAlphaCV([2, 4, 8], pseudo=None, max_iter=50, random_state=0).fit(digits.data, y)
print(model.n_components_, "parts, lam", model.lam_)
print(f"{model.honest_score_:.1%} of hidden labels, give or take {model.honest_score_error_:.1%}")
figure = plot_choice(model)

# %%
# With sixty labels one more hit is nearly two points, so the curves are not to be read finely.
# What is plain: two parts are too few, and there is no need for many.
