"""Contractions, their indices and their sizes, checked on the way from syntax to steps."""

from __future__ import annotations

from dataclasses import replace

from softnum.tile import syntax
from softnum.tile.functions import WHOLE
from softnum.tile.program import COMPARISONS, Contraction
from softnum.tile.syntax import Access, Binary, Call, Choose, Name, Number, Unary, shown_number

__all__ = ["LOGIC", "Contractions"]

LOGIC = {"&&": "and", "||": "or"}
_UNKNOWN_RANK = (("of",), ("joint",), ("gathered",))


class Contractions:
    """The part of `softnum.tile.lower.Lowering` that deals with contractions."""

    def _contract(self, statement: syntax.Contract) -> None:
        at, name = statement.at, statement.name
        self.assigned(name, at)
        if self.guard:
            raise self.error(at, (
                f"{name}[...] is a contraction and cannot be used element-wise in a branch; move it out"
            ))  # fmt: skip
        sizes = statement.sizes
        if isinstance(sizes, syntax.Like):
            sizes = replace(sizes, name=self.tensor(sizes.name, sizes.at))
        elif len(sizes) != len(statement.indices):
            some = f"{len(statement.indices)} indices and {len(sizes)} sizes"
            raise self.error(at, f"{name} has {some}; write {name}[i, j: M, N], with a size for each index")
        else:
            sizes = tuple(self.size(s) for s in sizes)
        variables: dict[str, None] = {}
        body = self.body(statement.body, variables)
        indices = tuple(self.index(i, variables) for i in statement.indices)
        constraints = tuple((self.index(e, variables), self.size(bound)) for e, bound in statement.constraints)
        shape = self.builder.shapes[sizes.name] if isinstance(sizes, syntax.Like) else sizes
        if isinstance(sizes, syntax.Like) and shape[:1] not in _UNKNOWN_RANK:
            self._check_rank(sizes.name, len(indices), sizes.at)
        self.scope[name] = self.builder.contract(
            Contraction(
                self.builder.version(name), name, statement.aggregation, indices, sizes, body, constraints,
                tuple(variables), at,
            )
        )  # fmt: skip
        self.partial.pop(name, None)

    def body(self, expression, variables: dict, condition: bool = False):
        """The body of a contraction, with tensors by their versions; its index variables are entered in order."""
        put = lambda part, c=False: self.body(part, variables, c)  # noqa: E731
        match expression:
            case Access():
                name = self._number_named(expression)
                self._check_rank(name, len(expression.indices), expression.at)
                result = Access(name, tuple(self.index(i, variables) for i in expression.indices), expression.at)
            case Name() if self.is_constant(expression):
                result = expression
            case Name():
                result = Access(self._number_named(expression), (), expression.at)
                self._check_rank(result.name, 0, expression.at)
            case Number():
                result = expression
            case Unary():
                result = replace(expression, operand=put(expression.operand, expression.operator == "!"))
            case Binary():
                logic = expression.operator in LOGIC
                result = replace(expression, left=put(expression.left, logic), right=put(expression.right, logic))
            case Choose():
                chosen = (
                    put(expression.condition, True),
                    put(expression.yes, condition),
                    put(expression.no, condition),
                )
                result = Choose(*chosen, expression.at)
            case Call():
                if self.function(expression).operation in WHOLE:
                    raise self.error(expression.at, f"{expression.function} takes whole tensors, not elements")
                result = replace(expression, arguments=tuple(map(put, expression.arguments)))
            case _:
                raise self.error(expression.at, "a list of numbers is a tensor: assign it to one first")
        is_condition = (isinstance(result, Binary) and result.operator in (*COMPARISONS, *LOGIC)) or (
            isinstance(result, Unary) and result.operator == "!"
        )
        if isinstance(result, Choose):
            is_condition = condition
        if is_condition != condition:
            needed = "a condition is needed here: compare it, as in A[i] > 0"
            got = "this is a condition, not a number; write condition ? 1 : 0"
            raise self.error(expression.at, needed if condition else got)
        return result

    def _number_named(self, part) -> str:
        name = self.tensor(part.name, part.at)
        if self.builder.kind(name) == "condition":
            raise self.error(part.at, f"{part.name!r} is a condition, not a number; write {part.name} ? 1 : 0")
        return name

    def _check_rank(self, name: str, rank: int, at) -> None:
        shape = self.builder.shapes[name]
        if shape[:1] in _UNKNOWN_RANK:
            return  # known when it is called
        if len(shape) != rank:
            base = self.builder.bases[name]
            raise self.error(at, f"{base} has {len(shape)} dimension{'s' * (len(shape) != 1)}, got {rank} indices")

    def index(self, expression, variables: dict):
        """An index: whole multiples of index variables and sizes; its variables are entered."""
        match expression:
            case Number():
                self._check_whole(expression)
                return expression
            case Name() if expression.name in self.sizes:
                return expression
            case Name():
                if expression.name in self.scope:
                    raise self.error(
                        expression.at, f"{expression.name!r} is a tensor: an index is made of index variables and "
                        "sizes; gather(table, places) reads by computed places",
                    )  # fmt: skip
                variables[expression.name] = None
                return expression
            case Unary(operator="+" | "-"):
                return replace(expression, operand=self.index(expression.operand, variables))
            case Binary(operator="+" | "-" | "*" | "/"):
                inside: list[dict] = [{}, {}]
                left, right = (
                    self.index(part, seen)
                    for part, seen in zip((expression.left, expression.right), inside, strict=True)
                )
                if (expression.operator == "*" and all(inside)) or (expression.operator == "/" and any(inside)):
                    what = "a product of index variables" if expression.operator == "*" else "a quotient of one"
                    raise self.error(
                        expression.at, (
                            f"{what} is not an index: an index must be a sum of index variables, each with a whole "
                            "factor"
                        ),
                    )  # fmt: skip
                variables |= inside[0] | inside[1]
                return replace(expression, left=left, right=right)
            case Call(function="size"):
                return self.size(expression)
        raise self.error(expression.at, "an index is a sum of index variables, each with a whole factor, and sizes")

    def _check_whole(self, number: Number) -> None:
        if number.value.denominator != 1:
            raise self.error(
                number.at, (f"{shown_number(number.value)} is not a whole number, as sizes and indices must be")
            )

    def size(self, expression):
        """A size: whole numbers, sizes of inputs, size(tensor, axis), and + - * / of them."""
        match expression:
            case Number():
                self._check_whole(expression)
                return expression
            case Name():
                if expression.name not in self.sizes:
                    known = f"; there are {', '.join(self.sizes)}" if self.sizes else ": no input names its sizes"
                    raise self.error(expression.at, f"{expression.name!r} is not a size{known}")
                return expression
            case Unary(operator="+" | "-"):
                return replace(expression, operand=self.size(expression.operand))
            case Binary(operator="+" | "-" | "*" | "/"):
                return replace(expression, left=self.size(expression.left), right=self.size(expression.right))
            case Call(function="size", arguments=(Name() as tensor, Number() as axis)):
                self._check_whole(axis)
                if axis.value < 0:
                    raise self.error(axis.at, "axes count from 0")
                named = replace(tensor, name=self.tensor(tensor.name, tensor.at))
                return replace(expression, arguments=(named, axis))
        raise self.error(expression.at, "a size is made of whole numbers, sizes, size(tensor, axis) and + - * /")
