"""Convolutions by rules: the bits of softnum.conv2d and its gradients, in jit, vmap and grad."""

import numpy as np
import pytest

pytest.importorskip("jax", reason="softnum.jax needs the extra jax: make test-jax")
import jax
import jax.numpy as jnp

import softnum as sn
import softnum.jax as sj
from softnum.mac.products import conv2d_backward_data, conv2d_backward_weight

UNIT = sn.MadUnit("e6m3", operand="e5m2")
RNG = np.random.default_rng(8)


def drawn(*shape):
    return np.asarray(sn.quantize(RNG.normal(size=shape).astype(np.float32), "e5m2"), np.float32)


def by_rules(unit, key=None, **options):
    """A convolution of images first, and its gradients for a given gradient of the result."""
    options = {"window_strides": (1, 1), "padding": ((0, 0), (0, 0))} | options
    found = sj.intercept(lambda x, w: jax.lax.conv_general_dilated(x, w, **options), [sj.Rule(".*", unit)], key=key)
    return jax.jit(lambda x, w, dy: (lambda y, back: (y, *back(dy)))(*jax.vjp(found, x, w)))


def geometry(stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    theirs = {
        "window_strides": stride, "padding": tuple((p, p) for p in padding), "rhs_dilation": dilation,
        "feature_group_count": groups,
    }  # fmt: skip
    return {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}, theirs


def expected(x, w, dy, unit, **ours):
    return (
        sn.conv2d(x, w, unit, **ours),
        conv2d_backward_data(dy, w, unit, x.shape[2:], **ours),
        conv2d_backward_weight(x, dy, unit, w.shape[2:], **ours),
    )


@pytest.mark.parametrize(
    "ours",
    [{}, {"stride": (2, 3), "padding": (1, 2)}, {"dilation": (2, 1), "groups": 2}, {"stride": (3, 1), "padding": (2, 0),
     "dilation": (1, 2), "groups": 2}],
)  # fmt: skip
def test_the_bits_of_numpys(ours):
    ours, theirs = geometry(**ours)
    x, w = drawn(2, 4, 7, 8), drawn(6, 4 // ours["groups"], 3, 2)
    dy = drawn(*sn.conv2d(x, w, UNIT, **ours).shape)
    for got, want in zip(by_rules(UNIT, **theirs)(x, w, dy), expected(x, w, dy, UNIT, **ours), strict=True):
        assert got.dtype == jnp.float32 and np.array_equal(got, want)


def test_random_words_are_those_of_numpys():
    unit = sn.MadUnit("e6m3", operand="e5m2", rounding="stochastic")
    ours, theirs = geometry(stride=(2, 1), padding=(1, 1))
    x, w = drawn(2, 3, 5, 6), drawn(4, 3, 3, 3)
    dy = drawn(*sn.conv2d(x, w, unit, key=(7, 0), **ours).shape)
    got = by_rules(unit, key=sj.key(7), **theirs)(x, w, dy)
    want = (
        sn.conv2d(x, w, unit, key=(7, 0), **ours),
        conv2d_backward_data(dy, w, unit, (5, 6), key=(7, 1), **ours),
        conv2d_backward_weight(x, dy, unit, (3, 3), key=(7, 2), **ours),
    )
    assert all(map(np.array_equal, got, want))
    with pytest.raises(NotImplementedError, match="2 groups, whose random words"):
        by_rules(unit, key=sj.key(7), **geometry(groups=2)[1])(drawn(1, 4, 5, 5), drawn(4, 2, 3, 3), drawn(1, 4, 3, 3))
    with pytest.raises(ValueError, match="rounds stochastically in module"):
        by_rules(unit)(x, w, dy)


def test_other_layouts_one_dimension_and_uneven_padding():
    def found(x, w, **options):
        model = sj.intercept(lambda x, w: jax.lax.conv_general_dilated(x, w, **options), [sj.Rule(".*", UNIT)])
        return np.asarray(jax.jit(model)(x, w))

    x, w = drawn(2, 5, 8, 3), drawn(3, 2, 3, 4)
    got = found(x, w, window_strides=(2, 2), padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    padded = np.pad(x.transpose(0, 3, 1, 2), ((0, 0), (0, 0), (1, 1), (0, 0)))
    want = sn.conv2d(padded, w.transpose(3, 2, 0, 1), UNIT, stride=2).transpose(0, 2, 3, 1)
    assert np.array_equal(got, want)
    x, w = drawn(2, 9, 3), drawn(3, 5, 4)  # one dimension, with zeros behind only
    got = found(x, w, window_strides=(2,), padding=((0, 3),), dimension_numbers=("NWC", "IWO", "NCW"))
    padded = np.pad(x.transpose(0, 2, 1), ((0, 0), (0, 0), (0, 3)))[:, :, None]
    assert np.array_equal(got, sn.conv2d(padded, w.transpose(2, 0, 1)[:, :, None], UNIT, stride=(1, 2))[:, :, 0])


def test_under_vmap_each_is_a_call_of_its_own():
    x, w = drawn(3, 2, 2, 5, 5), drawn(4, 2, 3, 3)
    one = sj.intercept(lambda x, w: jax.lax.conv(x, w, (1, 1), "VALID"), [sj.Rule(".*", UNIT)])
    got = jax.vmap(one, (0, None))(x, w)
    assert np.array_equal(got, np.stack([sn.conv2d(each, w, UNIT) for each in x]))


def test_a_design_rounds_images_before_they_are_unfolded():
    x, w = (RNG.normal(size=shape).astype(np.float32) for shape in ((2, 3, 6, 6), (4, 3, 3, 3)))
    dy = RNG.normal(size=(2, 4, 4, 4)).astype(np.float32)
    how = sj.arithmetic("e-e6m3-chunk")
    parts = zip((how.forward, how.backward_data, how.backward_weight), ((x, w), (dy, w), (x, dy)), strict=True)
    computed = (sn.conv2d, conv2d_backward_data, conv2d_backward_weight)
    want = []
    for (part, operands), compute, more in zip(parts, computed, ((), ((6, 6),), ((3, 3),)), strict=True):
        given = [
            np.asarray(sn.quantize(each, r.format, rounding=r.rounding, overflow=r.overflow), np.float32)
            for each, r in zip(operands, (part.left, part.right), strict=True)
        ]
        want.append(compute(*given, part.unit, *more))
    assert all(map(np.array_equal, by_rules("e-e6m3-chunk")(x, w, dy), want))


def test_what_softnum_does_not_compute_is_refused():
    for options, why in (
        ({"lhs_dilation": (2, 2)}, "transposed convolutions"), ({"batch_group_count": 2}, "batch_group_count"),
        ({"padding": ((-1, 0), (0, 0))}, "negative padding"),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError, match=f"{why}.*leave it to JAX by a rule"):
            by_rules(UNIT, **options)(drawn(2, 2, 6, 6), drawn(4, 2, 3, 3), drawn(2, 4, 4, 4))
    with pytest.raises(NotImplementedError, match="3 dimensions of images"):
        three = lambda x, w: jax.lax.conv(x, w, (1, 1, 1), "VALID")  # noqa: E731
        sj.intercept(three, [sj.Rule(".*", UNIT)])(drawn(1, 1, 4, 4, 4), drawn(1, 1, 2, 2, 2))
    with pytest.raises(Exception, match="no value of e5m2"):
        by_rules(UNIT)(np.full((1, 1, 3, 3), 0.3, np.float32), drawn(1, 1, 2, 2), drawn(1, 1, 2, 2))
