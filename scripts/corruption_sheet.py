"""Draw docs/corruptions.jpg: one photograph under every corruption at every severity.

    python scripts/corruption_sheet.py PICTURE OUTPUT

The picture in the docs is Chelsea the cat, by Stefan van der Walt, CC0, which scikit-image brings along as
skimage/data/chelsea.png.
"""

import argparse

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageOps

from auglabel.corrupt import SUITES, corrupt
from auglabel.lab.pictures.drawing import BLACK, WHITE, write

SIDE, SHOWN, HEAD, LEFT, GAP = 224, 104, 26, 16, 4
SEVERITIES = (1, 2, 3, 4, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("picture")
    parser.add_argument("output")
    asked = parser.parse_args()
    photograph = ImageOps.fit(Image.open(asked.picture).convert("RGB"), (SIDE, SIDE))
    names = SUITES["all"]
    half = (len(names) + 1) // 2
    wide = LEFT + len(SEVERITIES) * (SHOWN + GAP)
    sheet = Image.new("RGB", (2 * wide + LEFT, half * (SHOWN + HEAD) + GAP), WHITE)
    for place, name in enumerate(names):
        left, top = place // half * wide + LEFT, place % half * (SHOWN + HEAD)
        write(ImageDraw.Draw(sheet), (left, top + HEAD - 8), name, 14, "ls", BLACK)
        for column, severity in enumerate(SEVERITIES):
            small = pictured(photograph, name, severity).resize((SHOWN, SHOWN), Image.Resampling.LANCZOS)
            sheet.paste(small, (left + column * (SHOWN + GAP), top + HEAD))
    sheet.save(asked.output, quality=88)


def pictured(photograph: Image.Image, name: str, severity: int) -> Image.Image:
    """The photograph under a corruption, ImageNet's figures."""
    pixels = torch.from_numpy(np.array(photograph)).permute(2, 0, 1)[None]
    done = corrupt(pixels, name, severity, index=[2])[0].permute(1, 2, 0)
    return Image.fromarray(done.numpy())


if __name__ == "__main__":
    main()
