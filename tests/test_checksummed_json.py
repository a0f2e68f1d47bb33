import contextlib
import json
import math
import random

import pytest

from auglabel.util.checksummed_json import (
    OtherFormat,
    checksummed_line,
    mismatch,
    parse_line,
    read_checksummed,
    write_checksummed,
)

GOOD = {"format": "a, version 1", "values": [0.1, 1e-30, 3, None, "é"], "deep": {"b": 1, "a": [True]}}


def test_what_is_written_is_read(tmp_path):
    write_checksummed(tmp_path / "a.json", GOOD)
    assert read_checksummed(tmp_path / "a.json", "a, version 1", what="an a") == GOOD


def test_a_file_by_hand_needs_no_checksum(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(GOOD))
    assert read_checksummed(tmp_path / "a.json", "a, version 1", what="an a") == GOOD


def test_the_order_of_keys_and_the_layout_do_not_matter(tmp_path):
    write_checksummed(tmp_path / "a.json", GOOD)
    found = json.loads((tmp_path / "a.json").read_text())
    (tmp_path / "a.json").write_text(json.dumps(dict(reversed(found.items()))))
    assert read_checksummed(tmp_path / "a.json", "a, version 1", what="an a") == GOOD


def test_no_changed_byte_goes_unnoticed(tmp_path):
    path = tmp_path / "a.json"
    write_checksummed(path, GOOD)
    content, draw = path.read_bytes(), random.Random(0)
    for _ in range(300):
        place, byte = draw.randrange(len(content)), draw.randrange(256)
        spoilt = content[:place] + bytes([byte]) + content[place + 1 :]
        path.write_bytes(spoilt)
        with contextlib.suppress(ValueError):
            found = read_checksummed(path, "a, version 1", what="an a")
            # white space, the same byte, or the word "checksum" itself
            assert {key: found.get(key) for key in GOOD} == GOOD


def test_a_file_cut_short_is_named_wherever_it_ends(tmp_path):
    path = tmp_path / "a.json"
    write_checksummed(path, GOOD)
    content = path.read_bytes()
    for end in range(len(content) - 2):
        path.write_bytes(content[:end])
        with pytest.raises(ValueError, match=r"a\.json is damaged, or not an a"):
            read_checksummed(path, "a, version 1", what="an a")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[" * 100_000, "is damaged, or not an a: it is not JSON"),
        ("[]", r"is not an a: got list \[\]"),
        ("{}", 'format "a, version 1" was expected, got none. Make it again.'),
        ('{"format": "a, version 2"}', "got str 'a, version 2'"),
        ('{"format": {}}', "got dict {}"),
        ('{"format": "a, version 1", "checksum": 3}', "its checksum does not fit its content"),
        ("\ud800", "is damaged, or not an a"),
    ],
)
def test_anything_else_is_refused_in_a_sentence(tmp_path, text, sentence):
    path = tmp_path / "a.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(ValueError, match=sentence):
        read_checksummed(path, "a, version 1", what="an a", otherwise="Make it again.")


def test_another_format_can_be_told_from_damage(tmp_path):
    (tmp_path / "a.json").write_text('{"format": "b"}')
    with pytest.raises(OtherFormat) as caught:
        read_checksummed(tmp_path / "a.json", "a, version 1", what="an a")
    assert not caught.value.ours
    (tmp_path / "a.json").write_text('{"format": "auglabel a, version 2"}')
    with pytest.raises(OtherFormat, match='"auglabel a, version 1" was expected, got') as caught:
        read_checksummed(tmp_path / "a.json", "auglabel a, version 1", what="an a")
    assert caught.value.ours


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("auglabel.util.checksummed_json.LARGEST", 1000)
    (tmp_path / "a.json").write_text("[" + "1," * 1000 + "1]")
    with pytest.raises(ValueError, match="is not an a: it has more than 1,000 bytes, which none of ours has"):
        read_checksummed(tmp_path / "a.json", "a, version 1", what="an a")


def test_lines_carry_a_checksum_each():
    line = checksummed_line(GOOD)
    assert parse_line(line) == GOOD
    assert parse_line(json.dumps(GOOD)) == GOOD
    with pytest.raises(ValueError, match="its checksum does not fit"):
        parse_line(line.replace("1e-30", "2e-30"))
    with pytest.raises(ValueError, match="not JSON"):
        parse_line("[" * 100_000)


SHAPE = {"a": int, "b?": [float], "c": (None, {...: str}), "d": {"e": bool, ...: math.inf}}


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"a": 1, "c": None, "d": {"e": True, "x": math.nan}}, ""),
        ({"a": 1, "b": [1, 2.5], "c": {"x": "y"}, "d": {"e": False}}, ""),
        ({"c": None, "d": {"e": True}}, "it does not say a"),
        ({"a": True, "c": None, "d": {"e": True}}, "a must be a whole number, got bool True"),
        (
            {"a": 2**60, "c": None, "d": {"e": True}},
            "a must be a whole number, got int 1152921504606846976",
        ),
        ({"a": 1, "b": [math.inf], "c": None, "d": {"e": True}}, "b.0 must be a number, got float inf"),
        ({"a": 1, "c": {"x": 3}, "d": {"e": True}}, "c.x must be a word, got int 3"),
        ({"a": 1, "c": {"x": "\ud800"}, "d": {"e": True}}, "c.x must be a word, got str '\\ud800'"),
        ({"a": 1, "c": None, "d": []}, "d must be an object, got list []"),
        ({"a": 1, "c": None, "d": {"e": 1}}, "d.e must be true or false, got int 1"),
    ],
)
def test_what_differs_from_a_shape_is_named(value, sentence):
    assert mismatch(value, SHAPE) == sentence


def test_a_file_of_another_shape_is_named_with_the_way_out(tmp_path):
    write_checksummed(tmp_path / "a.json", {"format": "a", "b": "c"})
    with pytest.raises(ValueError, match=r"a\.json is damaged or of another version: b must be .* Again\.$"):
        read_checksummed(tmp_path / "a.json", "a", what="an a", otherwise="Again.", shape={"b": int})
