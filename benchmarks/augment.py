"""Images per second of RandAug, AugMix and mixup, beside the libraries a user would pick instead.

All contenders of a setting take turns in one run; a figure is the median over the rounds. We and
kornia work on a batch with as many threads as the setting says; torchvision and timm work image by
image, so they get as many processes, each with its share of the batch at hand and nothing to send.
torchvision's mixup works on a batch, too.

Prints one JSON line per setting. Needs the packages of benchmarks/requirements.txt in an environment of
its own: see benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import multiprocessing
import pstats
import statistics
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import torch
from PIL import Image
from torch import Tensor

from auglabel import AugMix, Mixup, MixupLabels, RandAug

SETTINGS = [(32, 128), (32, 1024), (224, 32)]  # side, batch
CLASSES = 100


def pictures(n: int, side: int) -> Tensor:
    """Smooth pictures with noise, (n, 3, side, side) uint8: no operation has an easy time of them."""
    generator = torch.Generator().manual_seed(0)
    coarse = torch.rand(n, 3, 4, 4, generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, side, mode="bilinear", align_corners=False)
    noisy = smooth + 0.05 * torch.randn(smooth.shape, generator=generator)
    return (255 * noisy.clamp(0, 1)).round().to(torch.uint8)


def settle() -> None:
    """Free one large tensor: a training process has done so before, and malloc then keeps memory at hand."""
    torch.empty(30 * 2**20, dtype=torch.uint8).fill_(1)


def import_torchvision() -> None:
    """torchvision's ordinary build asks for two operators that a CPU build of torch does not have."""
    global library  # a library's operators go with it
    if "+cpu" in torch.__version__:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision.transforms.v2  # noqa: F401


# Peers that take one image: each factory gives a function of a list of images.


def torchvision_randaug() -> tuple[Callable[[Tensor], object], Callable[[Tensor], object]]:
    from torchvision.transforms import v2

    return lambda image: image, v2.RandAugment(num_ops=1, interpolation=v2.InterpolationMode.BILINEAR)


def torchvision_augmix() -> tuple[Callable[[Tensor], object], Callable[[Tensor], object]]:
    from torchvision.transforms import v2

    return lambda image: image, v2.AugMix(
        severity=3, mixture_width=1, all_ops=False, interpolation=v2.InterpolationMode.BILINEAR
    )


def timm_randaug() -> tuple[Callable[[Tensor], object], Callable[[Tensor], object]]:
    from timm.data.auto_augment import rand_augment_transform
    from torchvision.transforms.v2.functional import to_pil_image

    bilinear = {"interpolation": Image.Resampling.BILINEAR}
    return to_pil_image, rand_augment_transform("rand-m9-mstd0.5-n1-p1", bilinear)


def timm_augmix() -> tuple[Callable[[Tensor], object], Callable[[Tensor], object]]:
    from timm.data.auto_augment import augment_and_mix_transform
    from torchvision.transforms.v2.functional import to_pil_image

    bilinear = {"interpolation": Image.Resampling.BILINEAR}
    return to_pil_image, augment_and_mix_transform("augmix-m3-w1", bilinear)


PER_IMAGE = {
    "randaug": {"torchvision": torchvision_randaug, "timm": timm_randaug},
    "augmix": {"torchvision": torchvision_augmix, "timm": timm_augmix},
    "mixup": {},
}


def work(orders: Connection, augmentation: str, peer: str, side: int, share: int) -> None:
    """A peer's process: on each order, transform its share of the batch once."""
    torch.set_num_threads(1)
    settle()
    import_torchvision()
    prepare, transform = PER_IMAGE[augmentation][peer]()
    images = [prepare(image) for image in pictures(share, side)]
    orders.send("ready")
    while orders.recv():
        for image in images:
            transform(image)
        orders.send("done")


class Workers:
    """As many processes as we get threads, together a peer."""

    def __init__(self, augmentation: str, peer: str, side: int, batch: int, count: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipes, self.processes = [], []
        for _ in range(count):
            ours, theirs = context.Pipe()
            arguments = (theirs, augmentation, peer, side, batch // count)
            self.processes.append(context.Process(target=work, args=arguments, daemon=True))
            self.processes[-1].start()
            self.pipes.append(ours)
        for pipe in self.pipes:
            pipe.recv()

    def __call__(self) -> None:
        for pipe in self.pipes:
            pipe.send(True)
        for pipe in self.pipes:
            pipe.recv()

    def stop(self) -> None:
        for pipe in self.pipes:
            pipe.send(False)
        for process in self.processes:
            process.join()


def batched(augmentation: str, images: Tensor, labels: Tensor) -> dict[str, Callable[[], object]]:
    """Ours, on bytes and on floats, and the peers that take a batch."""
    floats = images.float() / 255
    augment = {"randaug": RandAug(), "augmix": AugMix(), "mixup": Mixup()}[augmentation]
    policy = (
        MixupLabels(CLASSES) if augmentation == "mixup" else None
    )  # torchvision's mixup makes labels, too

    def ours(pixels: Tensor) -> object:
        view = augment(pixels, labels)
        return view if policy is None else (view, policy(view))

    found: dict[str, Callable[[], object]] = {
        "auglabel bytes": lambda: ours(images),
        "auglabel floats": lambda: ours(floats),
    }
    if augmentation == "randaug":
        from kornia.augmentation.auto import RandAugment

        kornia = RandAugment(n=1, m=10)
        found["kornia"] = lambda: kornia(floats)
    if augmentation == "mixup":
        from torchvision.transforms import v2

        theirs = v2.MixUp(num_classes=CLASSES)
        found["torchvision"] = lambda: theirs(floats, labels)
    return found


def compare(augmentation: str, side: int, batch: int, threads: int, rounds: int) -> dict[str, object]:
    images, labels = pictures(batch, side), torch.randint(CLASSES, (batch,))
    torch.set_num_threads(threads)
    contenders = batched(augmentation, images, labels)
    workers = {peer: Workers(augmentation, peer, side, batch, threads) for peer in PER_IMAGE[augmentation]}
    contenders |= workers
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for contender in contenders.values():
        contender()
    for _ in range(rounds):
        for name, contender in contenders.items():
            start = time.perf_counter()
            contender()
            seconds[name].append(time.perf_counter() - start)
    for each in workers.values():
        each.stop()
    rate = {name: round(batch / statistics.median(taken)) for name, taken in seconds.items()}
    peers = {name: value for name, value in rate.items() if not name.startswith("auglabel")}
    best = max(peers, key=peers.__getitem__)
    same_input = "auglabel floats" if augmentation == "mixup" or best == "kornia" else "auglabel bytes"
    per_image = [rate[peer] for peer in PER_IMAGE[augmentation]]
    return {
        "augmentation": augmentation,
        "side": side,
        "batch": batch,
        "threads": threads,
        "images_per_second": rate,
        "best_peer": best,
        "ratio_to_best_peer": round(rate[same_input] / peers[best], 2),
        "ratio_to_best_per_image_peer": round(rate["auglabel bytes"] / max(per_image), 2)
        if per_image
        else None,
    }


def profile(augmentation: str, side: int, batch: int, calls: int = 200) -> dict[str, object]:
    """Where our own time goes, in microseconds a call, on one thread: the costliest functions."""
    images, labels = pictures(batch, side), torch.randint(CLASSES, (batch,))
    torch.set_num_threads(1)
    ours = batched(augmentation, images, labels)["auglabel floats"]
    ours()
    watch = cProfile.Profile()
    watch.enable()
    for _ in range(calls):
        ours()
    watch.disable()
    spent = {
        (name if file == "~" else f"{file.rpartition('/')[2]}:{name}"): times[2] / calls * 1e6
        for (file, _, name), times in pstats.Stats(watch).stats.items()
    }
    top = sorted(spent, key=spent.__getitem__, reverse=True)[:10]
    about = {"augmentation": augmentation, "side": side, "batch": batch, "all": round(sum(spent.values()))}
    return about | {"microseconds": {name: round(spent[name]) for name in top}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", choices=[*PER_IMAGE], help="one augmentation instead of all")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--profile", action="store_true", help="where our own time goes, instead of peers")
    asked = parser.parse_args()
    settle()
    import_torchvision()
    if asked.profile:
        for augmentation in PER_IMAGE:
            print(json.dumps(profile(augmentation, *SETTINGS[0])), flush=True)
        return
    for augmentation in [asked.only] if asked.only else PER_IMAGE:
        for side, batch in SETTINGS:
            for threads in asked.threads:
                print(json.dumps(compare(augmentation, side, batch, threads, asked.rounds)), flush=True)


if __name__ == "__main__":
    main()
