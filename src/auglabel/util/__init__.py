"""Small helpers that are not about labels: checks of arguments, files, devices, calling a model."""
