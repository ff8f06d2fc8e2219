"""Design files: one arithmetic, stated role by role, and the hardware it stands for.

A design is a TOML file. It never mentions a network's size, a batch or a learning rate, so that the same network runs
under any design and the same design under any network. Reading is strict: a key that is not known is an error that
names the file, the key and the nearest key that is.

Roles (what is rounded, and when)
    ``input``               the first layer's operand, in place of ``activations``
    ``activations``         a layer's input, rounded as it enters that layer's matrix products
    ``elementwise``         operands and results of operations element by element, and of functions; both ways
    ``statistics``          sums, means and variances of a normalisation, and running values; the sums of a softmax
    ``weights``             the working copy of a layer's weights, rounded from the master copy once a step
    ``output``              the network's result, before softmax and cross-entropy
    ``errors``              the gradient of a layer's output, rounded as it enters that layer's matrix products
    ``weight_gradients``    the gradient of a parameter, after the loss scale is divided out
    ``update.decay``        gradient + weight_decay * master
    ``update.momentum``     momentum * velocity + the above; the mean of gradients of Adam, AdamW, LAMB and Lion
    ``update.second_moment``  the mean of squared gradients of these three
    ``update.step``         their direction from both means; the last sum of Nesterov's momentum; the mean whose sign
    Lion takes; Muon's matrices
    ``update.norm``         norms of LARS, LAMB and Muon, and quotients of these
    ``update.weight``       master - learning_rate * velocity, or * direction
    ``momentum``, ``second_moment``, ``master``  how velocity or mean, mean of squares, and parameters are stored
    ``compensation``        only if it is stated, there is a compensation of updates (Kahan's), computed and stored so;
    it does not follow ``default``, and ``"none"`` leaves it out for a layer
    ``saved_activations``   only if it is stated, as ``compensation``: a layer's input as it is kept for the gradient of
    the weights, rounded to this and then to ``activations`` of ``backward_weight``

`softnum.train.update.optimisers` says which operation of which optimiser rounds to which of them. ``master = "none"``
stands for no master copy: parameters are stored as the role ``weights`` says.

An attention multiplies results: queries and softmax are its ``activations``, keys and values its ``weights``.

The roles of operands (``input``, ``weights``, ``activations``, ``errors``) take block formats too, with a
``scale_rule`` besides (`softnum.BlockFormat`), by name or by the parts ``{ element = "e2m1fn", scale = "e4m3fn",
block_size = 16 }``. Blocks run along the dimension K of a product, so such numbers are not
rounded once, but by each product that they enter, along its own K, from what they were before any rounding: x along its
features in forward and along the batch in backward_weight, W along its inputs in forward and along its outputs in
backward_data, errors along the outputs and along the batch. Where one operand of a product has a block format and the
other has none, its numbers, element times scale, are operands of a unit of single numbers.
The states ``momentum`` and ``second_moment`` take block formats too: their blocks run along the elements of a parameter
in C order; and so does ``saved_activations``, along the elements of a layer's input.

The units are those of the passes (``PASSES``), and ``update``, in which Muon multiplies: operands of the role
``update.step``, sums in binary32 where it is not stated.

Operands take a ``scale`` instead of a block format, ``{ format = "e4m3fn", scale = { per = [1, 128] } }``: a quantizer
of `softnum.train.recipes`, whose elements a unit multiplies and whose scales are applied to its sums in binary32
(`softnum.train.designs.scales` has the keys). One of rows or tiles rounds as blocks do, by each product along its K;
one of the tensor, and square tiles, once. Such elements saturate.

``hadamard`` beside a scale mixes numbers along K before they are rounded (`softnum.train.designs.scales.Hadamard`).
``backward = "trust"`` beside a scale of rule "quest": backward passes start from what the forward pass multiplies, and
gradients pass back where the scale cuts nothing off.

A pass may round an operand in another way than the others do: ``backward_weight.errors`` in ``[roles]``, or ``errors``
in ``[roles.backward_weight]``, states the errors of that pass alone (`softnum.train.designs.PASS_ROLES` has the
names). All start from the same numbers, pruned if the role is sparse. In a layer's table a role stands for all passes
but those that it states.

A role belongs to the layer whose matrix products use it, so ``[layers."fc2".roles]`` states the operands of fc2's three
products. A role that a design does not name follows ``default`` in ``[roles]``, else binary32, to nearest even; an
operand role that it does not name follows the ``operand`` of the unit that consumes it, where the unit states one.

``sparsity`` in the table of a role of ``SPARSE_ROLES`` keeps its largest numbers and makes +0 of the others
(`softnum.train.designs.sparsity`): ``{ pattern = "2:4" }``, ``{ magnitude = 0.8, from = 100, to = 1000, every = 50 }``
or ``{ top_k = 0.01 }``. Numbers are compared before they are rounded, weights by their master copy, once an iteration.
The groups of a pattern lie along the reduction dimension of the product that an operand enters first: of activations
and weights that is the forward product (of images, the channels at each pixel; of a convolution's weights channel, row
and column of each filter), of errors it is ``backward_data``. The same pruned operands enter the backward products. The
gradient of pruned activations is +0; that of pruned weights passes straight through to the master copy, unless
``backward = "masked"`` says otherwise.

``operators`` puts the user's own operators (`softnum.operator`, in the Tile language) in the place of functions of the
network: ``operators = { tanh = "plan_tanh.tile" }``, at the top level for every layer, under ``[layers."lstm.*"]`` for
those. They compute in the role ``elementwise``, forwards and backwards.

``convolution`` has convolutions computed by Winograd's filtering or by Fourier transforms: ``[convolution]`` for all
layers, ``[layers."conv1".convolution]`` for one (``softnum.train.designs.convolutions`` has the keys).
"""

from softnum.train.designs.design import (
    BLOCK_ROLES,
    COMPENSATION,
    NO_MASTER,
    OPERAND_ROLES,
    OPTIMISER_ROLES,
    PASS_ROLES,
    PASSES,
    ROLES,
    SAVED,
    SPARSE_ROLES,
    STATE_ROLES,
    UPDATE,
    Design,
    LayerDesign,
    NamedOperator,
    RoleRounding,
    nearest,
)
from softnum.train.designs.resolving import contains

__all__ = [
    "BLOCK_ROLES", "COMPENSATION", "NO_MASTER", "OPERAND_ROLES", "OPTIMISER_ROLES", "PASSES", "PASS_ROLES", "ROLES",
    "SAVED", "SPARSE_ROLES", "STATE_ROLES", "UPDATE", "Design", "LayerDesign", "NamedOperator", "RoleRounding",
    "contains", "nearest",
]  # fmt: skip
