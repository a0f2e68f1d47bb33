"""Attacks: images moved a little, so that the model errs, and what is left of its accuracy then."""

from auglabel.attack.foolbox import foolbox_attack
from auglabel.attack.pgd import pgd
from auglabel.attack.robust import Sanity, adversarial_accuracy, sanity

__all__ = ["Sanity", "adversarial_accuracy", "foolbox_attack", "pgd", "sanity"]
