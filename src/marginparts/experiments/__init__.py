"""The experiments of the paper, as units of work that survive a kill."""
