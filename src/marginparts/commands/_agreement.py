"""Agreement with known labels, counted while a file streams by."""

from collections.abc import Iterable, Sequence

import numpy as np

from marginparts.scores import f_from_counts


class Agreement:
    """Counts how often given labels are the known ones: for the accuracy, or the F of several."""

    def __init__(self, class_names: Sequence[str], multilabel: bool) -> None:
        self.column = {name: k for k, name in enumerate(class_names)}
        self.multilabel = multilabel
        self.n = self.right = 0
        self.hits, self.errors = np.zeros((2, len(class_names)), dtype=np.int64)

    def add(
        self, given: Iterable[tuple[str, ...]], known: Iterable[tuple[str, ...] | None]
    ) -> None:
        """Count some samples; those without a known label are passed over."""
        for labels, truth in zip(given, known, strict=True):
            if truth is None:
                continue
            self.n += 1
            self.right += set(labels) == set(truth)
            for name in {*truth, *labels}:
                if (k := self.column.get(name)) is not None:
                    both = name in truth and name in labels
                    self.hits[k] += both
                    self.errors[k] += not both

    def score(self) -> float:
        """Return the accuracy, or the mean of the micro and macro F."""
        if self.multilabel:
            return f_from_counts(self.hits, self.errors)
        return self.right / max(self.n, 1)
