"""Every part that a recipe names, by its name."""
