"""Witnesses: one computation, as data and as text, that can be run again and held against a specification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from softnum.inspect.permitted.freedom import Freedom
from softnum.inspect.permitted.operands import codes_of_dot, number_of
from softnum.reference.facts import format_of
from softnum.reference.operations import exact_product, exact_sum
from softnum.reference.rounding import deliver, environment_of
from softnum.reference.values import Value, decode, flushed

__all__ = ["Node", "Witness", "witness_of"]

_NAN = Value("nan", 0, 1, 2)
#: Products up to which the text of a witness is its formula.
_SHORT = 16


class Node(NamedTuple):
    """One step of a computation; `left` and `right` are numbers of earlier steps, but of a product `left` is its k.

    ``op``: "zero" (+0), "c", "product" (a_k * b_k, rounded), "exact" (a_k * b_k), "add" (rounded), "sum" (not), "sign"
    (a zero of the other sign), "deliver" (rounded to the accumulator) or "output" (to the result's format). ``way``:
    which of ``Freedom.ways`` a rounding takes; of a sum it says the sign of an exact zero. ``reads``: which operands a
    flush of subnormal inputs makes zero; of a product, those of a and b. ``flush``: of a rounded product in a format of
    its own, whether it is flushed when it is read.
    """

    op: str
    left: int = -1
    right: int = -1
    way: int | None = None
    reads: tuple[bool, bool] = (False, False)
    flush: bool = False


@dataclass(frozen=True)
class Witness:
    """A computation that a specification permits, and that gives a result.

    Attributes
    ----------
    nodes : tuple of Node
        The steps, each after those that it needs; the last one is the result.
    name : str
        The order in words, where it is one of those that kernels use; else "".

    Examples
    --------
    >>> import softnum as sn
    >>> a, b, spec = [16, 1, 1, -16], [1, 1, 1, 1], sn.Freedom("e4m3", products="fused")
    >>> found = sn.permitted(a, b, spec, result=2.0)
    >>> print(found.witness)
    a running sum from the last to the first, fused multiply-adds
    >>> found.witness.formula()
    'fma(a0, b0, fma(a1, b1, fma(a2, b2, fma(a3, b3, 0))))'
    >>> found.witness.replay(a, b, spec)
    2.0
    """

    nodes: tuple[Node, ...]
    name: str = ""

    def value(self, a: Any, b: Any, freedom: Freedom, c: Any = None) -> int:
        """The code of the result, of codes of the operands, by `softnum.reference` alone."""
        operands = tuple(map(format_of, freedom.operand))
        accumulator, product, output = (format_of(f) for f in (freedom.accumulator, freedom.product, freedom.output))

        always = freedom.flush_inputs is True

        def env(fmt, own, way):
            mode, flush = freedom.ways[way]
            return environment_of(fmt, mode, freedom.overflow_of(own), flush_results=flush)

        def rounded(exact: Value, fmt, own, way) -> tuple[Value, int]:
            code, _ = deliver(exact, fmt, env(fmt, own, way))
            return decode(code, fmt), code

        def read(i: int, flush: bool) -> Value:
            value, code = done[i]
            return flushed(value, code, accumulator) if (flush or always) and code is not None else value

        done: list[tuple[Value, int | None]] = []
        for node in self.nodes:
            match node.op:
                case "zero":
                    done.append((decode(0, accumulator), 0))
                case "c":
                    done.append((decode(c, accumulator), c))
                case "exact" | "product":
                    x, y = (
                        flushed(decode(codes[node.left], fmt), codes[node.left], fmt) if flush or always
                        else decode(codes[node.left], fmt)
                        for codes, fmt, flush in zip((a, b), operands, node.reads, strict=True)
                    )  # fmt: skip
                    exact = exact_product(x, y, environment_of(accumulator))
                    if exact.kind == "invalid":  # exact_sum looks for it in its first operand alone
                        exact = _NAN
                    if node.op == "exact":
                        done.append((exact, None))
                        continue
                    value, code = rounded(exact, product, freedom.product, node.way)
                    if freedom.product != freedom.accumulator:
                        value, code = (flushed(value, code, product) if node.flush or always else value), None
                    done.append((value, code))
                case "add" | "sum":
                    x, y = read(node.left, node.reads[0]), read(node.right, node.reads[1])
                    exact = exact_sum(x, y, env(accumulator, freedom.accumulator, node.way))
                    if node.op == "sum":
                        done.append((_NAN if exact.kind == "invalid" else exact, None))
                    else:
                        done.append(rounded(exact, accumulator, freedom.accumulator, node.way))
                case "sign":
                    value, code = done[node.left]
                    value = value._replace(sign=1 - value.sign)
                    if code is not None:
                        code, _ = deliver(value, accumulator, environment_of(accumulator))
                    done.append((value, code))
                case "deliver":
                    done.append(rounded(done[node.left][0], accumulator, freedom.accumulator, node.way))
                case "output":
                    done.append(rounded(read(node.left, node.flush), output, freedom.output, node.way))
                case _:
                    raise ValueError(f"no step of a computation: {node!r}")
        return done[-1][1]

    def replay(self, a: Any, b: Any, freedom: Freedom, c: Any = None) -> tuple[Any, ...]:
        """The result again, of numbers or Arrays as `softnum.permitted` takes them: a float, or a Fraction or text that
        no float64 holds."""
        a, b, c = codes_of_dot(a, b, c, freedom)
        return number_of(self.value(a, b, freedom, c), freedom.output)

    def problem(self, freedom: Freedom, k: int, with_c: bool) -> str:
        """Why a specification does not permit this computation of k products; "" where it does."""
        return _problem(self.nodes, freedom, k, with_c)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"name": self.name, "nodes": [list(node) for node in self.nodes]}

    def __str__(self) -> str:
        if self.name:
            return self.name
        count = sum(node.op in ("product", "exact") for node in self.nodes)
        return self.formula() if count <= _SHORT else f"{len(self.nodes)} steps; .formula() has them"

    def formula(self) -> str:
        """The computation as one expression."""
        texts: list[str] = []
        for node in self.nodes:
            k = node.left
            match node.op:
                case "zero":
                    texts.append("0")
                case "c":
                    texts.append("c")
                case "exact":
                    texts.append(f"a{k}*b{k}")
                case "product":
                    texts.append(f"round(a{k}*b{k})")
                case "add" | "sum":
                    x, y = self.nodes[node.left], self.nodes[node.right]
                    if node.op == "add" and x.op == "exact" and y.op != "exact":
                        texts.append(f"fma(a{x.left}, b{x.left}, {texts[node.right]})")
                    elif node.op == "add" and y.op == "exact" and x.op != "exact":
                        texts.append(f"fma(a{y.left}, b{y.left}, {texts[node.left]})")
                    else:
                        text = f"{texts[node.left]} + {texts[node.right]}"
                        texts.append(f"({text})" if node.op == "add" else f"exact({text})")
                case "sign":
                    texts.append(f"-{texts[node.left]}")
                case _:
                    texts.append(f"round({texts[node.left]})")
        text = texts[-1]
        return text[1:-1] if self.nodes[-1].op == "add" and text.startswith("(") else text


class _Span(NamedTuple):
    """The places that a sum's terms take: the least, the greatest and how many; C has place -1 if it stands first, and
    none elsewhere."""

    low: int
    high: int
    places: int
    products: int
    cs: int

    @property
    def leaves(self) -> int:
        return self.products + self.cs


_NOTHING = _Span(1 << 62, -(1 << 62), 0, 0, 0)


def _problem(nodes, freedom: Freedom, k: int, with_c: bool) -> str:
    """The rules of a specification, each held against every step."""
    used: set[int] = set()
    products: set[int] = set()
    spans: list[_Span] = []
    for at, node in enumerate(nodes):
        parts = {"add": (node.left, node.right), "sum": (node.left, node.right)}.get(node.op, (node.left,))
        if node.op in ("add", "sum", "sign", "deliver", "output"):
            for i in parts:
                if not 0 <= i < at or i in used:
                    return f"step {at} takes step {i}, which is none before it or is taken twice"
                used.add(i)
        if node.op in ("product", "add", "sum", "deliver", "output") and node.way not in range(len(freedom.ways)):
            return f"step {at} rounds in no way that is stated"
        if any(flush and True not in freedom.reads for flush in (*node.reads, node.flush)):
            return f"step {at} flushes an operand"
        match node.op:
            case "zero":
                spans.append(_NOTHING)
            case "c":
                if not with_c:
                    return "there is no C"
                first = freedom.c == "first"
                spans.append(_Span(-1, -1, 1, 0, 1) if first else _NOTHING._replace(cs=1))
            case "exact" | "product":
                if not 0 <= node.left < k or node.left in products:
                    return f"product {node.left} is none, or is taken twice"
                products.add(node.left)
                if node.op == "product" and "rounded" not in freedom.products:
                    return f"product {node.left} is rounded on its own"
                if node.op == "exact" and freedom.products == ("rounded",):
                    return f"product {node.left} is not rounded on its own"
                spans.append(_Span(node.left, node.left, 1, 1, 0))
            case "add" | "sum":
                wanted = {"add": "exact", "sum": "rounded"}[node.op]
                if freedom.intermediate == wanted:
                    return f"step {at} {'is not rounded' if node.op == 'sum' else 'is rounded'}"
                x, y = spans[node.left], spans[node.right]
                ops = nodes[node.left].op, nodes[node.right].op
                if ops == ("exact", "exact") and "exact" not in freedom.products:
                    return f"step {at} adds two products that were not rounded"
                if not (x.leaves and y.leaves):
                    chain = "fused" in freedom.products and "exact" in ops
                    if freedom.zeros == "ieee" and not chain:
                        return f"step {at} adds +0"
                both = _Span(
                    min(x.low, y.low), max(x.high, y.high), x.places + y.places, x.products + y.products, x.cs + y.cs
                )
                problem = _place(x, y, both, freedom, k, with_c) if x.leaves and y.leaves else ""
                if x.leaves and y.leaves and freedom.grouping == "sequential":
                    problem = problem or _next(x, y, ops, freedom)
                if problem:
                    return f"step {at} {problem}"
                spans.append(both)
            case "sign":
                if freedom.zeros != "either":
                    return f"step {at} reverses the sign of a zero"
                spans.append(spans[node.left])
            case "deliver":
                if nodes[node.left].op == "exact" and "exact" not in freedom.products:
                    return f"step {at} rounds a product on its own"
                spans.append(spans[node.left])
            case "output":
                if at != len(nodes) - 1 or freedom.output == freedom.accumulator:
                    return f"step {at} is no last rounding to another format"
                spans.append(spans[node.left])
            case _:
                return f"step {at} is of no known kind: {node.op}"
    if used != set(range(len(nodes) - 1)):
        return "a step before the last is not taken"
    if len(products) != k or spans[-1].cs != int(with_c):
        return f"{len(products)} of {k} products, and C {spans[-1].cs} times, are in the sum"
    if nodes[-1].op == "exact" or (freedom.output != freedom.accumulator and nodes[-1].op != "output"):
        return "the sum is not rounded to its format"
    return ""


def _next(x: _Span, y: _Span, ops: tuple[str, str], freedom: Freedom) -> str:
    """What is wrong with an addition of a running sum: to it, or to its first term, a term is added as it is."""
    bare = [op in ("exact", "product", "c") for op in ops]
    if x.leaves > 1 or y.leaves > 1:
        return "" if bare[x.leaves > 1] else "adds two sums"
    leads = None  # which of the two is the first term, where that is not free
    if freedom.order == "given" and x.products and y.products:
        leads = int(y.low < x.low)
    elif (x.cs or y.cs) and freedom.c != "any":
        leads = int(bool(y.cs) == (freedom.c == "first"))
    if leads is None:
        return "" if any(bare) else "adds two sums"
    if ops[leads] == "exact" and "exact" not in freedom.products:
        return "starts from a product that is not rounded"
    return "" if bare[1 - leads] else "adds two sums"


def _place(x: _Span, y: _Span, both: _Span, freedom: Freedom, k: int, with_c: bool) -> str:
    """What is wrong with the places of two sums that are added."""
    sequential = freedom.grouping == "sequential"
    if sequential and x.leaves > 1 and y.leaves > 1:
        return "adds two sums"
    if freedom.c == "last" and both.cs and not (both.products == k and (x.products == 0 or y.products == 0)):
        return "does not add C last"
    if sequential and with_c and freedom.c == "first" and not both.cs:
        return "does not start from C"
    if freedom.order == "given":
        if both.high - both.low + 1 != both.places:
            return "adds what are no neighbours"
        if sequential and both.low != (-1 if with_c and freedom.c == "first" else 0):
            return "does not start from the first term"
    return ""


def witness_of(made: Any, pairs: Any, freedom: Freedom) -> Witness:
    """The witness of what `softnum.inspect.permitted.sets` keeps with a result, equal products told apart."""
    free: dict = {}
    for i, pair in enumerate(pairs):
        free.setdefault(pair, []).append(i)
    for places in free.values():
        places.reverse()
    nodes: list[Node] = []
    done: list[int] = []  # numbers of finished steps that wait
    todo: list[tuple[tuple, bool]] = [(made, False)]
    while todo:
        step, ready = todo.pop()
        op = step[0]
        if not ready and op in ("add", "sum", "sign", "deliver", "output"):
            todo.append((step, True))
            parts = step[1:3] if op in ("add", "sum") else step[1:2]
            todo += [(part, False) for part in reversed(parts)]
            continue
        if op in ("exact", "product"):
            k = step[1] if freedom.order == "given" else free[pairs[step[1]]].pop()
            way, flush = (step[3], step[4]) if op == "product" else (None, False)
            nodes.append(Node(op, k, -1, way, step[2], flush))
        elif op in ("add", "sum"):
            right, left = done.pop(), done.pop()
            nodes.append(Node(op, left, right, step[3], step[4]))
        elif op == "sign":
            nodes.append(Node(op, done.pop()))
        elif op == "deliver":
            nodes.append(Node(op, done.pop(), way=step[2]))
        elif op == "output":
            nodes.append(Node(op, done.pop(), way=step[2], flush=step[3]))
        else:
            nodes.append(Node(op))
        done.append(len(nodes) - 1)
    return Witness(tuple(nodes))
