"""What runs experiments: everything that touches clock, processes or runs on disk."""
