"""An augmentation of one's own: fade images towards their mean colour, and learn the labels of that."""

import torch
from torch import Tensor

from auglabel import Augmentation, AutoLabel, Distance, DistanceGrid, View, calibrate
from auglabel.data.embedded import load_embedded
from auglabel.models.small import SmallNet


class Fade(Augmentation):
    """At strength 1 nothing but the mean colour is left."""

    def __init__(self, levels: int = 10) -> None:
        self.grid = DistanceGrid((levels,))

    def apply(self, images: Tensor, labels: Tensor, distance: Distance, *others: object) -> View:
        mean = images.mean(dim=(2, 3), keepdim=True)
        faded = torch.lerp(images, mean, distance.strength[:, None, None, None])
        return View(faded, labels, distance.bucket, distance.strength)


def main() -> None:
    images, labels = load_embedded().validation
    augment = Fade()
    policy = AutoLabel(num_classes=10, num_buckets=len(augment.grid), alpha=0.5)
    model = SmallNet(num_classes=10, mean=[0.286], std=[0.353])
    policy.update(calibrate(model, augment, [(images.float() / 255, labels)]))
    print("label confidence, faint to full fade:", [round(c, 3) for c in policy.table.tolist()])


if __name__ == "__main__":
    main()
