"""From nothing to a result as a newcomer gets there: install the wheel away from the checkout, and use it.

python scripts/newcomer.py            # downloads what auglabel needs, torch too
python scripts/newcomer.py --borrow   # the packages of the Python that runs this stand in for downloads

Builds the sdist, and the wheel out of it, and looks at what they hold; installs from the checkout and from a
Git address; then types COMMANDS in a folder with nothing but pictures in it. Prints the time of each.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "auglabel"
BUILDER = "hatchling>=1.27"
COMMANDS = (  # WHEEL is a file's name
    "python3 -m venv env",
    "env/bin/pip install WHEEL[train,corrupt,report]",
    "env/bin/auglabel compare folder --data.root pictures --epochs 8 --out compare",
)
RESULTS = ("compare/compare.html",)
NEEDED = {
    *("py.typed", "data/fashion.npz", "data/LICENSE.fashion-mnist"),
    *("recipes/folder.yaml", "recipes/rows.yaml", "lab/study/published.yaml"),
    *("lab/report/page.html", "lab/report/page.css", "lab/report/page.js"),
}
KINDS = {".py", ".yaml", ".html", ".css", ".js", ".svg"}  # of other files in the package
IN_SDIST = {
    *("src", "tests", "examples", "benchmarks", "docs", "scripts"),
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "LICENSE"),
    *("pyproject.toml", "PKG-INFO", ".gitignore", "Makefile", "constraints.txt"),
}
PICTURES = """
from pathlib import Path
from PIL import Image
from auglabel.data.embedded import embedded
data = embedded()
for name, wanted in enumerate(data.classes[:4]):
    folder = Path("pictures", wanted.replace("/", "-"))
    folder.mkdir(parents=True)
    rows = (data.train.labels == name).nonzero().squeeze(1)[:40]
    for row, image in zip(rows.tolist(), data.train.fetch(rows)):
        Image.fromarray(image[0].numpy()).save(folder / f"{row}.png")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--borrow", action="store_true", help="use the packages of the Python that runs this")
    borrow = parser.parse_args().borrow
    with tempfile.TemporaryDirectory(prefix="newcomer-") as name:
        where = Path(name)
        wheel = build(where)
        other_ways(where)
        seconds = newcomer(where / "home", wheel, borrow)
    how = "with packages that were there" if borrow else "with all downloads"
    print(f"{len(COMMANDS)} commands to a result: {seconds:.0f} s, {how}.")


def build(where: Path) -> Path:
    """The wheel, built out of the sdist as installers do it; both hold what they should."""
    call(f"{sys.executable} -m venv build", where)
    call(f"build/bin/pip install -q {shlex.quote(BUILDER)}", where)
    call(f"{where}/build/bin/python -m hatchling build -t sdist -d {where}/dist", ROOT)
    (sdist,) = (where / "dist").glob("*.tar.gz")
    call(f"build/bin/pip wheel -q --no-deps --no-build-isolation -w dist {sdist}", where)
    (wheel,) = (where / "dist").glob("*.whl")
    with tarfile.open(sdist) as file:
        require("sdist", wrong_in_sdist(file.getnames()))
    with zipfile.ZipFile(wheel) as archive:
        require("wheel", wrong_in_wheel(archive.namelist()))
    print(f"sdist {sdist.stat().st_size:,} bytes, wheel {wheel.stat().st_size:,} bytes: complete, no more")
    return wheel


def wrong_in_sdist(names: list[str]) -> list[str]:
    """What an sdist lacks of the checkout, or has without need."""
    inside = {name.partition("/")[2] for name in names} - {""}
    tops = {name.partition("/")[0] for name in inside}
    lacks = [f"{name} is missing" for name in sorted(IN_SDIST - tops)]
    lacks += [
        f"src/auglabel/{name} is missing" for name in sorted(package() - within(inside, "src/auglabel/"))
    ]
    return lacks + [f"{name} does not belong there" for name in sorted(tops - IN_SDIST)]


def wrong_in_wheel(names: list[str]) -> list[str]:
    """What a wheel lacks of the package, or has beside it."""
    ours = within(names, "auglabel/")
    beside = [name for name in names if not name.startswith("auglabel/") and ".dist-info/" not in name]
    strange = {name for name in ours if name not in package() or Path(name).suffix not in KINDS} - NEEDED
    lacks = [f"auglabel/{name} is missing" for name in sorted((package() | NEEDED) - ours)]
    extra = [*beside, *(f"auglabel/{name}" for name in sorted(strange))]
    return lacks + [f"{name} does not belong there" for name in extra]


def package() -> set[str]:
    """The files of the package in the checkout."""
    files = (path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(SOURCE).as_posix() for path in files}


def within(names: list[str] | set[str], folder: str) -> set[str]:
    return {name.removeprefix(folder) for name in names if name.startswith(folder)}


def require(what: str, wrong: list[str]) -> None:
    if wrong:
        sys.exit(f"newcomer: the {what} is wrong: {'; '.join(wrong)}.")


def other_ways(where: Path) -> None:
    """Install from the checkout and from a Git address; what each installs says its version."""
    ways = {"checkout": str(ROOT), "git": f"git+file://{ROOT}"}
    if subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, check=False).returncode:
        print("this is no Git checkout: installing from a Git address is not tried")
        del ways["git"]
    for name, source in ways.items():
        install = "build/bin/pip install -q --no-deps --no-build-isolation"
        call(f"{install} --target {name} {shlex.quote(source)}", where)
        call("../build/bin/python -m auglabel.cli --version", where / name)


def newcomer(home: Path, wheel: Path, borrow: bool) -> float:
    """Type the commands in an empty folder, in which pictures appear after the installation; the seconds."""
    home.mkdir()
    seconds = 0.0
    for command in COMMANDS:
        command = command.replace("python3", sys.executable, 1).replace("WHEEL", str(wheel))
        if borrow and " install " in command:
            seconds += stand_in(home, wheel)
            command = command.replace(" install ", " install -q --no-index ")  # what is not there is an error
        seconds += call(command, home)
        if " install " in command:
            call("env/bin/auglabel --version", home)
            found = "import auglabel; print(auglabel.__file__)"
            require("installed package", [] if str(home) in told(found, home) else ["it is not in env/"])
            told(PICTURES, home)
    require("result", [f"{name} is missing" for name in RESULTS if not (home / name).is_file()])
    return seconds


def stand_in(home: Path, wheel: Path) -> float:
    """Let the empty environment see our packages, but not the auglabel among them: it gets its own."""
    import torch

    call("env/bin/pip uninstall -q -y setuptools", home)  # which may be older than what ours need
    (packages,) = (home / "env" / "lib").glob("python*/site-packages")
    (packages / "borrowed.pth").write_text(f"{Path(torch.__file__).parents[1]}\n", encoding="utf-8")
    return call(f"env/bin/pip install -q --no-index --no-deps --force-reinstall {wheel}", home)


def told(code: str, home: Path) -> str:
    done = subprocess.run(
        ["env/bin/python", "-c", code], cwd=home, env=surroundings(home), check=True, stdout=subprocess.PIPE
    )
    return done.stdout.decode()


def call(command: str, folder: Path) -> float:
    """Run a command, its words printed and its output shown; returns the seconds it took."""
    print(f"$ {command}", flush=True)
    start = time.perf_counter()
    done = subprocess.run(shlex.split(command), cwd=folder, env=surroundings(folder), check=False)
    if done.returncode:
        sys.exit(f"newcomer: this ended with {done.returncode}: {command}")
    seconds = time.perf_counter() - start
    print(f"  {seconds:.1f} s", flush=True)
    return seconds


def surroundings(home: Path) -> dict[str, str]:
    """Our environment variables, without those that would let Python see the checkout."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return kept | {"PYTHONNOUSERSITE": "1", "AUGLABEL_CACHE": str(home / ".cache")}


if __name__ == "__main__":
    main()
