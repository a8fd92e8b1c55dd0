"""Which rows are the same, and rows that are not all in memory: on disk, or on a cluster."""
