"""Tars, and tars that lead out of themselves or never end."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
from collections.abc import Callable
from typing import Any

from hostile.spoil import Draw, Files, spoil_bytes


def tar_of(files: Files, zipped: bool = False, **changes: Any) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, content in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            for key, value in changes.items():
                setattr(about, key, value)
            tar.addfile(about, io.BytesIO(content))
    return gzip.compress(file.getvalue(), 1, mtime=0) if zipped else file.getvalue()


def spoil_tar(draw: Draw, content: bytes) -> bytes:
    """A field of a header, with the header's checksum made right again."""
    blocks = [
        place for place in range(0, len(content) - 511, 512) if content[place + 257 : place + 262] == b"ustar"
    ]
    if not blocks or draw.random() < 0.3:
        return spoil_bytes(draw, content)
    start = draw.choice(blocks)
    some = bytearray(content)
    field, width = draw.choice(
        ((0, 100), (100, 8), (124, 12), (136, 12), (156, 1), (157, 100), (257, 8), (345, 155))
    )
    odd = (
        *(b"0", b"1", b"2", b"3", b"5", b"6", b"7", b"L", b"K", b"S", b"g", b"x", b"X", b"\0"),
        *(b"\x80" + b"\xff" * 11,),
        *(b"77777777777", b"-1", b"../../up.png", b"/absolute.png", b"\xff" * 12, b"a/\n/x.png", b"\xe9"),
        *(b"",),
        *(b"\x80" + b"\0" * 6 + struct.pack(">I", 2**31), b"00000000000", b"00000001000", b"." * 100, b"//"),
    )
    some[start + field : start + field + width] = draw.choice(odd)[:width].ljust(width, b"\0")
    some[start + 148 : start + 156] = b" " * 8
    some[start + 148 : start + 156] = b"%06o\0 " % sum(some[start : start + 512])
    return bytes(some)


def tar_cases(inside: Callable[[], Files], name: str, zipped: bool) -> dict[str, Callable[[], Files]]:
    """Ways out of a tar, and claims; `inside` is what a good one holds."""

    def made(
        edit: Callable[[tarfile.TarFile], None], format: int = tarfile.GNU_FORMAT
    ) -> Callable[[], Files]:
        def make() -> Files:
            file = io.BytesIO()
            with tarfile.open(fileobj=file, mode="w", format=format) as tar:
                for each, content in inside().items():
                    about = tarfile.TarInfo(each)
                    about.size = len(content)
                    tar.addfile(about, io.BytesIO(content))
                edit(tar)
            content = file.getvalue()
            return {name: gzip.compress(content, 1, mtime=0) if zipped else content}

        return make

    def member(
        path: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0
    ) -> Callable[..., None]:
        def add(tar: tarfile.TarFile) -> None:
            about = tarfile.TarInfo(path)
            about.type, about.linkname, about.size = kind, link, size
            tar.addfile(about, io.BytesIO(b"x" * size))

        return add

    def claims(header: bytes) -> Callable[[], Files]:
        def make() -> Files:
            content = header.ljust(512, b"\0") + b"\0" * 1024
            return {name: gzip.compress(content, 1, mtime=0) if zipped else content}

        return make

    def header(kind: bytes, size: int) -> bytes:
        about = tarfile.TarInfo("a/x.png")
        about.type, about.size = kind, size
        return about.tobuf(tarfile.GNU_FORMAT)

    cases = {
        "an absolute path": made(member("/tmp/evil.png")),
        "an upward path": made(member("../../evil.png")),
        "an upward path inside": made(member("a/../../evil.png")),
        "a name with a new line": made(member("a\nb/c.png", size=3)),
        "a symbolic link": made(member("a/link.png", tarfile.SYMTYPE, "/etc/passwd")),
        "a hard link": made(member("a/hard.png", tarfile.LNKTYPE, "../../etc/passwd")),
        "a device": made(member("a/dev.png", tarfile.CHRTYPE)),
        "a block device": made(member("a/block.png", tarfile.BLKTYPE)),
        "a pipe": made(member("a/pipe.png", tarfile.FIFOTYPE)),
        "a sparse file": claims(header(tarfile.GNUTYPE_SPARSE, 2**40)),
        "a size of 2^60": claims(header(tarfile.REGTYPE, 2**60)),
        "a size below zero": claims(header(tarfile.REGTYPE, -1)),
        "a long name of 2^50": claims(header(tarfile.GNUTYPE_LONGNAME, 2**50)),
        "a long name of 3 GB": claims(header(tarfile.GNUTYPE_LONGNAME, 3 * 10**9)),
        "a header of 3 GB": claims(header(tarfile.XHDTYPE, 3 * 10**9)),
        "many long names": lambda: {
            name: header(tarfile.GNUTYPE_LONGNAME, 10).ljust(1024, b"a") * 3000 + b"\0" * 1024
        },
    }
    if zipped:

        def bomb(first: bytes, size: int) -> Callable[[], Files]:
            def make() -> Files:
                block = gzip.compress(bytes(2**24), 9, mtime=0)
                return {name: gzip.compress(first.ljust(512, b"\0"), mtime=0) + block * (size // 2**24)}

            return make

        wanted = tarfile.TarInfo(next(iter(inside())))
        wanted.size = 3 * 2**30
        cases |= {
            "3 GB of zeros": bomb(wanted.tobuf(tarfile.GNU_FORMAT), 3 * 2**30),
            "3 GB of zeros beside": bomb(header(tarfile.REGTYPE, 3 * 2**30), 3 * 2**30),
            "3 GB of zeros in a header": bomb(header(tarfile.XHDTYPE, 3 * 2**30), 3 * 2**30),
            "3 GB of zeros as a name": bomb(header(tarfile.GNUTYPE_LONGNAME, 3 * 2**30), 3 * 2**30),
        }
    return cases
