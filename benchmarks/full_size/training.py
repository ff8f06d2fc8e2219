"""How each of the papers' networks is trained: functions for ``softnum train``, ``tta``, ``estimate`` and studies.

``python -m softnum estimate benchmarks.full_size.training:resnet50 --design te-delayed-scaling --device h100-sxm``

Each takes the folder of its data, and without one draws samples at random: enough for estimates, and to try a run out.
What a folder holds:

resnet50, wgan
    ``train`` and ``val``, each with a folder of pictures for each class, as torchvision unpacks ImageNet.
mask_rcnn, ssd300
    COCO: ``train2017``, ``val2017`` and ``annotations``; takes pycocotools.
transformer_big, gnmt
    ``train.npz`` and ``held_out.npz`` with integers ``source`` and ``target`` (sentences, words): numbers of 32,000
    words, 0 for what follows a sentence.
deep_speech2
    The same files with ``spectrograms`` (n, 161, steps), ``frames`` (n), ``letters`` (n, l) and ``lengths`` (n).
ncf
    The same files with ``users``, ``items`` and ``liked`` (n): MovieLens 20M, and negatives that were drawn.
minigo
    The same files with ``boards`` (n, 17, 19, 19), ``moves`` (n) and ``won`` (n).
a3c
    None, but the name of a game, like "ALE/Pong-v5"; takes gymnasium, ale-py and opencv.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torchvision
from torch.nn import functional as F
from torch.utils.data import Dataset, TensorDataset

import softnum.torch as st
from benchmarks.full_size.games import Games
from benchmarks.full_size.networks import A3C, NETWORKS, Network, actor_critic_loss

__all__ = [
    "a3c", "deep_speech2", "gnmt", "mask_rcnn", "minigo", "ncf", "resnet50", "ssd300", "transformer_big", "wgan",
]  # fmt: skip

_DRAWN = 4096  # samples, where there is no folder
_MEAN, _DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class _Drawn(Dataset):
    """Random samples, each by its number."""

    def __init__(self, network: Network, first: int, count: int) -> None:
        self.network, self.first, self.count = network, first, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.first + number)
            return tuple(part[0] for part in self.network.draw(1))


def _sets(network: Network, real, data: str | None):
    """What to train on, and what is held out: of a folder, or drawn."""
    if data is None:
        return _Drawn(network, 0, _DRAWN), _Drawn(network, _DRAWN, _DRAWN // 16)
    return real(Path(data).expanduser())


def _pictures(size: int, *, turned: bool):
    def sets(folder: Path):
        plain = torchvision.transforms
        ends = [plain.ToTensor(), plain.Normalize(_MEAN, _DEVIATION)]
        train = [plain.RandomResizedCrop(size), plain.RandomHorizontalFlip()] if turned else _middle(size)
        return (
            torchvision.datasets.ImageFolder(str(folder / "train"), plain.Compose([*train, *ends])),
            torchvision.datasets.ImageFolder(str(folder / "val"), plain.Compose([*_middle(size), *ends])),
        )

    return sets


def _middle(size: int) -> list:
    plain = torchvision.transforms
    return [plain.Resize(size * 8 // 7), plain.CenterCrop(size)]


class _Coco(Dataset):
    """Pictures of COCO that show things, with boxes, labels and masks as torchvision's detectors take them."""

    def __init__(self, folder: Path, part: str) -> None:
        annotations = folder / "annotations" / f"instances_{part}.json"
        plain = torchvision.datasets.CocoDetection(str(folder / part), str(annotations))
        keys = ("boxes", "labels", "masks")
        self.pictures = torchvision.datasets.wrap_dataset_for_transforms_v2(plain, target_keys=keys)
        self.numbers = [i for i, picture in enumerate(plain.ids) if plain.coco.getAnnIds(picture, iscrowd=False)]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, number: int):
        picture, target = self.pictures[self.numbers[number]]
        return torchvision.transforms.functional.to_tensor(picture), dict(target)


def _coco(folder: Path):
    return _Coco(folder, "train2017"), _Coco(folder, "val2017")


def _arrays(*names: str):
    """Sets of the arrays of these names in files of NumPy's."""

    def sets(folder: Path):
        found = []
        for part in ("train", "held_out"):
            with np.load(folder / f"{part}.npz") as file:
                found.append(TensorDataset(*(torch.from_numpy(file[name]) for name in names)))
        return found

    return sets


def _mean_loss(loss):
    """An `evaluate` that is the mean of a loss, by batches."""

    def evaluate(model, batches) -> dict:
        losses = [loss(model, batch).item() for batch in batches]
        return {"held_out_loss": sum(losses) / len(losses)}

    return evaluate


def _by_steps(*drops: float, every: int):
    def scheduler(optimizer, iterations: int):
        milestones = [iterations * drop // every for drop in drops]
        return torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones)

    return scheduler


def _warmed(warmup: int, then):
    """A factor that grows in the first steps, then that of a function of the step."""

    def scheduler(optimizer, iterations: int):
        return torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: (step + 1) / warmup if step < warmup else then(step + 1, iterations)
        )

    return scheduler


def resnet50(data: str | None = None, rate: float = 0.1):
    """90 epochs of ImageNet by SGD, the rate a tenth after each third of them; batch 256."""
    network = NETWORKS["ResNet-50"]
    train, held_out = _sets(network, _pictures(224, turned=True), data)
    return st.Training(
        network.model, train, held_out,
        lambda model: torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4),
        loss=network.loss, scheduler=_by_steps(1, 2, every=3), options={"elementwise": "torch"},
    )  # fmt: skip


def _detector(name: str, data: str | None, optimizer, **options):
    network = NETWORKS[name]
    if data is None:
        images, targets = network.draw(1)
        train = held_out = [(images[0], targets[0])] * 256
    else:
        train, held_out = _coco(Path(data).expanduser())

    def evaluate(model, batches) -> dict:
        model.train()  # detectors have losses in training mode alone
        return _mean_loss(network.loss)(model, batches)

    return st.Training(
        network.model, train, held_out, optimizer, loss=network.loss, evaluate=evaluate, metric="held_out_loss",
        collate=lambda samples: tuple(map(list, zip(*samples, strict=True))), **options,
    )  # fmt: skip


def mask_rcnn(data: str | None = None, rate: float = 0.02):
    """COCO for about 13 epochs of batch 16, the rate a tenth after 8/12 and 11/12 of them."""
    return _detector(
        "Mask R-CNN", data,
        lambda model: torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4),
        scheduler=_by_steps(8, 11, every=12),
        options={"elementwise": "torch", "known_as": {"roi_heads.box_predictor.cls_score": "fc"}},
    )  # fmt: skip


def ssd300(data: str | None = None, rate: float = 1e-3):
    """COCO for about 120 epochs of batch 32."""
    return _detector(
        "SSD300", data,
        lambda model: torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=5e-4),
        scheduler=_by_steps(8, 11, every=12), clip_norm=10.0,
        options={"elementwise": "torch", "known_as": {"head.classification_head.module_list.0": "fc"}},
    )  # fmt: skip


def _translation(name: str, data: str | None, optimizer, **options):
    network = NETWORKS[name]
    train, held_out = _sets(network, _arrays("source", "target"), data)

    def loss(model, batch):
        source, target = batch
        found = model(source, target[:, :-1]).flatten(0, 1)
        return F.cross_entropy(found, target[:, 1:].flatten(), ignore_index=-100 if data is None else 0)

    return st.Training(
        network.model, train, held_out, optimizer, loss=loss, evaluate=_mean_loss(loss), metric="held_out_loss",
        options={"elementwise": "torch", "known_as": {"head": "fc"}}, **options,
    )  # fmt: skip


def transformer_big(data: str | None = None, warmup: int = 4000):
    """WMT's English to German, Adam with the paper's warm-up; batch 700 sentences for 25,000 words of each language."""
    return _translation(
        "Transformer (big)", data,
        lambda model: torch.optim.Adam(model.parameters(), lr=(1024 * warmup) ** -0.5, betas=(0.9, 0.98), eps=1e-9),
        scheduler=_warmed(warmup, lambda step, iterations: (warmup / step) ** 0.5),
    )  # fmt: skip


def gnmt(data: str | None = None, rate: float = 1e-3):
    """WMT's English to German, Adam, gradients to a norm of 5, as MLPerf trained it; batch 1024."""
    return _translation(
        "GNMT", data, lambda model: torch.optim.Adam(model.parameters(), lr=rate), clip_norm=5.0,
        scheduler=_warmed(200, lambda step, iterations: 0.5 ** max(0, 6 * step // iterations - 3)),
    )  # fmt: skip


def deep_speech2(data: str | None = None, rate: float = 3e-4):
    """LibriSpeech for 20 epochs of batch 512, Nesterov's momentum, gradients to a norm of 400."""
    network = NETWORKS["Deep Speech 2"]
    train, held_out = _sets(network, _arrays("spectrograms", "letters", "frames", "lengths"), data)

    def loss(model, batch):
        x, letters, frames, lengths = batch
        if data is not None:
            x, frames = x[:, None].float(), (frames + 1) // 2  # the first convolution takes every second step
        return network.loss(model, (x, letters, frames, lengths))

    return st.Training(
        network.model, train, held_out,
        lambda model: torch.optim.SGD(model.parameters(), lr=rate, momentum=0.99, nesterov=True),
        loss=loss, evaluate=_mean_loss(loss), metric="held_out_loss", clip_norm=400.0,
        options={"elementwise": "torch", "known_as": {"head": "fc"}},
        scheduler=_warmed(1, lambda step, iterations: 1 / 1.2 ** (20 * step // iterations)),
    )  # fmt: skip


def ncf(data: str | None = None, rate: float = 5e-4):
    """MovieLens 20M for 20 epochs of batch 2048, Adam."""
    network = NETWORKS["NeuMF"]
    train, held_out = _sets(network, _arrays("users", "items", "liked"), data)

    def loss(model, batch):
        users, items, liked = batch
        return network.loss(model, (users, items, liked.float()))

    return st.Training(
        network.model, train, held_out, lambda model: torch.optim.Adam(model.parameters(), lr=rate),
        loss=loss, evaluate=_mean_loss(loss), metric="held_out_loss",
        options={"elementwise": "torch", "known_as": {"head": "fc"}},
    )  # fmt: skip


def wgan(data: str | None = None, rate: float = 5e-5, updates: int = 5, clip: float = 0.01):
    """Pictures of bedrooms (LSUN), five updates of the critic for each of the generator; batch 5 x 64.

    The paper updates by RMSProp, of which softnum has no formulas: updates are PyTorch's own.
    """
    network = NETWORKS["WGAN"]

    def scaled(folder: Path):
        return [_Pictures(part) for part in _pictures(64, turned=False)(folder)]

    train, held_out = _sets(network, scaled, data)

    def losses(model, batch):
        noise, real = batch
        for noise_part, real_part in zip(noise.chunk(updates), real.chunk(updates), strict=True):
            with torch.no_grad():
                made = model.generator(noise_part)
            yield "critic", model.critic(made).mean() - model.critic(real_part).mean()
            with torch.no_grad():
                for parameter in model.critic.parameters():
                    parameter.clamp_(-clip, clip)
        yield "generator", -model.critic(model.generator(noise_part)).mean()

    def evaluate(model, batches) -> dict:
        found = [-model(*batch).item() for batch in batches]
        return {"distance": sum(found) / len(found)}

    return st.Training(
        network.model, train, held_out,
        lambda model: {
            "critic": torch.optim.RMSprop(model.critic.parameters(), lr=rate),
            "generator": torch.optim.RMSprop(model.generator.parameters(), lr=rate),
        },
        loss=losses, evaluate=evaluate, metric="distance", update="torch",
        options={"elementwise": "torch", "first": "generator.0", "last": "critic.11", "known_as": {"critic.11": "fc"}},
    )  # fmt: skip


class _Pictures(Dataset):
    """Noise, and a picture from -1 to 1."""

    def __init__(self, pictures) -> None:
        self.pictures = pictures

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, number: int):
        picture, _ = self.pictures[number]
        deviation, mean = (torch.tensor(part)[:, None, None] for part in (_DEVIATION, _MEAN))
        return torch.randn(100, 1, 1), (picture * deviation + mean) * 2 - 1


def minigo(data: str | None = None, rate: float = 0.01):
    """Positions of games that the network played itself; SGD with momentum, batch 4096."""
    network = NETWORKS["MiniGo"]
    train, held_out = _sets(network, _arrays("boards", "moves", "won"), data)

    def loss(model, batch):
        boards, moves, won = batch
        return network.loss(model, (boards.float(), moves.long(), won.float().reshape(-1, 1)))

    def evaluate(model, batches) -> dict:
        right = count = 0
        for boards, moves, _ in batches:
            right += int((model(boards.float())[0].argmax(1) == moves).sum())
            count += len(moves)
        return {"accuracy": right / count}

    return st.Training(
        network.model, train, held_out,
        lambda model: torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4),
        loss=loss, evaluate=evaluate, scheduler=_by_steps(1, 2, every=3),
        options={"elementwise": "torch", "known_as": {"policy.3": "fc"}},
    )  # fmt: skip


def a3c(game: str | None = None, steps: int = 5, updates: int = 160000, rate: float = 7e-4, discount: float = 0.99):
    """Games of the Arcade Learning Environment, as many at a time as the batch has samples, in steps of five.

    The games go on from iteration to iteration; a sample is the number of an update, and its place in the batch that of
    a game. The networks of A3C's workers, which update the same weights at any time, are here one that all games share,
    as in A2C. The paper updates by RMSProp: updates are PyTorch's own.
    """
    network, options = NETWORKS["A3C"], {"elementwise": "torch", "known_as": {"policy": "fc"}}
    if game is None:
        train, held_out = _sets(network, None, None)

        def collate(samples):
            x, action, value = (torch.stack(part) for part in zip(*samples, strict=True))
            return x.transpose(0, 1), action.transpose(0, 1), value.transpose(0, 1)

        return st.Training(
            network.model, train, held_out, lambda model: torch.optim.RMSprop(model.parameters(), lr=rate),
            loss=network.loss, evaluate=_mean_loss(network.loss), metric="held_out_loss", update="torch",
            collate=collate, options=options,
        )  # fmt: skip
    games = Games(game, steps=steps, discount=discount)

    def loss(model, batch):
        return games.loss(model, range(len(batch)), actor_critic_loss)

    return st.Training(
        lambda: A3C(games.actions), range(updates), range(4),
        lambda model: torch.optim.RMSprop(model.parameters(), lr=rate, alpha=0.99, eps=0.1), loss=loss,
        evaluate=lambda model, batches: {"reward": games.reward(model, [n for part in batches for n in part])},
        metric="reward", update="torch", clip_norm=40.0, collate=list, kept={"games": games}, options=options,
        scheduler=_warmed(1, lambda step, iterations: 1 - step / iterations),
    )  # fmt: skip
