import errno
import pickle
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from auglabel.errors import UserError
from auglabel.lab.runs.checkpoint import load_checkpoint, load_weights, save_checkpoint, save_weights


@pytest.fixture
def saved(tmp_path):
    tensors = {
        "model.weight": torch.randn(3, 4, 2, 2).to(memory_format=torch.channels_last),
        "memory": torch.tensor([1e-300, 3.0], dtype=torch.float64),
        "count": torch.tensor(7),
        "empty": torch.zeros(0, 3),
    }
    facts = {"epoch": 3, "loss": 0.1 + 0.2, "best": float("inf")}
    path = tmp_path / "step.safetensors"
    save_checkpoint(path, tensors, facts)
    return path, tensors, facts


def test_tensors_and_facts_come_back_to_the_bit(saved):
    path, tensors, facts = saved
    found = load_checkpoint(path)
    assert found.facts == facts
    assert found.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found.tensors[name].dtype == tensor.dtype
        assert torch.equal(found.tensors[name], tensor)


def test_loading_leaves_nothing_behind(tmp_path):
    path = tmp_path / "many.safetensors"
    save_checkpoint(path, {f"{number}": torch.zeros(300, 400) for number in range(20)}, {})
    load_checkpoint(path)
    before = sys.getallocatedblocks()
    for _ in range(20):
        load_checkpoint(path)
    assert sys.getallocatedblocks() - before < 200  # a leak of one object per tensor would leave 400


@pytest.mark.parametrize("load", [load_checkpoint, load_weights])
def test_a_large_file_is_refused_by_its_header(load, tmp_path, monkeypatch):
    path = tmp_path / "large.safetensors"
    with path.open("wb") as file:
        file.truncate(2**40)  # takes no room on the disk
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail("all of it is read"))
    with pytest.raises(ValueError, match=r"large\.safetensors is"):
        load(path)


def test_tied_weights_can_be_saved(tmp_path):
    weight = torch.randn(3)
    save_checkpoint(tmp_path / "a", {"one": weight, "two": weight, "part": weight[:2]}, {})
    assert torch.equal(load_checkpoint(tmp_path / "a").tensors["two"], weight)


def test_a_checkpoint_cut_short_anywhere_is_refused_by_name(saved):
    path, _, _ = saved
    whole = path.read_bytes()
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"step\.safetensors"):
            load_checkpoint(path)


def test_one_flipped_bit_anywhere_is_refused_or_changes_nothing(saved):
    path, tensors, facts = saved
    whole = bytearray(path.read_bytes())
    for place in range(len(whole)):
        whole[place] ^= 4
        path.write_bytes(whole)
        whole[place] ^= 4
        complaint, found = outcome(path)
        if found is None:
            assert "step.safetensors" in complaint
            assert "\n" not in complaint
        else:
            assert found.facts == facts
            assert all(torch.equal(found.tensors[name], tensor) for name, tensor in tensors.items())


def outcome(path):
    try:
        return "", load_checkpoint(path)
    except ValueError as error:
        return str(error), None


def test_weights_that_we_wrote_are_the_same_bytes_each_time_and_no_flipped_bit_goes_unnoticed(tmp_path):
    path, tensors = tmp_path / "w.safetensors", {"a": torch.arange(5.0), "b": torch.ones(2, 2)}
    save_weights(path, tensors)
    whole = path.read_bytes()
    save_weights(tmp_path / "again", tensors)
    assert (tmp_path / "again").read_bytes() == whole
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        try:
            found = load_weights(path)
        except ValueError:
            continue
        assert {name: value.tolist() for name, value in found.items()} in (
            {name: value.tolist() for name, value in tensors.items()},
        ), place


def test_other_programs_weights_are_no_checkpoint_but_are_weights(tmp_path):
    path = tmp_path / "w.safetensors"
    save_file({"weight": torch.ones(2)}, path)
    with pytest.raises(ValueError, match="another program's weights"):
        load_checkpoint(path)
    assert torch.equal(load_weights(path)["weight"], torch.ones(2))


class Payload:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (exec, (f"open({str(self.marker)!r}, 'w').close()",))


@pytest.mark.parametrize("load", [load_checkpoint, load_weights])
def test_a_pickle_is_refused_and_does_not_run(load, tmp_path):
    marker, plain, zipped = tmp_path / "ran", tmp_path / "evil.safetensors", tmp_path / "evil.pt"
    plain.write_bytes(pickle.dumps(Payload(marker)))
    torch.save({"weight": Payload(marker)}, zipped)
    for file in (plain, zipped):
        with pytest.raises(ValueError, match=file.name):
            load(file)
    assert not marker.exists()
    pickle.loads(plain.read_bytes())
    assert marker.exists()  # it would have


@pytest.mark.parametrize("load", [load_checkpoint, load_weights])
def test_what_the_disk_does_not_hand_over_is_not_called_damaged(load, tmp_path, monkeypatch):
    with pytest.raises(OSError, match=r"cannot be read: Is a directory\."):
        load(tmp_path)

    def refused(self, *mode):
        raise PermissionError(errno.EACCES, "Permission denied")

    (tmp_path / "a.safetensors").touch()
    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(OSError, match=r"a\.safetensors cannot be read: Permission denied\."):
        load(tmp_path / "a.safetensors")


@pytest.mark.parametrize("load", [load_checkpoint, load_weights])
def test_a_lack_of_memory_is_not_called_damage(load, saved, monkeypatch):
    def lacking(content):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr("auglabel.lab.runs.checkpoint.load", lacking)
    with pytest.raises(RuntimeError, match="allocate memory"):
        load(saved[0])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no checkpoint .*none"):
        load_checkpoint(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match=r"no file .*none"):
        load_weights(tmp_path / "none")


class Runs:
    """Runs code where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def refused(path, told):
    with pytest.raises(UserError, match=told) as error:
        load_weights(path)
    assert "\n" not in str(error.value)


def test_weights_of_torchs_own_format_are_read_but_no_code_of_theirs_is_run(tmp_path):
    weights = {"a": torch.arange(3.0), "b": torch.ones(2, dtype=torch.int64)}
    torch.save({"model": weights, "epoch": 1}, tmp_path / "net.pth")
    found = load_weights(tmp_path / "net.pth")
    assert found.keys() == weights.keys()
    assert all(torch.equal(found[name], weights[name]) for name in weights)
    wrapped = {f"model.{name}": value for name, value in weights.items()}  # as Lightning saves them
    torch.save({"state_dict": wrapped, "epoch": 1}, tmp_path / "net.ckpt")
    assert load_weights(tmp_path / "net.ckpt").keys() == wrapped.keys()
    for legacy in (True, False):
        bad = {"a": Runs(tmp_path / "ran")}
        torch.save(bad, tmp_path / "bad.pt", _use_new_zipfile_serialization=not legacy)
        refused(tmp_path / "bad.pt", r"bad\.pt cannot .* holds more than tensors\).*torch\.save\(model")
    (tmp_path / "bad.bin").write_bytes(pickle.dumps(Runs(tmp_path / "ran")))
    refused(tmp_path / "bad.bin", "cannot be read as weights")
    assert not (tmp_path / "ran").exists()


def test_a_file_of_torchs_that_holds_no_weights_is_refused(tmp_path):
    path = tmp_path / "net.pth"
    for other in (torch.zeros(3), [1], {"a": 1}, {"state_dict": {"a": [torch.zeros(1)]}}):
        torch.save(other, path)
        refused(path, r"must hold a state dict: torch\.save\(model\.state_dict\(\), path\)")
    torch.save({"a": torch.zeros(100)}, path)
    whole = path.read_bytes()
    for broken in (b"", whole[:100], whole[: len(whole) // 2]):
        path.write_bytes(broken)
        refused(path, "cannot be read as weights")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("archive/data/0", bytes(2**28 + 1))
    refused(path, r"unpacks to 268,435,457 bytes")
    path.unlink()
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_weights(path)
