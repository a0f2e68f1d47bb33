import os

import pytest

from auglabel.lab.process.streams import Lasting


def test_a_stream_without_a_reader_goes_on_into_nothing():
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream:
        lasting = Lasting(stream)
        print("one", file=lasting, flush=True)
        assert os.read(reader, 10) == b"one\n"
        os.close(reader)
        print("two", file=lasting, flush=True)
        print("three", file=lasting, flush=True)
        assert lasting.fileno() == writer
        assert os.fstat(writer).st_rdev == os.stat(os.devnull).st_rdev


def test_a_full_disk_is_not_hidden():
    stream = open("/dev/full", "w")  # noqa: SIM115
    with pytest.raises(OSError, match="No space left"):
        print("one", file=Lasting(stream), flush=True)
    with pytest.raises(OSError, match="No space left"):
        stream.close()
