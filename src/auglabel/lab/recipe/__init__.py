"""What to train: recipes, from YAML and flags to the objects they name."""
