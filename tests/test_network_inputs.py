"""Whatever calls a network hands it floating point in [0, 1], also where the images are bytes."""

import importlib
import json

import pytest
import torch
import torch.nn.functional as F
from networks import Recorder
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from auglabel import (
    Adversarial,
    AugmentAndLabel,
    Augmentation,
    AugMix,
    DistanceGrid,
    OneHot,
    RandAug,
    View,
    calibrate,
    every_bucket,
    measure,
)
from auglabel.attack import pgd
from auglabel.cli import main
from auglabel.data.embedded import load_embedded
from auglabel.data.source import InMemory
from auglabel.lab.evaluate.conditions import conditions
from auglabel.lab.evaluate.evaluate import evaluate
from auglabel.lab.evaluate.options import Attack
from auglabel.lab.parts.catalogue import LOSSES
from auglabel.lab.pictures.contact_sheet import contact_sheet
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.recipe import Choice
from auglabel.lab.sweep.job import Job, Results
from auglabel.lab.sweep.measurement import Measurement
from auglabel.losses import trades
from auglabel.models.resnet import ResNet
from auglabel.models.small import SmallNet
from auglabel.models.wide_resnet import WideResNet

OURS = "--model=networks:recorder"
SMALL = ["--split.train=60", "--split.validation=40", "--split.test=40", "--epochs=1", "--tracker=none"]


def some(count=40):
    """Bytes, from 0 to 255, and labels."""
    data = load_embedded().validation
    return data.images[:count], data.labels[:count]


def batches():
    images, labels = some()
    return DataLoader(TensorDataset(images, labels), batch_size=20)


def view_of(images, labels):
    return View(images, labels, torch.zeros_like(labels), torch.zeros(len(labels)))


@pytest.fixture
def calls():
    Recorder.calls.clear()
    yield Recorder.calls
    Recorder.calls.clear()


def require_pixels(calls):
    assert calls, "the network was not called"
    for dtype, low, high in calls:
        assert dtype == torch.float32
        assert 0 <= low <= high <= 1
    assert max(high for _, _, high in calls) > 0.9  # not divided twice


def _measured(net):
    measure(net, [view_of(*some())])


def _calibrated(net):
    calibrate(net, RandAug(m_max=2), batches())


def _attacked(net):
    calibrate(net, Adversarial(levels=2, steps=1), batches())


def _every_bucket(net):
    list(every_bucket(net, Adversarial(levels=2, steps=1, against="prediction"), batches()))


def _updated(net):
    AugmentAndLabel(AugMix(), 10, 0.02).update(net, batches())


def _updated_exactly(net):
    AugmentAndLabel(AugMix(), 10, 0.02, rule="exact").update(net, batches())


def _trades(net):
    trades(net, some()[0], view_of(*some())).backward()


def _augmix_loss(net):
    images, labels = some()
    view = RandAug()(images, labels, dtype=torch.float32)
    LOSSES["jensen_shannon"](net, images, view, OneHot(10), lambda: view).backward()


def _evaluated(net):
    rows = conditions(["clean", "pgd", "foolbox:fgsm", "fog"], Attack(steps=1, restarts=1))
    source = InMemory(*some())
    evaluate(net, source, source, rows, resamples=0, augment=RandAug())


def _pictures(net):
    contact_sheet(Adversarial(levels=2, steps=1), *some(), [str(name) for name in range(10)], model=net)


def _timm(net):
    module = importlib.import_module("auglabel.integrations.timm")
    mixup = module.TimmMixup(AugMix(), 10, 0.02)
    mixup.update(net, batches())


def _loader(net):
    module = importlib.import_module("auglabel.integrations.loader")
    loader = DataLoader(module.MovedSet(TensorDataset(*some()), AugMix()), batch_size=20)
    measure(net, module.views(loader, 0), groups=len(AugMix().grid))


def _lightning(net):
    lightning = pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")
    module = importlib.import_module("auglabel.integrations.lightning")

    class Divides(lightning.LightningModule):
        """Its steps divide bytes by 255, as is usual; its `forward` takes what is in [0, 1]."""

        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, images):
            return self.net(images)

        def training_step(self, batch, batch_idx):
            images, labels = batch
            return F.cross_entropy(self(images.float() / 255), labels)

        validation_step = training_step

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        callbacks=[module.LightningCallback(AugMix(), 10, 0.02)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Divides(), batches(), batches())


def _transformers(net):
    pytest.importorskip("transformers", reason="Transformers is not installed")
    module = importlib.import_module("auglabel.integrations.transformers")

    class Outputs(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, pixel_values):
            return {"logits": self.net(pixel_values)}

    rows = [{"pixel_values": image, "labels": int(label)} for image, label in zip(*some(), strict=True)]
    labels = module.TransformersCallback(AugMix(), 10, 0.02, validation=rows)
    state = type("State", (), {"stateful_callbacks": {}, "log_history": [], "epoch": 1.0, "global_step": 1})()
    labels.on_epoch_end(None, state, None, model=Outputs())


CALLERS = (
    _measured,
    _calibrated,
    _attacked,
    _every_bucket,
    _updated,
    _updated_exactly,
    _trades,
    _augmix_loss,
    _evaluated,
    _pictures,
    _timm,
    _loader,
    _lightning,
    _transformers,
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLERS, ids=lambda call: call.__name__.strip("_"))
def test_a_network_gets_pixels_from_a_function(call, calls):
    torch.manual_seed(0)
    call(Recorder(10))
    require_pixels(calls)


@pytest.mark.parametrize(
    "regime", ["vanilla", "randaug_autolabel", "mixup_autolabel", "augmix_js", "at_autolabel", "trades"]
)
def test_a_network_gets_pixels_in_training(regime, calls, tmp_path):
    words = [*SMALL, OURS, f"--regime={regime}", f"--out={tmp_path / 'run'}"]
    assert main(["train", "embedded", *words]) == 0
    require_pixels(calls)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("inputs") / "run"
    words = [*SMALL, OURS, "--regime=at_autolabel", "--augment.steps=1", "--augment.levels=2"]
    assert main(["train", "embedded", *words, f"--out={out}"]) == 0
    return out


@pytest.mark.parametrize(
    "words",
    [
        ["eval", "RUN", OURS, "--on=clean,pgd,fog", "--steps=1", "--restarts=1"],
        ["eval", "RUN", OURS, "--temperature=augmented", "--resamples=10"],
        ["audit", "RUN", OURS, "--out=OUT.json"],
        ["audit", "RUN", OURS, "--augment=randaug", "--part=test", "--out=OUT.json"],
        ["preview", "RUN", OURS, "--out=OUT.png"],
    ],
    ids=" ".join,
)
def test_a_network_gets_pixels_from_a_command(words, run, calls, tmp_path):
    places = {"RUN": str(run), "OUT": str(tmp_path / "out")}
    for name, place in places.items():
        words = [word.replace(name, place) for word in words]
    assert main(words) == 0
    require_pixels(calls)


def test_a_network_gets_pixels_in_the_jobs_of_sweeps_and_of_the_paper(calls, tmp_path):
    views = Choice("randaug", {"operations": ["rotate"]})
    job = Job("job", read_recipe("embedded", [*SMALL[:4], OURS]), (Measurement("clean"),), views)
    Results(tmp_path / "results", tmp_path / "runs").perform(job)
    require_pixels(calls)


def test_an_attack_refuses_bytes_before_the_network_sees_them(calls):
    with pytest.raises(TypeError, match=r"Pass images.float\(\) / 255"):
        pgd(Recorder(10), *some(), 0.01)
    assert not calls


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("build", [SmallNet, WideResNet, ResNet])
def test_our_networks_predict_the_same_to_the_last_bit_from_bytes_and_from_pixels(build, dtype):
    torch.manual_seed(0)
    options = {SmallNet: {}, WideResNet: {"depth": 10, "width": 1}, ResNet: {"depth": 18}}[build]
    net = build(10, mean=[0.286], std=[0.353], **options).to(dtype).eval()
    images, labels = some(16)
    seen = measure(net, [view_of(images, labels)])
    with torch.no_grad():
        logits = net(images)  # its own reading of bytes
    assert torch.equal(logits, net(images.to(dtype) / 255))
    expected = F.cross_entropy(logits, labels).item()
    assert seen.nll.item() == pytest.approx(expected, rel=1e-6)


class Steps(Augmentation):
    """Of anything: moves nothing."""

    grid = DistanceGrid((2,))

    def require(self, images):
        pass

    def apply(self, images, labels, distance, model, generator):
        return View(images, labels, distance.bucket, distance.strength)


class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Embedding(300, 4)
        self.inputs = []

    def forward(self, tokens):
        self.inputs.append(tokens)
        return self.net(tokens.long()).mean(dim=1)


@pytest.mark.parametrize(
    "inputs",
    [
        torch.randint(300, (6, 5)),
        torch.randint(300, (6, 5), dtype=torch.int32),
        torch.randint(300, (6, 5), dtype=torch.int16),
        100 * torch.rand(6, 5),
        torch.randint(2, (6, 5)).bool(),
    ],
    ids=lambda inputs: str(inputs.dtype),
)
def test_whatever_is_not_bytes_stays_as_it_is(inputs):
    net = Kept()
    calibrate(net, Steps(), [(inputs, torch.arange(6) % 4)])
    assert len(net.inputs) == 2
    for came in net.inputs:
        assert came.dtype == inputs.dtype
        assert torch.equal(came, inputs)


class Shifted(nn.Module):
    """As many people write a network: the normalisation in its forward, dropout and batch norm inside."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2),
            nn.BatchNorm2d(8),
            nn.Flatten(),
            nn.Dropout(0.5),
            nn.Linear(1352, 10),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.body((images - 0.286) / 0.353)


@pytest.fixture(scope="module")
def shifted():
    """A network that has learnt something, and its accuracy on the first 200 test images."""
    torch.manual_seed(0)
    net, data = Shifted(), load_embedded()
    images, labels = data.train.images[:1000].float() / 255, data.train.labels[:1000]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        for some_images, some_labels in zip(images.split(50), labels.split(50), strict=True):
            optimizer.zero_grad()
            F.cross_entropy(net(some_images), some_labels).backward()
            optimizer.step()
    net.eval()
    with torch.no_grad():
        right = net(data.test.images.float() / 255).argmax(dim=1) == data.test.labels
    return net, right.double().mean().item()


def test_torchscript_is_measured_on_bytes_as_it_is_on_pixels(shifted):
    net, accuracy = shifted
    assert accuracy > 0.6
    seen = measure(torch.jit.script(net), [view_of(*load_embedded().test)])
    assert seen.accuracy.item() == pytest.approx(accuracy, abs=1e-3)


@pytest.mark.parametrize("saved", ["in evaluation mode", "in training mode", "frozen"])
def test_a_torchscript_program_is_audited_at_its_accuracy(saved, shifted, tmp_path):
    net, accuracy = shifted
    script = torch.jit.script(net)
    if saved == "in training mode":
        script.train()
    if saved == "frozen":
        script = torch.jit.freeze(script)
    script.save(str(tmp_path / "net.ts"))
    net.eval()
    out = tmp_path / "audit.json"
    words = ["--data=embedded", f"--program={tmp_path / 'net.ts'}", "--augment=mixup", f"--out={out}"]
    assert main(["audit", *words]) == 0
    assert json.loads(out.read_text())["clean"]["accuracy"] == pytest.approx(accuracy, abs=1e-3)


class TakesBytes(nn.Module):
    """A network that has said so, and keeps what it was called with."""

    takes_bytes = True

    def forward(self, images):
        self.called_with = images
        return images.float().flatten(1)[:, :10]


def test_a_network_that_says_so_gets_bytes():
    network = TakesBytes()
    images, labels = some()
    measure(network, [view_of(images, labels)])
    assert network.called_with is images


def test_bytes_that_are_no_images_stay_as_they_are():
    network = TakesBytes()
    network.takes_bytes = False
    tokens = torch.randint(256, (4, 12), dtype=torch.uint8)
    measure(network, [view_of(tokens, torch.zeros(4, dtype=torch.int64))])
    assert network.called_with is tokens
