"""Data on disk: a matrix in files is read a block of rows at a time, under a memory limit.

`open_rows` finds out what the files hold, `RowBlocks` is what a fit gets in the place of X, and
`StoredRows` is what the fit makes of it: checked blocks in a scratch folder, by rows and columns.
"""

from marginparts.rows.disk._rows import RowBlocks, mapped_by_blocks, open_rows
from marginparts.rows.disk._stored import StoredRows

__all__ = ["RowBlocks", "StoredRows", "mapped_by_blocks", "open_rows"]
