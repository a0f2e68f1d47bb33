"""The published figures of every corruption, severity 1 to 5: one table for CIFAR, one for ImageNet."""

from __future__ import annotations

from typing import Any

Figures = tuple[Any, Any, Any, Any, Any]  # one entry per severity

WIDE = 244 / 224  # the published code takes pictures of 224 pixels for 244 wide here

CIFAR: dict[str, Figures] = {
    "gaussian_noise": (0.04, 0.06, 0.08, 0.09, 0.10),  # standard deviation
    "shot_noise": (500, 250, 100, 75, 50),  # photons of a white pixel
    "impulse_noise": (0.01, 0.02, 0.03, 0.05, 0.07),  # share of values
    "defocus_blur": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),  # radius, softness
    "glass_blur": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),  # sigma, reach, times
    "motion_blur": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),  # radius, sigma
    # How many zooms, in which steps from 1. The published code counts 1:.01:1.06 and 1:.01:1.11 in floating
    # point, where 1.06 and 1.11 themselves still come in: 7 and 12 zooms, not 6 and 11.
    "zoom_blur": ((7, 0.01), (12, 0.01), (16, 0.01), (21, 0.01), (26, 0.01)),
    "snow": (  # mean, deviation, zoom, least, radius, sigma, share of the picture
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ),
    "frost": ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),  # of the picture, of the frost
    "fog": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),  # amount, decay
    "brightness": (0.05, 0.1, 0.15, 0.2, 0.3),  # added to HSV's V
    "contrast": (0.75, 0.5, 0.4, 0.3, 0.15),  # what is left
    "elastic_transform": (  # displacement, its sigma, affine shift: parts of a picture's side
        (0, 0, 0.08),
        (0.05, 0.2, 0.07),
        (0.08, 0.06, 0.06),
        (0.1, 0.04, 0.05),
        (0.1, 0.03, 0.03),
    ),
    "pixelate": (0.95, 0.9, 0.85, 0.75, 0.65),  # part of the side
    "jpeg_compression": (80, 65, 58, 50, 40),  # quality
    "speckle_noise": (0.06, 0.1, 0.12, 0.16, 0.2),  # standard deviation, times the value
    "gaussian_blur": (0.4, 0.6, 0.7, 0.8, 1),  # sigma
    "spatter": (  # mean, deviation, sigma, least, strength, mud
        (0.62, 0.1, 0.7, 0.7, 0.5, 0),
        (0.65, 0.1, 0.8, 0.7, 0.5, 0),
        (0.65, 0.3, 1, 0.69, 0.5, 0),
        (0.65, 0.1, 0.7, 0.69, 0.6, 1),
        (0.65, 0.1, 0.5, 0.68, 0.6, 1),
    ),
    "saturate": ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),  # HSV's S times, plus
}

IMAGENET: dict[str, Figures] = {
    "gaussian_noise": (0.08, 0.12, 0.18, 0.26, 0.38),
    "shot_noise": (60, 25, 12, 5, 3),
    "impulse_noise": (0.03, 0.06, 0.09, 0.17, 0.27),
    "defocus_blur": ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    "glass_blur": ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    "motion_blur": ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    "zoom_blur": ((12, 0.01), (16, 0.01), (11, 0.02), (13, 0.02), (11, 0.03)),
    "snow": (
        (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
        (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    ),
    "frost": ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)),
    "fog": ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
    "brightness": (0.1, 0.2, 0.3, 0.4, 0.5),
    "contrast": (0.4, 0.3, 0.2, 0.1, 0.05),
    "elastic_transform": (
        (2 * WIDE, 0.7 * WIDE, 0.1 * WIDE),
        (2 * WIDE, 0.08 * WIDE, 0.2 * WIDE),
        (0.05 * WIDE, 0.01 * WIDE, 0.02 * WIDE),
        (0.07 * WIDE, 0.01 * WIDE, 0.02 * WIDE),
        (0.12 * WIDE, 0.01 * WIDE, 0.02 * WIDE),
    ),
    "pixelate": (0.6, 0.5, 0.4, 0.3, 0.25),
    "jpeg_compression": (25, 18, 15, 10, 7),
    "speckle_noise": (0.15, 0.2, 0.35, 0.45, 0.6),
    "gaussian_blur": (1, 2, 3, 4, 6),
    "spatter": (
        (0.65, 0.3, 4, 0.69, 0.6, 0),
        (0.65, 0.3, 3, 0.68, 0.6, 0),
        (0.65, 0.3, 2, 0.68, 0.5, 0),
        (0.65, 0.3, 1, 0.65, 1.5, 1),
        (0.67, 0.4, 1, 0.65, 1.5, 1),
    ),
    "saturate": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
}

SEVERITIES = (1, 2, 3, 4, 5)
PARAMETERS = {"cifar": CIFAR, "imagenet": IMAGENET}
EXTRA = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
SUITES: dict[str, tuple[str, ...]] = {
    "standard": tuple(name for name in CIFAR if name not in EXTRA),
    "paper": tuple(name for name in CIFAR if name not in ("motion_blur", "snow")),
    "extra": EXTRA,
    "all": tuple(CIFAR),
}
