"""Other libraries that factorize sparse counts, each as one step that can be timed.

A competitor is a function of the data X and the common start (H, V). It does what has to be done
once and returns a `Peer`. The steps are the loop bodies of the libraries' own fits, without their
tests of convergence: their public fits can neither be started nor watched alike. A library that is
not installed, or whose inner functions have moved, is skipped with a sentence.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from common import Check, Curve, loss

#: The loss is computed at the first iterations, and then when the clock has grown by this factor.
_GROWTH = 1.12
_FIRST = 5


class Peer(NamedTuple):
    """A factorization under way."""

    #: Does one iteration: an update of both factors, or one pass over the data.
    step: Callable[[], object]
    #: Returns H and V as they are now; None where another loss is minimized.
    factors: Callable[[], tuple[np.ndarray, np.ndarray]] | None


def begin(name: str, X: Any, H: np.ndarray, V: np.ndarray) -> Peer | None:
    """Start a competitor, or say why it is skipped."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return PEERS[name](X, H.copy(), V.copy())
    except (ImportError, AttributeError) as error:
        print(f"{name} is skipped: {error}.")
        return None


def run(
    peer: Peer, X: Any, seconds: float, enough: float = -math.inf, limit: float | None = None
) -> Curve:
    """Take steps until a time is spent in them, and look at the loss now and then.

    Parameters
    ----------
    peer : Peer
    X : (n, d) CSR
    seconds : float
        Time for steps; evaluations of the loss are not counted.
    enough, limit : float
        A run goes on up to ``limit`` seconds if its loss is not yet as low as ``enough``.

    Returns
    -------
    list of Check
        The first one is the start.
    """
    limit = seconds if limit is None else limit
    iteration, spent = 0, 0.0
    curve = [_checked(peer, X, iteration, spent)]
    while True:
        began = time.perf_counter()
        peer.step()
        spent += time.perf_counter() - began
        iteration += 1
        due = iteration <= _FIRST or spent >= _GROWTH * curve[-1].seconds
        if due or spent >= limit:
            curve.append(_checked(peer, X, iteration, spent))
            if spent >= limit or (spent >= seconds and curve[-1].loss <= enough):
                return curve


def _checked(peer: Peer, X: Any, iteration: int, spent: float) -> Check:
    found = math.nan if peer.factors is None else loss(X, *peer.factors())
    return Check(iteration, spent, found)


def sklearn_mu(X: Any, H: np.ndarray, V: np.ndarray, order: Any = "C") -> Peer:
    """``NMF(solver="mu", beta_loss="kullback-leibler")`` of scikit-learn.

    Its components are C-ordered after its own starts.
    """
    from sklearn.decomposition import _nmf

    state = {"W": H, "H": np.array(V.T, order=order)}

    def step() -> None:
        W, components = state["W"], state["H"]
        W, *_ = _nmf._multiplicative_update_w(X, W, components, 1.0, 0, 0, 1.0)
        components = _nmf._multiplicative_update_h(X, W, components, 1.0, 0, 0, 1.0)
        components[components < np.finfo(np.float64).eps] = 0
        state.update(W=W, H=components)

    return Peer(step, lambda: (state["W"], state["H"].T))


def sklearn_mu_by_words(X: Any, H: np.ndarray, V: np.ndarray) -> Peer:
    """The same with components in Fortran order, as one who gives ``V.T`` gets it.

    The rows that are gathered are then contiguous.
    """
    return sklearn_mu(X, H, V, order="F")


def sklearn_minibatch(X: Any, H: np.ndarray, V: np.ndarray) -> Peer:
    """``MiniBatchNMF`` of scikit-learn with its own batch size; a step is an epoch."""
    from sklearn.decomposition import MiniBatchNMF
    from sklearn.utils import gen_batches

    model = MiniBatchNMF(V.shape[1], init="custom", beta_loss="kullback-leibler", tol=0.0)
    model._check_params(X)
    components = np.array(V.T, order="C")
    model._components_numerator = components.copy()
    model._components_denominator = np.ones_like(components)
    batches = list(gen_batches(X.shape[0], model._batch_size))

    def step() -> None:
        for batch in batches:
            model._minibatch_step(X[batch], H[batch], components, True)

    return Peer(step, lambda: (H, components.T))


def enstop_plsa(X: Any, H: np.ndarray, V: np.ndarray) -> Peer:
    """The EM algorithm of enstop's ``PLSA``: the same loss for factors that are probabilities.

    The start is V with columns that sum to one, and H with rows that do.
    """
    from enstop import plsa

    coo = X.tocoo()
    rows, columns = (np.ascontiguousarray(index, np.int32) for index in coo.coords)
    masses = V.sum(axis=0, dtype=np.float64)
    words = np.ascontiguousarray((V / masses).T, np.float32)
    topics = H * masses
    topics = np.ascontiguousarray(topics / topics.sum(axis=1, keepdims=True), np.float32)
    shares = np.zeros((X.nnz, V.shape[1]), np.float32)
    word_sums, topic_sums = np.zeros(V.shape[1], np.float32), np.zeros(X.shape[0], np.float32)
    lengths = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    # the first call starts the threads
    least = np.float32(1e-32)
    plsa.plsa_e_step(rows[:1], columns[:1], coo.data[:1], words, topics, shares[:1].copy(), least)

    def step() -> None:
        plsa.plsa_e_step(rows, columns, coo.data, words, topics, shares, least)
        plsa.plsa_m_step(rows, columns, coo.data, words, topics, shares, word_sums, topic_sums)

    return Peer(step, lambda: (lengths[:, None] * topics, words.T))


def torchnmf_mu(X: Any, H: np.ndarray, V: np.ndarray) -> Peer:
    """The multiplicative updates of torchnmf's ``NMF`` on a sparse tensor."""
    import torch
    from torchnmf import nmf

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
    coo = X.tocoo()
    places = torch.from_numpy(np.stack(coo.coords).astype(np.int64))
    values = torch.from_numpy(coo.data.copy())
    target = torch.sparse_coo_tensor(places, values, X.shape, check_invariants=False).coalesce()
    model = nmf.NMF(W=torch.from_numpy(V), H=torch.from_numpy(H))

    def step() -> None:
        total = nmf._get_W_kl_positive(model.H.detach())
        pair = model._sp_recon_beta_pos_neg(target, model.H.detach(), model.W, 1)
        nmf._sp_double_backward_update(*pair, model.W, 1, 0, 0, total)
        total = nmf._get_H_kl_positive(model.W.detach())
        pair = model._sp_recon_beta_pos_neg(target, model.H, model.W.detach(), 1)
        nmf._sp_double_backward_update(*pair, model.H, 1, 0, 0, total)

    return Peer(step, lambda: (model.H.detach().numpy(), model.W.detach().numpy()))


def gensim_nmf(X: Any, H: np.ndarray, V: np.ndarray) -> Peer:
    """``Nmf`` of gensim: online, for the squared error, from its own start.

    Only the time of a pass over the data can be compared.
    """
    from gensim.models.nmf import Nmf

    n, d = X.shape
    corpus = sp.csc_matrix((X.data.astype(np.float64), X.indices, X.indptr), shape=(d, n))
    names = {word: str(word) for word in range(d)}
    model = Nmf(num_topics=V.shape[1], id2word=names, passes=1, eval_every=None, random_state=0)
    return Peer(lambda: model.update(corpus), None)


def sklearn_transform(X: Any, V: np.ndarray) -> Peer:
    """``NMF.transform`` of scikit-learn: updates of H with V frozen, from its flat start."""
    from sklearn.decomposition import _nmf

    components = np.array(V.T, order="C")
    mean = X.sum(dtype=np.float64) / (X.shape[0] * X.shape[1])
    W = np.full((X.shape[0], V.shape[1]), np.sqrt(mean / V.shape[1]), np.float32)
    sums = components.sum(axis=1)

    def step() -> None:
        _nmf._multiplicative_update_w(
            X, W, components, 1.0, 0, 0, 1.0, H_sum=sums, update_H=False
        )  # in place

    return Peer(step, lambda: (W, V))


PEERS: dict[str, Callable[[Any, np.ndarray, np.ndarray], Peer]] = {
    "scikit-learn mu": sklearn_mu,
    "scikit-learn mu, V by rows": sklearn_mu_by_words,
    "scikit-learn mini-batch": sklearn_minibatch,
    "enstop PLSA": enstop_plsa,
    "torchnmf mu": torchnmf_mu,
    "gensim Nmf": gensim_nmf,
}
