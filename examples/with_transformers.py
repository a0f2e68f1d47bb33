"""AutoLabel with Hugging Face's Trainer: the six lines marked "# +" are all that it takes."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.utils.data import Dataset
from transformers import ResNetConfig, ResNetForImageClassification, Trainer, TrainingArguments

from auglabel.data.embedded import Split, load_embedded
from auglabel.integrations.transformers import AugMix, TransformersCallback  # +

MEAN, STD = [0.286], [0.353]


class Pictures(Dataset[dict[str, Any]]):
    """What an image processor gives: normalised images under `pixel_values`."""

    def __init__(self, split: Split) -> None:
        self.images = (split.images.float() / 255 - MEAN[0]) / STD[0]
        self.labels = split.labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> dict[str, Any]:
        return {"pixel_values": self.images[row], "labels": int(self.labels[row])}


def small_resnet() -> ResNetForImageClassification:
    """Random weights; where there is a network, `from_pretrained` gives better ones."""
    sizes: dict[str, Any] = {"embedding_size": 24, "hidden_sizes": [24, 48, 96], "depths": [1, 1, 1]}
    config = ResNetConfig(num_channels=1, layer_type="basic", **sizes | {"num_labels": 10})
    return ResNetForImageClassification(config)  # type: ignore[no-untyped-call]


def main(epochs: int = 5, rows: int = 3000, folder: str = "runs/with_transformers") -> Tensor:
    """Train; the label confidence of each bucket."""
    data = load_embedded()
    train_dataset = Pictures(Split(data.train.images[:rows], data.train.labels[:rows]))
    eval_dataset = Pictures(data.validation)
    labels = TransformersCallback(AugMix(), 10, validation=eval_dataset, mean=MEAN, std=STD)  # +
    args = TrainingArguments(
        folder,
        num_train_epochs=epochs,
        per_device_train_batch_size=50,
        learning_rate=5e-3,
        save_strategy="epoch",
        logging_strategy="epoch",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(
        small_resnet(),
        args,
        train_dataset=labels.training(train_dataset),  # +
        eval_dataset=eval_dataset,
        data_collator=labels.collate,  # +
        compute_loss_func=labels.loss,  # +
        callbacks=[labels],  # +
    )
    trainer.train()
    table = labels.learned.table
    print(f"label confidence {table.mean():.3f}, lowest {table.min():.3f}")
    return table


if __name__ == "__main__":
    main()
