"""Parts of a user's own, named as module:function: trained, resumed, swept, measured, never by a file."""

import json
import sys
from pathlib import Path

import pytest
import yaml
from made_runs import make_run

from auglabel import cli
from auglabel.augment.randaug import RandAug
from auglabel.lab.parts.catalogue import augmentation_for, data_set_for, labels_for, loss_function
from auglabel.lab.pictures.show import sheet_of
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.options import RecipeError
from auglabel.lab.recipe.read import help_of_recipe, read_recipe
from auglabel.lab.report import report
from auglabel.lab.sweep import forecast
from auglabel.lab.sweep.job import Job, Results
from auglabel.lab.train.trainer import Trainer, learned_for
from auglabel.models.small import SmallNet

MODULE = '''
import torch
import torch.nn.functional as F

from auglabel import Augmentation, DistanceGrid, LabelPolicy, View
from auglabel.labels import TablePolicy
from auglabel.data.source import InMemory, in_memory


class Fade(Augmentation):
    """Towards black; at strength 1 nothing is left"""

    def __init__(self, levels: int = 3, most: float = 1.0) -> None:
        self.grid, self.most = DistanceGrid((levels,)), most

    def apply(self, images, labels, distance, model, generator) -> View:
        kept = 1 - self.most * distance.strength[:, None, None, None]
        return View((images * kept).to(images.dtype), labels, distance.bucket, distance.strength)


class Learned(TablePolicy):
    """As sure of a bucket as the network is right there"""

    adaptive = True

    def __init__(self, num_classes: int, grid: DistanceGrid) -> None:
        super().__init__(num_classes, torch.ones(len(grid)))

    def update(self, seen) -> None:
        self.table.copy_(seen.accuracy.nan_to_num(1.0).to(self.table))


class Sure(LabelPolicy):
    def __init__(self, num_classes: int, sure: float = 0.9) -> None:
        super().__init__(num_classes)
        self.sure = sure

    def confidence(self, view):
        return torch.full_like(view.strength, self.sure)


class PerClass(LabelPolicy):
    def __init__(self, num_classes: int, sure: list[float]) -> None:
        super().__init__(num_classes)
        if len(sure) != num_classes:
            raise ValueError(f"sure must have {num_classes} values, got {len(sure)}.")


def stripes(count: int = 120):
    """Stripes that stand or lie"""
    labels = torch.arange(count) % 2
    wave = ((torch.arange(12) % 6 < 3) * 200).to(torch.uint8)
    images = torch.stack([wave.expand(12, 12), wave[:, None].expand(12, 12)])[labels][:, None]
    return in_memory("stripes", ("standing", "lying"), InMemory(images, labels), test=None)


def squared(model, images, view, policy, again):
    return (model(view.images).softmax(dim=1) - policy(view)).square().sum(dim=1).mean()


NOT_A_FUNCTION = 3
'''
PARTS = {"data": "own_parts:stripes", "augment": "own_parts:Fade", "labels": "own_parts:Sure"}
PARTS |= {"loss": "own_parts:squared"}
TYPED = [f"--{option}={name}" for option, name in PARTS.items()]
OUT = Path("run")
TINY = [
    "--split.train=80",
    "--split.validation=20",
    "--split.test=20",
    "--epochs=2",
    "--batch_size=20",
    "--widths=[4,4,4]",
]


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own_parts.py").write_text(MODULE + "open('imported', 'w').close()\n")
    yield
    sys.modules.pop("own_parts", None)


def train(*words, code=0):
    assert cli.main(["train", *TINY, "--tracker=none", "--out=run", *words]) == code


def test_options_come_from_the_signature_of_the_users_own():
    recipe = read_recipe("embedded", [*TYPED, "--augment.levels=5", "--sure", "0.8", "--count=60"])
    assert recipe.augment == ("own_parts:Fade", {"levels": 5, "most": 1.0})
    assert recipe.labels == ("own_parts:Sure", {"sure": 0.8})
    assert recipe.data == ("own_parts:stripes", {"count": 60})
    assert recipe.own_parts == PARTS
    assert "Towards black" in help_of_recipe("embedded", TYPED)
    with pytest.raises(RecipeError, match=r'augment has no option "level" for own_parts:Fade.*"levels"'):
        read_recipe("embedded", [*TYPED, "--augment.level=5"])
    with pytest.raises(RecipeError, match=r"^--augment.levels: augment.levels must be a whole number, got x"):
        read_recipe("embedded", [*TYPED, "--augment.levels=x"])


def test_an_own_policy_is_built_for_the_classes_of_the_data_alone():
    recipe = read_recipe("embedded", ["--labels=own_parts:PerClass", f"--labels.sure={[0.9] * 10}"])
    assert learned_for(recipe, num_classes=10).policy.num_classes == 10
    with pytest.raises(ValueError, match=r"sure must have 2 values, got 10"):
        learned_for(recipe, num_classes=2)


def test_a_run_of_own_parts_trains_resumes_and_is_measured():
    train(*TYPED, "--max_steps=5")
    assert not (OUT / "model.safetensors").exists()
    train("--resume", *TYPED)
    assert (OUT / "model.safetensors").exists()
    assert cli.main(["eval", "run", *TYPED, "--resamples=0"]) == 0
    assert cli.main(["audit", "run", *TYPED]) == 0
    assert json.loads((OUT / "audit.json").read_text())["augment"]["name"] == "own_parts:Fade"
    assert cli.main(["preview", "run", *TYPED]) == 0
    assert cli.main(["share", "run", "shared", *TYPED]) == 0


def test_a_report_shows_pictures_of_an_own_augmentation_that_was_typed(capsys):
    train(*TYPED, "--labels=autolabel", "--alpha=0.1")
    assert cli.main(["report", "run", "--out=page.html", *TYPED]) == 0
    assert "There are no pictures" not in capsys.readouterr().out
    assert cli.main(["report", "run", "--out=page.html"]) == 0
    assert "There are no pictures of run: run/recipe.yaml, line 5: " in capsys.readouterr().out


def test_own_parts_typed_for_a_report_leave_other_runs_as_they_are(capsys, monkeypatch):
    learns = ["--data=own_parts:stripes", "--labels=autolabel", "--alpha=0.1", "--epochs=1"]
    train(*learns, "--augment=own_parts:Fade")
    train(*learns, "--augment=randaug", "--out=other")
    drawn = []

    def kept_and_drawn(recipe, *rest, **options):
        drawn.append(recipe)
        return sheet_of(recipe, *rest, **options)

    monkeypatch.setattr(report, "sheet_of", kept_and_drawn)
    assert cli.main(["report", "run", "other", "--out=page.html", *TYPED]) == 0
    assert "There are no pictures" not in capsys.readouterr().out
    assert [recipe.augment.name for recipe in drawn] == ["own_parts:Fade", "randaug"]
    assert [recipe.labels.name for recipe in drawn] == ["autolabel", "autolabel"]


def test_a_report_gives_the_network_to_an_own_augmentation(capsys, monkeypatch):
    train(*TYPED, "--labels=autolabel", "--alpha=0.1", "--epochs=1")
    own, given = sys.modules["own_parts"].Fade, []
    apply = own.apply
    monkeypatch.setattr(own, "apply", lambda self, *words: given.append(words[3]) or apply(self, *words))
    assert cli.main(["report", "run", "--out=page.html", *TYPED]) == 0
    assert "There are no pictures" not in capsys.readouterr().out
    assert given
    assert all(isinstance(model, SmallNet) for model in given)


def test_a_report_notes_that_an_own_part_failed_and_a_defect_of_ours_ends_it(capsys, monkeypatch):
    train(*TYPED, "--labels=autolabel", "--alpha=0.1", "--epochs=1")

    def fails(*words):
        raise KeyError("lost")

    monkeypatch.setattr(sys.modules["own_parts"].Fade, "apply", fails)
    assert cli.main(["report", "run", "--out=page.html", *TYPED]) == 0
    assert "There are no pictures of run: KeyError: 'lost'" in capsys.readouterr().out
    assert "There are no pictures of run: KeyError: " in Path("page.html").read_text()
    make_run(Path("ours"), "randaug_autolabel")
    monkeypatch.setattr(RandAug, "apply", fails)
    assert cli.main(["report", "ours", "--out=ours.html", *TYPED]) == 1
    assert "this is a defect of auglabel" in capsys.readouterr().err


def test_own_parts_are_swept_beside_ours():
    words = ["--over=augment=own_parts:Fade,randaug", "--seeds=1", "--measure=clean", "--workers=1"]
    typed = [word for word in TYPED if not word.startswith("--augment")]
    assert cli.main(["sweep", "embedded", *words, *typed, *TINY, "--out=swept"]) == 0
    points = json.loads(Path("swept/summary.json").read_text())["points"]
    assert [point["values"]["augment"] for point in points] == ["own_parts:Fade", "randaug"]


def test_a_sweep_keeps_the_labels_that_an_own_policy_learned():
    words = ["--labels=own_parts:Learned", "--seeds=1", "--measure=clean", "--workers=1", "--out=swept"]
    assert cli.main(["sweep", "embedded", "--over=momentum=0.9", *words, *TINY]) == 0
    (file,) = Path("swept/results").glob("*.json")
    assert json.loads(file.read_text())["label_spread"]["highest"] <= 1


def test_the_cost_of_an_own_policy_is_tried_apart_from_labels_that_do_not_learn(tmp_path, monkeypatch):
    tried = []

    def timings(jobs, limit, told):
        tried.extend(job.name for job in jobs.values())
        return {
            kind: forecast.Timing(7200.0 if ":" in job.recipe.labels.name else 3600.0, rough=False)
            for kind, job in jobs.items()
        }

    monkeypatch.setattr(forecast, "timings", timings)
    names = ("one_hot", "own_parts:Learned", "own_parts:Sure", "own_parts:Learned")
    jobs = [
        Job(f"{seed}", read_recipe("embedded", [*TINY, f"--labels={name}", f"--seed={seed}"]))
        for seed, name in enumerate(names)
    ]
    assert forecast.forecast(jobs, Results(tmp_path / "results"), 60).hours == [1, 2, 2, 2]
    assert tried == ["0", "3", "2"]  # the second differs from the last in its seed alone


def test_a_loss_of_the_users_own_is_called_by_the_trainer():
    recipe = read_recipe("embedded", [*TYPED, *TINY])
    trainer = Trainer(recipe, *data_for(recipe), device="cpu")
    assert trainer.loss is sys.modules["own_parts"].squared
    assert list(trainer.epoch(lambda step: step == 1)) == [20]
    # at most 2: each probability is off by at most 1
    assert 0 < float(trainer.recent[0]) / 20 < 2


@pytest.mark.parametrize(("option", "name"), PARTS.items())
def test_a_file_cannot_name_a_part_that_the_user_did_not_type(tmp_path, option, name):
    (tmp_path / "theirs.yaml").write_text(yaml.safe_dump({"base": "embedded", option: name}, sort_keys=False))
    with pytest.raises(
        RecipeError, match=rf'line 2: "{name}" would be imported and run.*say so: --{option} {name}\.$'
    ):
        read_recipe("theirs.yaml")
    assert not (tmp_path / "imported").exists()
    assert read_recipe("theirs.yaml", typed=[name]).own_parts == {option: name}
    assert (tmp_path / "imported").exists()


def test_neither_a_regime_in_a_file_nor_a_base_can_name_one(tmp_path):
    (tmp_path / "below.yaml").write_text("regimes: {randaug: {augment: {name: 'own_parts:Fade'}}}\n")
    (tmp_path / "theirs.yaml").write_text("base: below.yaml\nregime: randaug\n")
    with pytest.raises(RecipeError, match=r'below\.yaml, line 1: "own_parts:Fade" would be imported and run'):
        read_recipe("theirs.yaml")
    assert not (tmp_path / "imported").exists()


def test_a_run_goes_on_only_with_the_parts_typed_again(capsys, tmp_path):
    train(*TYPED, "--max_steps=5")
    (tmp_path / "imported").unlink()
    sys.modules.pop("own_parts")
    train("--resume", code=1)
    assert "would be imported and run, and no file may ask for that" in capsys.readouterr().err
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("own_parts:Fad", r'^--augment: the module "own_parts" .*has no "Fad"\. Did you mean "Fade"\?'),
        ("own_parts:NOT_A_FUNCTION", r"^--augment: .*must be a function or a class, got int 3"),
        ("nowhere_at_all:Fade", r'^--augment: there is no module "nowhere_at_all"'),
        (":Fade", r'^--augment: augmentation: name one of your own as module:function, got ":Fade"'),
        ("own_parts:stripes", r"^--augment: own_parts:stripes must return Augmentation, got DataSet"),
    ],
)
def test_a_name_that_is_none_is_one_sentence(name, complaint):
    with pytest.raises(RecipeError, match=complaint):
        read_recipe("embedded", [f"--augment={name}"])


def test_each_part_must_return_what_its_place_needs():
    grid = augmentation_for("randaug").grid
    with pytest.raises(TypeError, match=r"own_parts:Fade must return DataSet, got Fade"):
        data_set_for("own_parts:Fade")
    with pytest.raises(TypeError, match=r"own_parts:stripes must return LabelPolicy, got DataSet"):
        labels_for("own_parts:stripes", 2, grid)
    assert loss_function("own_parts:squared").__name__ == "squared"
