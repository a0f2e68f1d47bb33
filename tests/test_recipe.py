import sys
from types import ModuleType

import pytest
import torch
import yaml

from auglabel.lab.parts.catalogue import AUGMENTATIONS, DATASETS, REGIMES
from auglabel.lab.recipe.options import RecipeError
from auglabel.lab.recipe.read import RECIPES, help_of_recipe, read_recipe, recipe_names, recipe_text
from auglabel.lab.recipe.yamlfile import with_checksum
from auglabel.lab.runs.run import Run


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        return str(path)

    return write


ROOT = {
    "cifar10": ["--data.root=x"],
    "cifar100": ["--data.root=x"],
    "imagenet": ["--data.root=x"],
    "folder": ["--data.root=x"],
}


def autolabel(alpha):
    """The labels of a recipe that starts from one-hot."""
    return ("autolabel", {"alpha": alpha, "start_table": None, "replay": None})


@pytest.mark.parametrize("name", ["embedded", "folder", "cpu-cifar10", "cpu-cifar100", "fast-cifar100"])
@pytest.mark.parametrize("regime", [name for name in REGIMES if name.endswith("_autolabel")])
def test_recipes_that_are_not_the_papers_need_no_alpha(name, regime):
    words = [f"--regime={regime}", *words_for(name)]
    assert read_recipe(name, words).labels == autolabel("auto")
    assert read_recipe(name, [*words, "--alpha=auto"]) == read_recipe(name, words)
    assert read_recipe(name, [*words, "--alpha=0.3"]).labels == autolabel(0.3)


def test_an_alpha_is_auto_or_a_number():
    with pytest.raises(RecipeError, match=r"labels.alpha must be a number or one of 'auto', got fast"):
        read_recipe("embedded", ["--alpha=fast"])


def words_for(name):
    data = name.rpartition("/")[2].removeprefix("cpu-").removeprefix("fast-").partition("-")[0]
    return ROOT.get(data, [])


@pytest.mark.parametrize("name", recipe_names())
def test_every_built_in_recipe_reads_and_its_resolved_form_reads_back_equal(name, tmp_path):
    recipe = read_recipe(name, words_for(name))
    (tmp_path / "again.yaml").write_text(recipe.as_yaml())
    again = read_recipe(str(tmp_path / "again.yaml"))
    assert again == recipe
    assert recipe.differences(again) == []


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_the_papers_cifar_recipe_is_that_of_the_paper(name):
    recipe = read_recipe(name, ["--data.root=x"])
    assert (recipe.training.epochs, recipe.training.batch_size) == (200, 128)
    assert recipe.model == ("wide_resnet", {"depth": 28, "width": 10})
    assert recipe.prepare == {"pad": 2, "flip": True}
    assert (recipe.optimizer.momentum, recipe.optimizer.nesterov) == (0.9, True)
    assert (recipe.optimizer.weight_decay, recipe.optimizer.decay) == (4e-4, "everything")
    assert recipe.split["validation"] == 5000
    assert recipe.calibrate.rule == "exact"  # every image in every bucket


def test_the_papers_imagenet_recipe_is_that_of_the_paper():
    recipe = read_recipe("imagenet", ["--data.root=x"])
    assert (recipe.training.epochs, recipe.training.batch_size) == (90, 256)
    assert recipe.model == ("resnet", {"depth": 50})
    assert (recipe.optimizer.weight_decay, recipe.optimizer.decay) == (2e-4, "not_norms")
    assert (recipe.split["validation"], recipe.split["validation_from"]) == (0.5, "test")  # 25,000 of 50,000
    assert recipe.calibrate.rule == "exact"


@pytest.mark.parametrize(
    ("name", "regime", "option", "value"),
    [
        ("cifar100", "randaug_autolabel", "alpha", 0.01),
        ("imagenet", "randaug_autolabel", "alpha", 0.02),
        ("cifar100", "augmix_autolabel", "alpha", 0.02),
        ("imagenet", "augmix_autolabel", "alpha", 0.02),
        ("cifar10", "at_autolabel", "alpha", 0.5),
        ("cifar100", "at_autolabel", "alpha", 0.005),
        ("cifar10", "mixup_autolabel", "alpha", 0.005),
        ("cifar100", "mixup_autolabel", "alpha", 0.008),
        ("cifar100", "randaug_ls", "rho", 0.02),
        ("cifar10", "at_ls", "rho", 0.02),
        ("imagenet", "randaug_ls", "rho", 0.01),
        ("imagenet", "augmix_ls", "rho", 0.01),
    ],
)
def test_each_regime_has_the_papers_value_on_each_data_set(name, regime, option, value):
    recipe = read_recipe(name, ["--data.root=x", f"--regime={regime}"])
    assert recipe.labels.options[option] == value
    changed = read_recipe(name, ["--data.root=x", f"--regime={regime}", f"--{option}=0.7"])
    assert changed.labels.options[option] == 0.7


@pytest.mark.parametrize("name", ["cifar100", "cpu-cifar10", "embedded"])
def test_vanilla_does_nothing_beyond_what_all_regimes_do(name):
    recipe = read_recipe(name, [*words_for(name), "--regime=vanilla"])
    other = read_recipe(name, [*words_for(name), "--regime=randaug"])
    assert recipe.prepare == other.prepare
    images = torch.arange(2 * 3 * 8 * 8, dtype=torch.uint8).view(2, 3, 8, 8)
    view = AUGMENTATIONS[recipe.augment.name](**recipe.augment.options)(images, torch.tensor([0, 1]))
    assert torch.equal(view.images, images)


def test_a_file_cannot_run_a_command(written, tmp_path):
    path = written(f"model: {{name: 'os:system', command: 'touch {tmp_path / 'ran'}'}}\n")
    with pytest.raises(RecipeError, match=r'"os:system" would be imported and run.*--model os:system'):
        read_recipe(path)
    assert not (tmp_path / "ran").exists()
    assert read_recipe(written("model: collections:Counter\n"), typed=["collections:Counter"]).model.name


@pytest.fixture
def timm(monkeypatch):
    """A timm of one network."""

    def create_model(name, pretrained, num_classes, in_chans):
        return torch.nn.Linear(in_chans, num_classes)

    module = ModuleType("timm")
    module.create_model, module.list_models = create_model, lambda: ["resnet18"]
    monkeypatch.setitem(sys.modules, "timm", module)


def test_a_file_names_networks_of_timm_but_none_to_be_fetched_from_a_hub(written, timm):
    recipe = read_recipe(written("model: {name: 'timm:resnet18', pretrained: true}\n"))
    assert (recipe.model.name, recipe.model.options) == (
        "timm:resnet18",
        {"pretrained": True, "img_size": None},
    )
    with pytest.raises(RecipeError, match=r'line 1: model has no option "checkpoint_path" for timm:resnet18'):
        read_recipe(written("model: {name: 'timm:resnet18', checkpoint_path: a.pth}\n"))
    hub = "timm:hf-hub:someone/network"
    with pytest.raises(RecipeError, match=rf'"{hub}" would be fetched from elsewhere.*say so: --model {hub}'):
        read_recipe(written(f"model: {hub}\n"))
    assert read_recipe(written(f"model: {hub}\n"), typed=[hub]).model.name == hub
    assert read_recipe("embedded", [f"--model={hub}"]).model.name == hub


def test_a_misspelt_option_without_its_section_gets_its_near_match():
    with pytest.raises(RecipeError, match=r'no option "alhpa"\. Did you mean "labels.alpha"'):
        read_recipe("embedded", ["--alhpa=1"])


def test_the_cpu_recipes_are_as_small_as_their_names_promise():
    small, large = (read_recipe(f"cpu-{name}", ["--data.root=x"]) for name in ("cifar10", "cifar100"))
    assert (small.split["train"], small.split["validation"], small.training.batch_size) == (2000, 1000, 64)
    assert (large.split["train"], large.split["validation"], large.training.batch_size) == (10000, 2000, 128)
    assert small.model.options["widths"] == [24, 48, 96]
    assert large.model.options["widths"] == [48, 96, 192]
    for recipe in (small, large):
        assert recipe.training.epochs == 40
        assert recipe.prepare == {"pad": 0, "flip": True}
        assert (recipe.optimizer.learning_rate, recipe.optimizer.weight_decay) == (0.1, 5e-4)
        assert recipe.schedule == ("cosine", {"warmup": 0.1})


def test_flags_win_over_the_file_and_the_file_over_defaults(written):
    path = written("epochs: 7\nbatch_size: 9\nlabels: {name: label_smoothing, rho: 0.1}\n")
    recipe = read_recipe(path, ["--batch-size", "11", "--labels.rho=0.2"])
    assert recipe.training.epochs == 7
    assert recipe.training.batch_size == 11
    assert recipe.labels == ("label_smoothing", {"rho": 0.2})
    assert recipe.training.seed == 0


def test_naming_another_entry_forgets_the_options_of_the_one_before(written):
    path = written("augment: {name: randaug, m_max: 3}\nlabels: {name: autolabel, alpha: 0.5}\n")
    recipe = read_recipe(path, ["--labels", "one_hot"])
    assert recipe.labels == ("one_hot", {})
    assert recipe.augment.options["m_max"] == 3
    assert read_recipe(path, ["--labels", "autolabel"]).labels == autolabel(0.5)


def test_a_regime_sets_augmentation_labels_and_loss_and_the_layers_own_options_win(written):
    path = written("regime: at_autolabel\nlabels: {alpha: 0.3}\n")
    recipe = read_recipe(path)
    assert recipe.augment.name == "adversarial"
    assert recipe.labels == autolabel(0.3)
    trades = read_recipe(path, ["--regime", "trades", "--augment.steps", "5"])
    assert trades.training.loss == "trades"
    assert trades.labels == ("one_hot", {})
    assert trades.augment.options["against"] == "prediction"
    assert trades.augment.options["steps"] == 5


def test_gamma_stands_in_a_recipe_whose_loss_has_one_and_in_no_other(written):
    assert "gamma" not in read_recipe("embedded").as_dict()
    focal = read_recipe("embedded", ["--loss=focal"])
    assert focal.as_dict()["gamma"] == 3.0
    sharper = read_recipe("embedded", ["--loss=focal", "--gamma=2"])
    assert focal.differences(sharper) == ["gamma: 2.0, not 3.0"]
    assert read_recipe(written(sharper.as_yaml())) == sharper


def test_another_loss_leaves_nothing_of_gamma(written):
    path = written(read_recipe("embedded", ["--regime=randaug", "--loss=focal", "--gamma=2"]).as_yaml())
    plain = read_recipe("embedded", ["--regime=randaug"])
    assert read_recipe(path, ["--loss=cross_entropy"]) == plain
    assert read_recipe(path, ["--regime=randaug"]) == plain
    assert read_recipe(path).changed("loss", "cross_entropy") == plain
    assert read_recipe(path, ["--loss=focal"]).training.gamma == 2.0
    with pytest.raises(ValueError, match=r"^--gamma: gamma is an option of focal, not of cross_entropy"):
        read_recipe(path, ["--loss=cross_entropy", "--gamma=2"])


def test_a_regime_among_the_flags_leaves_nothing_of_the_file_s_options(written):
    path = written("augment: {name: adversarial, fixed: true}\n")
    assert read_recipe(path, ["--regime", "at_multi"]).augment.options["fixed"] is False


def test_the_section_may_be_left_out_where_only_one_has_the_option():
    assert read_recipe("embedded", ["--alpha", "0.25"]).labels.options["alpha"] == 0.25
    with pytest.raises(RecipeError, match=r"could be augment.name or data.name"):
        read_recipe("embedded", ["--name", "x"])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("epochs: 3\nepoch: 4\n", r'mine.yaml, line 2: there is no option "epoch". Did you mean "epochs"'),
        (
            "augment:\n  name: augmix\n  depth: 3\n",
            r'line 3: augment has no option "depth" for augmix.*max_depth',
        ),
        ("epochs: x\n", r"line 1: epochs must be a whole number, got x"),
        ("\n\nbatch_size: 0\n", r"line 3: batch_size must be at least 1, got 0"),
        ("augment: {name: randaug, m_max: 11}\n", r"line 1: m_max must be in 1..10, got 11"),
        ("labels: label_smoothing\n", r"line 1: labels needs rho"),
        ("labels: {name: label_smoothing, rho: 2}\n", r"line 1: rho must be in \[0, 1\], got 2"),
        ("optimizer: {decay: some}\n", r"line 1: optimizer.decay must be one of 'everything', 'not_norms'"),
        ("augment: randaugg\n", r'line 1: there is no augmentation "randaugg".*Did you mean "randaug"'),
        ("loss: hinge\n", r'line 1: .*there is no loss "hinge"'),
        ("seed: 1\nseed: 2\n", r'line 2: "seed" is there twice, first on line 1'),
        ("a: [1\n", r"line 2: this is not a recipe's YAML"),
        ("a: !!python/object/apply:os.system [ls]\n", r"not a recipe's YAML"),
        ("- 1\n", r"a recipe holds lines such as"),
        ("regime: nope\n", r'line 1: there is no regime "nope"'),
        ("model: nowhere:build\n", r'line 1: "nowhere:build" would be imported and run, and no file may'),
        ("regimes: 3\n", r"line 1: regimes must hold a regime's sections, got None"),
        ("regimes: {nope: {}}\n", r'line 1: there is no regime "nope"'),
        (
            "regime: trades\nlabels: {name: autolabel, alpha: 1}\n",
            r"line 2: the loss trades takes labels as they",
        ),
        ("regime: augmix_ls\nloss: jensen_shannon\n", r"the loss jensen_shannon takes labels as they are"),
        ("ema: 1\n", r"line 1: ema must be below 1"),
        ("calibrate: {memory: 1}\n", r"line 1: .*memory must be below 1"),
        ("calibrate: {visits: 0}\n", r"line 1: .*visits must be at least 1"),
        ("calibrate: {memory: -0.1}\n", r"line 1: .*memory must be"),
        ("calibrate: {rule: best}\n", r"line 1: .*rule must be one of 'pooled', 'exact', got best"),
        ("optimizer: {clip: 0}\n", r"line 1: clip must be above 0"),
        ("data: 3\n", r"line 1: data must name an entry, got 3"),
        (
            "split: {train: many}\n",
            r"line 1: split.train must be a whole number or a number or null, got many",
        ),
        ("schedule: {name: steps, drops: [2]}\n", r"line 1: drops must be in \[0, 1\]"),
        ("optimizer: {momentum: 0}\n", r"line 1: nesterov needs a momentum"),
        ("optimizer: 3\n", r"optimizer"),
    ],
)
def test_a_mistake_in_a_recipe_is_named_with_its_line(written, text, complaint):
    with pytest.raises(ValueError, match=complaint) as caught:
        read_recipe(written(text))
    assert "\n" not in str(caught.value)


def test_a_file_lies_on_top_of_its_base_and_flags_on_both(written, tmp_path):
    (tmp_path / "below.yaml").write_text(
        "base: embedded\nepochs: 7\nbatch_size: 9\nregimes: {mixup_autolabel: {labels: {alpha: 0.7}}}\n"
    )
    path = written("base: below.yaml\nbatch_size: 11\nlabels: {alpha: 0.3}\n")
    recipe = read_recipe(path, ["--seed=5"])
    training = recipe.training
    assert (training.seed, training.batch_size, training.epochs) == (5, 11, 7)  # flag, file, its base
    assert recipe.split["train"] == 1000  # the base of that
    assert recipe.labels == autolabel(0.3)
    assert recipe.augment.name == "randaug"
    regime = read_recipe(path, ["--regime=mixup_autolabel"])
    assert (regime.augment.name, regime.labels) == ("mixup", autolabel(0.7))


def test_a_file_that_changes_nothing_is_its_base(written):
    assert read_recipe(written("base: embedded\n")) == read_recipe("embedded")


def test_a_regime_on_top_of_a_base_forgets_the_options_of_the_bases_own(written):
    recipe = read_recipe(written("base: embedded\nregime: augmix_ls\nlabels: {rho: 0.2}\n"))
    assert (recipe.augment.name, recipe.labels) == ("augmix", ("label_smoothing", {"rho": 0.2}))


def test_a_base_is_looked_for_beside_the_file_that_names_it(written, tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "upper.yaml").write_text("base: ../mine.yaml\n")
    written("base: embedded\nepochs: 3\n")
    monkeypatch.chdir("/")
    assert read_recipe(str(tmp_path / "deep" / "upper.yaml")).training.epochs == 3


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("epochs: 3\nbase: embeded\n", r'mine.yaml, line 2: there is no recipe "embeded".*"embedded"'),
        ("base: none.yaml\n", r"mine.yaml, line 1: there is no file .*none.yaml"),
        ("base: 3\n", r"mine.yaml, line 1: base must name a recipe, got 3"),
        ("base: [embedded]\n", r"mine.yaml, line 1: base must name a recipe, got \['embedded'\]"),
        ("base: mine.yaml\n", r"mine.yaml, line 1: mine.yaml has this very recipe as its base"),
        ("base: other.yaml\n", r"other.yaml, line 2: mine.yaml has this very recipe as its base"),
        ("base: wrong.yaml\n", r'wrong.yaml, line 1: there is no option "epoch"'),
    ],
)
def test_a_base_that_cannot_be_used_is_named_with_its_line(written, tmp_path, text, complaint):
    (tmp_path / "other.yaml").write_text("epochs: 3\nbase: mine.yaml\n")
    (tmp_path / "wrong.yaml").write_text("epoch: 3\n")
    with pytest.raises(RecipeError, match=complaint) as caught:
        read_recipe(written(text))
    assert "\n" not in str(caught.value)


def test_an_option_is_changed_as_the_recipe_with_it_would_be_read():
    recipe = read_recipe("embedded")
    for key, value in {
        "seed": 3,
        "labels.alpha": 0.5,
        "split.train": 77,
        "prepare.flip": True,
        "optimizer.momentum": 0.8,
        "schedule.warmup": 0.2,
    }.items():
        assert recipe.changed(key, value) == read_recipe("embedded", [f"--{key}={value}".lower()])
    assert recipe == read_recipe("embedded")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--epochs", "many"], r"^--epochs: epochs must be a whole number, got many"),
        (["--labels.aplha=1"], r'^--labels.aplha: labels has no option "aplha" for autolabel.*"alpha"'),
        (["embedded"], r'an option such as --epochs 10 was expected, got "embedded"'),
        (["--seed=-1"], r"^--seed: seed must be at least 0"),
        (["--ema=2"], r"^--ema: ema must be in \[0, 1\]"),
        (["--clip=-1"], r"clip must be"),
        (["--loss=focal", "--gamma=-1"], r"^--gamma: gamma must be a finite number of at least 0"),
        (["--gamma=2"], r"^--gamma: gamma is an option of focal, not of cross_entropy: leave it out\.$"),
        (["--clip=a"], r"^--clip: optimizer.clip must be a number or null, got a"),
        (["--widths=8,16,24"], r"model.widths must be a list, got 8,16,24. Type it as \[8,16,24\]\.$"),
        (["--widths=[8,16]"], r"model.widths must be a list of 3 values, got \[8, 16\]\.$"),
        (["--operations", "rotate,color"], r"a list, got rotate,color. Type it as \[rotate,color\]\.$"),
        (["--lr=1"], r'^--lr: there is no option "lr". Did you mean "optimizer.learning_rate"\?'),
        (["--optimizer.lr=1"], r'optimizer has no option "lr".* Did you mean "learning_rate"\?'),
        (["--wd=0"], r'Did you mean "optimizer.weight_decay"\?'),
        (["--bs=8"], r'Did you mean "batch_size"\?'),
        (["--batch=8"], r'Did you mean "batch_size"\?'),
        (["--epochs=1e3"], r"^--epochs: epochs must be a whole number, got 1000\.0\.$"),
        (["--optimizer=adam"], r'^--optimizer: there is no optimizer "adam"\. .* Did you mean "adamw"\?$'),
        (["--optimizer=adamw", "--optimizer.momentum=0.5"], r'optimizer has no option "momentum" for adamw'),
        (["--optimizer=adamw", "--betas=[0.9,1]"], r"^--betas: betas must be below 1"),
        (["--optimizer=adamw", "--betas=[0.9]"], r"^--betas: optimizer.betas must be a list of 2 values"),
        (["--nesterov=0"], r"^--nesterov: optimizer.nesterov must be true or false, got 0\.$"),
        (["--widths=8"], r"model.widths must be a list, got 8. Type it as \[8\]\.$"),
        (["--widths=[8,16,x]"], r"model.widths must be a whole number, got x\.$"),
        (["--validation=[1]"], r"split.validation must be a whole number or a number, got \[1\]\.$"),
    ],
)
def test_a_mistake_among_the_flags_is_named(words, complaint):
    with pytest.raises(RecipeError, match=complaint):
        read_recipe("embedded", words)


def test_an_unknown_recipe_gets_the_nearest_name():
    with pytest.raises(RecipeError, match=r'no recipe "cpu-cifar1".*Did you mean "cpu-cifar10"'):
        read_recipe("cpu-cifar1")


def test_a_file_that_is_not_there_or_not_text_is_one_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_recipe(str(tmp_path / "none.yaml"))
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not a text file"):
        read_recipe(str(tmp_path / "bytes.yaml"))


def test_differences_name_the_option_and_both_values_but_not_where_data_lie():
    first = read_recipe("cpu-cifar10", ["--data.root=a"])
    other = read_recipe("cpu-cifar10", ["--data.root=b", "--alpha=0.2", "--seed=4"])
    assert first.differences(other) == ["labels.alpha: 0.2, not auto", "seed: 4, not 0"]


def test_help_lists_the_options_of_the_entries_chosen():
    text = help_of_recipe("embedded", ["--augment", "augmix"])
    assert "--augment.max_depth" in text
    assert "--augment.m_max" not in text
    assert "passes over the training images" in text


def test_recipes_say_what_they_are_for():
    for name in recipe_names():
        assert recipe_text(name).startswith("# "), name
        assert isinstance(yaml.safe_load(recipe_text(name)), dict)


def test_a_row_of_the_table_is_the_recipe_of_its_printed_text(written):
    for name in ("paper/cifar10-at_ls-0.03", "paper-8gpu/imagenet-augmix", "cpu/fashion-vanilla_at"):
        assert read_recipe(written(recipe_text(name)), words_for(name)) == read_recipe(name, words_for(name))


def test_a_row_of_the_table_can_be_the_base_of_a_file(written):
    recipe = read_recipe(written("base: paper/cifar10-at_ls-0.03\nepochs: 3\n"), ["--data.root=x"])
    assert (recipe.training.epochs, recipe.augment.options["epsilon_max"]) == (3, 0.03)
    assert recipe.labels == ("label_smoothing", {"rho": 0.1})


def test_the_recipes_that_people_use_are_listed_without_the_published_rows():
    usual = {path.stem for path in RECIPES.glob("*.yaml")} - {"rows"}
    assert set(recipe_names(rows=False)) == usual
    rows = [name for name in recipe_names() if name not in usual]
    assert len(rows) == 168  # 60 of the paper's size, again at the published batch, 48 of a CPU's
    assert all(name.startswith(("paper/", "paper-8gpu/", "cpu/")) for name in rows)


@pytest.mark.parametrize("name", DATASETS)
def test_every_data_set_can_be_named_and_explained(name):
    """No option of a data set may be called as the section's own."""
    assert "--data.name" in help_of_recipe("embedded", [f"--data={name}"])


def test_the_recipe_of_a_run_is_known_when_it_was_damaged(tmp_path, written):
    run = Run(tmp_path / "run")
    run.begin(read_recipe("embedded"))
    text = run.recipe_file.read_text()
    assert run.recipe().training.epochs == read_recipe("embedded").training.epochs
    run.recipe_file.write_text(text.replace("epochs: 40", "epochs: 41"))
    with pytest.raises(ValueError, match=r"recipe.yaml is damaged: its checksum does not fit its content"):
        run.recipe()
    seal, content = text.split("\n", 1)
    run.recipe_file.write_text(content.replace("epochs: 40", "epochs: 41"))  # changed on purpose
    assert run.recipe().training.epochs == 41
    run.recipe_file.write_text(f"{content}{seal}\n")  # as runs of before have it
    assert run.recipe().training.epochs == 40
    run.recipe_file.write_text(f"{content.replace('epochs: 40', 'epochs: 41')}{seal}\n")
    with pytest.raises(ValueError, match="is damaged"):
        run.recipe()


def test_ccat_without_a_radius_means_largest_in_a_run_and_drawn_in_a_recipe_of_the_user(tmp_path, written):
    recipe = read_recipe("embedded", ["--regime=ccat"])
    lines = recipe.as_yaml().splitlines(keepends=True)
    assert "labels: {name: ccat, rho: 10.0, radius: drawn}\n" in lines
    old = "".join(lines).replace(", radius: drawn", "")
    run = Run(tmp_path / "run")
    run.path.mkdir()
    run.recipe_file.write_text(with_checksum(old))
    assert run.recipe().labels.options == {"rho": 10.0, "radius": "largest"}
    with pytest.raises(ValueError, match=r"cannot go on .* has labels.radius: drawn, not largest"):
        run.require_free(recipe, resume=True)
    assert read_recipe(str(written(old))).labels.options == {"rho": 10.0, "radius": "drawn"}


def test_the_recipe_of_a_run_cut_short_anywhere_is_named(tmp_path):
    run = Run(tmp_path / "run")
    run.begin(read_recipe("embedded"))
    whole = run.recipe_file.read_bytes()
    assert len(whole) > 500
    for size in range(len(whole)):
        run.recipe_file.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"is damaged|is empty or cut short"):
            run.recipe()


def test_differences_are_short_whatever_a_recipe_holds():
    one = read_recipe("embedded", ["--regime=randaug_autolabel"])
    many = read_recipe("embedded", ["--regime=randaug_autolabel", f"--calibrate.visits={10**300}"])
    assert one.differences(many) == [f"calibrate.visits: 1{'0' * 56}..., not {one.calibrate.visits}"]


def test_a_recipe_may_speak_of_checksums(written):
    assert (
        read_recipe(written("# checksum of the data: 12ab\nbase: embedded\nepochs: 3\n")).training.epochs == 3
    )


def test_a_file_much_longer_than_a_recipe_is_not_read(written):
    path = written("a: 1\n" * 300_000)
    with pytest.raises(ValueError, match="more than 131,072 bytes, which no recipe has"):
        read_recipe(path)


def test_a_small_file_cannot_hold_millions_of_values(written):
    """Ten lists of ten lists of ten lists ..., each written down once."""
    lists = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}' if n else 'x'] * 10)}]\n" for n in range(12))
    with pytest.raises(ValueError, match="holds more than 20,000 values, which no recipe has"):
        read_recipe(written(lists))


@pytest.mark.parametrize("value", ["2001-99-99", "!!bool maybe", "!!timestamp x", "9" * 5000, "0b_"])
def test_values_that_yaml_itself_stumbles_over_are_named_with_their_file(written, value):
    with pytest.raises(ValueError, match=r"mine\.yaml.*: this is not a recipe's YAML \(.*\)\.$"):
        read_recipe(written(f"seed: {value}\n"))


def test_a_number_too_large_for_a_float_is_named(written):
    with pytest.raises(RecipeError, match=r"mine\.yaml, line 2: labels\.alpha is too large a number\.$"):
        read_recipe(written(f"regime: randaug_autolabel\nlabels: {{alpha: 1{'0' * 400}}}\n"))


def test_another_optimiser_comes_with_its_own_rate_and_decay(tmp_path):
    recipe = read_recipe("embedded", ["--optimizer=adamw", "--clip=1"])
    assert recipe.optimizer.name == "adamw"
    assert (recipe.optimizer.learning_rate, recipe.optimizer.weight_decay) == (1e-3, 0.05)
    assert (recipe.optimizer.decay, recipe.optimizer.clip) == ("not_norms_or_biases", 1)
    (tmp_path / "again.yaml").write_text(recipe.as_yaml())
    assert read_recipe(str(tmp_path / "again.yaml")) == recipe
    (tmp_path / "mine.yaml").write_text("base: embedded\noptimizer: {name: adamw, learning_rate: 5e-5}\n")
    assert read_recipe(str(tmp_path / "mine.yaml")).optimizer.learning_rate == 5e-5
    assert read_recipe("embedded").optimizer.name == "sgd"
