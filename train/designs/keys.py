"""The tables of a design's file: keys that the reader takes, and the JSON Schema of them."""

from __future__ import annotations

import re

from softnum.formats.modes import OVERFLOW_RULES, ROUNDING_MODES
from softnum.formats.names import format_names
from softnum.mac.presets import units
from softnum.runtime.keys import (
    ANY,
    FLAG,
    NUMBER,
    POSITIVE,
    TEXT,
    WHOLE,
    Key,
    Keys,
    either,
    list_of,
    one_of,
    schema_file,
    suggest,
    text,
)  # fmt: skip
from softnum.train.designs.convolutions import ALGORITHMS, OTHERWISE
from softnum.train.designs.design import (
    BLOCK_ROLES,
    COMPENSATION,
    ENGINES,
    PASS_ROLES,
    PASSES,
    ROLES,
    SAVED,
    SPARSE_ROLES,
    UPDATE,
)  # fmt: skip
from softnum.train.designs.scales import FLAGS, NUMBERS, RULES, WHOLE_NUMBERS
from softnum.train.designs.split_units import SPLIT
from softnum.train.designs.unit_specs import (
    BLOCK_KINDS,
    CHUNK_KEYS,
    CHUNKED_KINDS,
    INNER_KINDS,
    KINDS,
    PRESET_KEYS,
)  # fmt: skip
from softnum.tta.workloads.unit import UNIT_KEYS

__all__ = [
    "ANYTHING", "BLOCK", "CONVOLUTION", "DESIGN", "DYNAMIC", "ELEMENTWISE", "GRADUAL", "HADAMARD", "HARDWARE", "LAYER",
    "LAYERS", "LOSS", "NAMED_ROLES", "OPERATORS", "PART_KINDS", "QUANTITY", "ROLE", "ROLES_OF_PASS", "SRAM", "UNITS",
    "convolution_keys", "design_schema", "sparsity_keys", "sparsity_rules", "unit_file_schema", "unit_keys",
]  # fmt: skip

_ROUNDING = suggest(ROUNDING_MODES)
_FORMAT, _UNIT, _INNER, _PART = (
    {"$ref": f"#/definitions/{name}"} for name in ("format", "unit", "inner_unit", "part_unit")
)

#: a table whose keys are looked at one by one
ANYTHING = Keys({}, ANY)
#: a block format in place of a format's name
BLOCK = Keys({
    "element": Key(TEXT, "the elements' format", needed=True),
    "scale": Key(TEXT, "the scales' format", needed=True),
    "tensor_scale": Key(TEXT, "format of a second scale, of the whole tensor"),
    "block_size": Key(either(WHOLE, {"const": "row"}), "elements that share a scale, or \"row\"", needed=True),
})  # fmt: skip
HADAMARD = Keys({
    "size": Key(WHOLE, "neighbours along K that are mixed"),
    "signs": Key(ANY, "which random signs"),
    "format": Key(_FORMAT, "what the transform's results are rounded to"),
})  # fmt: skip
ROLE = Keys({
    "format": Key(either(_FORMAT, BLOCK.schema()), "what numbers of this role are rounded to", needed=True),
    "rounding": Key(_ROUNDING, "nearest_even unless stated"),
    "overflow": Key(suggest(OVERFLOW_RULES), "what becomes of numbers that are too large"),
    "stochastic_bits": Key({"type": "integer", "minimum": 1, "maximum": 32}, "random bits of a rounding: 32"),
    "random": Key(TEXT, "source of the random bits"),
    "scale_rule": Key(ANY, "how a block format's scales are chosen"),
    "scale": Key({"$ref": "#/definitions/scale"}, "scale of the numbers that enter a product"),
    "hadamard": Key(HADAMARD.schema(), "random Hadamard transform of what enters a product"),
    "backward": Key(one_of(("straight_through", "trust")), "where gradients pass back"),
    "sparsity": Key(ANY, "which numbers are zeros"),
})  # fmt: skip
#: of a share of zeros that grows
GRADUAL = Keys({
    "from": Key(WHOLE, "the iteration at which zeros begin"),
    "to": Key(WHOLE, "the iteration at which all are there"),
    "every": Key(WHOLE, "iterations between steps"),
    "initial": Key(NUMBER, "the share to begin with: 0"),
})  # fmt: skip
_SPARSITY = GRADUAL | {
    "pattern": Key(text("^[1-9][0-9]{0,3}:[1-9][0-9]{0,3}$"), "zeros but N of each M neighbours: \"2:4\""),
    "magnitude": Key(NUMBER, "the share of zeros, of the least magnitudes"),
    "top_k": Key(NUMBER, "the share that is kept, of the largest magnitudes"),
    "backward": Key(one_of(("straight_through", "masked")), "whether gradients pass to zeros"),
    "decay": Key(POSITIVE, "decay of pruned weights"),
    "feedback": Key({"$ref": "#/definitions/role_plain"}, "format of what was left out, which is added the next time"),
}  # fmt: skip
_SPARSITY_OF = {"weights": ("backward", "decay"), "weight_gradients": ("feedback",)}


def sparsity_rules(role: str) -> tuple[str, ...]:
    """Rules of a role's sparsity, of which one is stated."""
    return ("magnitude", "top_k") if role == "weight_gradients" else ("pattern", "magnitude", "top_k")


def sparsity_keys(role: str) -> Keys:
    """Keys of a role's sparsity.

    >>> list(sparsity_keys("weight_gradients"))[:2]
    ['magnitude', 'top_k']
    """
    return _SPARSITY.only((*sparsity_rules(role), *GRADUAL, *_SPARSITY_OF.get(role, ())))


def unit_keys(kind: str, inner: bool = False) -> Keys:
    """Keys of a unit of a kind; inner: of one inside a block_dot.

    >>> unit_keys("split").needed
    ('kind', 'inner', 'collective')
    """
    chunked = CHUNK_KEYS if kind in CHUNKED_KINDS and not inner else ()
    if kind == "preset":
        names, formats, needed = (*PRESET_KEYS, *chunked), (), ()
    else:
        _, formats, options, needed = KINDS[kind]
        operand = () if kind == SPLIT else ("operand",)
        names = (*operand, *needed, *formats, *options, *chunked)
    found = {"kind": Key({"const": kind}, "", needed=kind not in ("mad", "block_dot", "preset"))}
    for name in dict.fromkeys(name for name in names if name != "kind"):
        value = _FORMAT if name in formats else ANY
        if name == "operand":
            value = either(_FORMAT, list_of(_FORMAT, 2, 2))
        elif name == "inner":
            value = _PART if kind == SPLIT else _INNER
        elif name in ("function", "collective", "name", "preset", "output"):
            value = suggest(units()) if name in ("name", "preset") else TEXT
        elif name.endswith("rounding") and name != "rounding":
            value = suggest(ROUNDING_MODES, ANY)
        elif name == "outer_accumulator":
            value = _FORMAT
        elif name == "chunk" and chunked:
            value = WHOLE
        found[name] = Key(value, _UNIT_ABOUT.get(name, ""), needed=name in needed)
    return Keys(found)


_UNIT_ABOUT = {
    "accumulator": "format in which sums are kept", "product": "format that products are rounded to",
    "output": "format of results", "operand": "format of operands, or a pair; that of the roles unless stated",
    "terms": "products that are added at once", "fraction_bits": "fraction bits of aligned terms",
    "chunk": "products of each sum", "outer_accumulator": "format of the sum of sums: binary32",
    "function": "file.py:name, file.c:name, or a unit of a file", "collective": "how ranks add: ring(unit='bfloat16')",
    "ranks": "how many share K", "inner": "the unit of elements, or of each rank", "preset": "a unit of hardware",
    "name": "a unit of hardware, as softnum units lists them",
}  # fmt: skip
#: kinds of a rank's part of a product
PART_KINDS = tuple(kind for kind in (*KINDS, "preset") if kind not in (*BLOCK_KINDS, SPLIT, "custom"))


def _unit_schema(kinds: tuple[str, ...]) -> dict:
    """A unit of one of some kinds, or a preset's name."""
    found: list = [suggest(units())]
    for kind in kinds:
        keys = unit_keys(kind, kinds == INNER_KINDS)
        more = _IN_CHUNKS if kind in CHUNKED_KINDS else {}
        if kind == "preset":
            found.append(keys.without("preset").schema("kind", "name", **more))
            stated = keys.without("name") | {"kind": Key(one_of((*KINDS, "preset")))}
            found.append(stated.schema("preset", **more))
        elif kind == "block_dot":
            found += [keys.schema("kind"), keys.schema("inner")]
        else:
            found.append(keys.schema(**more))
    return either(*found)


def convolution_keys(algorithm: str) -> Keys:
    """Keys of a convolution's table by an algorithm.

    >>> list(convolution_keys("direct"))
    ['algorithm']
    """
    if algorithm == "direct":
        return CONVOLUTION.only(("algorithm",))
    return CONVOLUTION.only(("algorithm", "transform", "output", "otherwise", *ALGORITHMS[algorithm][2]))


CONVOLUTION = Keys({
    "algorithm": Key(one_of(("direct", *ALGORITHMS)), "what computes convolutions", needed=True),
    "transform": Key(_INNER, "unit of the transforms of images and kernels"),
    "output": Key(_INNER, "unit of the transforms that lead back"),
    "otherwise": Key(one_of(OTHERWISE), "what comes of a convolution that the algorithm does not have"),
    **{key: Key(_FORMAT if key == "twiddle" else ANY) for *_, keys in ALGORITHMS.values() for key in keys},
})  # fmt: skip
UNITS = Keys({
    "forward": Key(_UNIT, "products of the forward pass"),
    "backward_data": Key(_UNIT, "products that give the errors of activations"),
    "backward_weight": Key(_UNIT, "products that give the gradients of weights"),
    "update": Key(_UNIT, "products of an optimiser"),
}).only((*PASSES, UPDATE))  # fmt: skip
OPERATORS = Keys({}, TEXT)
ELEMENTWISE = Keys({"engine": Key(one_of(ENGINES), "what computes all that is no product")})
#: key of a loss scale that changes -> what it is where it is not stated
DYNAMIC = {"initial": 65536.0, "growth": 2.0, "backoff": 0.5, "interval": 2000}
LOSS = Keys({
    "scale": Key(either(POSITIVE, {"const": "dynamic"}), "what the loss is multiplied by, or \"dynamic\""),
    **{key: Key(WHOLE if key == "interval" else POSITIVE, f"{default:g} unless stated") for key, default in
       DYNAMIC.items()},
    "skip_overflow": Key(FLAG, "whether iterations that overflow are skipped"),
})  # fmt: skip
SRAM = Keys({
    "ifmap": Key(WHOLE, "bytes of the left operand's"),
    "filter": Key(WHOLE, "bytes of the right operand's"),
    "ofmap": Key(WHOLE, "bytes of the results'"),
})  # fmt: skip
#: how quantities are written
QUANTITY = {
    "bandwidth": re.compile(r"\d+(\.\d+)?\s*[kMGT]?B/s"),
    "clock": re.compile(r"\d+(\.\d+)?\s*[kMG]?Hz"),
}
HARDWARE = Keys({
    "array": Key(list_of(WHOLE, 2, 2), "rows and columns of multipliers"),
    "sram_bytes": Key(SRAM.schema(), "sizes of the three SRAMs"),
    "bandwidth": Key(text(rf"^\s*{QUANTITY['bandwidth'].pattern}\s*$"), "between memory and each SRAM: \"16 GB/s\""),
    "clock": Key(text(rf"^\s*{QUANTITY['clock'].pattern}\s*$"), "\"1 GHz\""),
    "unit": Key(UNIT_KEYS.schema(), "area, energy and timing of a unit of your own"),
    "cores": Key(list_of(WHOLE, 2, 2), "arrays beside each other: rows and columns"),
})  # fmt: skip
_ROLES_ABOUT = {
    "default": "every role that is not stated", "input": "a network's inputs", "weights": "weights in products",
    "activations": "results of layers that enter products", "errors": "gradients of activations",
    "weight_gradients": "gradients of weights", "master": "weights that are updated; \"none\": there are no others",
}  # fmt: skip


def _role(role: str) -> dict:
    """The definition of a role: those that enter products have scales, and some may be sparse."""
    return {"$ref": f"#/definitions/role_{role if role in SPARSE_ROLES else 'plain'}"}


#: keys that mean nothing without others
_GROWING = {key: ["magnitude", "from", "to"] for key in GRADUAL}
_WITH_SCALE = {"dependencies": {"hadamard": ["scale"]}}
_IN_CHUNKS = {"dependencies": {key: ["chunk"] for key in CHUNK_KEYS[1:]}}


def _role_schema(role: str) -> dict:
    keys = ROLE if role in BLOCK_ROLES else ROLE.without("scale")
    if role not in SPARSE_ROLES:
        return either(_FORMAT, keys.without("sparsity").schema(**_WITH_SCALE))
    one = [{"required": [rule]} for rule in sparsity_rules(role)]
    zeros = sparsity_keys(role).schema(oneOf=one, dependencies=_GROWING)
    return either(_FORMAT, (keys | {"sparsity": Key(zeros, "which numbers are zeros")}).schema(**_WITH_SCALE))


_OF_PASS = {"$ref": "#/definitions/role_of_pass"}
#: roles by their names, those of updates too: "update.decay"
NAMED_ROLES = Keys({
    role: Key(_role(role), _ROLES_ABOUT.get(role, "")) for role in ("default", *ROLES, COMPENSATION, SAVED)
})  # fmt: skip
#: pass -> the roles that it may have of its own
ROLES_OF_PASS = {
    at: Keys({role: Key(_OF_PASS) for where, role in PASS_ROLES if where == at}) for at in PASSES
}  # fmt: skip
_UPDATES = Keys({role.removeprefix("update."): key for role, key in NAMED_ROLES.items() if role.startswith("update.")})
_ROLES = NAMED_ROLES | {"update": Key(_UPDATES.schema(), "what updates compute")}
_ROLES = _ROLES | {at: Key(keys.schema(), "of one pass alone") for at, keys in ROLES_OF_PASS.items()}
_NOTHING = {"type": "object", "maxProperties": 0}
LAYER = Keys({
    "roles": Key({"$ref": "#/definitions/roles"}, "formats of the roles of numbers"),
    "units": Key(UNITS.schema(), "what multiplies and adds, in each pass"),
    "operators": Key(OPERATORS.schema(), "functions by operators of your own: name = \"file.tile:operator\""),
    "convolution": Key(
        either(_NOTHING, *(
            (convolution_keys(name) | {"algorithm": Key({"const": name}, "", True)}).schema()
            for name in ("direct", *ALGORITHMS)
        )), "how convolutions are computed",
    ),
})  # fmt: skip
LAYERS = Keys({}, LAYER.schema())
DESIGN = Keys({
    "name": Key(text(r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"), "names its folder of records; the file's name unless stated"),
    "description": Key(TEXT, "what softnum designs prints"),
    **LAYER,
    "elementwise": Key(ELEMENTWISE.schema(), "what computes all that is no product"),
    "layers": Key(LAYERS.schema(), "what layers have of their own, by a regular expression of their names"),
    "loss": Key(either(
        (LOSS.without("skip_overflow") | {"scale": Key({"const": "dynamic"})}).schema("scale"),
        LOSS.only(("scale", "skip_overflow")).schema(),
    ), "what the loss is multiplied by"),
    "hardware": Key(HARDWARE.schema(), "the accelerator that times are of"),
})  # fmt: skip


def _scale() -> dict:
    """A table of a rule, or an object of a file."""
    per = Key(either(one_of(("tensor", "row")), list_of(WHOLE, 2, 2)), "what shares a scale: a tile [rows, columns]")
    found: list = [TEXT]
    for rule, names in RULES.items():
        keys = {"rule": Key({"const": rule}, "", rule != "current"), "per": per}
        for name in names:
            value = FLAG if name in FLAGS else NUMBER if name in NUMBERS else WHOLE if name in WHOLE_NUMBERS else ANY
            keys[name] = Key(value)
        found.append(Keys(keys).schema())
    return either(*found)


def _definitions() -> dict:
    return {
        "format": suggest(format_names()),
        "scale": _scale(),
        "role_plain": _role_schema("master"),
        "role_of_pass": either(_FORMAT, ROLE.without("sparsity").schema(**_WITH_SCALE)),
        **{f"role_{role}": _role_schema(role) for role in SPARSE_ROLES},
        "roles": _ROLES.schema(),
        "unit": _unit_schema((*KINDS, "preset")),
        "inner_unit": _unit_schema(INNER_KINDS),
        "part_unit": _unit_schema(PART_KINDS),
    }


def design_schema() -> dict:
    """The JSON Schema of a design's file.

    >>> sorted(design_schema()["properties"])[:3]
    ['convolution', 'description', 'elementwise']
    """
    return schema_file("softnum design", DESIGN.schema(), _definitions())


def unit_file_schema() -> dict:
    """The JSON Schema of a unit, as an entry of a design's ``[units]``."""
    return schema_file("softnum unit", {"allOf": [_UNIT]}, _definitions())
