#!/usr/bin/env python3
"""Compares codes and scales of `kitchen inspect` with computations that share nothing with it.

  python3 -m venv venv && venv/bin/pip install numpy ml_dtypes torch
  cmake --build build --target kitchen_program
  venv/bin/python tools/second_opinion.py [--program build/bin/kitchen] [--rows 250] [--cols 515]

Not part of the build or the tests. Peers: the casts of ml_dtypes and torch (left out where torch is
absent), and block scaling in float64, written here from the texts of the MX and NVFP4 formats.
Where the library differs on purpose, a rule below says where, and what it must give instead. A code
or scale is `equal` to the peer's, differs `by rule` and is what the rule says, or `unexplained`.
Exit status 1 if any is unexplained. docs/explanation/second-opinion.md has a result and the rules.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

try:
    import torch
except ImportError:
    torch = None

np.seterr(all="ignore")
F32, F64, U8 = np.float32, np.float64, np.uint8
FP32_MAX = np.finfo(F32).max
DTYPE_MAX = {"fp32": FP32_MAX, "bf16": F32(3.38953138925153547590e38)}
UNDEFINED = -1  # what the text of a format leaves open


def bits_of(x):
    return np.asarray(x, F32).view(np.uint32).astype(np.int64)


class Format:
    """A small float. Its magnitudes come from the decoding of ml_dtypes, rounding is a search."""

    def __init__(self, name, dtype, max_code, nan_code, torch_dtype=None):
        self.name, self.dtype, self.max_code, self.torch_dtype = name, dtype, max_code, torch_dtype
        self.nan_code = max_code if nan_code is None else nan_code
        self.table = np.arange(max_code + 1, dtype=U8).view(dtype).astype(F64)
        self.max = self.table[-1]
        self.max_exponent = int(np.floor(np.log2(self.max)))
        self.sign = 1 << (ml_dtypes.finfo(dtype).bits - 1)

    def cast(self, x):
        """Nearest code of float64 values, ties to the even code, saturating; NaN is nan_code."""
        size = np.minimum(np.abs(x), self.max)
        middle = (self.table[1:] + self.table[:-1]) / 2
        code = np.searchsorted(middle, size, side="left")
        tie = (code < self.max_code) & (size == middle[np.minimum(code, self.max_code - 1)])
        code = np.where(tie & (code % 2 == 1), code + 1, code)
        code = np.where(np.signbit(x), code | self.sign, code)
        return np.where(np.isnan(x), self.nan_code, code).astype(np.int64)


FORMATS = {
    "e4m3": Format("e4m3", ml_dtypes.float8_e4m3fn, 0x7E, 0x7F, "float8_e4m3fn"),
    "e5m2": Format("e5m2", ml_dtypes.float8_e5m2, 0x7B, 0x7F, "float8_e5m2"),
    "e2m1": Format("e2m1", ml_dtypes.float4_e2m1fn, 0x7, None),
    "e2m3": Format("e2m3", ml_dtypes.float6_e2m3fn, 0x1F, None),
    "e3m2": Format("e3m2", ml_dtypes.float6_e3m2fn, 0x1F, None),
}


class Verdict:
    """An expectation that starts as the peer's and becomes ours rule by rule."""

    def __init__(self, peer):
        self.peer = np.array(peer)
        self.ours = self.peer.copy()
        self.rule = np.full(self.peer.shape, "", dtype=object)

    def replace(self, rule, where, value):
        where = np.broadcast_to(where, self.ours.shape)
        self.ours[where] = np.broadcast_to(value, self.ours.shape)[where]
        self.rule[where] = rule


class Table:
    def __init__(self):
        self.lines = collections.OrderedDict()
        self.unexplained = 0

    def add(self, what, peer, verdict, found, source):
        found = np.asarray(found)
        if found.shape != verdict.ours.shape:
            sys.exit(f"{what}: shape {found.shape}, expected {verdict.ours.shape}")
        line = self.lines.setdefault((what, peer), collections.Counter())
        wrong = found != verdict.ours
        differs = (found != verdict.peer) & ~wrong
        line["elements"] += found.size
        line["unexplained"] += int(wrong.sum())
        line["equal"] += int((~wrong & ~differs).sum())
        for rule, count in zip(*np.unique(verdict.rule[differs].astype(str), return_counts=True)):
            line["by " + rule] += int(count)
        if wrong.any():
            self.unexplained += int(wrong.sum())
            at = tuple(int(i[0]) for i in np.nonzero(wrong))
            print(f"UNEXPLAINED {what} against {peer} on {source}: {int(wrong.sum())}, the first "
                  f"at {at}: {found[at]}, expected {verdict.ours[at]}, peer {verdict.peer[at]}")

    def show(self):
        print("| codes or scales of | against | elements | equal | by rule | unexplained |")
        print("|---|---|---|---|---|---|")
        for (what, peer), line in self.lines.items():
            rules = ", ".join(f"{rule[3:]}: {line[rule]}" for rule in sorted(line)
                              if rule.startswith("by ")) or "-"
            print(f"| {what} | {peer} | {line['elements']} | {line['equal']} | {rules} | "
                  f"{line['unexplained']} |")


# ---------------------------------------------------------------- casts


def cast_by_search(form, x):
    return form.cast(x)


def cast_by_ml_dtypes(form, x):
    return x.astype(F32).astype(form.dtype).view(U8).astype(np.int64)


def cast_by_torch(form, x):
    cast = torch.from_numpy(x.astype(F32)).to(getattr(torch, form.torch_dtype))
    return cast.view(torch.uint8).numpy().astype(np.int64)


def casts_of(form):
    casts = {"float64": cast_by_search, "ml_dtypes": cast_by_ml_dtypes}
    if torch is not None and form.torch_dtype:
        casts["torch"] = cast_by_torch
    return casts


def cast_verdict(form, x, cast):
    codes = Verdict(cast(form, x))
    codes.replace("saturation", np.abs(x) > form.max, form.cast(x))
    codes.replace("NaN code", np.isnan(x), form.nan_code)
    return codes


# ---------------------------------------------------------------- inputs, float32


def any_bits(random, shape):
    return random.integers(0, 1 << 32, shape, dtype=np.uint32).view(F32)


def finite_bits(random, shape):
    x = any_bits(random, shape)
    return np.where(np.isfinite(x), x, F32(0)).astype(F32)


def ties(random, shape):
    """Values of a format, middles between them and their neighbours, under one power a row; at
    2^-127 the scales are those at the lower end of E8M0."""
    formats = list(FORMATS.values())
    rows = []
    for row in range(shape[0]):
        form = formats[row % len(formats)]
        middles = (form.table[1:] + form.table[:-1]) / 2
        quarters = (form.table[:-1] + middles) / 2
        x = random.choice(np.concatenate([form.table, middles, quarters]), shape[1])
        x = (x * random.choice([-1.0, 1.0], shape[1])).astype(F32)
        x = np.nextafter(x, (x + random.integers(-1, 2, shape[1])).astype(F32))
        x[::16] = form.max
        x[::32] = np.nextafter(F32(form.max), F32(random.choice([0, form.max, np.inf])))
        rows.append(np.ldexp(x, int(random.choice([0, 0, -2, 1, -127]))))
    return np.array(rows, F32)


def odd_blocks(random, shape, infinite=False):
    """Runs of 16 of one kind each: huge, tiny, zero, negative zero, one NaN, one Inf, both."""
    x = random.standard_normal(shape).astype(F32)
    for row in range(shape[0]):
        for start in range(0, shape[1], 16):
            run = x[row, start:start + 16]
            kind = int(random.integers(0, 12))
            if kind == 0:
                run *= F32(2.0**126)
            elif kind in (1, 2):
                np.copyto(run, np.ldexp(run, -int(random.integers(120, 152))))
            elif kind == 3:
                run[:] = 0
            elif kind == 4:
                run[:] = F32(-0.0)
            elif kind == 5:
                run[random.integers(0, len(run))] = np.nan
            elif kind == 6:
                run[random.integers(0, len(run))] = -np.nan
            elif kind == 7 and infinite:
                run[random.integers(0, len(run))] = random.choice([-np.inf, np.inf])
            elif kind == 8 and infinite:
                run[0], run[-1] = -np.inf, np.nan
    return x


def made(name, random, shape):
    if name == "normal":
        return random.standard_normal(shape).astype(F32)
    if name == "subnormal":
        return random.integers(-(1 << 21), 1 << 21, shape).astype(F64).astype(F32) * F32(2.0**-149)
    if name == "zeros":
        return np.where(random.integers(0, 2, shape) == 0, F32(0), F32(-0.0)).astype(F32)
    if name == "infinite blocks":
        return odd_blocks(random, shape, infinite=True)
    return {"any bits": any_bits, "finite bits": finite_bits, "ties": ties,
            "odd blocks": odd_blocks}[name](random, shape)


INPUTS = ["normal", "any bits", "finite bits", "ties", "odd blocks", "infinite blocks", "subnormal",
          "zeros"]


# ---------------------------------------------------------------- blocks


def block_reduce(x, block, reduce, fill):
    """`reduce` over blocks (0: the whole extent), clipped at the edges."""
    rows, cols = (b or n for b, n in zip(block, x.shape))
    tall, wide = -(-x.shape[0] // rows), -(-x.shape[1] // cols)
    padded = np.full((tall * rows, wide * cols), fill, x.dtype)
    padded[:x.shape[0], :x.shape[1]] = x
    return reduce(padded.reshape(tall, rows, wide, cols), axis=(1, 3))


def spread(per_block, block, shape):
    rows, cols = (b or n for b, n in zip(block, shape))
    return np.repeat(np.repeat(per_block, rows, 0), cols, 1)[:shape[0], :shape[1]]


def largest(x, block):
    """Largest |x| of each block in float32 without NaN, and whether it holds a NaN."""
    size = np.abs(x)
    return (block_reduce(np.where(np.isnan(x), F32(0), size), block, np.max, F32(0)),
            block_reduce(np.isnan(x), block, np.any, False))


def exponent_of(amax):
    """floor(log2), exact; anything for 0, Inf, NaN."""
    return np.frexp(amax.astype(F64))[1].astype(np.int64) - 1


def at_least(value):
    """E8M0 code of the smallest power of two that is not below `value` (float64)."""
    fraction, exponent = np.frexp(value)
    code = np.where(value == 0, 0, np.where(fraction == 0.5, exponent - 1, exponent) + 127)
    return np.clip(code, 0, 254).astype(np.int64)


def mx_scale(x, form, block, ocp):
    """Verdict on the E8M0 scales: the rule of OCP MX 1.0, or the least that saturates nothing."""
    amax, has_nan = largest(x, block)
    if ocp:
        scale = Verdict(exponent_of(amax) - form.max_exponent + 127)
        scale.replace("range", scale.ours < 0, 0)
    else:
        scale = Verdict(at_least(amax.astype(F64) / form.max))
        product = (amax * (F32(1) / F32(form.max))).astype(F64)
        scale.replace("fp32 product", True, at_least(np.where(np.isfinite(product), product, 1)))
    scale.peer[(amax == 0) | np.isinf(amax) | has_nan] = UNDEFINED
    scale.replace("zero block", amax == 0, 0)
    scale.replace("Inf block", np.isinf(amax), 0xFE)
    scale.replace("NaN block", has_nan, 0xFF)
    return scale


def mx_codes(x, form, block, scale_codes, cast):
    """Verdict on the codes under these scales."""
    scales = scale_codes.astype(U8).view(ml_dtypes.float8_e8m0fnu).astype(F64)
    return cast_verdict(form, x.astype(F64) / spread(scales, block, x.shape), cast)


def e8m0_casts(x, form, block):
    """Verdicts on the scales against casts to E8M0 that round to nearest."""
    ours = mx_scale(x, form, block, False)
    amax, _ = largest(x, block)
    wanted = (amax.astype(F64) / form.max).astype(F32)
    nearest = {"ml_dtypes": wanted.astype(ml_dtypes.float8_e8m0fnu).view(U8).astype(np.int64)}
    if torch is not None:
        cast = torch.from_numpy(wanted).to(torch.float8_e8m0fnu)
        nearest["torch"] = cast.view(torch.uint8).numpy().astype(np.int64)
    for peer, codes in nearest.items():
        verdict = Verdict(codes)
        verdict.replace("up, not nearest", True, ours.ours)
        special = np.isin(ours.rule, ["zero block", "Inf block", "NaN block"])
        verdict.rule[special] = ours.rule[special]
        yield peer, verdict


def nvfp4_exact(x, amax, block, matrix_amax):
    """Codes and scales with real arithmetic: no rounding but those of the two formats."""
    e4m3, e2m1 = FORMATS["e4m3"], FORMATS["e2m1"]
    factor = F64(2688) / F64(matrix_amax)
    scale = e4m3.cast(amax.astype(F64) / 6 * factor)
    stored = spread(e4m3.table[np.minimum(scale, e4m3.max_code)], block, x.shape)
    return e2m1.cast(x.astype(F64) * factor / stored), scale


def nvfp4_float32(x, amax, block, matrix_amax):
    """The same in the order of fp32 operations of S3.6."""
    e4m3, e2m1 = FORMATS["e4m3"], FORMATS["e2m1"]
    factor = np.minimum(F32(2688) / matrix_amax, FP32_MAX) if matrix_amax > 0 else F32(1)
    factor = factor if factor > 0 else F32(1)
    wanted = np.minimum(amax * F32(factor * F32(F32(1) / F32(6))), FP32_MAX)
    scale = e4m3.cast(wanted.astype(F64))
    stored = e4m3.table[np.minimum(scale, e4m3.max_code)].astype(F32)
    multiplier = np.minimum(F32(1) / (stored * F32(F32(1) / factor)), FP32_MAX)
    return e2m1.cast((x * spread(multiplier, block, x.shape)).astype(F64)), scale


def nvfp4(x, block):
    amax, has_nan = largest(x, block)
    matrix_amax = amax.max()
    peer_codes, peer_scale = nvfp4_exact(x, amax, block, matrix_amax)
    our_codes, our_scale = nvfp4_float32(x, amax, block, matrix_amax)
    codes, scale = Verdict(peer_codes), Verdict(peer_scale)
    dead = spread(has_nan, block, x.shape)
    undefined = matrix_amax == 0 or np.isinf(matrix_amax)
    empty = spread(our_scale == 0, block, x.shape)
    codes.replace("fp32 order", True, our_codes)
    scale.replace("fp32 order", True, our_scale)
    codes.replace("zero scale", empty, our_codes)
    codes.peer[empty & (x == 0)] = our_codes[empty & (x == 0)]
    if F64(2688) / F64(matrix_amax) > FP32_MAX:
        codes.replace("tiny matrix", True, our_codes)
        scale.replace("tiny matrix", True, our_scale)
    if undefined:
        codes.peer[:], scale.peer[:] = UNDEFINED, UNDEFINED
        codes.replace("zero or Inf matrix", True, our_codes)
        scale.replace("zero or Inf matrix", True, our_scale)
    codes.peer[dead], scale.peer[has_nan] = UNDEFINED, UNDEFINED
    codes.replace("NaN block", dead, FORMATS["e2m1"].max_code)
    scale.replace("NaN block", has_nan, 0x7F)
    # Every row of a 16x16 tile stores the tile's scale.
    for part in ("peer", "ours", "rule"):
        tall = np.repeat(getattr(scale, part), block[0], 0)[:x.shape[0]]
        setattr(scale, part, tall)
    return codes, scale


# ---------------------------------------------------------------- fp32 scales


def float_scaled(x, form, block, pow2, dtype, cast):
    """float32: amax, scale = max / amax, cast(x * scale), scale_inv = 1 / scale."""
    amax, _ = largest(x, block)
    wanted = F32(form.max) / amax
    scale = np.where(wanted > FP32_MAX, DTYPE_MAX[dtype], wanted).astype(F32)
    if pow2:
        wanted, scale = (np.where(np.isfinite(s), np.exp2(exponent_of(s)), s).astype(F32)
                         for s in (wanted, scale))
    unscaled = (amax == 0) | np.isinf(amax)
    ours = np.where(unscaled, F32(1), scale).astype(F32)
    inverse = Verdict(bits_of(F32(1) / wanted))
    inverse.replace("tiny amax", np.isinf(wanted), bits_of(F32(1) / ours))
    inverse.replace("zero or Inf amax", unscaled, bits_of(F32(1)))

    y = x * spread(ours, block, x.shape)
    return cast_verdict(form, y.astype(F64), cast), inverse


# ---------------------------------------------------------------- the program


SCHEMES = {
    "tensor_e4m3": ("float", "e4m3", (0, 0)), "tensor_e5m2": ("float", "e5m2", (0, 0)),
    "tensor_e4m3_pow2": ("pow2", "e4m3", (0, 0)), "tensor_e5m2_pow2": ("pow2", "e5m2", (0, 0)),
    "row_e4m3": ("float", "e4m3", (1, 0)), "row_e5m2": ("float", "e5m2", (1, 0)),
    "b1x128_e4m3_fp32": ("float", "e4m3", (1, 128)),
    "b128x128_e4m3_pow2": ("pow2", "e4m3", (128, 128)),
    "mxfp8_e4m3_row": ("mx", "e4m3", (1, 32)), "mxfp8_e4m3_col": ("mx", "e4m3", (32, 1)),
    "mxfp8_e4m3_2d": ("mx", "e4m3", (32, 32)), "mxfp8_e4m3_row_ocp": ("ocp", "e4m3", (1, 32)),
    "mxfp8_e5m2_row": ("mx", "e5m2", (1, 32)), "mxfp6_e2m3_row": ("mx", "e2m3", (1, 32)),
    "mxfp6_e3m2_row": ("mx", "e3m2", (1, 32)), "mxfp4_row": ("mx", "e2m1", (1, 32)),
    "nvfp4_row": ("nvfp4", "e2m1", (1, 16)), "nvfp4_2d": ("nvfp4", "e2m1", (16, 16)),
}


def read_safetensors(path):
    """float32 tensors as their bits, all others as bytes; numpy lacks the small types."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__":
            begin, end = (start + offset for offset in entry["data_offsets"])
            dtype = np.uint32 if entry["dtype"] == "F32" else U8
            tensors[name] = np.frombuffer(data[begin:end], dtype).reshape(entry["shape"])
    return tensors


def inspect(program, source, dtype, scheme, folder):
    dump = folder / "dump.safetensors"
    subprocess.run([program, "inspect", "--input", source, "--input-dtype", dtype, "--scheme",
                    scheme, "--dump", dump, "--force"], check=True, stdout=subprocess.DEVNULL)
    return read_safetensors(dump)


def codes_of(dump, side, shape, form):
    codes = dump[side + "_codes"]
    if form.name == "e2m1":
        codes = np.stack([codes & 15, codes >> 4], -1).reshape(shape[0], -1)[:, :shape[1]]
    return codes.astype(np.int64)


def judge(table, scheme, dump, x, dtype, source):
    kind, name, block = SCHEMES[scheme]
    form = FORMATS[name]
    for side, matrix in (("rowwise", x), ("columnwise", np.ascontiguousarray(x.T))):
        codes = codes_of(dump, side, matrix.shape, form)
        scales = dump[side + "_scale"].astype(np.int64)
        where = f"{source}, {side}"
        if kind == "nvfp4":
            wanted, scale = nvfp4(matrix, block)
            table.add(scheme + " codes", "float64", wanted, codes, where)
            table.add(scheme + " scales", "float64", scale, scales, where)
            continue
        if kind in ("mx", "ocp"):
            scale = mx_scale(matrix, form, block, kind == "ocp")
            table.add(scheme + " scales", "float64", scale, scales, where)
            for peer, verdict in e8m0_casts(matrix, form, block) if kind == "mx" else ():
                table.add(scheme + " scales", peer, verdict, scales, where)
        for peer, cast in casts_of(form).items():
            if kind in ("mx", "ocp"):
                wanted = mx_codes(matrix, form, block, scale.ours, cast)
            else:
                wanted, scale = float_scaled(matrix, form, block, kind == "pow2", dtype, cast)
            table.add(scheme + " codes", peer, wanted, codes, where)
        if kind in ("float", "pow2"):
            table.add(scheme + " scales", "numpy float32", scale, scales, where)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--program", default="build/bin/kitchen")
    parser.add_argument("--rows", type=int, default=250)
    parser.add_argument("--cols", type=int, default=515)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scheme", choices=SCHEMES, help="this one alone")
    flags = parser.parse_args()
    table = Table()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for number, source in enumerate(INPUTS):
            random = np.random.default_rng([flags.seed, number])
            x = made(source, random, (flags.rows, flags.cols))
            for dtype in ("fp32", "bf16"):
                stored = x
                if dtype == "bf16":
                    bits = x.astype(ml_dtypes.bfloat16).view(np.uint16)
                    stored, x = bits, bits.view(ml_dtypes.bfloat16).astype(F32)
                np.save(folder / "x.npy", stored)
                for scheme in [flags.scheme] if flags.scheme else SCHEMES:
                    dump = inspect(flags.program, folder / "x.npy", dtype, scheme, folder)
                    judge(table, scheme, dump, x, dtype, f"{source} {dtype}")
    versions = f"numpy {np.__version__}, ml_dtypes {ml_dtypes.__version__}"
    print(versions + (f", torch {torch.__version__}" if torch else ", without torch"))
    table.show()
    sys.exit(1 if table.unexplained else 0)


if __name__ == "__main__":
    main()
