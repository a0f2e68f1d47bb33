"""Measuring a network on clean, attacked and corrupted images."""
