"""Data on a Dask cluster: each block of rows stays on its worker, with its rows of H."""

from marginparts.rows.dask._lazy import as_dask_rows, mapped_lazily

__all__ = ["as_dask_rows", "mapped_lazily"]
