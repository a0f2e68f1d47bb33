"""Saved predictions of any framework: read, measured and shown."""
