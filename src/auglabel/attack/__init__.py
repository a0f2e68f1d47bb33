"""Attacks: images moved a little, so that the model errs, and what is left of its accuracy then."""
