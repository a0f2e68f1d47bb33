"""The 19 corruptions of CIFAR-C and ImageNet-C, at any size, from a seed."""

from auglabel.corrupt.corruption import corrupt, parameters_for, require_large, suite
from auglabel.corrupt.figures import SEVERITIES, SUITES

__all__ = ["SEVERITIES", "SUITES", "corrupt", "parameters_for", "require_large", "suite"]
