"""Train a trainer step by step, for tests of what it leaves behind."""

from auglabel.lab.runs.records import TIMES


def train(trainer, until=10**9, without=TIMES):
    """Train until a step, or to the end; the records of the epochs that ended, `without` some entries."""
    records = []
    while trainer.state.epoch < trainer.recipe.training.epochs:
        for _ in trainer.epoch(lambda step: step >= until):
            pass
        if trainer.state.batch < trainer.per_epoch:
            break
        records.append(trainer.end_epoch())
    return [{k: v for k, v in record.as_json().items() if k not in without} for record in records]
