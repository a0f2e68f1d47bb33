"""The training loop, and a run from start to end."""
