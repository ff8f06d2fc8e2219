"""A function of JAX with its matrix products computed by rules: which arithmetic a module's products have."""

from __future__ import annotations

import contextlib
import functools
import re
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp

from softnum.jax.convolutions import convolution, geometry_of
from softnum.jax.keys import check_key, jumped, spawn
from softnum.jax.numerics import Arithmetic, arithmetic, of_layer
from softnum.jax.products import product
from softnum.jax.quantization import carrier
from softnum.mac.mad import Unit
from softnum.mac.presets import units
from softnum.train.designs.design import Design
from softnum.train.designs.reader import load_design

__all__ = ["Rule", "intercept"]

_PRODUCT, _CONVOLUTION = _COMPUTED = "dot_general", "conv_general_dilated"
#: operations that compute products, and that have no arithmetic of softnum's
_REFUSED = ("ragged_dot", "ragged_dot_general", "scaled_dot", "triangular_solve", "cholesky")
_KEYS = 16  # jumps of a product's key, at most


@dataclass(frozen=True)
class Rule:
    """Which products have which arithmetic: the first rule of a list that fits decides.

    Parameters
    ----------
    module_path : str
        A regular expression that the whole path of the module matches: the scopes of ``jax.named_scope``, which Flax
        opens for each module, joined by "/".
    arithmetic : Design, Unit, str, Path, Arithmetic or None
        What `softnum.jax.arithmetic` takes, of a design that of the layer of this path, with "." for "/"; None: left to
        JAX.
    op_names : tuple of str
        The operations: "dot_general", which ``jnp.dot``, ``matmul``, ``einsum`` and ``@`` are; and
        "conv_general_dilated", convolutions of one or two dimensions, in the order of `softnum.conv2d` and its
        gradients. Other operations that compute products have no arithmetic here: a rule that fits one is an error,
        unless it leaves it to JAX.
    weights : {"right", "left"}
        Which operand of a dot_general takes the place of weights: of ``x @ w`` the right one; ``jnp.einsum`` may
        exchange them. Of a convolution it is the kernel.
    first : bool
        Whether the module takes the model's input: its ``activations`` are then the role ``input`` of a design.

    Examples
    --------
    >>> import softnum.jax as sj
    >>> str(sj.Rule("fc.*", "c-wang-fp8").of("fc1").forward.unit.result)
    'e6m9'
    """

    module_path: str
    arithmetic: Design | Unit | str | Path | Arithmetic | None
    op_names: tuple[str, ...] = (*_COMPUTED, *_REFUSED)
    weights: str = "right"
    first: bool = False

    def __post_init__(self) -> None:
        try:
            re.compile(self.module_path)
        except re.error as error:
            raise ValueError(f"Rule: module_path {self.module_path!r} is no regular expression: {error}") from None
        names = (self.op_names,) if isinstance(self.op_names, str) else tuple(self.op_names)
        for name in names:
            if name not in (*_COMPUTED, *_REFUSED):
                raise ValueError(f"Rule: op_names are of {', '.join((*_COMPUTED, *_REFUSED))}, got {name!r}")
        if self.weights not in ("right", "left"):
            raise ValueError(f"Rule: weights is 'right' or 'left', got {self.weights!r}")
        object.__setattr__(self, "op_names", names)

    @functools.cached_property
    def _made(self) -> dict[str, Arithmetic]:
        return {}

    @functools.cached_property
    def design(self) -> Design | None:
        """The design, where the arithmetic is one's."""
        what = self.arithmetic
        if isinstance(what, str) and ("(" in what or what in units()):
            return None
        return load_design(what) if isinstance(what, (str, Path)) else what if isinstance(what, Design) else None

    def of(self, path: str) -> Arithmetic | None:
        """The arithmetic of a module's products."""
        if path not in self._made:
            design, layer = self.design, path.replace("/", ".")
            self._made[path] = arithmetic(self.arithmetic) if design is None else of_layer(design, layer, self.first)
        return self._made[path]


def intercept(function, rules, *, key=None):
    """A function whose matrix products are computed in the arithmetic that rules say, as Qwix intercepts them.

    Parameters
    ----------
    function : callable
        Of arrays, or pytrees of them, to such. It is traced at each call, as by ``jax.make_jaxpr``; the result can be
        differentiated, compiled and mapped. Differentiate the result, not what is intercepted: gradients have the units
        of the design's backward passes.
    rules : sequence of Rule
        Products that none fits are left to JAX; so are those of integers.
    key : int, (int, int), Stream or array, optional
        Of random bits. Product i in the order of the program takes the jump by 16 i; that in iteration j of a ``scan``
        those of child j of the scan's place. A step of training has one of its own: ``spawn(key, step)``.

    Returns
    -------
    callable

    Raises
    ------
    NotImplementedError
        When called: if a rule fits an operation that softnum does not compute, products lie within a function with a
        derivative of its own, or come of a differentiation within.
    ValueError
        When called: if an arithmetic rounds stochastically and there is no key; if a ``[layers]`` table of a design
        matches no module that has the design.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, softnum.jax as sj
    >>> def model(w, x):
    ...     with jax.named_scope("fc1"):
    ...         return x @ w
    >>> x = jnp.float32([[0.3]])
    >>> model(x, x).item(), sj.intercept(model, [sj.Rule("fc1", "e-e6m3-chunk")])(x, x).item()
    (0.09000000357627869, 0.09375)
    """
    rules = tuple(rules)
    for rule in rules:
        if not isinstance(rule, Rule):
            raise TypeError(
                f"softnum.jax.intercept takes rules, softnum.jax.Rule(module_path, arithmetic), got {rule!r}"
            )
    key = None if key is None else check_key(key, "intercept")

    @functools.wraps(function)
    def intercepted(*args, **kwargs):
        traced, shape = jax.make_jaxpr(function, return_shape=True)(*args, **kwargs)
        results = _Run(rules, key).evaluate(traced.jaxpr, traced.consts, jax.tree.leaves((args, kwargs)), ())
        _check_layers(rules)
        return jax.tree.unflatten(jax.tree.structure(shape), results)

    return intercepted


def _check_layers(rules: tuple[Rule, ...]) -> None:
    """ValueError if a ``[layers]`` table of a design matches none of the modules that rules gave the design to."""
    for design in {id(rule.design): rule.design for rule in rules if rule.design is not None}.values():
        paths = [path for rule in rules if rule.design == design for path in rule._made]
        if paths:
            design.check_layers([path.replace("/", ".") for path in paths])


def _jaxprs(eqn):
    """The programs within an operation."""
    for value in eqn.params.values():
        for part in value if isinstance(value, (tuple, list)) else (value,):
            inner = getattr(part, "jaxpr", part)
            if hasattr(inner, "eqns"):
                yield inner


def _unchanged(program, eqn, values) -> list:
    """The results of an operation of a program as JAX has it."""
    variables = [x for x in eqn.invars if not hasattr(x, "val")]
    given = [value for x, value in zip(eqn.invars, values, strict=True) if not hasattr(x, "val")]
    alone = program.replace(constvars=[], invars=variables, outvars=eqn.outvars, eqns=[eqn])
    return jax.core.eval_jaxpr(alone, (), *given)


def _multiplies(jaxpr) -> bool:
    """Whether a program has an operation that rules are of."""
    return any(
        eqn.primitive.name in (*_COMPUTED, *_REFUSED) or any(map(_multiplies, _jaxprs(eqn))) for eqn in jaxpr.eqns
    )


class _Run:
    """One evaluation of a program; key: of its products, or None."""

    def __init__(self, rules: tuple[Rule, ...], key) -> None:
        self.rules, self.key, self.count = rules, key, 0

    def _next(self):
        """The key of the next place of the program."""
        self.count += 1
        return None if self.key is None else jumped(self.key, _KEYS * (self.count - 1))

    def evaluate(self, jaxpr, consts, arguments, scopes: tuple[str, ...]) -> list:
        """The results of a program that stands in some scopes."""
        known = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *arguments), strict=True))
        for eqn in jaxpr.eqns:
            values = [x.val if hasattr(x, "val") else known[x] for x in eqn.invars]
            inner = (*scopes, *_scopes(eqn))
            results = self._operation(jaxpr, eqn, values, inner)
            known.update(zip(eqn.outvars, results, strict=True))
        return [x.val if hasattr(x, "val") else known[x] for x in jaxpr.outvars]

    def _operation(self, program, eqn, values: list, scopes: tuple[str, ...]) -> list:
        name = eqn.primitive.name
        if name in (*_COMPUTED, *_REFUSED):
            rule = self._rule(name, scopes, eqn)
            if rule is not None:
                compute = self._product if name == _PRODUCT else self._convolution
                return [compute(eqn, rule, *values, "/".join(scopes))]
        elif any(map(_multiplies, _jaxprs(eqn))):
            within = _WITHIN.get(name)
            if within is None:
                raise NotImplementedError(
                    f"softnum.jax.intercept: {name} in module {'/'.join(scopes)!r} has products within, where rules do "
                    "not reach; call softnum.jax.matmul there, or leave it out of what is intercepted"
                )
            return within(self, eqn.params, values, scopes)
        with jax.named_scope("/".join(scopes)) if scopes else contextlib.nullcontext():
            return _unchanged(program, eqn, values)

    # -- products ------------------------------------------------------------------------------------------------------

    def _rule(self, name: str, scopes: tuple[str, ...], eqn) -> Rule | None:
        """The rule of an operation, where it is not left to JAX."""
        path = "/".join(scopes)
        rule = next((r for r in self.rules if name in r.op_names and re.fullmatch(r.module_path, path)), None)
        if rule is None or rule.arithmetic is None or not jnp.issubdtype(eqn.outvars[0].aval.dtype, jnp.floating):
            return None
        if _is_gradient(eqn):
            raise NotImplementedError(
                f"softnum.jax.intercept: {name} in module {path!r} belongs to a gradient that the function itself "
                "takes, and would have the forward unit; intercept what is differentiated: "
                "jax.grad(intercept(function, rules))"
            )
        if name not in _COMPUTED:
            raise NotImplementedError(
                f"softnum.jax.intercept: {name} in module {path!r} has no arithmetic of softnum's; write it as a "
                f"product, or leave it to JAX by a rule before: Rule({path!r}, None, op_names=({name!r},))"
            )
        return rule

    def _product(self, eqn, rule: Rule, left, right, path: str):
        """dot_general as products of matrices (batch, M, K) @ (batch, K, N)."""
        how = rule.of(path)
        key = self._key_of(how, path)
        contracted, batched = eqn.params["dimension_numbers"]
        (a, free_a), (b, free_b) = (
            _as_matrices(carrier(x, "intercept", "an operand")[0], batch, along)
            for x, along, batch in zip((left, right), contracted, batched, strict=True)
        )
        batch = [left.shape[axis] for axis in batched[0]]
        if rule.weights == "right":
            made = product(how, a, jnp.swapaxes(b, 1, 2), None, key)
        else:
            made = jnp.swapaxes(product(how, b, jnp.swapaxes(a, 1, 2), None, key), 1, 2)
        return made.reshape((*batch, *free_a, *free_b)).astype(eqn.outvars[0].aval.dtype)

    def _convolution(self, eqn, rule: Rule, x, w, path: str):
        """conv_general_dilated as products of unfolded images."""
        how = rule.of(path)
        if not how.direct:
            raise NotImplementedError(
                f"softnum.jax.intercept: {how.name} computes convolutions by a transform, as that in module {path!r}; "
                "softnum.torch does it, or leave [convolution] out of the design"
            )
        g, (of_x, of_w, of_result) = geometry_of(x, w, eqn.params, path)
        if g.groups > 1 and any(part.unit.stochastic for part in (how.forward, how.backward_data, how.backward_weight)):
            raise NotImplementedError(
                f"softnum.jax.intercept: {how.name} rounds products stochastically, and the convolution in module "
                f"{path!r} has {g.groups} groups, whose random words are not those of softnum.conv2d here; leave it to "
                f"JAX by a rule before: Rule({path!r}, None, op_names=({_CONVOLUTION!r},))"
            )
        key = self._key_of(how, path)
        x, w = (
            jnp.transpose(carrier(value, "intercept", "an operand")[0], order)
            for value, order in ((x, of_x), (w, of_w))
        )
        made = convolution(how, g, x.reshape(*x.shape[:2], *g.size), w.reshape(*w.shape[:2], *g.kernel), key)
        made = made.reshape(*made.shape[:2], *g.result[4 - len(of_result) :])
        return jnp.transpose(made, of_result).astype(eqn.outvars[0].aval.dtype)

    def _key_of(self, how: Arithmetic, path: str):
        """The key of a product in a module; zeros where nothing takes random bits."""
        key = self._next() if how.stochastic else jnp.zeros(4, jnp.uint32)
        if key is None:
            raise ValueError(
                f"softnum.jax.intercept: {how.name} rounds stochastically in module {path!r}; state key="
                "softnum.jax.key(seed), of a step of training spawn(key, step)"
            )
        return key

    # -- programs within -----------------------------------------------------------------------------------------------

    def _call(self, params, values, scopes):
        inner = params["jaxpr"] if "jaxpr" in params else params["call_jaxpr"]
        return self.evaluate(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), values, scopes)

    def _remat(self, params, values, scopes):
        def again(*values):
            return self.evaluate(params["jaxpr"], (), values, scopes)

        return jax.checkpoint(again, policy=params["policy"], prevent_cse=params["prevent_cse"])(*values)

    def _scan(self, params, values, scopes):
        inner, consts, carries = params["jaxpr"], params["num_consts"], params["num_carry"]
        fixed, start, along = values[:consts], values[consts : consts + carries], values[consts + carries :]
        key = self._next()

        def step(carry, x):
            (number, *carried), x = carry, x
            run = _Run(self.rules, None if key is None else spawn(key, number))
            results = run.evaluate(inner.jaxpr, inner.consts, (*fixed, *carried, *x), scopes)
            return (number + 1, *results[:carries]), tuple(results[carries:])

        (_, *carried), stacked = jax.lax.scan(
            step, (jnp.uint32(0), *start), tuple(along), length=params["length"], reverse=params["reverse"],
            unroll=params["unroll"],
        )  # fmt: skip
        return [*carried, *stacked]

    def _while(self, params, values, scopes):
        if _multiplies(params["cond_jaxpr"].jaxpr):
            raise NotImplementedError(
                f"softnum.jax.intercept: a loop in module {'/'.join(scopes)!r} has products in its condition, where "
                "rules do not reach; compute them in its body"
            )
        test, body, n = params["cond_jaxpr"], params["body_jaxpr"], params["cond_nconsts"]
        of_test, rest = values[:n], values[n:]
        of_body, start = rest[: params["body_nconsts"]], rest[params["body_nconsts"] :]
        key = self._next()

        def goes_on(carry):
            return jax.core.eval_jaxpr(test.jaxpr, test.consts, *of_test, *carry[1:])[0]

        def step(carry):
            run = _Run(self.rules, None if key is None else spawn(key, carry[0]))
            return (carry[0] + 1, *run.evaluate(body.jaxpr, body.consts, (*of_body, *carry[1:]), scopes))

        return list(jax.lax.while_loop(goes_on, step, (jnp.uint32(0), *start))[1:])

    def _cond(self, params, values, scopes):
        key = self._next()
        key = None if key is None else spawn(key, 0)

        def branch(inner):
            return lambda *values: _Run(self.rules, key).evaluate(inner.jaxpr, inner.consts, values, scopes)

        which, *operands = values
        return jax.lax.switch(which, [branch(inner) for inner in params["branches"]], *operands)


#: operations with a program within that rules reach
_WITHIN = {
    "jit": _Run._call, "pjit": _Run._call, "closed_call": _Run._call, "core_call": _Run._call,
    "checkpoint": _Run._remat, "remat": _Run._remat, "remat2": _Run._remat,
    "scan": _Run._scan, "while": _Run._while, "cond": _Run._cond,
}  # fmt: skip


def _scopes(eqn) -> tuple[str, ...]:
    """The scopes that an operation's program opened for it, but those of ``jnp.einsum``, which have its text."""
    names = (part.name for part in eqn.source_info.name_stack.stack if not _is_transform(part))
    return tuple(name for name in names if "->" not in name)


def _is_transform(part) -> bool:
    return type(part).__name__ == "Transform"


def _is_gradient(eqn) -> bool:
    """Whether an operation comes of the transposition of another."""
    return any(_is_transform(part) and part.name == "transpose" for part in eqn.source_info.name_stack.stack)


def _as_matrices(x, batch, along) -> tuple[jax.Array, list[int]]:
    """x as (products, rows, K), and the sizes of the axes that the rows are."""
    free = [axis for axis in range(x.ndim) if axis not in (*batch, *along)]
    sizes = [x.shape[axis] for axis in free]
    size = functools.partial(functools.reduce, lambda n, axis: n * x.shape[axis])
    shape = tuple(size(axes, 1) for axes in (batch, free, along))
    return jnp.transpose(x, (*batch, *free, *along)).reshape(shape), sizes
