"""Text to syntax: the grammar, and what is wrong with a text that does not follow it."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from softnum.tile import syntax
from softnum.tile.syntax import Place, Source

__all__ = ["KEYWORDS", "parse", "parse_expression"]

GRAMMAR = r"""
start: "function" "(" parameters ")" "->" "(" outputs ")" "{" body gradient? "}"

parameters: [parameter ("," parameter)*]
parameter: NAME ["[" sizes "]"]
outputs: name ("," name)*
gradient: "gradient" "{" body "}"
body: _statement*

_statement: assign ";" | contract ";" | declare ";" | if | switch
assign: NAME "=" _expression
contract: NAME "[" indices [":" (like | sizes)] "]" "=" aggregation "(" _expression ")" constraints
!aggregation: "+" | "*" | ">" | "<" | "="
indices: [_sum ("," _sum)*]
sizes: [_sum ("," _sum)*]
like: "like" NAME
constraints: constraint*
constraint: "," _sum "<" _sum
declare: "format" name ("," name)* ":" STRING
if: "if" "(" _expression ")" "{" body "}" ["else" (else_body | if)]
else_body: "{" body "}"
switch: "switch" "(" _expression ")" "{" case* default? "}"
case: "case" _range ":" _case_body
default: "default" ":" _case_body
_case_body: body | "{" body "}"
_range: between | below | above | point
between: _signed ".." _signed
below: ".." _signed
above: _signed ".."
point: _signed
_signed: number | minus
minus: "-" number
number: NUMBER
name: NAME

expression: _expression
_expression: choose | _or
choose: _or "?" _expression ":" _expression
_or: or | _and
!or: _or "||" _and
_and: and | _comparison
!and: _and "&&" _comparison
_comparison: comparison | _sum
!comparison: _sum ("<" | "<=" | ">" | ">=" | "==" | "!=") _sum
_sum: sum | _product
!sum: _sum ("+" | "-") _product
_product: product | _unary
!product: _product ("*" | "/") _unary
_unary: unary | _atom
!unary: ("+" | "-" | "!") _unary
_atom: number | name | access | call | vector | "(" _expression ")"
access: NAME "[" indices "]"
call: NAME "(" [_expression ("," _expression)*] ")"
vector: "[" _signed ("," _signed)* "]"

STRING: /"[^"\n]*"/
NAME: /[A-Za-z_][A-Za-z0-9_]*/
NUMBER: /(\d+(\.(?!\.)\d*)?|\.\d+)([eE][+-]?\d+)?/
COMMENT.9: /#[^\n]*|\/\/[^\n]*|\/\*(.|\n)*?\*\//

%ignore COMMENT
%ignore /[ \t\r\n\f]+/
"""

#: of a literal: the most characters, and the largest exponent of ten, beyond that of any format
LONGEST, FURTHEST = 1000, 5000
#: words that are no names
KEYWORDS = ("case", "default", "else", "format", "function", "gradient", "if", "like", "switch")
_WORDS = {
    "NAME": "a name", "NUMBER": "a number", "STRING": 'text in quotes, as "q4.8"', "$END": "the end of the text",
}  # fmt: skip


@cache
def _parser():
    try:
        from lark import Lark
    except ImportError as error:
        raise ImportError(
            "softnum.operator parses with lark, which is missing: pip install 'softnum[custom]'"
        ) from error
    return Lark(
        GRAMMAR, parser="lalr", start=["start", "expression"], propagate_positions=True, maybe_placeholders=False
    )


def parse_expression(text: str):
    """The syntax of an expression alone, which is known to be right."""
    return _Builder(Source(text, "expression"))._expression(_parser().parse(text, start="expression").children[0])


def parse(source: Source) -> syntax.Function:
    """The syntax of a program.

    Raises
    ------
    TileError
        Where the text does not follow the grammar, with what could stand there.
    """
    parser = _parser()
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    try:
        tree = parser.parse(source.text, start="start")
    except UnexpectedToken as error:
        token = error.token
        if token.type == "$END":
            lines = source.text.splitlines() or [""]
            at = Place(len(lines), len(lines[-1]) + 1)
            raise source.error(
                at, (f"unexpected end of the text; expected {_expected(error.accepts or error.expected)}")
            ) from None
        at = Place(token.line, token.column, len(token))
        expected = _expected(error.accepts or error.expected)
        raise source.error(at, f"unexpected {str(token)!r}; expected {expected}") from None
    except UnexpectedCharacters as error:
        at = Place(error.line, error.column)
        raise source.error(at, f"{error.char!r} is not a character of the language") from None
    return _Builder(source).function(tree)


def _expected(terminals) -> str:
    patterns = {t.name: t.pattern.value for t in _parser().terminals if t.pattern.type == "str"}
    words = [_WORDS.get(name) or repr(patterns.get(name, name)) for name in terminals if name != "COMMENT"]
    return " or ".join(sorted(words))


class _Builder:
    """Lark's tree as the dataclasses of `syntax`."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def function(self, tree) -> syntax.Function:
        parameters, outputs, body, *gradient = tree.children
        return syntax.Function(
            tuple(map(self._parameter, parameters.children)),
            tuple(map(self._expression, outputs.children)),
            self._body(body),
            self._body(gradient[0].children[0]) if gradient else None,
        )

    def _name(self, token) -> str:
        if str(token) in KEYWORDS:
            raise self.source.error(_place(token), f"{str(token)!r} is a reserved word; choose another name")
        return str(token)

    def _number(self, text: str, at) -> Fraction:
        """A literal, exactly; one that no format comes near is refused before it takes memory."""
        exponent = text.lower().partition("e")[2] or "0"
        if len(text) > LONGEST or len(exponent) > 6 or abs(int(exponent)) > FURTHEST:
            raise self.source.error(at, f"a number has up to {LONGEST} digits, and an exponent up to {FURTHEST}")
        return Fraction(text)

    def _parameter(self, tree) -> syntax.Parameter:
        name, *sizes = tree.children
        return syntax.Parameter(self._name(name), self._list(sizes[0]) if sizes else None, _place(name))

    def _list(self, tree) -> tuple:
        return tuple(map(self._expression, tree.children))

    def _body(self, tree) -> tuple:
        return tuple(getattr(self, f"_{child.data}")(child) for child in tree.children)

    # -- statements ----------------------------------------------------------------------------------------------------
    def _assign(self, tree):
        name, value = tree.children
        return syntax.Assign(self._name(name), self._expression(value), _place(name))

    def _contract(self, tree):
        name, indices, *sizes, aggregation, body, constraints = tree.children
        if sizes and sizes[0].data == "like":
            token = sizes[0].children[0]
            stated = syntax.Like(self._name(token), _place(token))
        else:
            stated = self._list(sizes[0]) if sizes else ()
        return syntax.Contract(
            self._name(name), self._list(indices), stated, str(aggregation.children[0]), self._expression(body),
            tuple(self._list(c) for c in constraints.children), _place(name),
        )  # fmt: skip

    def _declare(self, tree):
        *names, text = tree.children
        return syntax.Declare(tuple(map(self._expression, names)), str(text)[1:-1], _place(text))

    def _if(self, tree):
        condition, then, *rest = tree.children
        otherwise = None
        if rest:
            otherwise = (self._if(rest[0]),) if rest[0].data == "if" else self._body(rest[0].children[0])
        return syntax.If(self._expression(condition), self._body(then), otherwise, _place(tree))

    def _switch(self, tree):
        subject, *cases = tree.children
        default = self._body(cases.pop().children[0]) if cases and cases[-1].data == "default" else None
        return syntax.Switch(self._expression(subject), tuple(map(self._case, cases)), default, _place(tree))

    def _case(self, tree):
        limits, body = tree.children
        ends = list(map(self._expression, limits.children))
        low, high = {"below": (None, *ends), "above": (*ends, None)}.get(limits.data, (ends[0], ends[-1]))
        return syntax.Case(low, high, limits.data == "point", self._body(body), _place(limits))

    # -- expressions ---------------------------------------------------------------------------------------------------
    def _expression(self, tree):
        at, children = _place(tree), tree.children
        match tree.data:
            case "number":
                return syntax.Number(self._number(str(children[0]), at), at)
            case "minus":
                return syntax.Number(-self._expression(children[0]).value, at)
            case "name":
                return syntax.Name(self._name(children[0]), at)
            case "access":
                return syntax.Access(self._name(children[0]), self._list(children[1]), at)
            case "call":
                return syntax.Call(str(children[0]), tuple(map(self._expression, children[1:])), _place(children[0]))
            case "vector":
                return syntax.Vector(tuple(self._expression(c).value for c in children), at)
            case "unary":
                return syntax.Unary(str(children[0]), self._expression(children[1]), _place(children[0]))
            case "choose":
                return syntax.Choose(*map(self._expression, children), at)
        left, operator, right = children
        return syntax.Binary(str(operator), self._expression(left), self._expression(right), _place(operator))


def _place(part) -> Place:
    """Where a token or a tree stands, of its first line."""
    meta = getattr(part, "meta", part)
    if getattr(meta, "line", None) is None:  # of an empty list
        return syntax.NOWHERE
    length = meta.end_column - meta.column if meta.end_line == meta.line else 1 << 16
    return Place(meta.line, meta.column, length)
