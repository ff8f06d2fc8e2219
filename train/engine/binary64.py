"""What training computes in binary64, of few numbers and the same on every machine: losses, exp, log, norms.

Sums have a fixed order, and functions that differ between machines' libraries (exp, log) are built here from operations
that IEEE 754 determines. These are computed by NumPy wherever a backend keeps its arrays: of those on a device a copy
is made (of a loss, the outputs of a batch). So their bits cannot depend on the device.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["Binary64", "host"]

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.6931471803691238  # the 32 leading bits of ln 2: its product with an exponent is exact
LN2_LOW = 1.9082149292705877e-10
_EXP_TERMS = tuple(1.0 / math.factorial(n) for n in range(13, -1, -1))
_ATANH_TERMS = tuple(1.0 / n for n in range(25, 0, -2))


def host(x) -> np.ndarray:
    """An array of any backend as NumPy's: itself, or a copy of one on a device.

    >>> x = np.zeros(2)
    >>> host(x) is x
    True
    """
    return x.host() if hasattr(x, "host") else np.asarray(x)


def _wide(x):
    return np.asarray(host(x), dtype=np.float64)


def _finite(x) -> bool:
    return bool(np.isfinite(x).all())


class Binary64:
    """The methods of every backend that compute in binary64; results are arrays and numbers of the host."""

    def finish(self) -> None:
        """Return when all that was begun is done: a GPU computes on while Python goes on."""

    def softmax_cross_entropy(self, logits, labels, count: int):
        """The sum of a batch's cross-entropies over a count, and softmax, in binary64.

        Of targets t a row's is log(sum(exp(x))) * sum(t) - sum(t * x), sums from the first class to the last.

        Parameters
        ----------
        logits : array (B, C)
        labels : integer array (B,), or float64 array (B, C)
            Classes; or targets, probabilities of all classes.
        count : int

        Returns
        -------
        loss : float
            NaN if a logit is not finite.
        probabilities : float64 array (B, C)
        """
        x = _wide(logits)
        if not _finite(x):
            return math.nan, np.full_like(x, math.nan)
        x = x - x.max(axis=1, keepdims=True)
        powers = self.exp(x)
        total = self.ordered_sum(powers, axis=1)
        if labels.ndim == 2:
            own, met = self.ordered_sum(labels, axis=1), self.ordered_sum(labels * x, axis=1)
            terms = self.log(total) * own - met
        else:
            terms = self.log(total) - x[np.arange(len(labels)), labels]
        return float(self.ordered_sum(terms, axis=0)) / count, powers / total[:, None]

    def cross_entropy_error(self, probabilities, labels, count: int, factor: float):
        """(softmax - one_hot) / count * factor in binary64, in this order; of targets, softmax * sum(t) - t."""
        if labels.ndim == 2:
            error = probabilities * self.ordered_sum(labels, axis=1)[:, None] - labels
        else:
            error = probabilities.copy()
            error[np.arange(len(labels)), labels] -= 1.0
        return error / count * factor

    def binary_cross_entropy(self, logits, targets, weights, count: int):
        """The sum of weighted binary cross-entropies over a count, and its slope by the logits, in binary64.

        An element's is max(x, 0) - x * target + log(1 + exp(-abs(x))); the sum goes from the first element to the last.
        The slope is weight * (sigmoid(x) - target) / count.

        Parameters
        ----------
        logits : array
        targets : float64 array
            0 or 1, of the same shape.
        weights : float or float64 array
        count : int

        Returns
        -------
        loss : float
            NaN if a logit is not finite.
        slope : float64 array
        """
        x = _wide(logits)
        if not _finite(x):
            return math.nan, np.full_like(x, math.nan)
        power = self.exp(-np.abs(x))
        terms = np.maximum(x, 0.0) - x * targets + self.log(1.0 + power)
        sigmoid = np.where(x >= 0.0, 1.0, power) / (1.0 + power)
        total = float(self.ordered_sum((weights * terms).reshape(-1), axis=0))
        return total / count, weights * (sigmoid - targets) / count

    def smooth_l1(self, x, targets, count: int):
        """The sum of smooth absolute differences over a count, and its slope by x, in binary64.

        Of d = x - target it is d * d / 2, or abs(d) - 1 / 2 where abs(d) is at least 1, and the slope d, or its sign;
        the sum goes from the first element to the last. Not finite: NaN, as of `binary_cross_entropy`.
        """
        d = _wide(x) - targets
        if not _finite(d):
            return math.nan, np.full_like(d, math.nan)
        size = np.abs(d)
        terms = np.where(size < 1.0, d * d / 2.0, size - 0.5)
        return float(self.ordered_sum(terms.reshape(-1), axis=0)) / count, np.clip(d, -1.0, 1.0) / count

    def signed_means(self, x, parts):
        """Means of parts of x times factors, added in their order, and the slope by x, in binary64.

        Parameters
        ----------
        x : array
            Its elements, in C order, are those of the parts, one part after the other.
        parts : sequence of (float, int)
            Factor and number of elements of each part.

        Returns
        -------
        loss : float
            NaN if an element is not finite.
        slope : float64 array
            An element's is the factor of its part / the number.
        """
        flat, slope = _wide(x).ravel(), [np.full(count, factor / count) for factor, count in parts]
        total, first = 0.0, 0
        for factor, count in parts if _finite(flat) else [(math.nan, len(flat))]:
            total += factor * (float(self.ordered_sum(flat[first : first + count], axis=0)) / count)
            first += count
        return total, np.concatenate(slope).reshape(x.shape)

    def balance(self, probabilities, shares, factor: float):
        """factor * E * the sum of shares[e] * (the mean of column e), e from first to last, and the slope, in binary64.

        Parameters
        ----------
        probabilities : array (rows, E)
            Their columns are added from the first row to the last.
        shares : float64 array (E,)
        factor : float

        Returns
        -------
        loss : float
            NaN if a probability is not finite.
        slope : float64 array (rows, E)
            factor * E * shares / rows, from left to right.
        """
        x = _wide(probabilities)
        if not _finite(x):
            return math.nan, np.full_like(x, math.nan)
        rows, experts = x.shape
        means = self.ordered_sum(x, axis=0) / rows
        slope = np.broadcast_to(factor * experts * shares / rows, x.shape)
        return factor * experts * float(self.ordered_sum(shares * means, axis=0)), slope

    def draw(self, logits, words):
        """A class for each row, drawn from its softmax in binary64.

        Row i's is the first whose probability, together with those before it (added in their order), exceeds the number
        that word i stands for: its 53 leading bits / 2**53. If rounding keeps all from it, it is the last.

        Parameters
        ----------
        logits : array (B, C)
            Finite.
        words : uint64 array (B,)

        Returns
        -------
        int64 array (B,)
        """
        probabilities, _ = self._softmax(_wide(logits))
        below = np.add.accumulate(probabilities, axis=1)[:, :-1]
        number = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return (below <= number[:, None]).sum(axis=1)

    def policy_loss(self, outputs, actions, returns, advantages, value_weight: float, entropy: float):
        """The loss of an actor-critic, and its slope by the outputs, in binary64.

        With p the softmax of a row's logits, log p(a) that of the action taken, R its return, A its advantage, V its
        value and H = -sum(p * log p), in the order of the classes, a row's loss is::

            (-log p(a) * A + value_weight * ((R - V) * (R - V))) - entropy * H

        Parameters
        ----------
        outputs : array (B, C + 1)
            Logits of C actions, then the value.
        actions : integer array (B,)
        returns, advantages : float64 arrays (B,)
        value_weight, entropy : float

        Returns
        -------
        loss : float
            The mean of the rows', added from first to last; NaN if an output is not finite.
        slope : float64 array (B, C + 1)
            That of a row's own loss / B.
        """
        x = _wide(outputs)
        if not _finite(x):
            return math.nan, np.full_like(x, math.nan)
        rows = np.arange(len(actions))
        p, log_p = self._softmax(x[:, :-1])
        missing = returns - x[:, -1]
        disorder = -self.ordered_sum(p * log_p, axis=1)
        terms = (-log_p[rows, actions] * advantages + value_weight * (missing * missing)) - entropy * disorder
        taken = p.copy()
        taken[rows, actions] -= 1.0
        slope = np.empty_like(x)
        slope[:, :-1] = taken * advantages[:, None] + entropy * (p * (log_p + disorder[:, None]))
        slope[:, -1] = -2.0 * value_weight * missing
        return float(self.ordered_sum(terms, axis=0)) / len(actions), slope / len(actions)

    def _softmax(self, x):
        """Softmax and its logarithm, row by row, of binary64 numbers."""
        x = x - x.max(axis=1, keepdims=True)
        powers = self.exp(x)
        total = self.ordered_sum(powers, axis=1)[:, None]
        return powers / total, x - self.log(total)

    def scaled(self, slope, factor: float):
        """slope * factor in binary64."""
        return slope * factor

    def norm(self, arrays) -> float:
        """The root of the sum of the squares of all elements, in binary64.

        The arrays are taken in their order, elements in C order, and each array's squares are added from the first to
        the last, then the arrays' sums. They are scaled by a power of two, so that no square overflows.
        """
        arrays = [_wide(x).ravel() for x in arrays if x.size]
        largest = float(np.max([np.abs(x).max() for x in arrays], initial=0.0))
        if largest == 0.0 or not math.isfinite(largest):
            return largest
        exponent = math.frexp(largest)[1]
        total = 0.0
        for x in arrays:
            scaled = np.ldexp(x, -exponent)
            total += float(self.ordered_sum(scaled * scaled, axis=0))
        return math.ldexp(math.sqrt(total), exponent)

    def ordered_sum(self, x, axis: int):
        """The sum from the first element to the last, one after another."""
        return np.take(np.add.accumulate(x, axis=axis), -1, axis=axis)

    def exp(self, x):
        """exp of binary64 numbers x <= 0, to about an ulp, from IEEE-determined operations only."""
        x = np.maximum(x, -746.0)
        k = np.rint(x * LOG2_E)
        r = (x - k * LN2_HIGH) - k * LN2_LOW
        result = np.full_like(r, _EXP_TERMS[0])
        for term in _EXP_TERMS[1:]:
            result = result * r + term
        return np.ldexp(result, k.astype(np.int32))

    def log(self, x):
        """Natural logarithm of binary64 numbers x >= 1, to three ulps, from IEEE-determined operations only."""
        m, e = np.frexp(x)
        low = m < math.sqrt(0.5)
        m, e = np.where(low, m * 2.0, m), np.where(low, e - 1, e).astype(np.float64)
        s = (m - 1.0) / (m + 1.0)
        square = s * s
        series = np.full_like(s, _ATANH_TERMS[0])
        for term in _ATANH_TERMS[1:]:
            series = series * square + term
        return e * LN2_HIGH + (2.0 * s * series + e * LN2_LOW)
