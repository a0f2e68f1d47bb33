import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import auglabel
from auglabel.lab.recipe.read import recipe_names

PROBE = """
import json, sys, time
start = time.perf_counter()
import torch
middle = time.perf_counter()
before = {name.partition(".")[0] for name in sys.modules}
from auglabel import AutoLabel
end = time.perf_counter()
after = {name.partition(".")[0] for name in sys.modules}
new = sorted(name for name in after - before if name not in sys.stdlib_module_names)
print(json.dumps({"torch": middle - start, "ours": end - middle, "new": new}))
"""


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_needs_torch_and_numpy_alone_and_adds_at_most_a_tenth():
    probes = [json.loads(python(PROBE)) for _ in range(3)]
    assert all(set(found["new"]) <= {"auglabel", "numpy"} for found in probes)
    assert min(found["ours"] / found["torch"] for found in probes) <= 0.10


@pytest.mark.parametrize(
    "code",
    [
        "import auglabel",
        "import auglabel.cli",
        "import auglabel.cli; auglabel.cli.main(['--version']); auglabel.cli.main(['--help'])",
    ],
)
def test_the_package_and_the_command_line_do_not_wait_for_torch(code):
    assert python(f"{code}\nimport sys; print('torch' in sys.modules)").endswith("False\n")


@pytest.mark.parametrize(
    "code",
    [
        "import auglabel; names = auglabel.__all__; every = [getattr(auglabel, name) for name in names]",
        "import auglabel; names = dir(auglabel); every = [auglabel.pooling.Pool, auglabel.metrics]",
        "from auglabel import *; from auglabel import AutoLabel as a, metrics as m; every = [a, m, CCAT]",
        "import auglabel.measure; from auglabel import measure; every = [measure.__call__]",
        "from auglabel.measure import Batches; import auglabel; every = [auglabel.measure.__call__]",
        "import pickle, auglabel; every = [pickle.loads(pickle.dumps(auglabel.AugMix()))]",
    ],
)
def test_public_names_are_there_however_they_are_asked_for(code):
    assert python(f"{code}\nprint(all(every))") == "True\n"


def test_public_names_are_different_and_others_are_not_there():
    import auglabel

    assert len(set(auglabel.__all__)) == len(auglabel.__all__)
    assert {*auglabel.__all__, "__version__"} <= set(dir(auglabel))
    with pytest.raises(AttributeError, match="module 'auglabel' has no attribute 'AutoLable'"):
        auglabel.AutoLable  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'AutoLable' from 'auglabel'"):
        from auglabel import AutoLable  # noqa: F401


def test_from_a_zip_the_recipes_and_the_embedded_images_are_there(tmp_path):
    package = Path(auglabel.__file__).parent
    with zipfile.ZipFile(tmp_path / "auglabel.zip", "w") as file:
        for path in package.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                file.write(path, Path("auglabel") / path.relative_to(package))
    code = (
        "import auglabel; from auglabel.lab.recipe.read import read_recipe, recipe_names; "
        "from auglabel.data.embedded import embedded; read_recipe('embedded'); "
        "print('.zip' in auglabel.__file__, len(recipe_names()), len(embedded().test))"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "auglabel.zip")}
    told = subprocess.check_output([sys.executable, "-c", code], env=environment, cwd=tmp_path, text=True)
    assert told.split() == ["True", str(len(recipe_names())), "2000"]
