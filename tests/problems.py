"""Problems as the package builds them, for tests of single steps."""

import numpy as np
import scipy.sparse as sp

from marginparts.backends import get_backend
from marginparts.losses.nmf_alpha import NMFAlphaProblem
from marginparts.solve.factorize import margin_components


def problem_of(X, S, lam, backend="reference"):
    """The problem that `nmf_alpha` builds, for single half-steps."""
    kernels = get_backend(backend)
    X, S = (A if sp.issparse(A) else np.ascontiguousarray(A) for A in (X, sp.csr_array(S)))
    prepared = kernels.prepare(X)
    XS = kernels.prepare(margin_components(S, X), like=prepared)
    return NMFAlphaProblem(kernels, X=prepared, S=S, XS=XS, lam=lam)
