import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import auglabel
from auglabel.lab.draft import recipe_names

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
    assert all(hasattr(auglabel, name) for name in auglabel.__all__)
    assert len(set(auglabel.__all__)) == len(auglabel.__all__)


def test_from_a_zip_the_recipes_and_the_embedded_images_are_there(tmp_path):
    package = Path(auglabel.__file__).parent
    with zipfile.ZipFile(tmp_path / "auglabel.zip", "w") as file:
        for path in package.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                file.write(path, Path("auglabel") / path.relative_to(package))
    code = (
        "import auglabel; from auglabel.lab.draft import read_recipe, recipe_names; "
        "from auglabel.data.embedded import embedded; read_recipe('embedded'); "
        "print('.zip' in auglabel.__file__, len(recipe_names()), len(embedded().test))"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "auglabel.zip")}
    told = subprocess.check_output([sys.executable, "-c", code], env=environment, cwd=tmp_path, text=True)
    assert told.split() == ["True", str(len(recipe_names())), "2000"]
