"""`auglabel corrupt`: corrupted copies of a data set's test images, laid out as CIFAR-C or ImageNet-C."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console

from auglabel import __version__
from auglabel.corrupt import SEVERITIES, corrupt, parameters_for, suite
from auglabel.corrupt.frost import PHOTOGRAPHS, textures
from auglabel.data.corrupted import FORMAT, folder_name, read_about
from auglabel.data.source import DataSet, Source
from auglabel.errors import UserError
from auglabel.lab.copies.layouts import AsArrays, AsFolders, Writer, file_names, writing
from auglabel.lab.evaluate.options import require_severities
from auglabel.lab.parts.catalogue import DATASETS, data_set_for
from auglabel.lab.process.bar import bar_of
from auglabel.lab.process.workers import cores, each
from auglabel.lab.recipe.read import read_recipe, recipe_names
from auglabel.lab.recipe.recipe import flat
from auglabel.lab.runs.files import locked
from auglabel.lab.runs.run import Run
from auglabel.util.checks import entry, require_whole
from auglabel.util.checksummed_json import write_checksummed

MAY_DIFFER = ("types", "data.name")  # of the facts, when a call goes on with the copies of another


@dataclass(frozen=True)
class CopyOptions:
    """Which corruptions, and in which form"""

    suite: str = "all"
    """standard, paper, extra, all, or corruptions with commas between"""
    severities: tuple[int, ...] = SEVERITIES
    """only the layout of folders may have fewer than five"""
    parameters: Literal["cifar", "imagenet"] | None = None
    """whose figures; cifar for images with a side below 64 pixels, else imagenet, if not given"""
    seed: int = 0
    """of everything drawn; an image's copy depends on it, the type, the severity and the image's number"""
    frost: str | None = None
    """directory of the published frost photographs; textures drawn here if not given"""
    layout: Literal["npy", "folders"] | None = None
    """npy, as CIFAR-C, or folders of JPEG pictures, as ImageNet-C; by the parameters if not given"""
    images: int | None = None
    """how many, the first ones of the test images; all of them if not given"""
    workers: int | None = None
    """processes; as many as there are cores if not given"""

    def __post_init__(self) -> None:
        suite(self.suite)
        require_whole("seed", self.seed, 0)
        require_severities(self.severities)
        for name in ("images", "workers"):
            if getattr(self, name) is not None:
                require_whole(name, getattr(self, name), 1)


def corrupt_data(name: str, words: Sequence[str], out: Path, options: CopyOptions) -> None:
    """Write copies of what `name` says: a data set, the data of a recipe or run, or a path of pictures."""
    choice = read_recipe(*_recipe(name, words)).data
    data = data_set_for(choice.name, **choice.options)
    write_copies(data, out, options, Console(highlight=False, emoji=False))


def _recipe(name: str, words: Sequence[str]) -> tuple[str | None, list[str]]:
    path = Path(name)
    if name in DATASETS:
        return None, [f"--data={name}", *words]
    if name in recipe_names() or path.suffix in (".yaml", ".yml") or Run(path).exists():
        return name, list(words)
    if path.suffix == ".npz":
        return None, ["--data=npz", f"--data.path={name}", *words]
    if path.exists():
        return None, ["--data=folder", f"--data.root={name}", *words]
    entry("data set, recipe or path", dict.fromkeys([*DATASETS, *recipe_names()]), name)
    raise AssertionError(f"{name} is known, but was not met above")


def write_copies(data: DataSet, out: Path, options: CopyOptions, console: Console) -> None:
    """Copies of the test images, or of all where no part is for testing; those that are there stay."""
    start, names = time.perf_counter(), suite(options.suite)
    source = data.train if data.test is None else data.test
    count = min(options.images or len(source), len(source))
    facts = _facts(data, source, count, names, options)
    move = partial(corrupt, seed=options.seed, parameters=facts["parameters"], frost=options.frost)
    for name in names:  # says now, not after hours, what does not fit
        if name != "frost" or options.frost:  # drawing its textures takes seconds
            move(source.fetch(torch.tensor([0])), name, 1, index=[0])
    _agreed(out, facts)  # before anything is written
    with _at_work(out):
        about = _About(out / "about.json", _agreed(out, facts))
        kind = AsArrays if facts["layout"] == "npy" else AsFolders
        writer = kind(out, source, count, data.classes, move)
        made = _write_all(writer, about, names, facts["severities"], options.workers or cores(), console)
    types, severities = len(names), len(facts["severities"])
    frost = f" Frost: {facts['frost']}." if "frost" in names else ""
    console.print(
        f"{types * severities * count:,} pictures in {out}, {made:,} of them made now, in "
        f"{time.perf_counter() - start:,.0f} s: {count:,} images of {data.name}, types x severities: "
        f"{types} x {severities}.{frost}",
        markup=False,
        soft_wrap=True,
    )


def _facts(
    data: DataSet, source: Source, count: int, names: Sequence[str], options: CopyOptions
) -> dict[str, Any]:
    """All that decides what the copies are, for about.json."""
    parameters = options.parameters or parameters_for(*source.shape[1:])
    layout = options.layout or ("npy" if parameters == "cifar" else "folders")
    if layout == "npy" and set(options.severities) != set(SEVERITIES):
        raise UserError(
            "--severities: a file of the npy layout holds all five; --layout folders may have fewer."
        )
    if layout == "folders" and len({folder_name(name) for name in data.classes}) < len(data.classes):
        raise UserError("two classes would have one folder, since only a / tells them apart: --layout npy.")
    return {
        "format": FORMAT,
        "auglabel": __version__,
        "data": {"name": data.name, "checksum": data.checksum},
        "part": "all" if data.test is None else "test",
        "images": count,
        "shape": list(source.shape),
        "seed": options.seed,
        "parameters": parameters,
        "frost": _frost(options.frost),
        "layout": layout,
        "named": "files" if layout == "folders" and file_names(source, count) else "rows",
        "severities": sorted(options.severities),
        "types": list(names),
        "classes": list(data.classes),
    }


class _About:
    """about.json, with the MD5 of every file that is complete."""

    def __init__(self, file: Path, facts: dict[str, Any]) -> None:
        self.file, self.facts = file, {"md5": {}, **facts}
        self._write()

    def sound(self, writer: Writer, name: str) -> bool:
        """Whether a complete file is as it was written; one of an older version is taken as it is."""
        known = self.facts["md5"].get(name)
        return known is None or known == writer.md5(name)

    def complete(self, writer: Writer, name: str) -> None:
        if (found := writer.md5(name)) is not None:
            self.facts["md5"][name] = found
            self._write()

    def _write(self) -> None:
        with writing(self.file):
            write_checksummed(self.file, self.facts)


def _frost(where: str | None) -> str:
    """Which textures: drawn ones, or photographs, told apart by a checksum."""
    if where is None:
        return "procedural"
    textures(Path(where), 1.0)  # says what is missing or broken
    digest = hashlib.sha256()
    for name in PHOTOGRAPHS:
        digest.update((Path(where) / name).read_bytes())
    return f"photographs {digest.hexdigest()[:8]}"


def _agreed(out: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """The facts for about.json: `out` is a new or empty folder, or was begun with the same ones."""
    known = read_about(out)
    if known is None:
        if out.exists() and (not out.is_dir() or any(not _ours(path) for path in out.iterdir())):
            raise UserError(f"{out} is no empty folder, nor one of copies made here: name another.")
        return facts
    ours, asked = flat(known), flat(facts)
    keys = [key for key in asked if asked[key] != ours.get(key) and key not in MAY_DIFFER]
    if keys:
        told = "; ".join(f"{key} {_short(asked[key])}, not {_short(ours.get(key))}" for key in keys)
        raise UserError(f"{out} was begun otherwise and cannot go on with {told}: name another folder.")
    return {**known, "types": list(dict.fromkeys([*known["types"], *facts["types"]]))}


def _ours(path: Path) -> bool:
    """Something that a process which was killed while it began may have left."""
    return path.name in (".lock", ".parts") or path.suffix == ".partial"


def _short(value: object) -> str:
    return str(value) if len(str(value)) <= 20 else f"{str(value)[:20]}..."


@contextmanager
def _at_work(out: Path) -> Iterator[None]:
    """A folder .parts for what is under way, while this process holds `out`; what a dead one left torn goes.

    The file that is locked stays: another process may have opened it already.
    """
    parts = out / ".parts"
    with writing(out, "name a folder that can be"):
        out.mkdir(parents=True, exist_ok=True)
        (out / ".lock").touch()
    with locked(out, f"another process is writing copies into {out}."):
        _sweep(out)
        with writing(parts):
            parts.mkdir(exist_ok=True)
        try:
            yield
        finally:
            _sweep(out)
        shutil.rmtree(parts, ignore_errors=True)


def _sweep(out: Path) -> None:
    for torn in (*out.glob(".*.partial"), *out.glob(".parts/.*.partial")):
        torn.unlink(missing_ok=True)


def _write_all(
    writer: Writer,
    about: _About,
    names: Sequence[str],
    severities: Sequence[int],
    workers: int,
    console: Console,
) -> int:
    """Every block of the types that are not done, and progress; how many pictures were made."""
    every = {name: writer.blocks(name, severities) for name in names}
    done = [name for name, some in every.items() if writer.done(some) and about.sound(writer, name)]
    for name in ("labels", *(name for name in done if name not in about.facts["md5"])):
        about.complete(writer, name)
    blocks = {name: some for name, some in every.items() if name not in done}
    work = [block for some in blocks.values() for block in some]
    if work:
        writer.share()
    left, made, start = Counter(block.name for block in work), 0, time.perf_counter()
    with closing(each(writer.write, work, workers)) as results, bar_of("pictures", console) as bar:
        task = bar.add_task("", total=sum(block.last - block.first for block in work))
        for block, count in results:
            made, left[block.name] = made + count, left[block.name] - 1
            speed = made / (time.perf_counter() - start)
            words = f"{block.name} {block.severity}, {speed:,.0f} pictures/s"
            bar.update(task, advance=block.last - block.first, description=words)
            if not left[block.name]:
                writer.finish(blocks[block.name])
                about.complete(writer, block.name)
    return made
