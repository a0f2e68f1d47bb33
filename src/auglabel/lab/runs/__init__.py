"""A run's directory on disk: its files, and reading and writing them."""
