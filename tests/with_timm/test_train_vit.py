"""A ViT of timm's through `auglabel train`: AdamW, warm-up, cosine, and labels that are learned."""

from pathlib import Path

from PIL import Image

from auglabel import cli
from auglabel.data.embedded import load_embedded
from auglabel.lab.runs.run import Run


def pictures(folder: Path) -> None:
    """Three classes of 40 pictures, which the recipe brings to 64 x 64."""
    images, labels = load_embedded().train
    for wanted in range(3):
        (folder / str(wanted)).mkdir(parents=True)
        for number, image in enumerate(images[labels == wanted][:40]):
            picture = Image.fromarray(image[0].numpy()).convert("RGB").resize((32, 32))
            picture.save(folder / str(wanted) / f"{number}.png")


def test_a_vit_is_trained_with_adamw_and_measured(tmp_path, capsys):
    pictures(tmp_path / "pictures")
    words = ["--data.root", str(tmp_path / "pictures"), "--model", "timm:test_vit"]
    words += ["--model.img_size", "64", "--optimizer", "adamw", "--epochs", "6", "--batch_size", "16"]
    assert cli.main(["train", "folder", *words, "--out", str(tmp_path / "run")]) == 0, capsys.readouterr().err
    run = Run(tmp_path / "run")
    assert run.recipe().optimizer.name == "adamw"
    assert (tmp_path / "run" / "model.safetensors").is_file()
    assert cli.main(["eval", str(tmp_path / "run"), "--resamples", "0"]) == 0, capsys.readouterr().err
    first, *_, last = (epoch.loss for epoch in run.epochs())
    assert last < first


def test_a_vit_of_another_size_than_the_images_gets_one_sentence(tmp_path, capsys):
    pictures(tmp_path / "pictures")
    words = ["--data.root", str(tmp_path / "pictures"), "--data.size", "32", "--model.img_size", "64"]
    words += ["--model", "timm:vit_tiny_patch16_224", "--out", str(tmp_path / "run")]
    assert cli.main(["train", "folder", *words]) == 1
    said = capsys.readouterr().err
    assert "timm:vit_tiny_patch16_224 does not take the 3 x 32 x 32 images of " in said
    assert said.endswith(" Set a size that fits with --data.size or --model.img_size.\n")
    assert said.count("\n") == 1
