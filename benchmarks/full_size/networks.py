"""Networks of accelerator papers and benchmarks at their published sizes, their losses, and random batches for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

__all__ = ["NETWORKS", "Network"]


@dataclass(frozen=True)
class Network:
    """A network.

    Attributes
    ----------
    model : callable
        Makes it.
    draw : callable
        Makes a random batch of so many samples.
    loss : callable
        ``loss(model, batch)``.
    batch : int
        Samples that a machine of two cores takes a step with.
    """

    model: Callable[[], nn.Module]
    draw: Callable[[int], object]
    loss: Callable[[nn.Module, object], torch.Tensor]
    batch: int


# -- images ------------------------------------------------------------------------------------------------------------
def _images(count: int):
    return torch.randn(count, 3, 224, 224), torch.randint(1000, (count,))


def _classified(model, batch):
    images, labels = batch
    return F.cross_entropy(model(images), labels)


def _mask_rcnn():
    return torchvision.models.detection.maskrcnn_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=91, min_size=256, max_size=256
    )


def _ssd():
    return torchvision.models.detection.ssd300_vgg16(weights=None, weights_backbone=None, num_classes=91)


def _things(count: int, side: int, masks: bool):
    boxes = torch.tensor([[20.0, 30.0, 120.0, 140.0], [100.0, 90.0, 220.0, 240.0]])
    target = {"boxes": boxes, "labels": torch.tensor([3, 17])}
    if masks:
        target["masks"] = torch.zeros(2, side, side, dtype=torch.uint8)
        target["masks"][0, 30:140, 20:120] = target["masks"][1, 90:240, 100:220] = 1
    return [torch.rand(3, side, side) for _ in range(count)], [target] * count


def _found(model, batch):
    return sum(model(*batch).values())


# -- sentences and speech ----------------------------------------------------------------------------------------------
class TransformerBig(nn.Module):
    """Encoder and decoder of 6 layers of 1024 and 4096, 16 heads, 32,000 words."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(32000, 1024)
        self.body = nn.Transformer(1024, 16, 6, 6, 4096, dropout=0.0, batch_first=True)
        self.head = nn.Linear(1024, 32000)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.head(self.body(self.embedding(source), self.embedding(target), tgt_mask=mask))


class GNMT(nn.Module):
    """4 + 4 layers of LSTMs of 1024, the first of the encoder both ways, attention, 32,000 words."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(32000, 1024)
        self.first = nn.LSTM(1024, 512, bidirectional=True, batch_first=True)
        self.encoder = nn.LSTM(1024, 1024, 3, batch_first=True)
        self.decoder = nn.LSTM(1024, 1024, batch_first=True)
        self.rest = nn.LSTM(2048, 1024, 3, batch_first=True)
        self.query, self.head = nn.Linear(1024, 1024), nn.Linear(1024, 32000)

    def forward(self, source, target):
        seen, _ = self.encoder(self.first(self.embedding(source))[0])
        x, _ = self.decoder(self.embedding(target))
        x = torch.cat([x, F.scaled_dot_product_attention(self.query(x), seen, seen)], -1)
        return self.head(self.rest(x)[0])


def _translated(model, batch):
    source, target = batch
    return F.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())


class DeepSpeech2(nn.Module):
    """Two convolutions, five GRUs of 800 both ways, 29 characters; of spectrograms of 161 frequencies."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 32, (41, 11), (2, 2), (20, 5)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20),
            nn.Conv2d(32, 32, (21, 11), (2, 1), (10, 5)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20),
        )  # fmt: skip
        self.body = nn.GRU(32 * 41, 800, 5, bidirectional=True, batch_first=True)
        self.head = nn.Linear(1600, 29)

    def forward(self, x):
        return self.head(self.body(self.conv(x).flatten(1, 2).transpose(1, 2))[0]).log_softmax(-1)


def _speech(count: int):
    return (
        torch.randn(count, 1, 161, 100), torch.randint(1, 29, (count, 12)), torch.full((count,), 50),
        torch.full((count,), 12),
    )  # fmt: skip


def _heard(model, batch):
    x, y, steps, letters = batch
    return F.ctc_loss(model(x).transpose(0, 1), y, steps, letters)


# -- ratings -----------------------------------------------------------------------------------------------------------
class NeuMF(nn.Module):
    """Factors of 64 and a perceptron 256-256-128-64, of MovieLens 20M's 138,493 users and 26,744 items."""

    def __init__(self, users=138493, items=26744, factors=64, sizes=(256, 256, 128, 64)):
        super().__init__()
        self.gmf = nn.ModuleList([nn.Embedding(users, factors), nn.Embedding(items, factors)])
        self.mlp = nn.ModuleList([nn.Embedding(users, sizes[0] // 2), nn.Embedding(items, sizes[0] // 2)])
        layers = [nn.Sequential(nn.Linear(*pair), nn.ReLU()) for pair in pairwise(sizes)]
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(factors + sizes[-1], 1)
        for table in (*self.gmf, *self.mlp):
            nn.init.normal_(table.weight, std=0.01)

    def forward(self, user, item):
        product = self.gmf[0](user) * self.gmf[1](item)
        hidden = self.layers(torch.cat([self.mlp[0](user), self.mlp[1](item)], -1))
        return self.head(torch.cat([product, hidden], -1)).squeeze(-1)


def _ratings(count: int):
    return torch.randint(138493, (count,)), torch.randint(26744, (count,)), torch.randint(2, (count,)).float()


def _rated(model, batch):
    user, item, y = batch
    return F.binary_cross_entropy_with_logits(model(user, item), y)


# -- pictures that are made --------------------------------------------------------------------------------------------
class WGAN(nn.Module):
    """DCGAN's generator and critic of 64 x 64 pixels."""

    def __init__(self, width=64):
        super().__init__()
        sizes = [8 * width, 4 * width, 2 * width, width]
        up = [nn.ConvTranspose2d(100, sizes[0], 4, bias=False), nn.BatchNorm2d(sizes[0]), nn.ReLU()]
        down = [nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)]
        for wide, narrow in pairwise(sizes):
            up += [nn.ConvTranspose2d(wide, narrow, 4, 2, 1, bias=False), nn.BatchNorm2d(narrow), nn.ReLU()]
        for wide, narrow in zip(sizes[:0:-1], sizes[-2::-1], strict=True):
            down += [nn.Conv2d(wide, narrow, 4, 2, 1, bias=False), nn.BatchNorm2d(narrow), nn.LeakyReLU(0.2)]
        self.generator = nn.Sequential(*up, nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh())
        self.critic = nn.Sequential(*down, nn.Conv2d(sizes[0], 1, 4, bias=False))

    def forward(self, noise, real):
        """The mean of the critic's numbers for what is made of noise, less that for real pictures."""
        made = self.critic(self.generator(noise))
        return made.mean() - self.critic(real).mean()


def _pictures(count: int):
    return torch.randn(count, 100, 1, 1), torch.rand(count, 3, 64, 64) * 2 - 1


# -- games -------------------------------------------------------------------------------------------------------------
class A3C(nn.Module):
    """Two convolutions and an LSTM of 256, of four frames of 84 x 84 pixels; a policy and a value."""

    def __init__(self, actions=18):
        super().__init__()
        self.see = nn.Sequential(
            nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.Flatten(),
            nn.Linear(32 * 81, 256), nn.ReLU(),
        )  # fmt: skip
        self.remember, self.policy, self.value = nn.LSTM(256, 256), nn.Linear(256, actions), nn.Linear(256, 1)

    def forward(self, x, state=None):
        """Of steps x games: logarithms of the policy, and values; with a state of the LSTM, the new one too."""
        seen = self.see(x.flatten(0, 1)).unflatten(0, x.shape[:2])
        h, after = self.remember(seen, state)
        found = self.policy(h).log_softmax(-1), self.value(h).squeeze(-1)
        return found if state is None else (*found, after)


def _games(count: int):
    return torch.rand(5, count, 4, 84, 84), torch.randint(18, (5, count)), torch.randn(5, count)


def actor_critic_loss(policy, found, action, value):
    """The loss of actions that were taken, of a policy's logarithms and values, for discounted returns."""
    advantage = value - found
    chosen = policy.gather(-1, action[..., None]).squeeze(-1)
    entropy = -(policy.exp() * policy).sum(-1)
    return (0.5 * advantage.square() - chosen * advantage.detach() - 0.01 * entropy).mean()


def _played(model, batch):
    x, action, value = batch
    return actor_critic_loss(*model(x), action, value)


def _conv(wide: int, narrow: int, kernel: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(wide, narrow, kernel, padding=kernel // 2, bias=False), nn.BatchNorm2d(narrow)
    )  # fmt: skip


class _Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = _conv(256, 256, 3), _conv(256, 256, 3)

    def forward(self, x):
        return F.relu(x + self.second(F.relu(self.first(x))))


class MiniGo(nn.Module):
    """A tower of 20 residual blocks of 256 channels, of boards of 19 x 19; a policy and a value."""

    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(_conv(17, 256, 3), nn.ReLU(), *(_Block() for _ in range(20)))
        self.policy = nn.Sequential(_conv(256, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 361, 362))
        self.value = nn.Sequential(
            _conv(256, 1, 1), nn.ReLU(), nn.Flatten(), nn.Linear(361, 256), nn.ReLU(), nn.Linear(256, 1), nn.Tanh()
        )

    def forward(self, x):
        x = self.tower(x)
        return self.policy(x), self.value(x)


def _boards(count: int):
    return torch.randint(2, (count, 17, 19, 19)).float(), torch.randint(362, (count,)), torch.ones(count, 1)


def _moved(model, batch):
    x, move, won = batch
    policy, value = model(x)
    return F.cross_entropy(policy, move) + F.mse_loss(value, won)


#: by the names of the papers; each says its source
NETWORKS = {
    # He et al. 2016
    "ResNet-50": Network(torchvision.models.resnet50, _images, _classified, 2),
    # He et al. 2017, with ResNet-50 and a feature pyramid; images of 256 x 256
    "Mask R-CNN": Network(_mask_rcnn, lambda count: _things(count, 256, True), _found, 1),
    # Liu et al. 2016, with VGG-16
    "SSD300": Network(_ssd, lambda count: _things(count, 300, False), _found, 1),
    # Vaswani et al. 2017; sentences of 16 words
    "Transformer (big)": Network(
        TransformerBig, lambda count: tuple(torch.randint(32000, (2, count, 16))), _translated, 2
    ),
    # Wu et al. 2016 as MLPerf trained it; sentences of 9 words
    "GNMT": Network(GNMT, lambda count: tuple(torch.randint(32000, (2, count, 9))), _translated, 2),
    # Amodei et al. 2016; a spoken second
    "Deep Speech 2": Network(DeepSpeech2, _speech, _heard, 1),
    # He et al. 2017, as MLPerf trained it
    "NeuMF": Network(NeuMF, _ratings, _rated, 1024),
    # Arjovsky et al. 2017: both losses at once
    "WGAN": Network(WGAN, _pictures, lambda model, batch: model(*batch), 8),
    # Mnih et al. 2016; five steps
    "A3C": Network(A3C, _games, _played, 16),
    # Silver et al. 2017, as MLPerf trained it
    "MiniGo": Network(MiniGo, _boards, _moved, 2),
}
