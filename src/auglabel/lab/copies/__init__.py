"""Writing corrupted copies of a data set."""
