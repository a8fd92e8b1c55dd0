"""Files that are never half written, and arrays with text in one file."""
