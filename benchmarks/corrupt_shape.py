"""Does a network find our CIFAR corruptions as hard, one against another, as others found the official files?

Takes the JSON of `auglabel eval RUN --on clean,corrupted --suite standard` for a network trained on CIFAR-10
and prints the rank correlations of its 75 accuracies with those of two published networks.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

# Accuracy, %, on the official CIFAR-10-C at severity 1 to 5: RobustBench's unaggregated results for
# WRN-28-10 Standard (clean 94.78) and AugMix WRN-40-2 (clean 95.08).
PUBLISHED = {
    "gaussian_noise": ([77.8, 57.9, 39.2, 32.6, 27.7], [91.3, 86.6, 79.5, 75.9, 71.2]),
    "shot_noise": ([85.0, 75.7, 53.5, 45.4, 34.3], [93.5, 91.2, 85.4, 82.9, 77.0]),
    "impulse_noise": ([82.9, 69.0, 57.4, 40.1, 27.1], [93.8, 92.0, 90.3, 83.6, 73.8]),
    "defocus_blur": ([94.6, 93.4, 89.0, 77.4, 53.1], [95.1, 94.9, 94.6, 93.4, 90.5]),
    "glass_blur": ([53.4, 55.8, 57.0, 43.2, 45.7], [85.9, 85.8, 87.1, 76.5, 79.4]),
    "motion_blur": ([90.3, 83.9, 74.4, 74.8, 65.2], [94.5, 93.5, 91.4, 91.6, 89.4]),
    "zoom_blur": ([87.7, 84.5, 77.5, 70.3, 58.0], [94.1, 94.2, 93.5, 92.6, 90.7]),
    "snow": ([89.9, 80.4, 83.7, 80.5, 74.9], [93.6, 90.8, 90.1, 87.8, 85.9]),
    "frost": ([89.5, 83.5, 72.6, 70.9, 58.7], [93.5, 91.5, 88.6, 88.5, 84.7]),
    "fog": ([94.5, 93.6, 92.3, 89.6, 74.0], [95.1, 94.7, 93.7, 91.7, 82.5]),
    "brightness": ([94.8, 94.4, 93.8, 92.8, 90.7], [95.0, 94.7, 94.5, 93.8, 92.4]),
    "contrast": ([94.3, 92.2, 89.7, 83.6, 53.3], [95.0, 93.9, 92.8, 90.8, 79.1]),
    "elastic_transform": ([90.5, 90.2, 85.9, 78.9, 73.4], [93.1, 93.5, 92.6, 89.4, 85.3]),
    "pixelate": ([92.0, 86.0, 80.0, 60.4, 41.5], [94.2, 92.2, 90.4, 80.6, 58.7]),
    "jpeg_compression": ([86.4, 79.7, 78.0, 74.2, 69.7], [91.3, 89.1, 87.9, 86.9, 85.3]),
}
NETWORKS = ("WRN-28-10 Standard", "WRN-40-2 AugMix")
ODD = {  # severities whose accuracy does not fall from the one to the next on the official files
    "glass_blur 5 - 4": ("glass_blur", 5, 4),
    "snow 3 - 2": ("snow", 3, 2),
    "motion_blur 4 - 3": ("motion_blur", 4, 3),
}


def accuracies(evaluation: dict[str, Any]) -> tuple[float, np.ndarray]:
    """In percent: clean, and (15, 5) under the corruptions."""
    found = {(row["on"], row["severity"]): row["figures"]["accuracy"]["value"] for row in evaluation["rows"]}
    wanted = [[(name, severity) for severity in range(1, 6)] for name in PUBLISHED]
    if missing := [cell for row in wanted for cell in row if cell not in found]:
        raise ValueError(
            f"The evaluation lacks {len(missing)} of 75 cells, first {missing[0]}: "
            "it should be of --on clean,corrupted --suite standard."
        )
    return 100 * found["clean", None], 100 * np.array([[found[cell] for cell in row] for row in wanted])


def correlation(left: np.ndarray, right: np.ndarray) -> float:
    return round(float(spearmanr(left.ravel(), right.ravel()).statistic), 3)


def ranks(values: np.ndarray) -> np.ndarray:
    return values.ravel().argsort().argsort().reshape(values.shape)


def rise(row: np.ndarray, one: int, other: int) -> float:
    """Points of accuracy that severity `one` has above severity `other`."""
    return round(float(row[one - 1] - row[other - 1]), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("evaluation", type=Path, help="JSON file that auglabel eval wrote")
    clean, ours = accuracies(json.loads(parser.parse_args().evaluation.read_text()))
    names, published = list(PUBLISHED), np.array(list(PUBLISHED.values())).transpose(1, 0, 2)
    apart = ranks(ours) - ranks(published[0])  # above 0: easier here than there
    result = {
        "clean": round(clean, 2),
        "mean": round(float(ours.mean()), 2),
        "spearman": {name: correlation(ours, each) for name, each in zip(NETWORKS, published, strict=True)},
        "spearman_of_the_published": correlation(*published),
        "spearman_of_types": {
            name: correlation(ours.mean(1), each.mean(1))
            for name, each in zip(NETWORKS, published, strict=True)
        },
        "mean_rank_above_standard": dict(zip(names, apart.mean(axis=1).round(1).tolist(), strict=True)),
        "odd": {
            what: {
                network: round(
                    float(table[names.index(name), one - 1] - table[names.index(name), other - 1]), 1
                )
                for network, table in zip(("ours", *NETWORKS), (ours, *published), strict=True)
            }
            for what, (name, one, other) in ODD.items()
        },
        "accuracy": dict(zip(names, ours.round(1).tolist(), strict=True)),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    sys.exit(main())
