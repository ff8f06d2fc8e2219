"""Users' C: which functions and fields it declares, and the text that is compiled of it.

The text is preprocessed first, so that macros and headers count as the compiler sees them, and read by its tokens; only
what stands in the user's own files is looked at. Functions of the user get other names in the text, so that ``log`` may
be one of them whether <math.h> is included or not.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from softnum.formats.custom.compiler import RENAMED, check_syntax, preprocess

__all__ = ["CField", "CFunction", "CSource", "CType", "PRELUDE"]

#: OpenCL's names of unsigned types, and those of <stdint.h>.
PRELUDE = (
    "#include <stdint.h>\n"
    "typedef unsigned char uchar;\ntypedef unsigned short ushort;\ntypedef unsigned int uint;\n"
    "typedef unsigned long ulong;\n"
)

_TOKEN = re.compile(
    r"""(?P<marker>^[ \t]*\#[ \t]*(?:line[ \t]+)?(?P<line>\d+)(?:[ \t]+"(?P<file>(?:[^"\\]|\\.)*)")?(?P<flags>[^\n]*)$)
    |(?P<pragma>^[ \t]*\#[^\n]*$)|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?P<newline>\n)
    |(?P<space>[ \t\r\f]+)
    |(?P<name>[A-Za-z_]\w*)|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)|(?P<mark>->|.)""",
    re.M | re.X | re.S,
)
_STORAGE = {"static", "inline", "__inline", "__inline__", "extern", "_Noreturn", "register", "const", "volatile"}
_WORDS = {"char", "short", "int", "long", "signed", "unsigned", "_Bool", "float", "double", "void", "struct", "union"}
_VECTORS = {2: "xy", 4: "xyzw", 8: ""}


@dataclass(frozen=True)
class Token:
    """A token of the user's files; ``start`` and ``end`` in the preprocessed text."""

    kind: str
    text: str
    file: str
    line: int
    start: int
    end: int


@dataclass(frozen=True)
class CFunction:
    """A function: ``returns name(*parameters)``; ``where`` is file:line, of its body if it has one."""

    name: str
    returns: str
    parameters: tuple[str, ...]
    where: str
    has_body: bool

    def __str__(self) -> str:
        return f"{self.returns} {self.name}({', '.join(self.parameters)})"


@dataclass(frozen=True)
class CField:
    """A field of a code: its name (empty: the type itself) and its width, an expression of C."""

    name: str
    width: str


@dataclass(frozen=True)
class CType:
    """The type that holds a code: ``fields``, the first the most significant; ``end``, where its typedef ends."""

    name: str
    fields: tuple[CField, ...]
    where: tuple[str, int]
    end: int


@dataclass
class CSource:
    """C as a user gives it: text, or the path of a file.

    Parameters
    ----------
    given : str or path
        Text if it has a line break, a brace or a semicolon, else a path.
    what : str
        What errors begin with.
    cflags : sequence of str
        Further options of the compiler.
    file : str, optional
        Of a text: the file that it was read from, whose folder ``#include "..."`` looks in.

    Examples
    --------
    >>> from softnum.formats.custom.source import CSource
    >>> source = CSource("typedef struct { uint s : 1; uint e : 5, m : 2; } fp;\\nfp neg(fp a) { a.s ^= 1; return a; }")
    >>> print(source.functions["neg"], source.functions["neg"].where)
    fp neg(fp) source.c:2
    >>> [(f.name, f.width) for f in source.type("fp").fields]
    [('s', '1'), ('e', '5'), ('m', '2')]
    """

    given: object
    what: str = "C source"
    cflags: tuple = ()
    file: str | None = None
    name: str = field(init=False)
    text: str = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.given, (str, os.PathLike)):
            raise TypeError(f"{self.what}: the source is C text or the path of a file, got {self.given!r}")
        self.name, self.text = self.file or "source.c", self.given
        if not isinstance(self.given, str) or not re.search(r"[;{\n]", self.given):
            path = Path(self.given)
            if not path.is_file():
                raise FileNotFoundError(f"{self.what}: no C file {str(self.given)!r}")
            self.file = self.name = str(path)
            self.text = path.read_text(encoding="utf-8")
        folder = None if self.file is None else Path(self.file).resolve().parent
        text = f'{PRELUDE}#line 1 "{_quoted(self.name)}"\n{self.text}'
        self.preprocessed = preprocess(text, name="prelude.h", folder=folder, cflags=self.cflags, what=self.what)
        self._tokens = list(_tokens(self.preprocessed))
        self._declarations = list(_declarations(self._tokens))
        self.functions = _functions(self._declarations)

    @property
    def digest(self) -> str:
        """A digest of all that is compiled: the text with its headers and macros."""
        return hashlib.sha256(self.preprocessed.encode()).hexdigest()[:16]

    def refuse(self, message: str) -> ValueError:
        """The error to raise: the message, or the compiler's if the source is no C at all."""
        check_syntax(self.renamed(), cflags=self.cflags, what=self.what)
        return ValueError(f"{self.what}: {message}")

    def type(self, name: str) -> CType:
        """The type of this name: a struct of integers, bit-fields or not, or an integer.

        Raises
        ------
        ValueError
            If there is none, or a field is no integer.
        """
        for tokens in self._declarations:
            words = [t.text for t in tokens]
            if words[0] != "typedef" or not any(_declares(part, name) for part in _split(tokens[1:-1], ",")):
                continue
            where, end = (tokens[-2].file, tokens[-2].line), tokens[-1].end
            if "union" in words:
                raise self.refuse(
                    f"{_at(tokens[0])}: {name} is a union, whose bit pattern is ambiguous; make it a struct"
                )
            if "struct" not in words:
                self._check_plain(tokens[1:-2], name)
                return CType(name, (CField("", _width(name)),), where, end)
            body = _body(tokens) or self._tagged(words[words.index("struct") + 1 : -2])
            if body is None:
                raise self.refuse(f"{_at(tokens[0])}: struct {name} is declared without its fields")
            fields = tuple(f for part in _split(body, ";") for f in self._fields(part, name))
            if not fields:
                raise self.refuse(f"{_at(tokens[0])}: {name} has no field")
            return CType(name, fields, where, end)
        raise self.refuse(f"no 'typedef ... {name};' is found; give the name of the format's type as type_name=")

    def _tagged(self, tag):
        for tokens in self._declarations:
            words = [t.text for t in tokens]
            if tag and words[:2] == ["struct", tag[-1]] and "{" in words:
                return _body(tokens)
        return None

    def _check_plain(self, tokens, name: str) -> None:
        bad = [t for t in tokens if t.text in ("float", "double", "*", "[", "(")]
        if bad:
            raise self.refuse(
                f"{_at(bad[0])}: {name} must hold integers; {bad[0].text!r} makes it something else (use integer types)"
            )

    def _fields(self, tokens, name: str) -> Iterator[CField]:
        nested = [t for t in tokens if t.text in ("{", "union", "struct", "*", "[", "float", "double")]
        if nested:
            raise self.refuse(
                f"{_at(nested[0])}: a field of {name} must be an integer, with its width or without (uint m : 2); "
                f"{nested[0].text!r} makes it something else"
            )
        for i, part in enumerate(_split(tokens, ",")):
            colon = next((j for j, t in enumerate(part) if t.text == ":"), len(part))
            declared, width = part[:colon], " ".join(t.text for t in part[colon + 1 :])
            unnamed = (len(declared) < 2 or declared[-1].text in _WORDS) if i == 0 else not declared
            if unnamed:  # padding, which is no part of a code
                continue
            own = self._new_name(declared[-1].text)
            yield CField(own, f"({width})" if len(part) - colon > 2 else width or _width(f"(({name} *)0)->{own}"))

    # -- the text that is compiled -----------------------------------------------------------------------------------
    def _is_renamed(self, name: str) -> bool:
        function = self.functions.get(name)
        return function is not None and function.has_body

    def _new_name(self, name: str) -> str:
        return RENAMED + name if self._is_renamed(name) else name

    def renamed(self, inserted: str = "", at: int = 0) -> str:
        """The preprocessed text with the user's functions renamed, and a text inserted behind a place in it."""
        parts, last = [], 0
        for token in self._tokens:
            if token.kind == "name" and self._is_renamed(token.text):
                parts += [self.preprocessed[last : token.start], RENAMED, token.text]
                last = token.end
            if inserted and token.end == at:
                parts += [self.preprocessed[last : token.end], inserted]
                last = token.end
        return "".join([*parts, self.preprocessed[last:]])

    def with_codes(self, kind: CType) -> str:
        """The text to compile, and in it the types and functions that turn values of a type into codes and back.

        ``softnum_code`` is the least unsigned type of 8, 16, 32 or 64 bits that holds a code, of ``SOFTNUM_BITS`` bits;
        ``softnum_pack(T) -> softnum_code`` and ``softnum_unpack(softnum_code) -> T``. The vector types T2, T4 and T8
        (.x .y .z .w, .s0 .s1 ..., .s[i]) follow the type at once, where the user has none of these names.
        """
        known = {t.text for t in self._tokens if t.kind == "name"}
        defined = {words[-2].text for words in self._declarations if words[0].text == "typedef" and len(words) > 2}
        vectors = [
            _vector(kind.name, n, letters)
            for n, letters in _VECTORS.items()
            if f"{kind.name}{n}" in known and f"{kind.name}{n}" not in defined
        ]
        return self.renamed("".join(vectors), kind.end) + _codes(kind)


def _width(of: str) -> str:
    """The bits of what has no width of its own; a _Bool has one that counts."""
    return f"({_is_bool(of)} ? 1 : 8 * (int)sizeof({of}))"


def _is_bool(of: str) -> str:
    return f"__builtin_types_compatible_p(__typeof__({of}), _Bool)"


def _vector(name: str, n: int, letters: str) -> str:
    numbered = ", ".join(f"s{i}" for i in range(n))
    named = f"struct {{ {name} {', '.join(letters)}; }}; " if letters else ""
    return f" typedef union {{ {named}struct {{ {name} {numbered}; }}; {name} s[{n}]; }} {name}{n};"


def _codes(kind: CType) -> str:
    """Packing and unpacking: fields in the order of their declaration, the first the most significant."""
    name, total = kind.name, " + ".join(f.width for f in kind.fields)
    file, line = kind.where
    pack, unpack, checks, below = "", "", "", len(kind.fields)
    for f in kind.fields:
        below -= 1
        part = f"softnum_v.{f.name}" if f.name else "softnum_v"
        mask = f"(~(uint64_t)0 >> (64 - ({f.width})))"
        shift = f" >> ({' + '.join(g.width for g in kind.fields[-below:])})" if below else ""
        pack += f" softnum_c = {f'softnum_c << ({f.width}) | ' if pack else ''}((uint64_t){part} & {mask});"
        unpack += f" {part} = softnum_c{shift} & {mask};"
        if "sizeof" in f.width and "_Bool" in f.width:  # bit-fields are integers anyway
            of = f"(({name} *)0)->{f.name}" if f.name else name
            checks += (
                f'_Static_assert((__typeof__({of}))0.5 == 0 || {_is_bool(of)}, "{f.name or name} is no integer"); '
            )
    return f"""
# {line} "{_quoted(file)}"
{checks}_Static_assert({total} >= 1 && {total} <= 64, "{name} must have from 1 to 64 bits");
# 1 "softnum"
enum {{ SOFTNUM_BITS = {total} }};
typedef __typeof__(__builtin_choose_expr(SOFTNUM_BITS <= 8, (uint8_t)0, __builtin_choose_expr(SOFTNUM_BITS <= 16,
    (uint16_t)0, __builtin_choose_expr(SOFTNUM_BITS <= 32, (uint32_t)0, (uint64_t)0)))) softnum_code;
static inline softnum_code softnum_pack({name} softnum_v) {{
    uint64_t softnum_c;
   {pack}
    return (softnum_code)softnum_c;
}}
static inline {name} softnum_unpack(uint64_t softnum_c) {{
    {name} softnum_v;
    __builtin_memset(&softnum_v, 0, sizeof softnum_v);
   {unpack}
    return softnum_v;
}}
"""


def _quoted(file: str) -> str:
    return file.replace("\\", "\\\\").replace('"', '\\"')


# -- tokens and declarations -------------------------------------------------------------------------------------------
def _at(token: Token) -> str:
    return f"{token.file}:{token.line}"


def _tokens(text: str) -> Iterator[Token]:
    """The tokens of the user's files: all but the system's headers and the prelude.

    Flag 3 marks a system header, and also what a macro of one, like bool, stands for in a file of the user's.
    """
    file, line, mine, system = "", 1, False, {"prelude.h", "<built-in>", "<command-line>"}
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup if match["marker"] is None else "marker"
        if kind == "marker":
            file = file if match["file"] is None else re.sub(r"\\(.)", r"\1", match["file"])
            line = int(match["line"]) - 1  # the line break that follows counts
            flags = match["flags"].split()
            if "1" in flags and "3" in flags:  # a system header begins
                system.add(file)
            mine = file not in system
        elif kind == "newline":
            line += 1
        elif kind in ("text", "name", "number", "mark") and mine:
            yield Token(kind, match[0], file, line, match.start(), match.end())


def _declarations(tokens) -> Iterator[list[Token]]:
    """The declarations and definitions of a file, attributes left out: up to a semicolon or a function's body."""
    current, depth, skipped = [], 0, 0
    tokens = iter(tokens)
    for token in tokens:
        if token.text in ("__attribute__", "__attribute", "__extension__", "_Alignas", "__asm__"):
            skipped = 1 if token.text != "__extension__" else 0
            continue
        if skipped:
            skipped += (token.text == "(") - (token.text == ")")
            if token.text == ")" and skipped == 1:
                skipped = 0
            continue
        current.append(token)
        depth += (token.text in "({[" and token.kind == "mark") - (token.text in ")}]" and token.kind == "mark")
        if depth:
            continue
        if token.text == ";" or (token.text == "}" and _is_function(current)):
            yield current
            current = []


def _is_function(tokens) -> bool:
    brace = next(i for i, t in enumerate(tokens) if t.text == "{")
    return brace > 0 and tokens[brace - 1].text == ")"


def _declares(part, name: str) -> bool:
    """Whether a part of a typedef makes this name the type itself."""
    return part[-1].text == name and (len(part) < 2 or part[-2].text != "*")


def _body(tokens) -> list[Token] | None:
    texts = [t.text for t in tokens]
    if "{" not in texts:
        return None
    return tokens[texts.index("{") + 1 : len(texts) - 1 - texts[::-1].index("}")]


def _split(tokens, mark: str) -> list[list[Token]]:
    """Parts between marks outside of brackets; none that is empty at the end."""
    parts, depth = [[]], 0
    for token in tokens:
        depth += (token.text in "({[") - (token.text in ")}]")
        if token.text == mark and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts if parts[-1] else parts[:-1]


def _functions(declarations) -> dict[str, CFunction]:
    found = {}
    for tokens in declarations:
        texts = [t.text for t in tokens]
        if "(" not in texts or texts[0] in ("typedef", "_Static_assert"):
            continue
        opening = texts.index("(")
        head = [t for t in tokens[:opening] if t.text not in _STORAGE]
        if len(head) < 2 or head[-1].kind != "name" or any(t.text in ("=", "{") for t in head):
            continue
        name, has_body = head[-1].text, texts[-1] == "}"
        if name in found and found[name].has_body:
            continue
        closing = opening + _length(texts[opening:]) - 1
        parameters = tuple(_type_of(part) for part in _split(tokens[opening + 1 : closing], ","))
        returns = " ".join(t.text for t in head[:-1])
        found[name] = CFunction(name, returns, () if parameters == ("void",) else parameters, _at(head[-1]), has_body)
    return found


def _length(texts) -> int:
    """How many tokens a bracketed group has that these begin with."""
    depth = 0
    for i, text in enumerate(texts):
        depth += (text == "(") - (text == ")")
        if not depth:
            return i + 1
    return len(texts)


def _type_of(tokens) -> str:
    """A parameter's type: what is declared without its name."""
    words = [t.text for t in tokens if t.text not in _STORAGE]
    named = len(words) > 1 and re.fullmatch(r"[A-Za-z_]\w*", words[-1]) and words[-1] not in _WORDS
    return " ".join(words[:-1] if named and words[-2] not in ("struct", "enum") else words)
