"""Networks of images, for the catalogue."""

from __future__ import annotations

from softnum.tta.architectures.layers import (
    Activation,
    Add,
    BatchNorm,
    Concatenate,
    Conv2d,
    Dense,
    Flatten,
    GlobalPool,
    Layer,
    Loss,
    Pool,
    Upsample,
)
from softnum.tta.architectures.lowering import Architecture

__all__ = [
    "alexnet",
    "inception_v3",
    "mask_rcnn_backbone",
    "minigo",
    "residual_groups",
    "resnet50",
    "vgg16",
]

_TORCHVISION = "sizes and figures: torchvision's models and its table of weights (GFLOPS there are MACs)"


def alexnet() -> Architecture:
    """AlexNet in its one-column form; without its dropout."""
    layers: list[Layer] = []
    for number, (filters, kernel, stride, padding, pooled) in enumerate(
        (
            (64, 11, 4, 2, True),
            (192, 5, 1, 2, True),
            (384, 3, 1, 1, False),
            (256, 3, 1, 1, False),
            (256, 3, 1, 1, True),
        ),
        start=1,
    ):
        layers += [Conv2d(f"conv{number}", filters, kernel, stride, padding), Activation(f"relu{number}")]
        layers += [Pool(f"pool{number}", 3, 2)] if pooled else []
    return Architecture(
        "alexnet", (3, 224, 224), (*layers, *_classifier((4096, 4096, 1000))), "AlexNet, ImageNet",
        "A. Krizhevsky, \"One weird trick for parallelizing convolutional neural networks\", arXiv 1404.5997, 2014; "
        + _TORCHVISION,
        {"parameters": 61_100_840, "macs": 0.714e9},
    )  # fmt: skip


def vgg16() -> Architecture:
    """VGG with 16 layers of weights; without its dropout."""
    layers: list[Layer] = []
    for group, (filters, count) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), start=1):
        for number in range(1, count + 1):
            name = f"{group}_{number}"
            layers += [Conv2d(f"conv{name}", filters, 3, padding=1), Activation(f"relu{name}")]
        layers.append(Pool(f"pool{group}", 2, 2))
    return Architecture(
        "vgg16", (3, 224, 224), (*layers, *_classifier((4096, 4096, 1000))), "VGG-16, ImageNet",
        "K. Simonyan and A. Zisserman, arXiv 1409.1556, 2014, configuration D; " + _TORCHVISION,
        {"parameters": 138_357_544, "macs": 15.47e9},
    )  # fmt: skip


def _classifier(sizes: tuple[int, ...]) -> list[Layer]:
    layers: list[Layer] = [Flatten("flat")]
    for number, size in enumerate(sizes, start=1):
        layers.append(Dense(f"fc{number}", size))
        if number < len(sizes):
            layers.append(Activation(f"fc{number}.relu"))
    return [*layers, Loss("loss")]


def _normalised(name: str, filters: int, kernel, stride=1, padding=0, *, relu: bool = True, inputs=()) -> list[Layer]:
    layers = [Conv2d(name, filters, kernel, stride, padding, bias=False, inputs=inputs), BatchNorm(f"{name}.bn")]
    return [*layers, Activation(f"{name}.relu")] if relu else layers


def residual_groups(
    blocks: tuple[int, ...], filters: int, *, bottleneck: bool, project_first: bool = True, names: str = "stage"
) -> tuple[list[Layer], list[str]]:
    """Groups of residual blocks after a layer called ``pool1``: their layers, and the name of each group's result.

    The filters double, and the image halves, from one group to the next; a group's first block projects what it adds,
    of the first group only if `project_first` (where shapes agree without).

    >>> layers, ends = residual_groups((1, 1), 16, bottleneck=False)
    >>> len(layers), ends
    (18, ['stage1.1.relu', 'stage2.1.relu'])
    """
    layers: list[Layer] = []
    ends, x = [], "pool1"
    for group, count in enumerate(blocks):
        width = filters << group
        for block in range(count):
            name, stride = f"{names}{group + 1}.{block + 1}", 2 if group and not block else 1
            if bottleneck:
                shapes = ((width, 1, 1, 0), (width, 3, stride, 1), (4 * width, 1, 1, 0))
            else:
                shapes = ((width, 3, stride, 1), (width, 3, 1, 1))
            for number, (*sizes,) in enumerate(shapes, start=1):
                last = number == len(shapes)
                first = {"inputs": (x,)} if number == 1 else {}
                layers += _normalised(f"{name}.conv{number}", *sizes, relu=not last, **first)
            added = x
            if not block and (group or project_first):
                out = 4 * width if bottleneck else width
                layers += _normalised(f"{name}.shortcut", out, 1, stride, relu=False, inputs=(x,))
                added = f"{name}.shortcut.bn"
            layers += [Add(f"{name}.add", inputs=(f"{name}.conv{len(shapes)}.bn", added)), Activation(f"{name}.relu")]
            x = f"{name}.relu"
        ends.append(x)
    return layers, ends


def resnet50() -> Architecture:
    """ResNet-50, of whose bottlenecks the 3 x 3 convolution moves by 2 (version 1.5)."""
    groups, _ = residual_groups((3, 4, 6, 3), 64, bottleneck=True)
    stem = [*_normalised("conv1", 64, 7, 2, 3), Pool("pool1", 3, 2, 1)]
    tail = [GlobalPool("pool"), Dense("fc", 1000), Loss("loss")]
    return Architecture(
        "resnet50", (3, 224, 224), (*stem, *groups, *tail), "ResNet-50, ImageNet",
        "K. He et al., \"Deep Residual Learning for Image Recognition\", CVPR 2016; " + _TORCHVISION,
        {"parameters": 25_557_032, "macs": 4.089e9},
    )  # fmt: skip


def mask_rcnn_backbone() -> Architecture:
    """ResNet-50 with a feature pyramid, as Mask R-CNN has it: the part of it that does not depend on what is found. The
    proposals and the heads of boxes, classes and masks are left out."""
    groups, ends = residual_groups((3, 4, 6, 3), 64, bottleneck=True)
    layers = [*_normalised("conv1", 64, 7, 2, 3), Pool("pool1", 3, 2, 1), *groups]
    sizes = ((200, 304), (100, 152), (50, 76), (25, 38))
    above = ""
    for level in range(4, 0, -1):
        layers.append(Conv2d(f"lateral{level}", 256, 1, inputs=(ends[level - 1],)))
        sideways = f"lateral{level}"
        if above:
            layers.append(Upsample(f"up{level}", sizes[level - 1], inputs=(above,)))
            layers.append(Add(f"sum{level}", inputs=(sideways, f"up{level}")))
            sideways = f"sum{level}"
        above = sideways
        layers.append(Conv2d(f"pyramid{level}", 256, 3, padding=1, inputs=(sideways,)))
    layers.append(Pool("pyramid5", 1, 2, inputs=("pyramid4",)))
    return Architecture(
        "mask-rcnn-backbone", (3, 800, 1216), tuple(layers), "ResNet-50 and feature pyramid of Mask R-CNN, COCO",
        "K. He et al., \"Mask R-CNN\", ICCV 2017; T. Lin et al., \"Feature Pyramid Networks\", CVPR 2017; "
        + _TORCHVISION + "; there 26,799,296 beside the 53,120 frozen gains and biases of the normalisations",
        {"parameters": 26_799_296 + 53_120},
    )  # fmt: skip


def minigo() -> Architecture:
    """The network of AlphaGo Zero, which Minigo trains: 19 residual blocks of 256 filters on 19 x 19 points."""
    width, points = 256, 19
    layers: list[Layer] = _normalised("conv1", width, 3, padding=1)
    x = "conv1.relu"
    for name in (f"block{number}" for number in range(1, 20)):
        layers += _normalised(f"{name}.conv1", width, 3, padding=1, inputs=(x,))
        layers += _normalised(f"{name}.conv2", width, 3, padding=1, relu=False)
        layers += [Add(f"{name}.add", inputs=(f"{name}.conv2.bn", x)), Activation(f"{name}.relu")]
        x = f"{name}.relu"
    layers += [*_normalised("policy.conv", 2, 1, inputs=(x,)), Flatten("policy.flat")]
    layers += [Dense("policy.fc", points * points + 1), Loss("policy.loss")]
    layers += [*_normalised("value.conv", 1, 1, inputs=(x,)), Flatten("value.flat"), Dense("value.fc1", 256)]
    layers += [Activation("value.relu"), Dense("value.fc2", 1), Activation("value.tanh", "tanh")]
    return Architecture(
        "minigo", (17, points, points), tuple(layers), "Minigo's AlphaGo Zero network, Go on 19 x 19",
        "D. Silver et al., \"Mastering the game of Go without human knowledge\", Nature 550, 2017, Methods: neural "
        "network architecture, 19 residual blocks",
    )  # fmt: skip


def inception_v3() -> Architecture:
    """Inception v3 without its auxiliary classifier."""
    layers: list[Layer] = []

    def branch(name: str, x: str, *convolutions) -> str:
        """Convolutions one after another; the name of the last result."""
        for number, (filters, kernel, *rest) in enumerate(convolutions, start=1):
            layers.extend(_normalised(f"{name}.{number}", filters, kernel, *rest, inputs=(x,)))
            x = f"{name}.{number}.relu"
        return x

    def pooled(name: str, x: str, filters: int) -> str:
        layers.append(Pool(f"{name}.pool", 3, 1, 1, "average", inputs=(x,)))
        return branch(name, f"{name}.pool", (filters, 1))

    def join(name: str, *parts: str) -> str:
        layers.append(Concatenate(name, inputs=parts))
        return name

    def reduced(name: str, x: str, *parts: str) -> str:
        layers.append(Pool(f"{name}.pool", 3, 2, inputs=(x,)))
        return join(name, *parts, f"{name}.pool")

    across, down = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))
    layers += [*_normalised("conv1", 32, 3, 2), *_normalised("conv2", 32, 3), *_normalised("conv3", 64, 3, 1, 1)]
    layers += [Pool("pool1", 3, 2), *_normalised("conv4", 80, 1), *_normalised("conv5", 192, 3), Pool("pool2", 3, 2)]
    x = "pool2"
    for number, last in enumerate((32, 64, 64), start=1):
        n = f"a{number}"
        parts = [branch(f"{n}.1", x, (64, 1)), branch(f"{n}.5", x, (48, 1), (64, 5, 1, 2))]
        parts.append(branch(f"{n}.3", x, (64, 1), (96, 3, 1, 1), (96, 3, 1, 1)))
        x = join(n, *parts, pooled(f"{n}.p", x, last))
    parts = [branch("b.3", x, (384, 3, 2)), branch("b.33", x, (64, 1), (96, 3, 1, 1), (96, 3, 2))]
    x = reduced("b", x, *parts)
    for number, c in enumerate((128, 160, 160, 192), start=1):
        n = f"c{number}"
        parts = [branch(f"{n}.1", x, (192, 1)), branch(f"{n}.7", x, (c, 1), (c, *across), (192, *down))]
        parts.append(branch(f"{n}.77", x, (c, 1), (c, *down), (c, *across), (c, *down), (192, *across)))
        x = join(n, *parts, pooled(f"{n}.p", x, 192))
    parts = [branch("d.3", x, (192, 1), (320, 3, 2))]
    parts.append(branch("d.7", x, (192, 1), (192, *across), (192, *down), (192, 3, 2)))
    x = reduced("d", x, *parts)
    for number in (1, 2):
        n = f"e{number}"
        parts = [branch(f"{n}.1", x, (320, 1))]
        for name, convolutions in ((f"{n}.3", ((384, 1),)), (f"{n}.33", ((448, 1), (384, 3, 1, 1)))):
            y = branch(name, x, *convolutions)
            parts.append(branch(f"{name}.across", y, (384, (1, 3), 1, (0, 1))))
            parts.append(branch(f"{name}.down", y, (384, (3, 1), 1, (1, 0))))
        x = join(n, *parts, pooled(f"{n}.p", x, 192))
    layers += [GlobalPool("pool"), Dense("fc", 1000), Loss("loss")]
    return Architecture(
        "inception-v3", (3, 299, 299), tuple(layers), "Inception v3, ImageNet",
        "C. Szegedy et al., \"Rethinking the Inception Architecture\", CVPR 2016; " + _TORCHVISION
        + "; there 27,161,264 with the 3,326,696 of the auxiliary classifier",
        {"parameters": 27_161_264 - 3_326_696, "macs": 5.713e9},
    )  # fmt: skip
