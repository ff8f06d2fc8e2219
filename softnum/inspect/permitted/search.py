"""The search for witnesses of long sums: orders that kernels use, then orders by chance, all rows at a time.

Whether a specification permits what is found is asked of the witness (`Witness.problem`), so that an order that does
not fit costs time alone. The numbers are those of softnum's own operations on codes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from softnum.inspect.permitted.freedom import Freedom
from softnum.inspect.permitted.witness import Node, Witness
from softnum.mac.order import reduction_order
from softnum.ops.arithmetic import add, convert, fma, multiply

__all__ = ["found_by_chance", "found_by_orders"]

_ROWS = 256  # rows at a time
_TRIES = 512  # orders by chance
_LANES = (4, 8, 16, 32, 64, 2, 128)
_BLOCKS = (256, 128, 64, 32, 16, 8, 4, 2, 512, 384, 320, 192, 96, 48, 24)
_SEED = 20260801


class _Pool:
    """Steps that several orders share: equal ones are one."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._known: dict[Node, int] = {}

    def put(self, op: str, left: int = -1, right: int = -1) -> int:
        node = Node(op, left, right)
        at = self._known.get(node)
        if at is None:
            at = self._known[node] = len(self.nodes)
            self.nodes.append(node)
        return at

    def witness(self, root: int, name: str, way: int, flush: bool, output: bool) -> Witness:
        """The steps of one order alone."""
        steps: list[Node] = []

        def step(node: Node) -> int:
            rounds = node.op in ("add", "product", "output")
            steps.append(node._replace(way=way if rounds else None, reads=(flush, flush), flush=flush))
            return len(steps) - 1

        done: list[int] = []
        todo = [(root, False)]
        while todo:
            at, ready = todo.pop()
            node = self.nodes[at]
            if node.op != "add":
                done.append(step(node))
            elif not ready:
                todo += [(at, True), (node.right, False), (node.left, False)]
            else:
                right, left = done.pop(), done.pop()
                done.append(step(Node("add", left, right)))
        if output:
            step(Node("output", done.pop()))
        return Witness(tuple(steps), name)


class _Orders:
    """The orders that are tried, for products of K terms in one style: "fused" or "rounded"."""

    def __init__(self, pool: _Pool, style: str, with_c: bool, spec: Freedom) -> None:
        self.pool, self.fused, self.with_c, self.spec = pool, style == "fused", with_c, spec
        self.zero = pool.put("zero")
        self.padded = spec.zeros != "ieee"

    def term(self, k: int, total: int | None = None) -> int:
        """A running sum with one more product, or its first."""
        put = self.pool.put
        if self.fused:
            return put("add", put("exact", k), self.zero if total is None else total)
        product = put("product", k)
        if total is None:
            return put("add", product, self.zero) if self.padded else product
        return put("add", total, product)

    def chain(self, ks, start: int | None = None) -> int | None:
        total = start
        for k in ks:
            total = self.term(k, total)
        return total

    def reduced(self, sums: list[int], pairs) -> int:
        sums = list(sums)
        for i, j in pairs:
            sums[i] = self.pool.put("add", sums[i], sums[j])
        return sums[0]

    def orders(self, n: int) -> Iterator[tuple[str, int]]:
        """(name, last step) of each order; C comes first, and last."""
        how = "fused multiply-adds" if self.fused else "rounded products"
        if not self.with_c:
            for name, root in self._orders(n, None):
                yield f"{name}, {how}", root
            return
        c = self.pool.put("c")
        if self.spec.c != "last":
            for name, root in self._orders(n, c):
                yield f"{name}, {how}, from C on", root
        if self.spec.c != "first":
            for name, root in self._orders(n, None):
                yield f"{name}, {how}, C last", self.pool.put("add", root, c)

    def _orders(self, n: int, start: int | None):
        spec, every = self.spec, range(n)
        yield "a running sum from the first to the last", self.chain(every, start)
        if spec.order == "any" or (spec.grouping == "any" and start is None):
            yield "a running sum from the last to the first", self.chain(reversed(every), start)
        if spec.grouping == "sequential":
            return
        if spec.order == "any":
            yield from self._in_lanes(n, start)
        yield from self._in_blocks(n, start)
        leaves = [self.term(k) for k in every]
        leaves = leaves if start is None else [start, *leaves]
        for name in ("pairwise", "tree"):
            told = {"pairwise": "by halves", "tree": "of neighbours, level by level"}[name]
            yield f"a tree {told}", self.reduced(leaves, reduction_order(len(leaves), name))

    def _in_blocks(self, n: int, start: int | None):
        for size in dict.fromkeys((*_BLOCKS, -(-n // 2), -(-n // 4))):
            if not 1 < size < n:
                continue
            blocks = [self.chain(range(i, min(i + size, n))) for i in range(0, n, size)]
            blocks = blocks if start is None else [start, *blocks]
            for name in ("sequential", "tree", "pairwise"):
                told = {"sequential": "in order", "tree": "as a tree", "pairwise": "by halves"}[name]
                yield f"blocks of {size}, added {told}", self.reduced(blocks, reduction_order(len(blocks), name))

    def _in_lanes(self, n: int, start: int | None):
        for lanes in _LANES:
            whole = n - n % lanes
            if not whole:
                continue
            ways = {"the rest in the lanes": n, "the rest after": whole} if whole != n else {"": n}
            for told, length in ways.items():
                sums = [self.chain(range(j, length, lanes)) for j in range(lanes)]
                for name, pairs in _reductions(lanes):
                    root = self.reduced(sums, pairs)
                    text = f"{lanes} lanes, added {name}" + (f", {told}" if told else "")
                    root = self.chain(range(length, n), root)
                    yield text, root if start is None else self.pool.put("add", start, root)
                    if length < n:
                        rest = self.pool.put("add", self.reduced(sums, pairs), self.chain(range(length, n)))
                        yield f"{text} as a sum", rest if start is None else self.pool.put("add", start, rest)
        if n > 8:
            root = self._numpy(range(n))
            yield "NumPy's pairwise sum", root if start is None else self.pool.put("add", start, root)

    def _numpy(self, ks: range) -> int:
        """As NumPy's pairwise summation: blocks of up to 128 in 8 lanes, halves of multiples of 8."""
        n = len(ks)
        if n < 8:
            return self.chain(ks)
        if n <= 128:
            whole = n - n % 8
            lanes = [self.chain(ks[j:whole:8]) for j in range(8)]
            total = self.reduced(lanes, reduction_order(8, "tree"))
            return self.chain(ks[whole:], total)
        half = n // 2
        half -= half % 8
        return self.pool.put("add", self._numpy(ks[:half]), self._numpy(ks[half:]))


def _across(n: int, width: int = 1) -> list[tuple[int, int]]:
    """The first half of the numbers and the second, place by place, down to `width` numbers."""
    pairs = []
    while n > width:
        n //= 2
        pairs += [(i, i + n) for i in range(n)]
    return pairs


def _reductions(lanes: int) -> list[tuple[str, tuple]]:
    """How registers of lanes are added: over each other, then within one."""
    found: dict[tuple, str] = {}
    for width in dict.fromkeys((lanes, 4, 8, 16)):
        if width > lanes:
            continue
        registers = lanes // width
        upright = {"": []}
        if registers > 1:
            upright = {
                how: [(i * width + w, j * width + w) for i, j in reduction_order(registers, name) for w in range(width)]
                for how, name in (("in order", "sequential"), ("as a tree", "tree"))
            }
            upright["halves across"] = _across(lanes, width)
        level = {
            "halves across": _across(width),
            "as a tree": reduction_order(width, "tree"),
            "in order": reduction_order(width, "sequential"),
            "halves across to 4, then as a tree": [*_across(width, 4), *reduction_order(min(width, 4), "tree")],
        }
        for above, first in upright.items():
            for within, second in level.items():
                name = within if not above else f"{above} to {width}, then {within}"
                found.setdefault((*first, *second), name)
    for width in (8, 16):
        if lanes > width:  # each register folded, then the registers, then one
            registers = [r * width for r in range(lanes // width)]
            folded = [(r + i, r + width // 2 + i) for r in registers for i in range(width // 2)]
            for how, order in (("in order", "sequential"), ("as a tree", "tree")):
                upright = [(registers[i] + w, registers[j] + w)
                           for i, j in reduction_order(len(registers), order) for w in range(width // 2)]  # fmt: skip
                pairs = (*folded, *upright, *_across(width // 2, 4), *reduction_order(4, "tree"))
                found.setdefault(pairs, f"in {width}s folded, {how}, then halves across to 4, then as a tree")
    return [(name, pairs) for pairs, name in found.items()]


class _Runner:
    """Operations on codes of many rows, in one way."""

    def __init__(self, spec: Freedom, way: int, flush: bool) -> None:
        self.spec = spec
        mode, tiny = spec.ways[way]
        self.options = {"rounding": mode, "flush_inputs": flush, "flush_results": tiny}

    def _more(self, fmt) -> dict:
        return {**self.options, "overflow": self.spec.overflow_of(fmt)}

    def product(self, a, b) -> np.ndarray:
        fmt = self.spec.product
        return multiply(a, b, self.spec.operand, out_fmt=fmt, **self._more(fmt))

    def fused(self, a, b, x) -> np.ndarray:
        fmt = self.spec.accumulator
        return fma(a, b, x, (*self.spec.operand, fmt), out_fmt=fmt, **self._more(fmt))

    def sum(self, x, y, product: tuple[bool, bool]) -> np.ndarray:
        fmt = self.spec.accumulator
        formats = tuple(self.spec.product if p else fmt for p in product)
        return add(x, y, formats, out_fmt=fmt, **self._more(fmt))

    def result(self, x) -> np.ndarray:
        fmt = self.spec.output
        return x if fmt == self.spec.accumulator else convert(x, self.spec.accumulator, fmt, **self._more(fmt))


def _run(pool: _Pool, root: int, done: dict, runner: _Runner, a, b, c) -> np.ndarray:
    """The codes of a step of all rows; `done` keeps those of all steps."""
    nodes, todo = pool.nodes, [root]
    while todo:
        at = todo[-1]
        if at in done:
            todo.pop()
            continue
        node = nodes[at]
        if node.op == "add":
            left, right = nodes[node.left], nodes[node.right]
            waits = [i for i in (node.left, node.right) if i not in done and nodes[i].op != "exact"]
            if waits:
                todo += waits
                continue
            if left.op == "exact":
                done[at] = runner.fused(a[:, left.left], b[:, left.left], done[node.right])
            else:
                both = left.op == "product", right.op == "product"
                done[at] = runner.sum(done[node.left], done[node.right], both)
        elif node.op == "product":
            done[at] = runner.product(a[:, node.left], b[:, node.left])
        else:
            zero = np.zeros(len(a), runner.spec.accumulator.storage_dtype)
            done[at] = zero if node.op == "zero" else c
        todo.pop()
    return done[root]


def _styles(spec: Freedom) -> list[str]:
    fused = "fused" in spec.products or ("exact" in spec.products and spec.zeros != "ieee")
    return ["fused"] * fused + ["rounded"] * ("rounded" in spec.products)


def found_by_orders(spec: Freedom, a: np.ndarray, b: np.ndarray, c, wanted: list) -> dict[int, Witness]:
    """Witnesses of rows whose result one of the orders of kernels gives: {row: witness}.

    a, b: codes, shape (rows, K); c: codes or None; wanted: the code of each row's result, or None.
    """
    found: dict[int, Witness] = {}
    k = a.shape[1]
    if not k or spec.intermediate == "exact":
        return found
    pool = _Pool()
    orders = [x for style in _styles(spec) for x in _Orders(pool, style, c is not None, spec).orders(k)]
    if spec.product != spec.accumulator:  # a product alone is no number of the accumulator yet
        orders = [x for x in orders if pool.nodes[x[1]].op != "product"]
    fits: dict[tuple, bool] = {}

    def permits(number: int, way: int, flush: bool) -> bool:
        """Whether the specification has this order."""
        key = number, way, flush
        if key not in fits:
            witness = pool.witness(orders[number][1], "", way, flush, spec.output != spec.accumulator)
            fits[key] = not witness.problem(spec, k, c is not None)
        return fits[key]

    ways = [(way, flush) for flush in spec.reads for way in range(len(spec.ways))]
    for first in range(0, len(a), _ROWS):
        rows = [i for i in range(first, min(first + _ROWS, len(a))) if wanted[i] is not None]
        for way, flush in ways:
            runner = _Runner(spec, way, flush)
            left = [i for i in rows if i not in found]
            if not left:
                break
            mine = [None if x is None else np.ascontiguousarray(x[left]) for x in (a, b, c)]
            target = np.array([wanted[i] for i in left], spec.output.storage_dtype)
            done: dict[int, np.ndarray] = {}
            hits: list[tuple[int, np.ndarray]] = []  # (number of the order, which rows it gives)
            for number, (_, root) in enumerate(orders):
                try:
                    equal = runner.result(_run(pool, root, done, runner, *mine)) == target
                except ValueError:  # a result has no code: of these orders nothing is known
                    break
                if equal.any():
                    hits.append((number, equal))
                    if equal.all() and permits(number, way, flush):
                        break
            open_rows = np.ones(len(left), bool)
            while hits:  # the order that gives most first
                number, equal = max(hits, key=lambda hit: (np.count_nonzero(hit[1] & open_rows), -hit[0]))
                hits = [hit for hit in hits if hit[0] != number]
                if not (equal & open_rows).any():
                    break
                if permits(number, way, flush):
                    name, root = orders[number]
                    witness = pool.witness(root, name, way, flush, spec.output != spec.accumulator)
                    found.update((left[i], witness) for i in np.flatnonzero(equal & open_rows).tolist())
                    open_rows &= ~equal
    return found


def found_by_chance(spec: Freedom, pairs, c: int | None, wanted: int) -> Witness | None:
    """A witness by one of some hundred orders that a fixed seed draws, or None.

    They are permutations, where the order is free, as running sums and as trees by halves, each product fused or
    rounded by chance.
    """
    k = len(pairs)
    styles = _styles(spec)
    if not k or spec.intermediate == "exact" or not styles:
        return None
    rng = np.random.Generator(np.random.Philox(_SEED))
    places = np.tile(np.arange(k), (_TRIES, 1))
    if spec.order == "any":
        places = rng.permuted(places, axis=1)
    fused = np.full((_TRIES, k), styles[0] == "fused")
    if len(styles) == 2:
        share = rng.random((_TRIES, 1))
        fused = rng.random((_TRIES, k)) < share
    codes = [np.array(x, f.storage_dtype)[places] for x, f in zip(zip(*pairs, strict=True), spec.operand, strict=True)]
    start = None if c is None else np.full(_TRIES, c, spec.accumulator.storage_dtype)
    for flush in spec.reads:
        for way in range(len(spec.ways)):
            runner = _Runner(spec, way, flush)
            for halves in (False, True) if spec.grouping == "any" else (False,):
                try:
                    total = (_halves if halves else _running)(runner, *codes, fused, start, spec)
                except ValueError:
                    continue
                for at in np.flatnonzero(total == wanted)[:1].tolist():
                    drawn = places[at].tolist(), fused[at].tolist()
                    witness = _drawn(spec, *drawn, c is not None, way, flush, halves)
                    if not witness.problem(spec, k, c is not None):
                        return witness
    return None


def _first(runner: _Runner, a, b, fused, zero, spec: Freedom):
    """Each product as a number."""
    one = runner.fused(a, b, zero) if fused.any() else zero
    if fused.all():
        return one
    rounded = runner.product(a, b)
    if spec.product != spec.accumulator or spec.zeros != "ieee":
        rounded = runner.sum(rounded, zero, (True, False))
    return np.where(fused, one, rounded)


def _next(runner: _Runner, total, a, b, fused):
    one = runner.fused(a, b, total) if fused.any() else total
    return one if fused.all() else np.where(fused, one, runner.sum(total, runner.product(a, b), (False, True)))


def _running(runner: _Runner, a, b, fused, start, spec: Freedom):
    zero = np.zeros(len(a), spec.accumulator.storage_dtype)
    leads = start is not None and spec.c != "last"
    total = start if leads else _first(runner, a[:, 0], b[:, 0], fused[:, 0], zero, spec)
    for k in range(0 if leads else 1, a.shape[1]):
        total = _next(runner, total, a[:, k], b[:, k], fused[:, k])
    if start is not None and not leads:
        total = runner.sum(total, start, (False, False))
    return runner.result(total)


def _halves(runner: _Runner, a, b, fused, start, spec: Freedom):
    zero = np.zeros(len(a), spec.accumulator.storage_dtype)
    leads = start is not None and spec.c != "last"
    sums = [start] * leads + [_first(runner, a[:, k], b[:, k], fused[:, k], zero, spec) for k in range(a.shape[1])]
    for i, j in reduction_order(len(sums), "pairwise"):
        sums[i] = runner.sum(sums[i], sums[j], (False, False))
    total = sums[0]
    if start is not None and not leads:
        total = runner.sum(total, start, (False, False))
    return runner.result(total)


def _drawn(spec: Freedom, places, fused, with_c: bool, way: int, flush: bool, halves: bool) -> Witness:
    """The steps of one row of `_running` or `_halves`."""
    nodes: list[Node] = []

    def put(op: str, left: int = -1, right: int = -1) -> int:
        rounds = op in ("add", "product", "output")
        nodes.append(Node(op, left, right, way if rounds else None, (flush, flush), flush))
        return len(nodes) - 1

    def number(k: int, one: bool) -> int:
        product = put("exact" if one else "product", k)
        bare = not one and spec.product == spec.accumulator and spec.zeros == "ieee"
        return product if bare else put("add", product, put("zero"))

    leads = with_c and spec.c != "last"
    if halves:
        sums = [put("c")] * leads + [number(k, one) for k, one in zip(places, fused, strict=True)]
        for i, j in reduction_order(len(sums), "pairwise"):
            sums[i] = put("add", sums[i], sums[j])
        total = sums[0]
    else:
        rest = list(zip(places, fused, strict=True))
        total = put("c") if leads else number(*rest.pop(0))
        for k, one in rest:
            product = put("exact" if one else "product", k)
            total = put("add", *((product, total) if one else (total, product)))
    if with_c and not leads:
        total = put("add", total, put("c"))
    if spec.output != spec.accumulator:
        put("output", total)
    return Witness(tuple(nodes), f"an order by chance: {'a tree by halves' if halves else 'a running sum'}")
