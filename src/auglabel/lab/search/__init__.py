"""A search of options by optuna: values that it asks for instead of those of a grid."""
