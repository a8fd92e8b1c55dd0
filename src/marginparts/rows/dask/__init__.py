"""Data on a Dask cluster: each block of rows stays on its worker, with its rows of H."""

from marginparts.rows.dask._lazy import mapped_lazily
from marginparts.rows.dask._rows import ClusterRows, DaskRows, as_dask_rows

__all__ = ["ClusterRows", "DaskRows", "as_dask_rows", "mapped_lazily"]
