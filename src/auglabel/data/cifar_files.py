"""What the official files of CIFAR-10 and CIFAR-100 are called, where they are, and their checksums.

The archives' MD5 are those of https://www.cs.toronto.edu/~kriz/cifar.html; the python files' are the ones
torchvision compares with. No second source confirms any for the unpacked binary files of CIFAR-100.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class OfficialFiles:
    """One official form of one set. Checksums are MD5; "" where none is published."""

    words: str
    archive: str
    md5: str
    folder: str
    train: dict[str, str]
    test: dict[str, str]


@dataclass(frozen=True)
class Cifar:
    name: str
    classes: tuple[str, ...]
    python: OfficialFiles
    binary: OfficialFiles
    key: bytes  # of the labels in the python files
    bytes_before: int  # of a picture in the binary files; the last one is the label


FINE = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard
lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear
pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark
shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone
television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
CIFAR10 = Cifar(
    "CIFAR-10",
    ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    OfficialFiles(
        "official python files",
        "cifar-10-python.tar.gz",
        "c58f30108f718f92721af3b95e74349a",
        "cifar-10-batches-py",
        {
            "data_batch_1": "c99cafc152244af753f735de768cd75f",
            "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
            "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
            "data_batch_4": "634d18415352ddfa80567beed471001a",
            "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        },
        {"test_batch": "40351d587109b95175f43aff81a1287e"},
    ),
    OfficialFiles(
        "official binary files",
        "cifar-10-binary.tar.gz",
        "c32a1d4ab5d03f1284b67883e8d87530",
        "cifar-10-batches-bin",
        {
            "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
            "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
            "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
            "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
            "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
        },
        {"test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d"},
    ),
    b"labels",
    1,
)
CIFAR100 = Cifar(
    "CIFAR-100",
    tuple(FINE.split()),
    OfficialFiles(
        "official python files",
        "cifar-100-python.tar.gz",
        "eb9058c3a382ffc7106e4002c42a8d85",
        "cifar-100-python",
        {"train": "16019d7e3df5f24257cddd939b257f8d"},
        {"test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
    ),
    OfficialFiles(
        "official binary files",
        "cifar-100-binary.tar.gz",
        "03b5dce01913d631647c71ecec9e9cb8",
        "cifar-100-binary",
        {"train.bin": ""},
        {"test.bin": ""},
    ),
    b"fine_labels",
    2,
)


def official_files(kind: Cifar, root: Path) -> tuple[OfficialFiles, Path] | None:
    """The official files at or below `root`: a directory of them, some perhaps missing, or an archive."""
    for layout in (kind.python, kind.binary):
        for place in (root / layout.folder, root):
            if all((place / name).is_file() for name in (*layout.train, *layout.test)):
                return layout, place
        for place in (root / layout.archive, root):
            if place.is_file() and place.name == layout.archive:
                return layout, place
    for layout in (kind.python, kind.binary):  # some of the files: the reader says which is missing
        if (root / layout.folder).is_dir():
            return layout, root / layout.folder
    if root.is_file() and root.name.endswith((".tar.gz", ".tgz")):  # under another name
        return (kind.binary if "bin" in root.name else kind.python), root
    return None
