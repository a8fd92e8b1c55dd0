"""Cells: NMF-alpha on AnnData objects, as scanpy's users expect it.

``import marginparts.sc as mp``; then ``mp.tl.nmf_alpha(adata, "cell_type")`` writes its results
into ``adata``, and ``mp.pl.parts(adata)`` and ``mp.pl.codes(adata)`` draw them.
"""

from marginparts.sc import pl, tl

__all__ = ["pl", "tl"]
