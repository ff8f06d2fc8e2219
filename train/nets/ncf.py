"""Neural collaborative filtering: whether a user will rate an item, from what each of them is to the network."""

from __future__ import annotations

import math
from itertools import pairwise

from softnum.train.engine.functions import activation
from softnum.train.engine.tensor import Tensor, multiply
from softnum.train.layers.feedforward import Linear
from softnum.train.layers.sequence_layers import Embedding
from softnum.train.layers.sequences import concatenate
from softnum.train.layers.sizes import check_sizes
from softnum.train.nets.network import Network
from softnum.train.tasks.recommendation import Recommendation

__all__ = ["NCF"]


class NCF(Network):
    """NeuMF: generalised matrix factorisation and a perceptron, each on embeddings of its own, joined by one output::

        gmf = gmf.user[u] * gmf.item[i]                                  in the role elementwise of gmf.item
        mlp = relu(fc(... relu(fc1(mlp.user[u], mlp.item[i]))))          layers mlp.fc1, mlp.fc2, ...
        out = fc(gmf, mlp)

    The paper draws embeddings from a normal distribution of standard deviation 0.01; here they are uniform with the
    same variance, and linear layers He-uniform. There is no pre-training.

    Parameters
    ----------
    sizes : sequence of int
        Features of gmf's embeddings; of each of mlp's; outputs of mlp.fc1, mlp.fc2, ...; at least three.
    users, items : int, optional
        Rows of the embeddings. Default: as many as the data have, from `make_task` on.

    Raises
    ------
    ValueError
        If there are fewer than three sizes or a number is not positive; in `make_task`, if the data have more users or
        items than stated; in `initialise`, if nothing says how many there are.

    References
    ----------
    X. He et al., "Neural Collaborative Filtering", 2017, section 3.4, equation 12; sizes of 8 predictive factors as in
    section 4.1.

    Examples
    --------
    >>> NCF(users=10, items=20).layer_names
    ['gmf.user', 'gmf.item', 'mlp.user', 'mlp.item', 'mlp.fc1', 'mlp.fc2', 'fc']
    >>> NCF(sizes=(8, 16, 4)).gemms(100)[:2]
    [{'layer': 'mlp.fc1', 'pass': 'forward', 'M': 100, 'N': 4, 'K': 32},
     {'layer': 'fc', 'pass': 'forward', 'M': 100, 'N': 1, 'K': 12}]
    """

    name = "ncf"
    kind = "ratings"
    task = Recommendation

    def __init__(self, sizes=(8, 16, 16, 8), users: int | None = None, items: int | None = None) -> None:
        factors, features, *hidden = sizes = check_sizes(sizes, least=3)
        for count, what in ((users, "users"), (items, "items")):
            if count is not None:
                check_sizes((count,), what, exactly=1)
        limit = 0.01 * math.sqrt(3.0)
        self.embeddings = [
            Embedding(f"{branch}.{side}", count, size, limit)
            for branch, size in (("gmf", factors), ("mlp", features))
            for side, count in (("user", users), ("item", items))
        ]
        pairs = enumerate(pairwise([2 * features, *hidden]), start=1)
        self.hidden = [Linear(f"mlp.fc{number}", *pair) for number, pair in pairs]
        self.last = Linear("fc", factors + hidden[-1], 1)
        layers = [*self.embeddings, *self.hidden, self.last]
        super().__init__(layers, {"sizes": sizes, "users": users, "items": items}, 2, 1, relu=self.hidden)

    def make_task(self, data, batch: int, seed: int) -> Recommendation:
        """What it learns from some data; embeddings get rows for their users and items, where none were stated."""
        counts = Recommendation.counts(data)
        for place, (what, count) in enumerate(zip(("users", "items"), counts, strict=True)):
            stated = self.options[what]
            if stated is not None and stated < count:
                raise ValueError(f"the network has {stated} {what}, the data have {count}")
            self.options[what] = stated or count
            for embedding in self.embeddings[place::2]:
                embedding.words = self.options[what]
        return super().make_task(data, batch, seed)

    def initialise(self, numerics) -> None:
        """Set the parameters to their initial values, rounded to their roles."""
        missing = [what for what in ("users", "items") if self.options[what] is None]
        if missing:
            raise ValueError(
                f"{self.name}: how many {' and '.join(missing)} there are is neither stated nor known of data"
            )
        super().initialise(numerics)

    def forward(self, x: Tensor, *, training: bool = False) -> Tensor:
        """The network's output for pairs of a user and an item, rounded to the role ``output`` of the last layer.

        Parameters
        ----------
        x : Tensor of integers (B, 2)
        training : bool
            Makes no difference here.

        Returns
        -------
        Tensor (B, 1)
            Its sigmoid is the probability that the user rates the item.
        """
        rows = (x.value[:, 0], x.value[:, 1])
        gmf_user, gmf_item, mlp_user, mlp_item = (
            embedding(rows[place % 2]) for place, embedding in enumerate(self.embeddings)
        )
        factors = multiply(gmf_user, gmf_item, self.embeddings[1].numerics)
        y = concatenate([mlp_user, mlp_item], axis=1)
        for layer in self.hidden:
            y = activation("relu", layer(y), layer.numerics)
        return self.output(self.last(concatenate([factors, y], axis=1)))
