"""Rows that are not all in memory: on disk, or on a cluster."""
