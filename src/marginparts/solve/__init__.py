"""The loop, its starts, factorizations and the map of new samples."""
