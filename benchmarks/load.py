"""Seconds to load a CIFAR data set the first time, decoding every image, and again from the cache.

    python benchmarks/load.py cifar100 FOLDER_OR_TAR...

The cache is a temporary one. Each loading is a process of its own; starting it is not counted.
"""

import json
import os
import subprocess
import sys
import tempfile

LOAD = """
import sys, time
from auglabel.lab.parts.catalogue import DATASETS
start = time.perf_counter()
data = DATASETS[sys.argv[1]](sys.argv[2])
print(time.perf_counter() - start, len(data.train) + (len(data.test) if data.test else 0))
"""


def main(name: str, *places: str) -> None:
    for place in places:
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "AUGLABEL_CACHE": cache}
            command = [sys.executable, "-c", LOAD, name, place]
            found = [
                subprocess.run(command, env=environment, capture_output=True, check=True).stdout.split()
                for _ in range(4)
            ]
        first, *again = (round(float(seconds), 2) for seconds, _ in found)
        print(json.dumps({"data": name, "images": int(found[0][1]), "first": first, "cached": again}))


if __name__ == "__main__":
    main(*sys.argv[1:])
