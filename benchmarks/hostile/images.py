"""Pictures in many formats, and bombs."""

from __future__ import annotations

import functools
import io
import struct
import zlib
from collections.abc import Callable

import numpy as np
from PIL import Image

from hostile.archives import spoil_tar, tar_of
from hostile.spoil import Draw, Files, spoil_bytes, zeros


def png_chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png_of(
    width: int, height: int, *chunks: bytes, rows: bytes | None = None, colour: int = 0, bits: int = 8
) -> bytes:
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0))
    rows = zlib.compress((b"\0" * (width + 1)) * height, 9) if rows is None else rows
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(chunks) + png_chunk(b"IDAT", rows) + png_chunk(b"IEND", b"")


@functools.cache
def pictures() -> list[tuple[str, bytes]]:
    noise = np.random.default_rng(0).integers(0, 256, (8, 8, 4), dtype=np.uint8)
    colours, found = Image.fromarray(noise), []
    for ending, modes in {
        "png": ("RGB", "L", "P", "RGBA", "1", "I;16"),
        "jpg": ("RGB", "L", "CMYK"),
        "gif": ("P", "L"),
        "bmp": ("RGB", "L", "1"),
        "webp": ("RGB", "RGBA"),
        "tif": ("RGB", "L", "1", "I;16"),
        "ppm": ("RGB", "L"),
    }.items():
        for mode in modes:
            picture = (
                Image.fromarray(noise[..., 0].astype(np.uint16) * 257)
                if mode == "I;16"
                else colours.convert(mode)
            )
            file = io.BytesIO()
            picture.save(file, {"jpg": "JPEG", "tif": "TIFF", "ppm": "PPM"}.get(ending, ending.upper()))
            found.append((ending, file.getvalue()))
    for compression in ("tiff_lzw", "tiff_deflate", "jpeg", "packbits"):
        file = io.BytesIO()
        colours.convert("RGB").save(file, "TIFF", compression=compression)
        found.append(("tif", file.getvalue()))
    file = io.BytesIO()
    frames = [colours.convert("P"), colours.rotate(90).convert("P")]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    return [*found, ("gif", file.getvalue()), ("jpg", _with_exif(colours))]


def _with_exif(picture: Image.Image) -> bytes:
    file, note = io.BytesIO(), Image.Exif()
    note[274] = 6
    picture.convert("RGB").save(file, "JPEG", exif=note)
    return file.getvalue()


def picture_files() -> list[Files]:
    good = pictures()[0][1]
    return [{f"a/1.{ending}": content, "b/1.png": good} for ending, content in pictures()]


def spoil_picture(draw: Draw, content: bytes) -> bytes:
    """Of a PNG, half of the time a chunk with its checksum made right again."""
    if not content.startswith(b"\x89PNG") or draw.random() < 0.5:
        return spoil_bytes(draw, content)
    pieces, place = [], 8
    while place + 12 <= len(content):
        size = struct.unpack(">I", content[place : place + 4])[0]
        pieces.append((content[place + 4 : place + 8], content[place + 8 : place + 8 + size]))
        place += 12 + size
    if not pieces:
        return spoil_bytes(draw, content)
    at = draw.randrange(len(pieces))
    kind, inner = pieces[at]
    other = draw.choice(
        (b"zTXt", b"iTXt", b"iCCP", b"tRNS", b"PLTE", b"acTL", b"fdAT", b"eXIf", b"gAMA", b"IDAT", b"pHYs")
    )
    pieces[at] = draw.choice(((kind, spoil_bytes(draw, inner)), (other, inner), (kind, b"")))
    return content[:8] + b"".join(png_chunk(*piece) for piece in pieces)


def spoil_pictures(draw: Draw, files: Files) -> Files:
    name = next(name for name in files if name.startswith("a/"))
    return {**files, name: spoil_picture(draw, files[name])}


def picture_cases() -> dict[str, Callable[[], Files]]:
    def case(content: bytes, ending: str = "png") -> Callable[[], Files]:
        return lambda: {f"a/1.{ending}": content, "b/1.png": pictures()[0][1]}

    def late(make: Callable[[], bytes], ending: str = "png") -> Callable[[], Files]:
        return lambda: case(make(), ending)()

    tiff = b"II*\0\x08\0\0\0"

    def entry(tag: int, kind: int, count: int, value: int) -> bytes:
        return struct.pack("<HHII", tag, kind, count, value)

    huge = [
        entry(256, 4, 1, 2**31 - 1),
        entry(257, 4, 1, 2**31 - 1),
        entry(258, 3, 1, 8),
        entry(259, 3, 1, 1),
    ]
    huge += [entry(262, 3, 1, 1), entry(273, 4, 2**30, 8), entry(277, 3, 1, 1), entry(279, 4, 2**30, 8)]
    return {
        "PNG of 2^31 by 2^31": case(png_of(2**31 - 1, 2**31 - 1, rows=b"")),
        "PNG of 60000 by 60000": late(lambda: png_of(60_000, 60_000, rows=zeros(10**6))),
        "PNG of 80 megapixels": late(lambda: png_of(8944, 8944, rows=zeros(8945 * 8944))),
        "PNG of 80 megapixels, 16 bits": late(
            lambda: png_of(8944, 8944, rows=zeros(8944 * (2 * 8944 + 1)), bits=16)
        ),
        "PNG of one row of 80 megapixels": late(lambda: png_of(8 * 10**7, 1, rows=zeros(8 * 10**7 + 1))),
        "PNG with a zTXt bomb": late(lambda: png_of(8, 8, png_chunk(b"zTXt", b"a\0\0" + zeros(10**9 // 2)))),
        "PNG with an iTXt bomb": late(
            lambda: png_of(8, 8, png_chunk(b"iTXt", b"a\0\1\0\0\0" + zeros(10**9 // 2)))
        ),
        "PNG with an iCCP bomb": late(lambda: png_of(8, 8, png_chunk(b"iCCP", b"a\0\0" + zeros(10**9 // 2)))),
        "PNG with many texts": late(
            lambda: png_of(8, 8, *[png_chunk(b"zTXt", b"%d\0\0" % n + zeros(10**6)) for n in range(200)])
        ),
        "PNG with a pixel bomb": late(lambda: png_of(8, 8, rows=zeros(10**9 // 2))),
        "GIF of 65535 by 65535": case(
            b"GIF89a\xff\xff\xff\xff\x80\0\0" + b"\0" * 6 + b",\0\0\0\0\xff\xff\xff\xff\0\x02\0;", "gif"
        ),
        "BMP of 2^31": case(
            b"BM"
            + struct.pack(
                "<IHHIIiiHHIIiiII", 70, 0, 0, 54, 40, 2**31 - 1, 2**31 - 1, 1, 24, 0, 0, 0, 0, 0, 0
            ),
            "bmp",
        ),
        "TIFF of 2^31": case(tiff + struct.pack("<H", len(huge)) + b"".join(huge) + b"\0\0\0\0", "tif"),
        "TIFF whose directories go in circles": case(
            tiff + struct.pack("<H", 1) + huge[0] + struct.pack("<I", 8), "tif"
        ),
        "PPM of 10^12": case(b"P6 1000000 1000000 255\n", "ppm"),
        "PPM of endless digits": case(b"P6 " + b"9" * 10**6, "ppm"),
        "PPM in words": case(b"P3 8 8 " + b"9" * 5000 + b"\n1 2 3", "ppm"),
        "PostScript": case(
            b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n(../canary) (w) file\n"
        ),
        "an icon": case(b"\0\0\1\0\1\0" + b"\0" * 16),
        "a web page": case(b"<html><script>alert(1)</script></html>", "jpg"),
        "nothing": case(b""),
    }


def spoil_picture_tar(draw: Draw, files: Files) -> Files:
    if draw.random() < 0.6:
        return {"set.tar": spoil_tar(draw, files["set.tar"])}
    return {"set.tar": tar_of(spoil_pictures(draw, draw.choice(picture_files())))}
