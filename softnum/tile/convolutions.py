"""Which contractions are two-dimensional convolutions, or gradients of one: `softnum.conv2d` and its like compute them.

They give the bits that the contraction's own matrix product gives, in less memory: the order of summation, the padded
zeros and the numbers of random words are the same.
"""

from __future__ import annotations

from fractions import Fraction

from softnum.mac.products.conv import conv2d, conv2d_backward_data, conv2d_backward_weight
from softnum.tile.affine import Form

__all__ = ["recognised", "run"]


def recognised(space, left, right, first: tuple, second: tuple) -> tuple | None:
    """(kind, arguments) if the product of these accesses is a convolution of tensors of these shapes, else None."""
    if len(space.shape) != 4 or len(space.free) != 3 or len(first) != 4 or len(second) != 4:
        return None
    if space.residual is not None or any(low for _, low, _ in space.free) or 0 in space.lengths:
        return None
    a, b = space.composed(left), space.composed(right)
    for kind, match in (("forward", _forward), ("data", _data), ("weight", _weight)):
        options = match(space, a, b, first, second)
        if options is not None:
            return kind, options
    return None


def _is(forms, *variables) -> bool:
    """Whether the forms are these variables themselves, None for any form."""
    return all(
        v is None or form == Form({v: Fraction(1)}, Fraction(0)) for form, v in zip(forms, variables, strict=True)
    )


def _windows(forms, moved, inside):
    """stride, padding and dilation of ``stride * moved + dilation * inside - padding`` by axis, or None."""
    strides, paddings, dilations = [], [], []
    for form, place, k in zip(forms, moved, inside, strict=True):
        if set(form.coefficients) != {place, k}:
            return None
        stride, dilation, padding = form.coefficients[place], form.coefficients[k], -form.constant
        if stride < 1 or dilation < 1 or padding < 0 or any(v.denominator != 1 for v in (stride, dilation, padding)):
            return None
        strides.append(int(stride))
        paddings.append(int(padding))
        dilations.append(int(dilation))
    return {"stride": tuple(strides), "padding": tuple(paddings), "dilation": tuple(dilations)}


def _fits(size, kernel, result, options) -> bool:
    """Whether such a convolution of images of this size has this result."""
    for n, k, m, s, p, d in zip(size, kernel, result, *options.values(), strict=True):
        spread = d * (k - 1) + 1
        if spread > n + 2 * p or (n + 2 * p - spread) // s + 1 != m:
            return False
    return True


def _forward(space, a, b, x, w):
    (c, _, kc), (ky, _, kh), (kx, _, kw) = space.free
    options = _windows(a[2:], (2, 3), (ky, kx))
    if options is None or not _is(a, 0, c, None, None) or not _is(b, 1, c, ky, kx):
        return None
    images, filters, *result = space.shape
    same = (images, kc) == x[:2] and (filters, kc, kh, kw) == w
    return options if same and _fits(x[2:], (kh, kw), result, options) else None


def _data(space, a, b, dy, w):
    (f, _, kf), (ky, _, kh), (kx, _, kw) = space.free
    # an output's place is stride * a + dilation * k - padding, solved for a
    turned = []
    for form, place, k in zip(a[2:], (2, 3), (ky, kx), strict=True):
        if set(form.coefficients) != {place, k}:
            return None
        stride = 1 / form.coefficients[place]
        turned.append(Form({place: stride, k: -form.coefficients[k] * stride}, -form.constant * stride))
    options = _windows(turned, (2, 3), (ky, kx))
    if options is None or not _is(a, 0, f, None, None) or not _is(b, f, 1, ky, kx):
        return None
    images, channels, *size = space.shape
    same = (images, kf) == dy[:2] and (kf, channels, kh, kw) == w
    return options | {"size": tuple(size)} if same and _fits(size, (kh, kw), dy[2:], options) else None


def _weight(space, a, b, x, dy):
    (i, _, images), (y, _, rows), (z, _, columns) = space.free
    options = _windows(a[2:], (y, z), (2, 3))
    if options is None or not _is(a, i, 1, None, None) or not _is(b, i, 0, y, z):
        return None
    filters, channels, *kernel = space.shape
    same = (images, channels) == x[:2] and (images, filters, rows, columns) == dy
    return options | {"kernel": tuple(kernel)} if same and _fits(x[2:], kernel, dy[2:], options) else None


def run(found, a, b, unit, key, threads):
    """The convolution that `recognised` found, of values or Arrays."""
    kind, options = found
    options = dict(options)
    more = {"key": key, "threads": threads}
    if kind == "forward":
        return conv2d(a, b, unit, **options, **more)
    if kind == "data":
        return conv2d_backward_data(a, b, unit, options.pop("size"), **options, **more)
    return conv2d_backward_weight(a, b, unit, options.pop("kernel"), **options, **more)
