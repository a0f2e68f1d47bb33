import json
import subprocess
import sys

PROBE = """
import json, sys, time
start = time.perf_counter()
import torch
middle = time.perf_counter()
before = {name.partition(".")[0] for name in sys.modules}
import auglabel
end = time.perf_counter()
after = {name.partition(".")[0] for name in sys.modules}
new = sorted(name for name in after - before if name not in sys.stdlib_module_names)
print(json.dumps({"torch": middle - start, "ours": end - middle, "new": new}))
"""


def probe():
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_importing_needs_torch_and_numpy_alone_and_adds_at_most_a_tenth():
    probes = [probe() for _ in range(3)]
    assert all(set(found["new"]) <= {"auglabel", "numpy"} for found in probes)
    assert min(found["ours"] / found["torch"] for found in probes) <= 0.10


def test_public_names_are_there():
    import auglabel

    assert all(hasattr(auglabel, name) for name in auglabel.__all__)
    assert len(set(auglabel.__all__)) == len(auglabel.__all__)
