"""scikit-learn's face of the package. Validation happens here, once."""

from marginparts.estimators.baselines import ConstrainedNMF, SemiSupervisedNMF
from marginparts.estimators.classifier import NMFAlphaClassifier
from marginparts.estimators.consensus import NMFAlphaConsensus
from marginparts.estimators.cross_validated import NMFAlphaCV
from marginparts.estimators.nmf_alpha import NMFAlpha
from marginparts.estimators.online import OnlineNMFAlphaClassifier
from marginparts.estimators.semi import SemiNMFAlpha
from marginparts.estimators.transductive_svm import TransductiveSVM

__all__ = [
    "ConstrainedNMF",
    "NMFAlpha",
    "NMFAlphaCV",
    "NMFAlphaClassifier",
    "NMFAlphaConsensus",
    "OnlineNMFAlphaClassifier",
    "SemiNMFAlpha",
    "SemiSupervisedNMF",
    "TransductiveSVM",
]
