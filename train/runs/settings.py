"""What a training run does besides its arithmetic."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from softnum.train.nets import default_data, make_network
from softnum.train.runs.own import is_own
from softnum.train.update.optimisers import make_optimiser
from softnum.train.update.scaling import check_limit
from softnum.train.update.schedules import Schedule
from softnum.train.update.workers import check_bucket_bytes, check_workers

__all__ = ["Settings"]

_EVALUATION_SAMPLES = 160
_CONSTANTS = (
    "learning_rate", "adam_rate", "momentum", "nesterov", "beta1", "beta2", "epsilon", "trust", "weight_decay",
)  # fmt: skip
_SCHEDULE = ("schedule", "warmup", "decay_every", "decay_factor", "final_rate")


@dataclass(frozen=True)
class Settings:
    """All settings of a run except its arithmetic; the same for every design that is compared.

    Parameters
    ----------
    network : str
        Name of a reference network (`make_network`), or ``"file.py:function"``, a user-defined function that returns a
        `softnum.torch.Training`. The Training states its own data and optimiser, so that all below except ``samples``,
        ``held_out``, ``batch``, ``epochs`` and ``evaluate_every`` is left out.
    network_options : dict
        Parameters of the network.
    data : str, optional
        Name of a data set (`load_data`). Default: digits, or what the network takes instead (`default_data`); of one of
        the user's own "own".
    data_folder : str, optional
        The folder of its files; not part of a record.
    samples, held_out : int, optional
        How many of the first samples to train on, and of the first held-out samples to evaluate on. Default: all.
    batch : int
        Samples per iteration.
    epochs : int
        Passes over the training samples.
    optimiser : str
        Name of an optimiser (`softnum.train.update.optimisers`).
    learning_rate, adam_rate, momentum, nesterov, beta1, beta2, epsilon, trust, weight_decay : optional
        Constants of the optimiser. Default: its own; those of SGD are 0.1, 0.9 and, of weight decay, 1e-4.
    schedule : str
        Name of a learning-rate schedule (`Schedule`): constant, step, exponential or cosine.
    warmup : int
        Iterations of linear warm-up before it.
    decay_every, decay_factor, final_rate : optional
        Constants of the schedule.
    clip_norm, clip_value : float, optional
        Limits of gradients (`clip_gradients`): of their joint norm, and of every element.
    workers : int
        How many share a batch, in equal parts, and sum their gradients (``softnum.train.update.workers``).
    collective : str, optional
        How several workers sum gradients: the text of a `softnum.collective`, such as ``"ring(unit='bfloat16')"``,
        without ranks.
    compression : str, optional
        What several workers send of their gradients (``softnum.collectives.compression``), such as
        ``"top_k(share=0.01)"``; the record states its bytes.
    server : str, optional
        In place of a collective: a parameter server (``softnum.collectives.servers``), such as
        ``"stale_synchronous(bound=2)"``. A batch is one worker's, and an iteration one update.
    bucket_bytes : int, optional
        The size at which a bucket of gradients that several workers sum together ends. Default: PyTorch's, 1 MiB of
        the first, 25 MiB of others.
    evaluate_every : int, optional
        Iterations between evaluations on the held-out samples. Default: every 160 samples, or ten times an epoch if
        that is less often; at least every iteration. The last iteration is always followed by one.

    Examples
    --------
    >>> from softnum.train import Settings
    >>> Settings(epochs=2, batch=64).interval(samples=1352)  # an evaluation every 160 samples
    2
    """

    network: str = "mlp"
    network_options: dict = field(default_factory=dict)
    data: str | None = None
    data_folder: str | None = None
    samples: int | None = None
    held_out: int | None = None
    batch: int = 32
    epochs: int = 20
    optimiser: str = "sgd"
    learning_rate: float | None = None
    adam_rate: float | None = None
    momentum: float | None = None
    nesterov: bool | None = None
    beta1: float | None = None
    beta2: float | None = None
    epsilon: float | None = None
    trust: float | None = None
    weight_decay: float | None = None
    schedule: str = "constant"
    warmup: int = 0
    decay_every: int | None = None
    decay_factor: float | None = None
    final_rate: float | None = None
    clip_norm: float | None = None
    clip_value: float | None = None
    workers: int = 1
    collective: str | None = None
    compression: str | None = None
    server: str | None = None
    bucket_bytes: int | None = None
    evaluate_every: int | None = None

    def __post_init__(self) -> None:
        if is_own(self.network):
            self._check_own()
        elif self.data is None:
            object.__setattr__(self, "data", default_data(self.network))
        for name in ("batch", "epochs", "evaluate_every"):
            value = getattr(self, name)
            if name == "evaluate_every" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive integer, got {value!r}")
        check_limit("clip_norm", self.clip_norm)
        check_limit("clip_value", self.clip_value)
        check_workers(self.workers, self.collective, self.batch, self.compression, self.server)
        check_bucket_bytes(self.bucket_bytes)
        if self.server is not None and self.bucket_bytes is not None:
            raise ValueError(
                f"bucket_bytes = {self.bucket_bytes} is for gradients that several workers add, and a server adds "
                "none; leave it out"
            )

    def _check_own(self) -> None:
        """Raise ValueError if what a user's function says is said here too."""
        if self.data not in (None, "own"):
            raise ValueError(f"{self.network} states its own data; leave the data set {self.data!r} out")
        object.__setattr__(self, "data", "own")
        plain = {field.name: field.default for field in dataclasses.fields(self)}
        for name in ("data_folder", "optimiser", *_CONSTANTS, *_SCHEDULE, "clip_norm", "clip_value"):
            if getattr(self, name) != plain[name]:
                raise ValueError(
                    f"{self.network} states its own data and optimiser; leave {name} = {getattr(self, name)!r} out, or "
                    "let the function take it as an argument"
                )

        for name in ("compression", "server"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} = {getattr(self, name)!r} is for the networks that ship with softnum, and {self.network} "
                    "is a PyTorch model; leave it out"
                )

    def make_optimiser(self, parameters):
        """The optimiser for given parameters."""
        constants = {name: getattr(self, name) for name in _CONSTANTS}
        return make_optimiser(self.optimiser, parameters, **constants)

    def make_schedule(self) -> Schedule:
        """The schedule of the learning rate."""
        return Schedule(self.schedule, self.warmup, self.decay_every, self.decay_factor, self.final_rate)

    def describe_updates(self) -> dict:
        """Optimiser, schedule and limits as plain data for a record; what is not asked for is left out.

        Of a network of the user's own there is nothing here.
        """
        if is_own(self.network):
            return {}
        facts = {"optimiser": self.make_optimiser([]).describe(), "clip_norm": self.clip_norm}
        facts |= {"clip_value": self.clip_value, "schedule": self.make_schedule().describe()}
        return {name: value for name, value in facts.items() if value is not None}

    def make_network(self):
        """The network, of the size that its data ask for."""
        return make_network(self.network, data=self.data, data_folder=self.data_folder, **self.network_options)

    def interval(self, samples: int) -> int:
        """Iterations between evaluations, of training on so many samples."""
        return self.evaluate_every or max(1, max(_EVALUATION_SAMPLES, samples // 10) // self.batch)
