"""Images per second and core from a folder of JPEG files to random crops, and to corrupted test images.

    python benchmarks/input.py [--photographs FOLDER] [--files 2000] [--images 400] [--rounds 5]
                               [--severities 1,3,5] [--corrupted 400] [--only crops|corrupted]

Files of 500 x 375 pixels, quality 90, are cut from the photographs in FOLDER, or from those that
scikit-image and scikit-learn ship, at random places and zooms. Crops are of 224 pixels, in batches of 64, on
one thread in one process, contenders in turns; per_core is by the processor's time, which other jobs of the
machine change least. Corrupted images: decoding each time, in one process, as it was, beside the way of
`auglabel eval`, without and with 2 workers.
"""

import argparse
import importlib.util
import io
import json
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from auglabel.corrupt import SUITES
from auglabel.data.folder import folder
from auglabel.data.picture import random_box, stream_of
from auglabel.lab.evaluate.corrupted import CorruptedImages, Made
from auglabel.lab.evaluate.options import Corruptions
from auglabel.lab.train.feed import Feed

SIZE, BATCH = 224, 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--photographs", type=Path)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--images", type=int, default=400, help="per contender and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--severities", default="1,3,5")
    parser.add_argument("--corrupted", type=int, default=400, help="test images under each corruption")
    parser.add_argument("--only", choices=["crops", "corrupted"])
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        told = write_files(Path(place), photographs(args.photographs), args.files)
        print(json.dumps(told))
        if args.only != "corrupted":
            crops(Path(place), args.images, args.rounds)
        if args.only != "crops":
            corrupted(Path(place), args.corrupted, tuple(int(s) for s in args.severities.split(",")))


def photographs(where: Path | None) -> list[tuple[str, Image.Image]]:
    """Photographs by name: those of a folder, or those that other packages ship."""
    paths = sorted(where.rglob("*")) if where else []
    if where is None:
        for package, inside, names in (
            (
                "skimage",
                "data",
                ("astronaut.png", "chelsea.png", "coffee.png", "motorcycle_left.png", "rocket.jpg"),
            ),
            ("sklearn", "datasets/images", ("china.jpg", "flower.jpg")),
        ):
            found = importlib.util.find_spec(package)
            if found is not None and found.origin is not None:
                paths += [Path(found.origin).parent / inside / name for name in names]
    kept = [path for path in paths if path.suffix.lower() in (".png", ".jpg", ".jpeg") and path.is_file()]
    return [(path.name, Image.open(path).convert("RGB")) for path in kept]


def write_files(place: Path, pictures: list[tuple[str, Image.Image]], count: int) -> dict[str, Any]:
    """Write the files, in two classes; what they are."""
    random, bytes_ = np.random.default_rng(0), 0
    for number in range(count):
        picture = pictures[number % len(pictures)][1]
        width = min(picture.width, picture.height * 4 / 3) * random.uniform(0.7, 1)
        left, top = (
            random.uniform(0, picture.width - width),
            random.uniform(0, picture.height - width * 3 / 4),
        )
        box = (left, top, left + width, top + width * 3 / 4)
        cut = picture.resize((500, 375), Image.Resampling.LANCZOS, box=box)
        content = io.BytesIO()
        cut.save(content, "JPEG", quality=90)
        path = place / "ab"[number % 2] / f"{number:05}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.getvalue())
        bytes_ += len(content.getvalue())
    return {"files": count, "photographs": [name for name, _ in pictures], "mean_bytes": bytes_ // count}


class Files(Dataset[Tensor]):
    """What people write: a file, a crop, a tensor."""

    def __init__(self, place: Path, crop: Callable[[Path, int], Tensor]) -> None:
        self.paths, self.crop = sorted(place.rglob("*.jpg")), crop

    def __getitem__(self, row: int) -> Tensor:
        return self.crop(self.paths[row], row)


def pillow(path: Path, row: int) -> Tensor:
    picture = Image.open(path).convert("RGB")
    cut = picture.crop(random_box(*picture.size, stream_of(0, row)))
    return torch.from_numpy(np.array(cut.resize((SIZE, SIZE), Image.Resampling.BICUBIC))).permute(2, 0, 1)


def opencv(interpolation: str, path: Path, row: int) -> Tensor:
    import cv2

    pixels = cv2.imread(str(path), cv2.IMREAD_COLOR)
    left, top, right, bottom = random_box(pixels.shape[1], pixels.shape[0], stream_of(0, row))
    how = getattr(cv2, f"INTER_{interpolation}")
    cut = cv2.resize(pixels[top:bottom, left:right], (SIZE, SIZE), interpolation=how)
    return torch.from_numpy(cv2.cvtColor(cut, cv2.COLOR_BGR2RGB)).permute(2, 0, 1)


def torchvision_crops() -> dict[str, Callable[[Path, int], Tensor]]:
    """torchvision's usual transforms, on Pillow's pictures and on its own; nothing where it does not run."""
    try:
        from torchvision.io import decode_jpeg
        from torchvision.transforms import v2
    except Exception:
        return {}
    crop = v2.RandomResizedCrop(SIZE, antialias=True)
    on_pictures = v2.Compose([crop, v2.PILToTensor()])
    return {
        "torchvision, Pillow": lambda path, row: on_pictures(Image.open(path).convert("RGB")),
        "torchvision.io": lambda path, row: crop(
            decode_jpeg(torch.from_numpy(np.fromfile(path, np.uint8)), mode="RGB")
        ),
    }


def crops(place: Path, images: int, rounds: int) -> None:
    """Print images per second and core of every contender."""
    rows = torch.arange(images)
    peers = {"Pillow in a DataLoader": pillow, **torchvision_crops()}
    if importlib.util.find_spec("cv2"):
        import cv2

        cv2.setNumThreads(0)
        peers |= {f"opencv {how.lower()}": partial(opencv, how) for how in ("LINEAR", "AREA")}

    def loaded(crop: Callable[[Path, int], Tensor]) -> Iterator[Tensor]:
        return iter(DataLoader(Files(place, crop), BATCH, sampler=rows.tolist()))

    def ours(decode: Any) -> Iterator[Tensor]:
        data = sources[decode]
        return (some for some, _ in Feed(data).batches(rows.split(BATCH), draw=0))

    sources = {
        how: folder(place, size=SIZE, train_crop="random_resized", decode=how).train
        for how in ("fast", "exact")
    }
    contenders: dict[str, Callable[[], Iterator[Tensor]]] = {
        f"ours, decode {how}": partial(ours, how) for how in sources
    }
    contenders |= {name: partial(loaded, crop) for name, crop in peers.items()}
    print(json.dumps({"crops": rates(contenders, images, rounds)}))


def rates(contenders: dict[str, Callable[[], Iterator[Tensor]]], images: int, rounds: int) -> dict[str, Any]:
    """Medians over rounds, contenders in turns, after a round that does not count."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, start in contenders.items():
            busy, clock = time.process_time(), time.perf_counter()
            for batch in start():
                assert batch.shape[1:] == (3, SIZE, SIZE)
            if turn:
                seconds[name].append((time.process_time() - busy, time.perf_counter() - clock))
    return {
        name: {
            "per_core": round(images / statistics.median(cpu for cpu, _ in each)),
            "by_clock": round(images / statistics.median(wall for _, wall in each)),
        }
        for name, each in seconds.items()
    }


def corrupted(place: Path, images: int, severities: tuple[int, ...]) -> None:
    """Print images per second under all corruptions of the standard suite, as it was and as it is."""
    test = folder(place, size=SIZE, resize=256, memory_gb=0, cache=False).train
    rows = list(torch.arange(images).split(-(-images // 4)))
    found: dict[str, dict[str, float]] = {}
    CorruptedImages(Corruptions()).require("frost")  # draws its textures, which are kept
    for name, workers in (("before", 0), ("now, 1 process", 0), ("now, 2 workers", 2)):
        made, feeds = CorruptedImages(Corruptions(severities=severities)), []
        cpu, clock = used(), time.perf_counter()
        for corruption in SUITES["standard"]:
            for severity in severities:
                source = made.source(corruption, severity, test)
                assert isinstance(source, Made)
                feeds = feeds or [Feed(test if name == "before" else source.source, workers, changes=True)]
                for _ in feeds[0].batches(rows, change=source.change):
                    pass
        feeds.clear()  # its workers end, and their time is counted
        count = images * len(SUITES["standard"]) * len(severities)
        wall, busy = time.perf_counter() - clock, used() - cpu
        found[name] = {"by_clock": round(count / wall, 1), "per_core": round(count / busy, 1)}
    print(json.dumps({"corrupted": found}))


def used() -> float:
    """Seconds of the processor that this process and those that it waited for have had."""
    parts = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in parts)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
