"""Processes, memory, progress bars and output streams of this machine."""
