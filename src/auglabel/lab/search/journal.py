"""An optuna study on disk that several processes ask and tell, any of which may be killed at any time.

Trials go by a number of ours: one that a dead process left running is found by its number, with its values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from typing_extensions import Self

from auglabel.errors import UserError
from auglabel.lab.recipe.seeding import seed_for

GUESSES = 10  # that may have been tried before, until values are drawn evenly
MOST_GUESSES = 1000  # and until one is tried again after all


class TrialJournal:
    """An optuna study in a journal file, to which every process appends."""

    def __init__(self, journal: Path, name: str) -> None:
        optuna = require_optuna()
        self.states = optuna.trial.TrialState
        self.turn = _Turn(journal.with_name(f".{journal.name}.lock"))
        lock: Any = self.turn
        with self.turn:
            _mend(journal)
            try:
                backend = optuna.storages.journal.JournalFileBackend(str(journal), lock_obj=lock)
                storage = optuna.storages.JournalStorage(backend)
            except (ValueError, TypeError, LookupError, AttributeError, AssertionError) as error:
                raise UserError(
                    f"{journal} is damaged ({error}): remove it to search anew; results stay."
                ) from None
            there = name in optuna.get_all_study_names(storage)
            begin = optuna.load_study if there else optuna.create_study
            self.study = begin(storage=storage, study_name=name)

    def trials(self) -> dict[int, Any]:
        """Those finished and those left running, by number; not those that failed."""
        counted = (self.states.RUNNING, self.states.COMPLETE)
        return {each.user_attrs["number"]: each for each in self._numbered() if each.state in counted}

    def last(self, number: int) -> Any | None:
        """The trial that had this number last, in whatever state."""
        return next(
            (each for each in reversed(self._numbered()) if each.user_attrs["number"] == number), None
        )

    def _numbered(self) -> list[Any]:
        return [each for each in self.study.trials if "number" in each.user_attrs]

    def ask(
        self, number: int, ranges: Mapping[str, Any], same: Callable[[Mapping[str, float]], object]
    ) -> Any:
        """A new trial of that number; its values are not the `same` as those of another, failed or not."""
        from optuna.samplers import RandomSampler, TPESampler

        seed = seed_for(0, self.study.study_name, number) % 2**32
        self.study.sampler = TPESampler(seed=seed)
        with self.turn:
            self._give_up_torn()
            tried = [same(each.params) for each in self._numbered()]
            trial, guesses = self.study.ask(dict(ranges)), 1
            while same(trial.params) in tried and guesses < MOST_GUESSES:
                self.study.tell(trial, state=self.states.FAIL)
                if guesses == GUESSES:
                    self.study.sampler = RandomSampler(seed=seed ^ 1)
                trial, guesses = self.study.ask(dict(ranges)), guesses + 1
            trial.set_user_attr("number", number)
        return trial

    def _give_up_torn(self) -> None:
        """Nobody else asks now: trials without a number are of processes that died while they asked."""
        for each in self.study.trials:
            if each.state == self.states.RUNNING and "number" not in each.user_attrs:
                self.study.tell(each.number, state=self.states.FAIL)

    def tell(self, trial: Any, loss: float) -> None:
        """End a trial that runs: with its loss, or as failed if that is nan."""
        failed = math.isnan(loss)
        state, value = (self.states.FAIL, None) if failed else (None, loss)
        self.study.tell(trial.number, value, state=state, skip_if_finished=True)

    def finished(self, trial: Any) -> bool:
        return bool(trial.state == self.states.COMPLETE)


class _Turn:
    """The journal's lock. The system opens it when its holder dies; optuna's own would stay for 30 s."""

    def __init__(self, path: Path) -> None:
        self.path, self.depth = path, 0
        self.file: IO[str] | None = None

    def acquire(self) -> bool:
        import fcntl

        if self.depth == 0:
            self.file = self.path.open("w")
            fcntl.flock(self.file, fcntl.LOCK_EX)
        self.depth += 1
        return True

    def release(self) -> None:
        self.depth -= 1
        if self.depth == 0 and self.file is not None:
            self.file.close()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


def require_optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise ImportError("--search needs optuna: pip install 'auglabel[sweep]'.") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _mend(journal: Path) -> None:
    """Drop a last line that a crash has torn: what comes after it could not be read."""
    if journal.exists() and not (text := journal.read_bytes()).endswith(b"\n"):
        with journal.open("r+b") as file:
            file.truncate(text.rfind(b"\n") + 1)
