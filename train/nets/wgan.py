"""A Wasserstein GAN: a generator of images and a critic that tells them from real ones."""

from __future__ import annotations

from itertools import pairwise
from math import inf, prod

from softnum.train.engine.functions import activation
from softnum.train.engine.tensor import Parameter, Tensor
from softnum.train.layers.feedforward import Linear
from softnum.train.layers.sizes import check_image, check_sizes
from softnum.train.nets.network import Network
from softnum.train.tasks.adversarial import Adversarial

__all__ = ["WGAN"]


class WGAN(Network):
    """Two perceptrons: one makes images of noise, the other gives an image a score::

        generator.ff1, ..., generator.fc: noise -> hidden -> pixels, by a sigmoid in the role elementwise
        critic.ff1, ..., critic.fc:       pixels -> hidden, in reverse -> 1

    with ReLU between linear layers. An iteration is ``critic_updates`` updates of the critic, each on a batch of real
    images and one of generated ones, then one of the generator (`softnum.train.tasks.Adversarial`). After each of its
    updates the critic's weights and biases are clipped to [-critic_clip, critic_clip]: the limit is rounded to the
    carrier, what it replaces to the role ``master``.

    Noise enters ``generator.ff1`` in the role ``input``; images, real ones too, enter ``critic.ff1`` as its
    ``activations``. The scores have the role ``output`` of ``critic.fc``.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of noise of an image, hidden sizes of the generator, which are the critic's in reverse; at least two.
    image : (int, int, int)
        Channels, height and width of a sample.
    critic_updates : int
        Updates of the critic for each of the generator.
    critic_clip : float
        The largest size of a weight of the critic.

    Raises
    ------
    ValueError
        If there are fewer than two sizes, a number is not positive, or the clip not finite.

    References
    ----------
    M. Arjovsky, S. Chintala and L. Bottou, "Wasserstein GAN", 2017, algorithm 1. There the optimiser is RMSProp, to
    which Adam with beta1 = 0 comes close (it corrects the bias of its means).

    Examples
    --------
    >>> WGAN(sizes=(4, 8), image=(1, 2, 2)).layer_names
    ['generator.ff1', 'generator.fc', 'critic.ff1', 'critic.fc']
    """

    name = "wgan"
    task = Adversarial

    def __init__(self, sizes=(16, 128), image=(1, 8, 8), critic_updates: int = 5, critic_clip: float = 0.01) -> None:
        sizes, image = check_sizes(sizes, least=2), check_image(image, 1)
        (self.critic_updates,) = check_sizes((critic_updates,), "critic_updates", exactly=1)
        if isinstance(critic_clip, bool) or not isinstance(critic_clip, (int, float)) or not 0 < critic_clip < inf:
            raise ValueError(f"critic_clip must be a positive number, got {critic_clip!r}")
        self.clip, self.pixels = float(critic_clip), prod(image)
        self.generator = _chain("generator", (*sizes, self.pixels))
        self.critic = _chain("critic", (self.pixels, *reversed(sizes[1:]), 1))
        self.generator[-1].functions = ("sigmoid",)
        options = {"sizes": sizes, "image": image, "critic_updates": self.critic_updates, "critic_clip": self.clip}
        hidden = self.generator[:-1] + self.critic[:-1]
        super().__init__(self.generator + self.critic, options, sizes[0], 1, relu=hidden)

    @property
    def groups(self) -> dict[str, list[Parameter]]:
        """The critic's parameters and the generator's."""
        chains = {"critic": self.critic, "generator": self.generator}
        return {name: [p for layer in chain for p in layer.parameters] for name, chain in chains.items()}

    def _products(self, batch: int) -> list[tuple]:
        """Those of the critic's updates and of the generator's."""
        forward = [row for layer in self.generator for row in layer.products("forward", batch)]
        update = forward + [row for layer in self.critic for row in layer.products("forward", 2 * batch)]
        for layer in reversed(self.critic):
            update += layer.backward_products(2 * batch, data=layer is not self.critic[0])
        rows = update * self.critic_updates + forward
        rows += [row for layer in self.critic for row in layer.products("forward", batch)]
        rows += [row for layer in reversed(self.critic) for row in layer.products("backward_data", batch)]
        for layer in reversed(self.generator):
            rows += layer.backward_products(batch, data=layer is not self.generator[0])
        return rows

    def forward(self, x: Tensor, *, training: bool = False) -> Tensor:
        """Images of noise.

        Parameters
        ----------
        x : Tensor (B, noise)
        training : bool
            Makes no difference here.

        Returns
        -------
        Tensor (B, pixels)
            From 0 to 1, values of the role ``elementwise`` of ``generator.fc``.
        """
        return activation("sigmoid", _pass(self.generator, x), self.generator[-1].numerics)

    def score(self, images: Tensor, *, frozen: bool = False) -> Tensor:
        """The critic's scores, rounded to the role ``output`` of ``critic.fc``.

        Parameters
        ----------
        images : Tensor (B, pixels)
        frozen : bool
            Whether the critic's parameters are constants: gradients pass to the images alone.

        Returns
        -------
        Tensor (B, 1)
        """
        return self.output(_pass(self.critic, images, frozen=frozen))

    def clip_critic(self) -> None:
        """Limit the size of the critic's parameters."""
        for parameter in self.groups["critic"]:
            layer = parameter.layer
            parameter.value = layer.round("master", layer.numerics.backend.clamp(parameter.value, self.clip))


def _chain(name: str, sizes) -> list[Linear]:
    """Linear layers of these sizes: ff1, ff2, ..., and fc, the last."""
    pairs = list(pairwise(sizes))
    ends = [*(f"ff{position}" for position in range(1, len(pairs))), "fc"]
    return [Linear(f"{name}.{end}", *pair) for end, pair in zip(ends, pairs, strict=True)]


def _pass(layers: list[Linear], x: Tensor, *, frozen: bool = False) -> Tensor:
    for layer in layers[:-1]:
        x = activation("relu", layer(x, frozen=frozen), layer.numerics)
    return layers[-1](x, frozen=frozen)
