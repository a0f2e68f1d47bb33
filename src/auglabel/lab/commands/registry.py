"""Every command and its summary, in the order of the help: each is the module here that has its name.

Such a module is imported when its command is used. It has `run(words)`, which returns an exit code or None,
and, for the help that arguments.py prints, USAGE (what comes before the options), OPTIONS (the dataclasses
that its flags are made from) and, if a recipe's options may follow, TAKES_RECIPE.
"""

COMMANDS = {
    "demo": "train and compare on the embedded images, two to three minutes",
    "train": "train a recipe, or go on with a run",
    "eval": "measure a run, or any network, on clean, attacked or corrupted images",
    "metrics": "how accurate and calibrated predictions in a file are, of any framework; with a verdict",
    "predict": "class and calibrated probabilities of pictures, by a run's network",
    "compare": "which labels to use: trains one-hot, label smoothing and AutoLabel with some seeds, and says",
    "sweep": "train a recipe with many values of its options and seeds, and choose; go on with a sweep",
    "corrupt": "write corrupted copies of a data set's test images, as CIFAR-C and ImageNet-C have them",
    "preview": "a picture of every bucket of an augmentation, with its learned confidence",
    "inspect": "the learned confidence per bucket, epoch by epoch",
    "audit": "which operations and magnitudes keep their label, for any trained network: no training",
    "report": "one page, complete in itself, that compares runs: tables, charts, pictures",
    "share": "a finished run as a folder for others: weights, labels, model card, in Hugging Face's layout",
    "reproduce": "a table or figure of the paper, ours beside theirs: table2, figure5, ..., all",
    "list": "what names there are: recipes, data, models, augmentations, labels, ...",
    "doctor": "versions, machine, speed of each precision, and what is wrong: for a bug report",
}
