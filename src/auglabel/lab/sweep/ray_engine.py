"""The same done to many things by the workers of a Ray cluster; one that dies is replaced."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from auglabel.errors import UserError

RETRIES = 3  # of a task whose worker died
LET_IN = (
    "its versions of Ray and Python must be those here; if it has tokens, set RAY_AUTH_MODE=token here too"
)
Item = TypeVar("Item")


def each_on_ray(
    do: Callable[[Item], str | None],
    work: Sequence[Item],
    workers: int | None,
    address: str | None,
    gpus_per_run: int = 1,
) -> Generator[tuple[Item, str | None], None, None]:
    """`do` of every item, with its result, as they are done: by `workers` here, or by those at `address`.

    On a cluster the folder that this process is in must be the same on every machine: `do` is called in it.
    `workers` None takes all that the cluster has.
    """
    with _connected(workers, address) as ray:
        there = int(ray.cluster_resources().get("GPU", 0))
        if 1 < gpus_per_run > there:
            raise OSError(f"gpus_per_run is {gpus_per_run}, but the cluster has {there} GPUs.")
        gpus = gpus_per_run if there else 0  # Ray shows each task its own
        task = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)(_done)
        rest = iter(work)
        waiting: dict[Any, Item] = {}
        while True:
            few = None if workers is None else workers - len(waiting)
            waiting |= {task.remote(os.getcwd(), do, item): item for item in islice(rest, few)}
            if not waiting:
                return
            (ready, *_), _ = ray.wait(list(waiting), num_returns=1)
            item = waiting.pop(ready)
            try:
                told = ray.get(ready)
            except ray.exceptions.RayError as error:
                told = _trouble(error)
            yield item, told


@contextmanager
def _connected(workers: int | None, address: str | None) -> Iterator[Any]:
    """The module ray, once it has workers: `workers` of its own, or those at `address`."""
    ray = require_ray(address)
    # tasks may use a GPU without asking for one
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    own = {"address": "local", "num_cpus": workers, "include_dashboard": False}
    about = own if address is None else {"address": address}
    try:
        ray.init(**about, log_to_driver=False, logging_level=logging.ERROR)
    except (RuntimeError, ValueError, OSError) as error:
        hint = "" if address is None else f": {LET_IN}"
        raise OSError(f"{' '.join(str(error).split()).rstrip('.')}{hint}.") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _done(folder: str, do: Callable[[Item], str | None], item: Item) -> str | None:
    """In a worker, which may have been started anywhere."""
    try:
        os.chdir(folder)
    except OSError:
        return f"{socket.gethostname()} has no folder {folder}, which all machines must share."
    return do(item)


def _trouble(error: Exception) -> str:
    """What Ray says of a task that it has given up, in a line."""
    last = str(error).strip().rpartition("\n")[2]
    return f"Ray gave it up ({type(error).__name__}): {last}"


def require_ray(address: str | None) -> Any:
    """The module, and something that answers at `address`."""
    try:
        import ray
    except ImportError:
        raise ImportError("--engine ray needs ray: pip install 'auglabel[ray]'.") from None
    if address is not None:
        require_answer(address)
    return ray


def require_answer(address: str, seconds: float = 5.0) -> None:
    """Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise UserError(f"--address must be HOST:PORT of a Ray head node, got {address}.")
    try:
        socket.create_connection((host, int(port)), timeout=seconds).close()
    except OSError as error:
        raise OSError(
            f"no Ray answers at {address} ({error.strerror or error}): start one there with "
            f"ray start --head --port {port}, or leave --address out."
        ) from None
