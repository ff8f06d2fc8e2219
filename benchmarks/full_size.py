"""First steps of the networks that accelerator papers train, at full size, in PyTorch and in designs' arithmetic.

``python -m benchmarks.full_size`` trains each network for two steps on a small synthetic batch, by PyTorch alone, in
binary32, in FP8 with the sums of Hopper's tensor cores, and in MXFP8, each in a process of its own, and prints what it
took. Rows that are in the file (``--out``) already are not run again. Two cores carry none of these to an accuracy.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from rich.console import Console
from rich.table import Table

DESIGNS = {
    "PyTorch": None,
    "binary32": "a-float32",
    "Hopper": str(Path(__file__).parent / "designs" / "hopper.toml"),
    "MXFP8": "i-mxfp8",
}


def _classified(model, *shape: int, classes: int):
    import torch
    from torch.nn import functional as F

    x, y = torch.randn(*shape), torch.randint(classes, (shape[0],))
    return model, lambda: F.cross_entropy(model(x), y)


def resnet50():
    """He et al. 2016: two images of 224 x 224."""
    import torchvision

    return _classified(torchvision.models.resnet50(), 2, 3, 224, 224, classes=1000)


def mask_rcnn():
    """He et al. 2017, with ResNet-50 and a feature pyramid: an image of 256 x 256 with two things."""
    import torch
    import torchvision

    model = torchvision.models.detection.maskrcnn_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=91, min_size=256, max_size=256
    )
    boxes = torch.tensor([[20.0, 30.0, 120.0, 140.0], [100.0, 90.0, 220.0, 240.0]])
    masks = torch.zeros(2, 256, 256, dtype=torch.uint8)
    masks[0, 30:140, 20:120] = masks[1, 90:240, 100:220] = 1
    target = {"boxes": boxes, "labels": torch.tensor([3, 17]), "masks": masks}
    image = torch.rand(3, 256, 256)
    return model, lambda: sum(model([image], [target]).values())


def ssd():
    """Liu et al. 2016, SSD300 with VGG-16: an image of 300 x 300 with two things."""
    import torch
    import torchvision

    model = torchvision.models.detection.ssd300_vgg16(weights=None, weights_backbone=None, num_classes=91)
    boxes = torch.tensor([[20.0, 30.0, 120.0, 140.0], [100.0, 90.0, 220.0, 240.0]])
    image, target = torch.rand(3, 300, 300), {"boxes": boxes, "labels": torch.tensor([3, 17])}
    return model, lambda: sum(model([image], [target]).values())


def transformer_big():
    """Vaswani et al. 2017, "big", 32,000 words: two pairs of sentences of 16 words."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(32000, 1024)
            self.body = nn.Transformer(1024, 16, 6, 6, 4096, dropout=0.0, batch_first=True)
            self.head = nn.Linear(1024, 32000)

        def forward(self, source, target):
            mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
            return self.head(self.body(self.embedding(source), self.embedding(target), tgt_mask=mask))

    model = Model()
    source, target = torch.randint(32000, (2, 2, 16))
    return model, lambda: F.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())


def gnmt():
    """Wu et al. 2016 as MLPerf trains it: 4 + 4 layers of LSTMs of 1024, attention, 32,000 words; two pairs of 8."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Model(nn.Module):
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

    model = Model()
    source, target = torch.randint(32000, (2, 2, 9))
    return model, lambda: F.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())


def deep_speech2():
    """Amodei et al. 2016: two convolutions, five GRUs of 800 both ways, 29 characters; a spoken second."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Model(nn.Module):
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

    model = Model()
    x, y = torch.randn(1, 1, 161, 100), torch.randint(1, 29, (1, 12))
    sizes = torch.tensor([50]), torch.tensor([12])
    return model, lambda: F.ctc_loss(model(x).transpose(0, 1), y, *sizes)


def ncf():
    """He et al. 2017, NeuMF on MovieLens 20M as MLPerf trained it: 138,493 users, 26,744 items; 1024 pairs."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Model(nn.Module):
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

    model = Model()
    user, item, y = torch.randint(138493, (1024,)), torch.randint(26744, (1024,)), torch.randint(2, (1024,)).float()
    return model, lambda: F.binary_cross_entropy_with_logits(model(user, item), y)


def wgan():
    """Arjovsky et al. 2017, with DCGAN's generator and critic of 64 x 64 pixels: both losses of 8 pictures."""
    import torch
    from torch import nn

    class Model(nn.Module):
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
            made = self.critic(self.generator(noise))
            return made.mean() - self.critic(real).mean()

    model = Model()
    noise, real = torch.randn(8, 100, 1, 1), torch.rand(8, 3, 64, 64) * 2 - 1
    return model, lambda: model(noise, real)


def a3c():
    """Mnih et al. 2016, with an LSTM: 5 steps of 16 games, 84 x 84 pixels of 4 frames, 18 actions."""
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.see = nn.Sequential(
                nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.Flatten(),
                nn.Linear(32 * 81, 256), nn.ReLU(),
            )  # fmt: skip
            self.remember, self.policy, self.value = nn.LSTM(256, 256), nn.Linear(256, 18), nn.Linear(256, 1)

        def forward(self, x):
            seen = self.see(x.flatten(0, 1)).unflatten(0, x.shape[:2])
            h, _ = self.remember(seen)
            return self.policy(h).log_softmax(-1), self.value(h).squeeze(-1)

    model = Model()
    x, action, value = torch.rand(5, 16, 4, 84, 84), torch.randint(18, (5, 16)), torch.randn(5, 16)

    def loss():
        policy, found = model(x)
        advantage = value - found
        chosen = policy.gather(-1, action[..., None]).squeeze(-1)
        entropy = -(policy.exp() * policy).sum(-1)
        return (0.5 * advantage.square() - chosen * advantage.detach() - 0.01 * entropy).mean()

    return model, loss


def minigo():
    """Silver et al. 2017 as MLPerf's MiniGo: a tower of 20 residual blocks of 256 channels; 2 boards of 19 x 19."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    def conv(wide, narrow, kernel):
        return nn.Sequential(
            nn.Conv2d(wide, narrow, kernel, padding=kernel // 2, bias=False), nn.BatchNorm2d(narrow)
        )  # fmt: skip

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = conv(256, 256, 3), conv(256, 256, 3)

        def forward(self, x):
            return F.relu(x + self.second(F.relu(self.first(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tower = nn.Sequential(conv(17, 256, 3), nn.ReLU(), *(Block() for _ in range(20)))
            self.policy = nn.Sequential(conv(256, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 361, 362))
            self.value = nn.Sequential(
                conv(256, 1, 1), nn.ReLU(), nn.Flatten(), nn.Linear(361, 256), nn.ReLU(), nn.Linear(256, 1), nn.Tanh()
            )

        def forward(self, x):
            x = self.tower(x)
            return self.policy(x), self.value(x)

    model = Model()
    x, move, won = torch.randint(2, (2, 17, 19, 19)).float(), torch.randint(362, (2,)), torch.ones(2, 1)

    def loss():
        policy, value = model(x)
        return F.cross_entropy(policy, move) + F.mse_loss(value, won)

    return model, loss


NETWORKS: dict[str, Callable] = {
    "ResNet-50": resnet50,
    "Mask R-CNN": mask_rcnn,
    "SSD300": ssd,
    "Transformer (big)": transformer_big,
    "GNMT": gnmt,
    "Deep Speech 2": deep_speech2,
    "NeuMF": ncf,
    "WGAN": wgan,
    "A3C": a3c,
    "MiniGo": minigo,
}


def run(network: str, arithmetic: str, steps: int) -> dict:
    """The first steps of a network in an arithmetic, in this process."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model, loss = NETWORKS[network]()
    row = {"network": network, "arithmetic": arithmetic, "parameters": sum(p.numel() for p in model.parameters())}
    if DESIGNS[arithmetic] is not None:
        import softnum.torch as st

        st.convert(model, DESIGNS[arithmetic], elementwise="torch", quiet=True)
        scaler = st.GradScaler(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    losses, times = [], []
    for step in range(steps):
        torch.manual_seed(step)  # of what networks draw themselves, such as the boxes that Mask R-CNN looks at
        started = time.process_time()
        optimizer.zero_grad()
        found = loss()
        (found if DESIGNS[arithmetic] is None else scaler.scale(found)).backward()
        optimizer.step()
        times.append(time.process_time() - started)
        losses.append(found.item())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return row | {"losses": losses, "seconds": min(times), "peak_gib": peak}


def main() -> None:
    """Run what is not in the file yet, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.full_size", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("full-size.jsonl"), help="rows, one for each run")
    parser.add_argument("--only", nargs="+", choices=NETWORKS, default=list(NETWORKS), metavar="NETWORK")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--row", nargs=2, metavar=("NETWORK", "ARITHMETIC"), help="run one in this process")
    options = parser.parse_args()
    if options.row:
        print(json.dumps(run(*options.row, options.steps)))
        return
    rows = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    for network in options.only:
        for arithmetic in DESIGNS:
            if any((row["network"], row["arithmetic"]) == (network, arithmetic) for row in rows):
                continue
            command = [sys.executable, "-m", "benchmarks.full_size", "--steps", str(options.steps), "--row"]
            done = subprocess.run([*command, network, arithmetic], capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{network}, {arithmetic}:\n{done.stderr[-3000:]}")
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            with options.out.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(network, arithmetic, f"{rows[-1]['seconds']:.1f} s", file=sys.stderr)
    table = Table("Network", "Parameters", "Arithmetic", "s/step", "x PyTorch", "Peak GiB", "Losses")
    plain = {row["network"]: row["seconds"] for row in rows if row["arithmetic"] == "PyTorch"}
    for row in rows:
        table.add_row(
            row["network"], f"{row['parameters'] / 1e6:.1f} M", row["arithmetic"], f"{row['seconds']:.2f}",
            f"{row['seconds'] / plain[row['network']]:.1f}", f"{row['peak_gib']:.1f}",
            ", ".join(f"{loss:.4f}" for loss in row["losses"]),
        )  # fmt: skip
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
