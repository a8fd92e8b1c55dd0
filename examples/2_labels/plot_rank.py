"""
Choosing the rank
=================

How many parts? Two answers, without labels and with them.
"""

import numpy as np
from sklearn.datasets import load_digits

from marginparts import NMFAlphaCV, how_many_parts, plot_choice, plot_ranks
from marginparts.datasets import load_digits_49

# %%
# Without labels: hide some entries of the matrix, fit the others, and see how well the hidden ones
# are predicted. Too few parts miss what is there, and too many learn noise. Here are counts that
# were made of six parts, so that we know what should come out.

rng = np.random.default_rng(0)
counts = rng.poisson(rng.gamma(0.3, 4.0, (200, 6)) @ rng.gamma(0.3, 1.0, (6, 120)))
found = how_many_parts(counts, range(2, 9), folds=2, max_iter=60, random_state=0)
print("the best number of parts:", found.best)
figure = plot_ranks(found)

# %%
# Real data seldom has a number of parts: each further one describes the pixels a little better,
# until it does not. ``best`` is the smallest number within one standard error of the best.

digits = load_digits_49()
found = how_many_parts(digits.data, [2, 4, 8, 12, 16], folds=2, max_iter=60, random_state=0)
print("fours and nines:", found.best)
figure = plot_ranks(found)

# %%
# With labels: what describes the pixels best need not tell digits apart best. ``NMFAlphaCV`` lets
# numbers of parts and weights race over folds of the labels, and drops those that fall behind. Here
# are all ten digits, 120 images with their label and 280 without.

digits = load_digits()
chosen = rng.permutation(len(digits.data))[:400]
X = digits.data[chosen] / 16
y = np.where(np.arange(400) < 120, digits.target[chosen], -1)
model = NMFAlphaCV([4, 8, 16], pseudo=None, max_iter=30, random_state=0).fit(X, y)
print(model.n_components_, "parts, lam", model.lam_)
print(f"{model.honest_score_:.1%} of hidden labels, give or take {model.honest_score_error_:.1%}")
figure = plot_choice(model)

# %%
# With 120 labels one more hit is nearly a point, so the curves are not to be read finely: the ring
# is the best guess, and what lies within its bar is as good.
