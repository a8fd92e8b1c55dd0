"""The losses of the paper, each with an update for every factor."""
