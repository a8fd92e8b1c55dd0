"""The race with few labels: many methods on many collections, a handful of labels a class."""
