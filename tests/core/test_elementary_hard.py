"""The arguments hardest to round that elementary_search.py has found: 2^-26 of a unit from a border."""

import numpy as np

import softnum as sn
from tests.support.cases import cases
from tests.support.core_oracles import MODES
from tests.support.elementary_checks import check

HARD = [
    ("binary32", "exp", (0x3fc1276f, 0xc0ec97ad, 0xc062ae9b)),  # 2**-25.7
    ("binary32", "exp2", (0x40c00000, 0x40c00000, 0x404b9528)),  # 2**-65.0
    ("binary32", "expm1", (0xc089e977, 0xc0eb5abe, 0x3fc1276f)),  # 2**-25.7
    ("binary32", "log", (0x44055faa, 0x43cf178f, 0x4478b4f1)),  # 2**-29.8
    ("binary32", "log2", (0x44000000, 0x44136a7b, 0x445c954d)),  # 2**-65.0
    ("binary32", "log10", (0x43e0f61c, 0x446ceb2f, 0x446ceb2f)),  # 2**-25.6
    ("binary32", "log1p", (0xbdee6b51, 0x4197faf6, 0x40d7f9bd)),  # 2**-26.2
    ("binary32", "sin", (0xc0f4a0b9, 0xbf0b024d, 0x40b701bc)),  # 2**-26.7
    ("binary32", "cos", (0x3fb6d9f3, 0xc01cf97d, 0x40160405)),  # 2**-26.9
    ("binary32", "tan", (0xbfad61b6, 0x40e3dcc2, 0xc0df022d)),  # 2**-22.6
    ("binary32", "asin", (0xbf613e95, 0xbf613e95, 0xbf72ec4d)),  # 2**-26.6
    ("binary32", "acos", (0xbdbfec33, 0xbcb481ba, 0xbe14fe0e)),  # 2**-24.9
    ("binary32", "atan", (0x404e3b90, 0xc0f4c9ec, 0xbf941fc0)),  # 2**-23.6
    ("binary32", "sinh", (0xbfcee695, 0x40cc1c24, 0xc0cc1c24)),  # 2**-25.4
    ("binary32", "cosh", (0x40475339, 0x40023f58, 0xc0023f58)),  # 2**-25.3
    ("binary32", "tanh", (0x40cc3ab1, 0xc0cc3ab1, 0xc05cb6c9)),  # 2**-24.5
    ("binary32", "sigmoid", (0xc0b6e72c, 0xc0ecba82, 0x400ed9d1)),  # 2**-27.1
    ("binary32", "softplus", (0xc0aaa125, 0xc13737f8, 0xc119d89d)),  # 2**-27.4
    ("binary32", "erf", (0x40671a63, 0xbe8b7062, 0xbff0b742)),  # 2**-24.3
    ("binary32", "gelu", (0xbfd92087, 0x3f40a163, 0xbf854854)),  # 2**-23.4
    ("binary32", "silu", (0x40bd1519, 0x402dbdff, 0x3f85558b)),  # 2**-29.1
    ("binary32", "rsqrt", (0x44294c30, 0x43340f3c, 0x439dbf42)),  # 2**-25.8
    ("binary32", "reciprocal", (0x3fc100c1, 0xc0c100c1, 0xc0e401c8)),  # 2**-30.6
    ("binary32", "cbrt", (0xbfdcc3a9, 0xc0fd02ff, 0xc0e8c2e5)),  # 2**-24.7
    ("binary64", "exp", (0x4014eb252c869966, 0xc01739307caa28c2, 0xc01bb093a01ffb7f)),  # 2**-25.8
    ("binary64", "exp2", (0xc016c48653ac7403, 0x4018969d830ba6fb, 0xbfeea7f28e4d193d)),  # 2**-25.6
    ("binary64", "expm1", (0x4014eb252c869966, 0xc00fc3e07c982c32, 0xc0169e10627a1fa3)),  # 2**-25.8
    ("binary64", "log", (0x408aa50814e655d3, 0x4066e37a8127f5d8, 0x40821f2a3d1e7c62)),  # 2**-28.2
    ("binary64", "log2", (0x40834cbebbe4971c, 0x408f08d2635fd134, 0x4089d13e4fce5f44)),  # 2**-27.8
    ("binary64", "log10", (0x407035d93c2d35cc, 0x4062ff88413f9650, 0x408074a6f43a7d16)),  # 2**-28.1
    ("binary64", "log1p", (0x4020ae379cf9c63c, 0x40321e8e25650b0a, 0x40302833d531bbeb)),  # 2**-24.0
    ("binary64", "sin", (0x4010eebaa4762ab9, 0x3feedf2283a2f72d, 0x4011dc090c059131)),  # 2**-29.4
    ("binary64", "cos", (0x401991f2e6f711a9, 0x4014dfba46fde0d3, 0x4015c28e73947ef9)),  # 2**-25.1
    ("binary64", "tan", (0xc00e1c7238578260, 0x401f8ee2457349a5, 0xc01e5e31876f9010)),  # 2**-25.5
    ("binary64", "asin", (0xbfee44ef91ef59fc, 0xbfe4f8457edeb23d, 0xbfdec5ae013cf4c4)),  # 2**-30.9
    ("binary64", "acos", (0x3fc620bf0a6e3e8e, 0xbfc5af20a06e3970, 0x3facc8b8a627d259)),  # 2**-25.4
    ("binary64", "atan", (0xbff4bb97e54e6db9, 0xc00e5e519b7db3dc, 0xc019819b9868c55c)),  # 2**-27.2
    ("binary64", "sinh", (0xc0149319a48723dc, 0xc01d7da0d84de61d, 0x40180240b2bfdebf)),  # 2**-26.9
    ("binary64", "cosh", (0xbfdb24ab30c172a4, 0x401c75a7b228ddc4, 0x4015c9b218030ff8)),  # 2**-26.8
    ("binary64", "tanh", (0xc0167e261aec2208, 0x4013259bd132bfbe, 0x3fbf98b4e783a74d)),  # 2**-28.5
    ("binary64", "sigmoid", (0xc00fc3e07c98418d, 0x401654fb8be75bff, 0xbfeea7f28e4d991b)),  # 2**-31.3
    ("binary64", "softplus", (0xc01bf15fc53322bf, 0x400b3153548ef64b, 0xc0208b03371f329c)),  # 2**-24.9
    ("binary64", "erf", (0xbff5cd8995d11bf9, 0xc008719c3be7e908, 0x400740b7a0baad26)),  # 2**-27.1
    ("binary64", "gelu", (0x4000a3d5ad5ea938, 0xbff492c70292f425, 0xc01d167e7b9cbf45)),  # 2**-26.4
    ("binary64", "silu", (0xc0109beecd92805d, 0xc033216eb48902e8, 0xc01a552a6ddf9193)),  # 2**-26.5
    ("binary64", "rsqrt", (0x4085d9bed6b5a530, 0x40871efc7a7c3563, 0x4084e53970d30fb1)),  # 2**-25.2
    ("binary64", "reciprocal", (0x401074ff3abc233e, 0x3feedf2283a23132, 0xbfdb24ab30c16186)),  # 2**-26.6
    ("binary64", "cbrt", (0x401a39c9e31b3d87, 0x401c4cafcf6c329b, 0xbfe56bec559a4117)),  # 2**-25.1
]  # fmt: skip


@cases(("fmt", "name", "codes"), HARD)
def test_hardest_arguments(fmt, name, codes):
    fmt = sn.format(fmt)
    codes = np.array(codes, fmt.storage_dtype)
    for mode in MODES:
        env = {"rounding": mode} | ({"stochastic_bits": 25} if mode.startswith("stochastic") else {})
        check(name, [codes], fmt, env, word=(1 << 25) - 1)
