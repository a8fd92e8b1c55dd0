"""The comparison behind ``marginparts demo``: many methods on two embedded data sets.

All methods see the same preprocessed data and the same labels, those of the paper the same number
of dimensions, and each chooses its settings on the labeled samples alone. The accuracies are those
on samples that no method has seen, averaged over several draws of the labels.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from marginparts import datasets, estimators
from marginparts.app.fitting import Options, Prepared, fit_model
from marginparts.app.preparation import MatrixPreparation
from marginparts.app.readers import Batch, Label, Layout
from marginparts.app.report import find_examples, payload_of, render
from marginparts.labels import encode_labels
from marginparts.rivals import contest
from marginparts.selection.folds import folds_of
from marginparts.weighting import l2_log

Labels = NDArray[np.int64]


class Task(NamedTuple):
    """A data set with the share of labels it is tried with."""

    name: str
    title: str
    X: Any
    y: Labels
    share: float
    n_components: int
    draws: int

    def describe(self) -> str:
        """Return what the numbers of this data set mean."""
        first = draw(self, 0)
        known = int(np.sum(first.y >= 0))
        return (
            f"{known} of {len(first.y)} training samples labeled; accuracy on "
            f"{len(first.y_test)} unseen ones, mean of {self.draws} draws"
        )


class Draw(NamedTuple):
    """Samples to learn from (-1 is unlabeled) and samples to be tested on."""

    X: Any
    y: Labels
    X_test: Any
    y_test: Labels
    seed: int


class Score(NamedTuple):
    """One method on one draw."""

    task: str
    method: str
    accuracy: float
    dimensions: int
    seconds: float


#: Learns from a draw; returns the labels of its test samples and the dimensions it used.
Method = Callable[[Draw, int], tuple[Labels, int]]


def tasks() -> list[Task]:
    """Return the two data sets, each with one preprocessing for all methods."""
    digits, docs = datasets.load_digits_49(), datasets.load_docstrings()
    title = f"Docstrings of {len(docs.target_names)} subpackages"
    return [
        Task("digits", "Handwritten 4 v 9", digits.data, digits.target, 0.03, 16, 8),
        Task("docstrings", title, l2_log(docs.data), docs.target, 0.05, 32, 3),
    ]


def draw(task: Task, seed: int) -> Draw:
    """Keep three samples in ten for the test, and hide most labels of the others.

    Each class keeps the same share of its labels, and at least two.
    """
    train, test = train_test_split(
        np.arange(len(task.y)), test_size=0.3, stratify=task.y, random_state=seed
    )
    y = np.full(len(train), -1)
    for k in np.unique(task.y):
        members = np.flatnonzero(task.y[train] == k)
        y[members[: max(2, round(task.share * len(members)))]] = k
    return Draw(task.X[train], y, task.X[test], task.y[test], seed)


def compare(task: Task) -> Iterator[Score]:
    """Run every method on every draw of a task."""
    for seed in range(task.draws):
        data = draw(task, seed)
        for name, method in METHODS.items():
            began = time.perf_counter()
            with warnings.catch_warnings():
                # a draw may leave a class with a single label; that is the point of the exercise
                warnings.simplefilter("ignore")
                predicted, dimensions = method(data, task.n_components)
            seconds = time.perf_counter() - began
            accuracy = float(np.mean(predicted == data.y_test))
            yield Score(task.name, name, accuracy, dimensions, seconds)


def demo_page() -> str:
    """Return a page about one model: the digits of the comparison, with a slider over lam."""
    task = tasks()[0]
    data = draw(task._replace(share=0.15), 0)  # with more labels there is more to see
    names = [str(name) for name in datasets.load_digits_49().target_names]
    y = np.array([names[k] if k >= 0 else None for k in data.y], dtype=object)
    X = np.ascontiguousarray(data.X, dtype=np.float32)
    layout = Layout("image", image_shape=(8, 8), n_columns=X.shape[1])
    prepared = Prepared(X, y, names, MatrixPreparation(), layout, task.title)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit_model(prepared, Options(n_components=(16, 32), keep_path=True))
    files = [f"digit {k + 1}" for k in range(len(data.y_test))]
    truth: list[Label] = [names[k] for k in data.y_test]
    batch = Batch(np.ascontiguousarray(data.X_test, dtype=np.float32), truth, {"file": files})
    return render(payload_of(model, find_examples(model, [batch])))


def _svm(Z: Any, y: Labels, seed: int) -> Any:
    """Return a linear SVM on labeled rows, its C chosen by cross-validation among them."""
    svm = LinearSVC(dual=bool(Z.shape[0] < Z.shape[1]), max_iter=5000, random_state=seed)
    folds = StratifiedKFold(2, shuffle=True, random_state=seed)
    return GridSearchCV(svm, {"C": [0.1, 1.0, 10.0, 100.0]}, cv=folds).fit(Z, y)


def _raw_svm(data: Draw, r: int) -> tuple[Labels, int]:
    known = data.y >= 0
    svm = _svm(data.X[known], data.y[known], data.seed)
    return svm.predict(data.X_test), data.X.shape[1]


def _raw_tsvm(data: Draw, r: int) -> tuple[Labels, int]:
    svm = estimators.TransductiveSVM(random_state=data.seed).fit(data.X, data.y)
    return svm.predict(data.X_test), data.X.shape[1]


def _through(make: Any, labels: bool, data: Draw, r: int) -> tuple[Labels, int]:
    """Reduce with a transformer fitted on all samples, then train an SVM on unit codes."""
    transformer = make(r, random_state=data.seed).fit(data.X, data.y if labels else None)
    known = data.y >= 0
    Z, Z_test = (normalize(transformer.transform(X)) for X in (data.X[known], data.X_test))
    return _svm(Z, data.y[known], data.seed).predict(Z_test), Z.shape[1]


_PCA = partial(PCA, svd_solver="arpack")


def _lda(data: Draw, r: int) -> tuple[Labels, int]:
    # LDA uses the labeled samples alone; it needs fewer features than samples, hence the PCA
    known = data.y >= 0
    n_features = max(1, min(int(known.sum()) // 2, data.X.shape[1] - 1))
    reduce = _PCA(n_features, random_state=data.seed)
    lda = make_pipeline(reduce, LinearDiscriminantAnalysis()).fit(data.X[known], data.y[known])
    Z, Z_test = lda.transform(data.X[known]), lda.transform(data.X_test)
    return _svm(Z, data.y[known], data.seed).predict(Z_test), Z.shape[1]


def _nmf_alpha(data: Draw, r: int) -> tuple[Labels, int]:
    model = estimators.NMFAlphaClassifier(r, random_state=data.seed).fit(data.X, data.y)
    return model.predict(data.X_test), r


def _rival(name: str, data: Draw, r: int) -> tuple[Labels, int]:
    """Let a rival choose its settings on the labeled samples, as the others do, and predict."""
    rival = next(each for each in contest.RIVALS if each.name == name)
    labels = encode_labels(data.y, len(data.y))
    folds = folds_of(labels, data.seed, 2)
    said = contest.hidden_values(rival, data.X, labels, folds, data.seed)
    setting = contest.best_setting(contest.scores_of(folds, said))
    prepared = rival.prepare(data.X, [data.X_test], data.seed)
    (values,) = rival.values(prepared, labels, setting)
    codes = values[:, 0] > 0 if values.shape[1] == 1 else values.argmax(axis=1)
    used = min(setting[0], data.X.shape[1] - 1) if name == contest.LSA else data.X.shape[1]
    return labels.classes[codes.astype(np.intp)], used


METHODS: dict[str, Method] = {
    "raw SVM": _raw_svm,
    "raw TSVM": _raw_tsvm,
    "self-training": partial(_rival, contest.SELF_TRAINING),
    "naive Bayes, EM": partial(_rival, contest.NAIVE_BAYES),
    "label spreading": partial(_rival, contest.SPREADING),
    "LSA": partial(_rival, contest.LSA),
    "PCA": partial(_through, _PCA, False),
    "LDA": _lda,
    "NMF": partial(_through, partial(estimators.NMFAlpha, lam=0.0), False),
    "Lee et al. 2010": partial(_through, estimators.SemiSupervisedNMF, True),
    "Liu & Wu 2010": partial(_through, estimators.ConstrainedNMF, True),
    "NMF-alpha": _nmf_alpha,
}
