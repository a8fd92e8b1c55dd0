"""The commands, one file for each family. No mathematics here: they ask, run and show."""
