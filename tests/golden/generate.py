#!/usr/bin/env python3
"""Independent generator of the golden test vectors (numpy only, no GPU, no ML framework).

Usage:  python3 generate.py [output.json]
The section numbers (S1..S9) are those of numerics.md, which states every rule in words.
The schema of the file is docs/reference/golden-file.md.
All float32 arithmetic is IEEE-754 binary32 round-to-nearest-even, subnormals kept, no fused multiply-add.
"""
import json, math, sys, os
import numpy as np

f32, f64, u8, u16, u32, u64 = np.float32, np.float64, np.uint8, np.uint16, np.uint32, np.uint64
np.seterr(all="ignore")
FLT_MAX = f32(np.finfo(np.float32).max)
BF16_MAX = np.array([0x7F7F0000], u32).view(f32)[0]
FP16_MAX = f32(65504.0)

# ------------------------------------------------------------------ S1 formats
class Fmt:
    def __init__(s, name, ebits, mbits, bias, max_code, nan=None, inf=None):
        s.name, s.e, s.m, s.bias, s.max_code, s.nan, s.inf = name, ebits, mbits, bias, max_code, nan, inf
        s.bits = 1 + ebits + mbits
        s.sign = 1 << (ebits + mbits)
        s.table = np.array([s._dec(c) for c in range(1 << s.bits)], f64)
        s.max = f32(s.table[max_code])
    def _dec(s, c):
        sg = -1.0 if c & s.sign else 1.0
        mag = c & (s.sign - 1)
        if s.nan is not None and mag > (s.inf if s.inf is not None else s.max_code): return float("nan")
        if s.inf is not None and mag == s.inf: return sg * float("inf")
        E, M = mag >> s.m, mag & ((1 << s.m) - 1)
        return sg * (math.ldexp(M, 1 - s.bias - s.m) if E == 0 else math.ldexp((1 << s.m) + M, E - s.bias - s.m))
    def decode(s, c): return s.table[np.asarray(c, np.int64)]
    def encode(s, x, sat=True):
        """method A: arithmetic on exact doubles."""
        x = np.asarray(x, f32); a = np.abs(x).astype(f64)
        neg = np.signbit(x).astype(np.int64)
        fin = np.isfinite(a)
        aa = np.where(fin, a, 0.0)
        ex = np.frexp(np.where(aa == 0, 1.0, aa))[1].astype(np.int64) - 1
        ex = np.where(aa == 0, 1 - s.bias, np.maximum(ex, 1 - s.bias))
        n = np.rint(np.ldexp(aa, -(ex - s.m)))
        code = ((ex + s.bias - 1) << s.m) + np.minimum(n, 2.0 ** 40).astype(np.int64)
        over = (code > s.max_code) | np.isinf(a)
        ovc = s.max_code
        if not sat:
            ovc = s.inf if s.inf is not None else (s.nan if s.nan is not None else s.max_code)
        code = np.where(over, ovc, code)
        code = np.where(neg == 1, code | s.sign, code)
        nanc = s.nan if s.nan is not None else s.max_code      # S1: NaN is canonical and positive
        return np.where(np.isnan(x), nanc, code).astype(u8)
    def encode_search(s, x, sat=True):
        """method B: search in the decode table, scalar, used as the self-check."""
        tab = s.table[: s.max_code + 1]
        out = []
        for v in np.asarray(x, f32).ravel():
            if np.isnan(v): out.append(s.nan if s.nan is not None else s.max_code); continue
            a = abs(float(v)); sg = s.sign if np.signbit(v) else 0
            step = tab[-1] - tab[-2]; lim = tab[-1] + step / 2
            if a > lim or (a == lim and (s.max_code & 1)) or math.isinf(a):
                if sat: c = s.max_code
                else: c = s.inf if s.inf is not None else (s.nan if s.nan is not None else s.max_code)
            elif a >= tab[-1]: c = s.max_code
            else:
                i = int(np.searchsorted(tab, a, side="right")) - 1
                mid = (tab[i] + tab[i + 1]) / 2
                c = i if a < mid else i + 1 if a > mid else (i if i % 2 == 0 else i + 1)
            out.append(c | sg)
        return np.array(out, u8).reshape(np.shape(x))

E4M3 = Fmt("e4m3", 4, 3, 7, 0x7E, nan=0x7F)
E5M2 = Fmt("e5m2", 5, 2, 15, 0x7B, nan=0x7F, inf=0x7C)
E2M1 = Fmt("e2m1", 2, 1, 1, 0x07)
E2M3 = Fmt("e2m3", 2, 3, 1, 0x1F)
E3M2 = Fmt("e3m2", 3, 2, 3, 0x1F)
FMTS = [E4M3, E5M2, E2M1, E2M3, E3M2]

def bits(x): return np.asarray(x, f32).view(u32)
def frombits(b): return np.asarray(b, u32).view(f32)
def bf16_bits(x):
    b = bits(x).astype(u64); r = ((b + 0x7FFF + ((b >> u64(16)) & u64(1))) >> u64(16)).astype(u16)
    return np.where(np.isnan(np.asarray(x, f32)), u16(0x7FFF), r)
def bf16(x): return frombits(bf16_bits(x).astype(u32) << u32(16))
def fp16_bits(x):
    with np.errstate(all="ignore"): r = np.asarray(x, f32).astype(np.float16).view(u16)
    return np.where(np.isnan(np.asarray(x, f32)), u16(0x7FFF), r)

def e8m0_roundup(v):
    """S1.4: smallest power of two >= v, as a biased exponent; v is a non-negative float32."""
    b = int(bits(v)); v = f32(v)
    if np.isnan(v): return 0xFF
    if np.isinf(v): return 0xFE
    e, m = (b >> 23) & 0xFF, b & 0x7FFFFF
    if m > 0 and e != 0xFE and not (e == 0 and m <= 0x400000): e += 1
    return e
def e8m0_floor_ocp(amax, emax):
    """S1.4 alternative: OCP MX v1.0: floor(log2(amax)) - emax, clamped to [-127, 127]."""
    amax = f32(amax)
    if np.isnan(amax): return 0xFF
    if np.isinf(amax): return 0xFE
    if amax == 0: return 0
    return int(min(max(math.frexp(float(amax))[1] - 1 - emax, -127), 127)) + 127
def e8m0_rcp(e):
    if e == 255: return f32("nan")
    if e == 254: return frombits(u32(0x00400000))
    return frombits(u32((254 - e) << 23))
def e8m0_val(e):
    if e == 255: return f32("nan")
    if e == 0: return frombits(u32(0x00400000))
    return frombits(u32(e << 23))

# ------------------------------------------------------------------ S2 Philox4x32-10
def philox(c0, c1, c2, c3, k0, k1, rounds=10):
    M0, M1, W0, W1 = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85
    c0, c1, c2, c3 = [np.asarray(c, u64) for c in (c0, c1, c2, c3)]
    k0, k1, msk = int(k0), int(k1), u64(0xFFFFFFFF)
    for _ in range(rounds):
        p0, p1 = c0 * u64(M0), c2 * u64(M1)
        c0, c1, c2, c3 = (p1 >> u64(32)) ^ c1 ^ u64(k0), p1 & msk, (p0 >> u64(32)) ^ c3 ^ u64(k1), p0 & msk
        k0, k1 = (k0 + W0) & 0xFFFFFFFF, (k1 + W1) & 0xFFFFFFFF
    return [np.asarray(c).astype(u32) for c in (c0, c1, c2, c3)]
def philox_scalar(ctr, key):
    c, k = list(ctr), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [((p1 >> 32) ^ c[1] ^ k[0]) & 0xFFFFFFFF, p1 & 0xFFFFFFFF, ((p0 >> 32) ^ c[3] ^ k[1]) & 0xFFFFFFFF, p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c
def sr_words(n, seed, offset, usage):
    """S2.2: random word of element i: block i>>2, word i&3."""
    nb = (n + 3) // 4
    b = np.arange(nb, dtype=u64)
    w = philox(b & u64(0xFFFFFFFF), b >> u64(32), u64(offset & 0xFFFFFFFF),
               u64((usage << 24) | ((offset >> 32) & 0xFFFFFF)), seed & 0xFFFFFFFF, seed >> 32)
    return np.stack(w, 1).ravel()[:n]
def e2m1_sr(y, r):
    """S2.3: stochastic rounding of float32 y to E2M1 with 32-bit random words r."""
    y = np.asarray(y, f32); a = np.minimum(np.abs(y), f32(6)); a = np.where(np.isnan(y), f32(6), a)
    pos = E2M1.table[:8].astype(f32)
    i = np.clip(np.searchsorted(pos, a, side="right") - 1, 0, 7)
    j = np.minimum(i, 6)
    step = (pos[j + 1] - pos[j]).astype(f32)
    d = (a - pos[i]).astype(f32)
    fr = np.trunc((d * (f32(16777216.0) / step)).astype(f32)).astype(u32)
    up = ((np.asarray(r, u32) >> u32(8)) < fr) & (i < 7)
    c = (i + up).astype(np.int64) | np.where(np.signbit(y) & ~np.isnan(y), 8, 0)
    return c.astype(u8)

def gen_input(rows, cols, seed, tensor_id, profile, dtype="bf16"):
    """S9.1 deterministic inputs. Element i=(row*cols+col) uses Philox block i:
       ctr=(i,0,tensor_id,0), key=(seed,0x474F4C44)."""
    n = rows * cols
    w0, w1, w2, _ = philox(np.arange(n, dtype=u64), u64(0), u64(tensor_id), u64(0), seed, 0x474F4C44)
    s = (w0 & u32(255)).astype(np.int64) + ((w0 >> u32(8)) & u32(255)) + ((w0 >> u32(16)) & u32(255)) + (w0 >> u32(24))
    v = (s - 510).astype(f64) / 128.0
    if profile == "wide": v = np.ldexp(v, (w1 & u32(15)).astype(np.int64) - 8)
    if profile == "outlier": v = np.where((w2 & u32(255)) == 0, v * 64.0, v)
    if profile == "grad": v = np.ldexp(v, (w1 & u32(15)).astype(np.int64) - 24)
    if profile == "bands":
        r, c = np.arange(n) // cols, np.arange(n) % cols
        v = np.ldexp(v, -(3 * (r % 5) + 4 * ((c // 32) % 3)))
    v = v.astype(f32)
    return (bf16(v) if dtype == "bf16" else v).reshape(rows, cols)

# ------------------------------------------------------------------ S3 scales
def amax_of(x):
    a = np.abs(np.asarray(x, f32)); a = np.where(np.isnan(a), f32(0), a)
    return f32(a.max()) if a.size else f32(0)
def compute_scale(amax, fmax, eps=0.0, pow2=False, inf_value=FLT_MAX):
    amax = f32(amax)
    if amax < f32(eps): amax = f32(eps)
    if np.isinf(amax) or amax == 0 or np.isnan(amax): return f32(1)
    s = f32(f32(fmax) / amax)
    if np.isinf(s): s = f32(inf_value)
    if pow2: s = frombits(u32(int(bits(s)) & 0xFF800000))
    return f32(s)
def rcp(s): return f32(f32(1) / f32(s))

class Q:
    """codes (u8, logical shape), per-element decode factor in float64, scale arrays for the file."""
    def __init__(s, codes, fmt, scale, deq64, extra=None): s.codes, s.fmt, s.scale, s.deq, s.extra = codes, fmt, scale, deq64, extra or {}
    def T(s): return Q(s.codes.T.copy(), s.fmt, s.scale.T.copy() if np.ndim(s.scale) == 2 else s.scale, s.deq.T.copy(), s.extra)

def q_tile(x, fmt, tr, tc, eps=0.0, pow2=False, conv="te", inf_value=FLT_MAX):
    """S3.1/S3.3 float scales over tr x tc tiles (tr or tc = 0 means the whole extent). scale returned = dequantization scale."""
    x = np.asarray(x, f32); R, C = x.shape; tr = tr or max(R, 1); tc = tc or max(C, 1)
    nr, nc = -(-R // tr), -(-C // tc)
    S = np.zeros((nr, nc), f32); codes = np.zeros((R, C), u8); deq = np.zeros((R, C), f64)
    for i in range(nr):
        for j in range(nc):
            sl = (slice(i * tr, min(R, (i + 1) * tr)), slice(j * tc, min(C, (j + 1) * tc)))
            am = amax_of(x[sl])
            if conv == "te":
                sc = compute_scale(am, fmt.max, eps, pow2, inf_value); si = rcp(sc)
            else:  # deepgemm convention S3.4
                si = f32(max(am, f32(1e-4)) / fmt.max)
                if pow2: si = frombits(u32(min(max(((int(bits(si)) >> 23) & 255) + (1 if int(bits(si)) & 0x7FFFFF else 0), 1), 254) << 23))
                sc = rcp(si)
            S[i, j] = si
            codes[sl] = fmt.encode((x[sl] * sc).astype(f32))
            deq[sl] = fmt.decode(codes[sl]) * f64(si)
    return Q(codes, fmt, S, deq)

def q_mx(x, fmt, axis=1, block=32, mode="roundup"):
    """S3.5 MX: blocks of 32 along the columns (axis=1) or along the rows (axis=0)."""
    x = np.asarray(x, f32)
    if axis == 0:
        q = q_mx(x.T, fmt, 1, block, mode); return Q(q.codes.T.copy(), fmt, q.scale.T.copy(), q.deq.T.copy())
    R, C = x.shape; nb = -(-C // block); S = np.zeros((R, nb), u8); codes = np.zeros((R, C), u8); deq = np.zeros((R, C), f64)
    rc = f32(1.0 / float(fmt.max)); emax = {"e4m3": 8, "e5m2": 15, "e2m1": 2, "e2m3": 2, "e3m2": 4}[fmt.name]
    for i in range(R):
        for j in range(nb):
            sl = slice(j * block, min(C, (j + 1) * block)); am = amax_of(x[i, sl])
            e = e8m0_roundup(f32(am * rc)) if mode == "roundup" else e8m0_floor_ocp(am, emax)
            if np.isnan(x[i, sl]).any():   # S3.5: a NaN takes the block's scale with it
                S[i, j] = 255; codes[i, sl] = fmt.encode(f32("nan")); deq[i, sl] = np.nan; continue
            S[i, j] = e
            codes[i, sl] = fmt.encode((x[i, sl] * e8m0_rcp(e)).astype(f32))
            deq[i, sl] = fmt.decode(codes[i, sl]) * math.ldexp(1.0, e - 127)
    return Q(codes, fmt, S, deq)

RHT_SIGN = [1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1]
def rht16(x, round_bf16=True):
    """S4: blocks of 16 along the columns. y = 0.25 * (x .* d) H16, FP32 butterflies with strides 1, 2, 4, 8."""
    x = np.asarray(x, f32); R, C = x.shape; P = -C % 16
    v = np.concatenate([x, np.zeros((R, P), f32)], 1).reshape(R, -1, 16) * np.array(RHT_SIGN, f32)
    for h in (1, 2, 4, 8):
        w = v.reshape(R, -1, 16 // (2 * h), 2, h)
        a, b = w[:, :, :, 0, :], w[:, :, :, 1, :]
        v = np.stack([(a + b).astype(f32), (a - b).astype(f32)], 3).reshape(R, -1, 16)
    v = (v * f32(0.25)).astype(f32).reshape(R, C + P)
    return bf16(v) if round_bf16 else v

def nv_global(amax):
    amax = f32(amax); s = f32(min(f32(f32(2688.0) / amax), FLT_MAX)) if amax != 0 else f32(1)
    return f32(1) if (amax == 0 or s == 0) else s
def q_nvfp4(x, tile2d=False, sr=None, amax=None):
    """S3.6: blocks of 16 along the columns (tile2d: 16x16). sr = (seed, offset, usage) or None."""
    x = np.asarray(x, f32); R, C = x.shape; g = amax_of(x) if amax is None else f32(amax)
    se = nv_global(g); gd = rcp(se); mul = f32(se * f32(f32(1) / f32(6)))
    nb = -(-C // 16); S = np.zeros((R, nb), u8); codes = np.zeros((R, C), u8); deq = np.zeros((R, C), f64)
    r = sr_words(R * C, *sr).reshape(R, C) if sr else None
    fac = f32(1.0 / 2688.0)
    for i in range(R):
        for j in range(nb):
            sl = slice(j * 16, min(C, (j + 1) * 16))
            blk = x[(i // 16) * 16:(i // 16) * 16 + 16, sl] if tile2d else x[i, sl]
            if np.isnan(blk).any():        # S3.6
                S[i, j] = 0x7F; codes[i, sl] = E2M1.encode(f32("nan")); deq[i, sl] = np.nan; continue
            sd = int(E4M3.encode(f32(min(f32(amax_of(blk) * mul), FLT_MAX))))
            sdf = f32(E4M3.decode(sd)); S[i, j] = sd
            enc = f32(min(f32(f32(1) / f32(sdf * gd)), FLT_MAX))
            y = (x[i, sl] * enc).astype(f32)
            codes[i, sl] = e2m1_sr(y, r[i, sl]) if sr else E2M1.encode(y)
            fs = f32(f32(sdf * g) * fac)
            deq[i, sl] = E2M1.decode(codes[i, sl]) * f64(fs)
    return Q(codes, E2M1, S, deq, {"amax": g})

def q_int8_row(x):
    x = np.asarray(x, f32); S = np.zeros((x.shape[0], 1), f32); codes = np.zeros(x.shape, np.int8)
    for i in range(x.shape[0]):
        if np.isnan(x[i]).any(): S[i, 0] = f32("nan"); continue   # S3.8
        sc = compute_scale(amax_of(x[i]), 127.0); S[i, 0] = rcp(sc)
        codes[i] = np.clip(np.rint((x[i] * sc).astype(f32)), -127, 127).astype(np.int8)
    return Q(codes.view(u8), None, S, codes.astype(f64) * S.astype(f64))

def pack4(c):
    """S1.3: two E2M1 codes a byte along a row, even column in the low nibble; odd width padded with 0."""
    c = np.asarray(c, u8); c = np.concatenate([c, np.zeros((c.shape[0], c.shape[1] % 2), u8)], 1)
    return (c[:, ::2] | (c[:, 1::2] << 4)).astype(u8)
def swizzle_128x4(s):
    """S3.7: pad to (128,4) multiples with 0, tile order [row/128][col/4], inside (row%32)*16 + (row%128/32)*4 + col%4."""
    R, C = s.shape; p = np.zeros((-(-R // 128) * 128, -(-C // 4) * 4), u8); p[:R, :C] = s
    return p.reshape(p.shape[0] // 128, 4, 32, p.shape[1] // 4, 4).transpose(0, 3, 2, 1, 4).ravel()

# ------------------------------------------------------------------ writing helpers
def hx(a): return np.ascontiguousarray(np.asarray(a, u8)).tobytes().hex()
def hx32(a): return "".join("%08x" % v for v in bits(a).ravel())
def hx16(a): return "".join("%04x" % v for v in bf16_bits(a).ravel())
def fnv(b):
    h = 0xCBF29CE484222325
    for v in bytes(b): h = ((h ^ v) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return "%016x" % h
def calc_diff(a, b):
    a, b = np.asarray(a, f64), np.asarray(b, f64); d = (a * a + b * b).sum()
    return 0.0 if d == 0 else float(1 - 2 * (a * b).sum() / d)
def snr_db(ref, got):
    e = ((np.asarray(ref, f64) - got) ** 2).sum(); p = (np.asarray(ref, f64) ** 2).sum()
    return 999.0 if e == 0 else float(10 * np.log10(p / e))

# ------------------------------------------------------------------ S6 linear recipes
def pt(fmt, pow2=False):   return dict(kind="tensor", fmt=fmt, pow2=pow2)
def row(fmt):              return dict(kind="row", fmt=fmt)
def b1(fmt, pow2=True, conv="te"):    return dict(kind="b1", fmt=fmt, pow2=pow2, conv=conv)
def b2(fmt, pow2=True, conv="te"):    return dict(kind="b2", fmt=fmt, pow2=pow2, conv=conv)
def mx(fmt):               return dict(kind="mx", fmt=fmt)
def nv(rht=False, t2=False, sr=False): return dict(kind="nv", rht=rht, t2=t2, sr=sr, fmt=E2M1)
HP = dict(kind="hp", fmt=None)
RECIPES = [  # id, name, x, w, dy, wgrad_hp, evidence
    (1, "bf16", HP, HP, HP, 0, "public"),
    (2, "fp8_cs", pt(E4M3), pt(E4M3), pt(E5M2), 0, "public"),
    (None, "fp8_cs_pow2", pt(E4M3, True), pt(E4M3, True), pt(E5M2, True), 0, "ours"),
    (None, "fp8_cs_e4m3", pt(E4M3), pt(E4M3), pt(E4M3), 0, "ours"),
    (None, "fp8_cs_e4m3_pow2", pt(E4M3, True), pt(E4M3, True), pt(E4M3, True), 0, "ours"),
    (None, "fp8_rowwise", row(E4M3), row(E4M3), row(E5M2), 0, "ours"),
    (None, "fp8_block", b1(E4M3), b2(E4M3), b1(E4M3), 0, "ours"),
    (None, "fp8_block_fp32", b1(E4M3, False), b2(E4M3, False), b1(E4M3, False), 0, "ours"),
    (None, "fp8_block_1d", b1(E4M3), b1(E4M3), b1(E4M3), 0, "ours"),
    (None, "fp8_block_hybrid", b1(E4M3), b2(E4M3), b1(E5M2), 0, "ours"),
    (None, "mxfp8", mx(E4M3), mx(E4M3), mx(E4M3), 0, "ours"),
    (6001, "mxfp8_emulation", mx(E4M3), mx(E4M3), mx(E4M3), 0, "inferred"),
    (6010, "nvfp4", nv(), nv(), nv(), 0, "public"),
    (None, "mxfp8_hybrid", mx(E4M3), mx(E4M3), mx(E5M2), 0, "ours"),
    (None, "mxfp4", mx(E2M1), mx(E2M1), mx(E2M1), 0, "ours"),
    (9002, "nvfp4_2d", nv(), nv(t2=True), nv(), 0, "public"),
    (9003, "nvfp4_rht_2d", nv(rht=True), nv(t2=True), nv(rht=True), 0, "public"),
    (None, "nvfp4_rht_2d_sr", nv(rht=True), nv(t2=True), nv(rht=True, sr=True), 0, "ours"),
    (960109, "nvfp4_rht", nv(rht=True), nv(), nv(rht=True), 0, "public"),
    (None, "fp8_cs_bf16_wgrad", pt(E4M3), pt(E4M3), pt(E5M2), 1, "ours"),
    (None, "fp8_block_deepgemm", b1(E4M3, False, "dg"), b2(E4M3, False, "dg"), b1(E4M3, False, "dg"), 0, "ours"),
]
SR_SEED, SR_OFFSET = 0x0123456789ABCDEF, 7
def q_row(x, q):
    """the copy whose blocks run along the columns (row-major, reduction = columns). x is bf16 so inf_value = BF16_MAX."""
    k = q["kind"]
    if k == "hp": return Q(None, None, None, np.asarray(x, f64))
    if k == "tensor": return q_tile(x, q["fmt"], 0, 0, 0.0, q["pow2"], inf_value=BF16_MAX)
    if k == "row": return q_tile(x, q["fmt"], 1, 0, inf_value=BF16_MAX)
    if k == "b1": return q_tile(x, q["fmt"], 1, 128, 0.0, q["pow2"], q["conv"], inf_value=BF16_MAX)
    if k == "b2": return q_tile(x, q["fmt"], 128, 128, 0.0, q["pow2"], q["conv"], inf_value=BF16_MAX)
    if k == "mx": return q_mx(x, q["fmt"], 1)
    if k == "nv": return q_nvfp4(x, q["t2"], (SR_SEED, SR_OFFSET, 0) if q["sr"] else None)
def q_col(x, q):
    """the transposed copy, quantized from the original: shape (cols, rows), blocks along the original rows."""
    xt = np.asarray(x, f32).T.copy()
    if q["kind"] == "nv":
        if q["rht"]: xt = rht16(xt)
        return q_nvfp4(xt, q["t2"], (SR_SEED, SR_OFFSET, 1) if q["sr"] else None)
    return q_row(xt, q)
def scale_hex(q):
    if q.scale is None: return None
    return hx(q.scale) if q.scale.dtype == u8 else hx32(q.scale)
def linear_case(rec, x, w, dy):
    rid, name, qx, qw, qg, wg_hp, ev = rec
    A = {"x_row": q_row(x, qx), "w_row": q_row(w, qw), "dy_row": q_row(dy, qg), "w_col": q_col(w, qw)}
    if wg_hp: A["dy_col"], A["x_col"] = Q(None, None, None, dy.T.astype(f64)), Q(None, None, None, x.T.astype(f64))
    else: A["dy_col"], A["x_col"] = q_col(dy, qg), q_col(x, qx)
    d = {k: v.deq for k, v in A.items()}
    out = {"y": d["x_row"] @ d["w_row"].T, "dx": d["dy_row"] @ d["w_col"].T, "dw": d["dy_col"] @ d["x_col"].T}
    sab = {"y": abs(d["x_row"]) @ abs(d["w_row"].T), "dx": abs(d["dy_row"]) @ abs(d["w_col"].T), "dw": abs(d["dy_col"]) @ abs(d["x_col"].T)}
    X, W, G = x.astype(f64), w.astype(f64), dy.astype(f64)
    ref = {"y": X @ W.T, "dx": G @ W, "dw": G.T @ X}
    Kd = {"y": x.shape[1], "dx": w.shape[0], "dw": x.shape[0]}
    for o, l, m in (("y", "x_row", "w_row"), ("dx", "dy_row", "w_col"), ("dw", "dy_col", "x_col")):
        e = np.abs(ref32(d[l], d[m], 32) - out[o]).max(); assert e <= Kd[o] * 2.0 ** -23 * sab[o].max(), (name, o, e)
    r = {"recipe_id": rid, "name": name, "evidence": ev, "operands": {}, "outputs": {}}
    for k, v in A.items():
        if v.codes is not None:
            r["operands"][k] = {"shape": list(v.codes.shape), "codes_fnv": fnv(np.asarray(v.codes, u8).tobytes()), "scale_shape": list(np.shape(v.scale)), "scale": scale_hex(v)}
            if "amax" in v.extra: r["operands"][k]["amax"] = hx32(v.extra["amax"])
    for k in out:
        r["outputs"][k] = {"shape": list(out[k].shape), "f32": hx32(out[k].astype(f32)), "atol_fp32_accum": "%.3e" % (Kd[k] * 2.0 ** -23 * sab[k].max()),
                           "calc_diff_vs_unquantized": "%.3e" % calc_diff(ref[k], out[k]), "snr_db_vs_unquantized": round(snr_db(ref[k], out[k]), 2)}
    return r

def ref32(A, B, per_elem_block):
    """S5.1: FP32 accumulation in block order on dequantized operands (used only to check the tolerance)."""
    M, K = A.shape; acc = np.zeros((M, B.shape[0]), f32)
    for k0 in range(0, K, per_elem_block):
        p = np.zeros_like(acc)
        for k in range(k0, min(K, k0 + per_elem_block)):
            p = (p + (A[:, k:k + 1].astype(f32) * B[:, k].astype(f32)).astype(f32)).astype(f32)
        acc = (acc + p).astype(f32)
    return acc

# ------------------------------------------------------------------ S7 attention
def softmax64(s, mask):
    s = np.where(mask, s, -np.inf); m = s.max(1, keepdims=True); e = np.exp(s - m); return e / e.sum(1, keepdims=True), (m[:, 0] + np.log(e.sum(1)))
ATT = [("sdpa", 1, "bf16", HP, HP, "public"), ("sdpa", None, "fp8_cs", pt(E4M3), pt(E5M2), "ours"), ("sdpa", 6001, "mxfp8_emulation", mx(E4M3), mx(E4M3), "public-name"),
       ("flash", None, "triton_fa_bf16_for_all_base_2", HP, HP, "public"), ("flash", None, "triton_fa_bf16_for_all_natural", HP, HP, "public"),
       ("flash", None, "fa_fp8_e4m3_base_2", "fp8", "fp8", "ours")]
def attention_case(a, q, k, v, do, alpha):
    kind, rid, name, qf, qb, ev = a
    Sq, Sk = q.shape[0], k.shape[0]; mask = np.tril(np.ones((Sq, Sk), bool))
    Q_, K_, V_, DO = [t.astype(f64) for t in (q, k, v, do)]
    # exact reference without any intermediate rounding
    P0, _ = softmax64(alpha * (Q_ @ K_.T), mask); O0 = P0 @ V_
    dP0 = DO @ V_.T; dS0 = P0 * (dP0 - (P0 * dP0).sum(1, keepdims=True))
    ref = {"o": O0, "dq": alpha * dS0 @ K_, "dk": alpha * dS0.T @ Q_, "dv": P0.T @ DO}
    B = lambda t: bf16(np.asarray(t).astype(f32)).astype(f64)
    lse = None
    if kind == "sdpa":
        rq = lambda t, p: q_row(np.asarray(t, f32), p).deq
        cq = lambda t, p: q_col(np.asarray(t, f32), p).deq
        S = B(alpha * (rq(q, qf) @ rq(k, qf).T)); P, lse = softmax64(S, mask); P = B(P)
        O = rq(P, qf) @ cq(v, qf).T
        dP = B(rq(do, qb) @ rq(v, qf).T); dV = cq(P, qf) @ cq(do, qb).T
        dS = B(P * (dP - (P * dP).sum(1, keepdims=True)))
        dQ = alpha * (rq(dS, qb) @ cq(k, qf).T); dK = alpha * (cq(dS, qb) @ cq(q, qf).T)
    elif qf is HP:
        S = alpha * (Q_ @ K_.T); P, lse = softmax64(S, mask)
        m = np.where(mask, S, -np.inf).max(1, keepdims=True); e = np.where(mask, np.exp(S - m), 0); l = e.sum(1, keepdims=True)
        O = (B(e) @ V_) / l
        Ob = B(O); delta = (DO * Ob).sum(1, keepdims=True)
        dP = DO @ V_.T; dV = B(P).T @ DO; dS = B(P * (dP - delta))
        dQ = alpha * (dS @ K_); dK = alpha * (dS.T @ Q_)
    else:  # fp8 flash: per-head tensors, P scaled by 256, S7.4
        t = lambda z, f: q_tile(np.asarray(z, f32), f, 0, 0, inf_value=BF16_MAX).deq
        q8, k8, v8, do8 = t(q, E4M3), t(k, E4M3), t(v, E4M3), t(do, E5M2)
        c8 = lambda z, sc, f: f.decode(f.encode((np.asarray(z).astype(f32) * f32(sc)).astype(f32))) / sc
        S = alpha * (q8 @ k8.T); P, lse = softmax64(S, mask)
        m = np.where(mask, S, -np.inf).max(1, keepdims=True); e = np.where(mask, np.exp(S - m), 0); l = e.sum(1, keepdims=True)
        O = (c8(e, 256.0, E4M3) @ v8) / l
        delta = (DO * B(O)).sum(1, keepdims=True); dP = do8 @ v8.T; dV = c8(P, 256.0, E4M3).T @ do8
        dS = P * (dP - delta); dS8 = t(B(dS), E5M2); dQ = alpha * (dS8 @ k8); dK = alpha * (dS8.T @ q8)
    got = {"o": O, "dq": dQ, "dk": dK, "dv": dV}
    r = {"kind": kind, "recipe_idx": rid, "name": name, "evidence": ev, "causal": True, "softmax_scale": hx32(f32(alpha)), "outputs": {}}
    r["lse_natural_f32"] = hx32(lse.astype(f32))
    for n in got:
        r["outputs"][n] = {"shape": list(got[n].shape), "f32": hx32(got[n].astype(f32)), "calc_diff_vs_exact": "%.3e" % calc_diff(ref[n], got[n]),
                           "snr_db_vs_exact": round(snr_db(ref[n], got[n]), 2), "max_abs_vs_exact": "%.3e" % np.abs(ref[n] - got[n]).max()}
    return r, ref

# ------------------------------------------------------------------ main
def main(out):
    G = {"schema": 1, "note": "hex strings hold concatenated big-endian digits: 2 a byte code, 4 a bf16, 8 a float32"}
    # formats and decode tables
    G["formats"] = {}
    for f in FMTS:
        G["formats"][f.name] = {"bits": f.bits, "ebits": f.e, "mbits": f.m, "bias": f.bias, "max": hx32(f.max), "max_code": f.max_code,
                                "decode_f32": ["%08x" % (int(bits(f32(v))) if not math.isnan(v) else 0x7FFFFFFF) for v in f.table]}
    G["formats"]["e8m0"] = {"bits": 8, "decode_f32": ["%08x" % (int(bits(e8m0_val(c))) if c != 255 else 0x7FFFFFFF) for c in range(256)],
                            "rcp_f32": ["%08x" % (int(bits(e8m0_rcp(c))) if c != 255 else 0x7FFFFFFF) for c in range(256)]}
    # encode vectors
    G["encode"] = {}
    spec = [0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF]
    nchk = 0
    for f in FMTS:
        pos = f.table[: f.max_code + 1]; vals = [int(bits(f32(v))) for v in pos]
        mids = [f32((a + b) / 2) for a, b in zip(pos[:-1], pos[1:])] + [f32(pos[-1] + (pos[-1] - pos[-2]) / 2), f32(pos[-1] + (pos[-1] - pos[-2]))]
        for m in mids: b = int(bits(m)); vals += [b - 1, b, b + 1]
        vals = sorted(set(vals)); vals = vals + [v | 0x80000000 for v in vals if v]; vals += [s for s in spec if s not in vals]
        x = frombits(np.array(vals, u32)); A, An = f.encode(x), f.encode(x, sat=False)
        assert (A == f.encode_search(x)).all() and (An == f.encode_search(x, sat=False)).all(), f.name
        rx = frombits(philox(np.arange(20000, dtype=u64), u64(0), u64(99), u64(0), 5, 6)[0])
        assert (f.encode(rx) == f.encode_search(rx)).all(); nchk += len(rx) + len(x)
        G["encode"][f.name] = {"f32": "".join("%08x" % v for v in vals), "sat": hx(A), "nosat": hx(An)}
    mids = []
    for b in (0x3F800000, 0x3F810000, 0x00010000, 0x7F7F0000, 0x42F70000): mids += [b | 0x7FFF, b | 0x8000, b | 0x8001, b | 0xFFFF]
    hv = np.array(mids + [0x477FEFFF, 0x477FF000, 0x33000000, 0x33000001, 0x387FE000, 0x387FF000, 0x3F801000, 0x3F803000] + spec, u32)
    G["encode"]["bf16"] = {"f32": "".join("%08x" % v for v in hv), "bf16": "".join("%04x" % v for v in bf16_bits(frombits(hv)))}
    G["encode"]["fp16"] = {"f32": "".join("%08x" % v for v in hv), "fp16": "".join("%04x" % v for v in fp16_bits(frombits(hv)))}
    ev = np.array([0, 1, 0x00200000, 0x00400000, 0x00400001, 0x007FFFFF, 0x00800000, 0x00800001, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FFFFFFF, 0x40000000, 0x7E800001, 0x7EFFFFFF, 0x7F000000, 0x7F000001, 0x7F7FFFFF, 0x7F800000, 0x7FC00000], u32)
    G["encode"]["e8m0_roundup"] = {"f32": "".join("%08x" % v for v in ev), "code": hx([e8m0_roundup(v) for v in frombits(ev)])}
    for f, emax in ((E4M3, 8), (E5M2, 15), (E2M1, 2)):
        am = [f32(v) for v in (0, 1e-40, 1e-30, 0.4375, 1, 1.75, 1.7500001, 6, 6.0000005, 448, 448.00003, 449, 57344, 3e38, np.inf, np.nan)]
        rc = f32(1.0 / float(f.max))
        G["encode"]["mx_scale_" + f.name] = {"amax": "".join(hx32(a) for a in am), "rcp_max": hx32(rc), "roundup": hx([e8m0_roundup(f32(a * rc)) for a in am]), "ocp_floor": hx([e8m0_floor_ocp(a, emax) for a in am])}
    # scale vectors
    sc = []
    for am in (0.0, 1e-45, 1e-40, 1.2e-38, 1e-36, 1e-4, 0.5, 1.0, 3.0, 447.9, 448.0, 448.1, 57344.0, 3.3e38, np.inf, np.nan):
        for f in (E4M3, E5M2):
            for p2 in (False, True):
                for eps in (0.0, 1e-4):
                    s = compute_scale(am, f.max, eps, p2); sb = compute_scale(am, f.max, eps, p2, BF16_MAX)
                    sc.append([hx32(f32(am)), f.name, int(p2), hx32(f32(eps)), hx32(s), hx32(rcp(s)), hx32(sb)])
    G["compute_scale"] = {"columns": ["amax", "fmt", "pow2", "eps", "scale_fp32_input", "scale_inv_fp32_input", "scale_bf16_input"], "rows": sc}
    # delayed scaling
    rows = []
    for algo in ("max", "most_recent"):
        for margin in (0, 1):
            H = np.zeros(4, f32); s = f32(1); seq = [1.0, 8.0, 0.0, 2.0, 0.5, float("inf"), 1e-43, 3.0]; tr = []
            for am in seq:
                H[0] = f32(am); last = H[0]; L = len(H)
                a = np.array([H[i + 1] if i < L - 1 else last for i in range(L)], f32)
                use = f32(a.max()) if algo == "max" else last
                H = a.copy(); H[0] = 0
                if np.isfinite(use) and use > 0: s = f32(f32(f32(E4M3.max) * f32(2.0 ** -margin)) / use)
                if np.isinf(s): s = FLT_MAX
                tr.append([hx32(f32(am)), hx32(H), hx32(s), hx32(rcp(s))])
            rows.append({"algo": algo, "margin": margin, "fmt": "e4m3", "window": 4, "initial_scale": hx32(f32(1)), "steps": tr})
    G["delayed_scaling"] = {"step_columns": ["amax written to history[0]", "history after update", "scale", "scale_inv"], "cases": rows}
    # philox and SR
    kat = [([0] * 4, [0, 0]), ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2), ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0])]
    exp = [[0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD], [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]]
    for (c, k), e in zip(kat, exp):
        assert philox_scalar(c, k) == e, "philox known answer"; assert [int(v) for v in philox(*[u64(v) for v in c], *k)] == e
    kat += [([i, 0, 7, 0x01000000], [0x89ABCDEF, 0x01234567]) for i in range(4)]
    G["philox4x32_10"] = [{"ctr": ["%08x" % v for v in c], "key": ["%08x" % v for v in k], "out": ["%08x" % v for v in philox_scalar(c, k)]} for c, k in kat]
    G["sr_words"] = {"seed": "0123456789abcdef", "offset": 7, "usage": 1, "n": 10, "words": ["%08x" % v for v in sr_words(10, SR_SEED, SR_OFFSET, 1)]}
    yv = frombits(np.array([0, 0x80000000, 0x3E800000, 0x3E7FFFFF, 0xBE800000, 0x3F400000, 0x3F400001, 0x40200000, 0x40A00000, 0xC0A00000, 0x40BFFFFF, 0x40C00000, 0x41000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x33800000, 0x33000000, 0x00000001, 0x3F19999A], u32))
    rv = np.array([0, 0x7FFFFFFF, 0x80000000, 0x800000FF, 0xFFFFFFFF, 0x00000100], u32)
    G["e2m1_sr"] = {"y_f32": hx32(yv), "r": ["%08x" % r for r in rv], "codes_by_r": [hx(e2m1_sr(yv, np.full(len(yv), r, u32))) for r in rv]}
    n = 200000; r = sr_words(n, 1, 0, 0)
    for y in (0.1, 0.3, 1.2, 2.25, 3.9, 5.5):
        m = E2M1.decode(e2m1_sr(np.full(n, y, f32), r)).mean(); assert abs(m - y) < 0.01, (y, m)
    gi = gen_input(3, 70, 9, 4, "bands", "f32")      # scalar check of S9.1
    for i in (0, 5, 69, 70, 139, 209):
        w0 = philox_scalar([i, 0, 4, 0], [9, 0x474F4C44])[0]; r_, c_ = divmod(i, 70)
        assert float(gi[r_, c_]) == (sum((w0 >> b) & 255 for b in (0, 8, 16, 24)) - 510) / 128.0 * 2.0 ** -(3 * (r_ % 5) + 4 * ((c_ // 32) % 3))
    # hadamard
    Hm = np.array([[(-1) ** bin(i & j).count("1") for j in range(16)] for i in range(16)])
    hin = gen_input(4, 32, 11, 1, "outlier"); h1, h2 = rht16(hin), rht16(hin, False)
    chk = (hin.astype(f64).reshape(4, 2, 16) * np.array(RHT_SIGN)) @ Hm / 4
    assert np.abs(chk.reshape(4, 32) - h2).max() < 1e-4 * np.abs(chk).max()
    G["rht16"] = {"sign": RHT_SIGN, "input_bf16": hx16(hin), "shape": [4, 32], "out_bf16": hx16(h1), "out_f32": hx32(h2)}
    # generator check values
    G["inputs"] = {}
    sp = np.array([0x3F800000, 0xC0490FDB, 0x7F800000, 0x00000001, 0x80000000, 0x43E00000, 0x43E80000, 0xC3E80001, 0x3C000000, 0xFFC00000, 0x3A83126F, 0xBA83126F, 0x00000000, 0x477FE000, 0x3EAAAAAB], u32)
    A = frombits(sp).reshape(3, 5)
    A2 = A.copy(); A2[~np.isfinite(A2)] = f32(-2.5)
    Bm, Bo, Bg = gen_input(32, 64, 1, 1, "normal"), gen_input(32, 64, 1, 2, "outlier"), gen_input(32, 64, 1, 3, "grad")
    C = gen_input(130, 257, 2, 1, "outlier"); Z = np.zeros((4, 40), f32)
    N = gen_input(5, 70, 6, 1, "wide"); N[1, 3] = np.nan; N[2, 40] = np.inf; N[3, 69] = -np.inf; N[3, 0] = np.nan; N[4] = 0
    mats = {"A_special": A, "N_nonfinite": N, "A_finite": A2, "B_normal": Bm, "B_outlier": Bo, "B_grad": Bg, "C_ragged": C, "Z_zero": Z}
    meta = {"B_normal": [1, 1, "normal"], "B_outlier": [1, 2, "outlier"], "B_grad": [1, 3, "grad"], "C_ragged": [2, 1, "outlier"]}
    for k, m in mats.items():
        e = {"shape": list(m.shape), "dtype": "f32" if k[0] == "A" else "bf16"}
        if k in meta: e["seed"], e["tensor_id"], e["profile"] = meta[k]
        if m.size <= 2048: e["bits"] = hx32(m) if e["dtype"] == "f32" else hx16(m)
        else: e["bf16_fnv"] = fnv(bytes.fromhex(hx16(m))); e["first8_bf16"] = hx16(m.ravel()[:8])
        G["inputs"][k] = e
    # quantize cases
    schemes = [("tensor_e4m3", lambda m, iv: q_tile(m, E4M3, 0, 0, inf_value=iv)), ("tensor_e5m2", lambda m, iv: q_tile(m, E5M2, 0, 0, inf_value=iv)),
               ("tensor_e4m3_pow2", lambda m, iv: q_tile(m, E4M3, 0, 0, 0.0, True, inf_value=iv)), ("row_e4m3", lambda m, iv: q_tile(m, E4M3, 1, 0, inf_value=iv)),
               ("col_e4m3", lambda m, iv: q_tile(m, E4M3, 0, 1, inf_value=iv)),
               ("b1x128_e4m3_fp32", lambda m, iv: q_tile(m, E4M3, 1, 128, inf_value=iv)), ("b1x128_e4m3_pow2", lambda m, iv: q_tile(m, E4M3, 1, 128, 0.0, True, inf_value=iv)),
               ("b128x1_e4m3_pow2", lambda m, iv: q_tile(m, E4M3, 128, 1, 0.0, True, inf_value=iv)), ("b128x128_e4m3_pow2", lambda m, iv: q_tile(m, E4M3, 128, 128, 0.0, True, inf_value=iv)),
               ("b128x128_e4m3_fp32", lambda m, iv: q_tile(m, E4M3, 128, 128, inf_value=iv)), ("b1x128_e5m2_pow2", lambda m, iv: q_tile(m, E5M2, 1, 128, 0.0, True, inf_value=iv)),
               ("b1x128_e4m3_deepgemm", lambda m, iv: q_tile(m, E4M3, 1, 128, 0, False, "dg")), ("b1x128_e4m3_deepgemm_ue8m0", lambda m, iv: q_tile(m, E4M3, 1, 128, 0, True, "dg")),
               ("mxfp8_e4m3_row", lambda m, iv: q_mx(m, E4M3, 1)), ("mxfp8_e4m3_col", lambda m, iv: q_mx(m, E4M3, 0)), ("mxfp8_e5m2_row", lambda m, iv: q_mx(m, E5M2, 1)),
               ("mxfp8_e4m3_row_ocp", lambda m, iv: q_mx(m, E4M3, 1, 32, "ocp")), ("mxfp4_row", lambda m, iv: q_mx(m, E2M1, 1)), ("mxfp6_e2m3_row", lambda m, iv: q_mx(m, E2M3, 1)),
               ("nvfp4_row", lambda m, iv: q_nvfp4(m)), ("nvfp4_2d", lambda m, iv: q_nvfp4(m, True)), ("nvfp4_row_sr", lambda m, iv: q_nvfp4(m, False, (SR_SEED, SR_OFFSET, 0))),
               ("nvfp4_t", lambda m, iv: q_nvfp4(np.asarray(m, f32).T.copy())), ("nvfp4_t_rht", lambda m, iv: q_nvfp4(rht16(np.asarray(m, f32).T.copy(), iv != FLT_MAX))),
               ("int8_row", lambda m, iv: q_int8_row(m))]
    cases, meas = [], {}
    full_c = {"b1x128_e4m3_pow2", "b128x128_e4m3_fp32", "mxfp8_e4m3_row"}
    for mn, m in mats.items():
        for sn, fn in schemes:
            if mn in ("A_special", "N_nonfinite") and "rht" in sn: continue
            q = fn(m, FLT_MAX if mn[0] == "A" else BF16_MAX); codes = np.asarray(q.codes, u8)
            four = q.fmt is E2M1; byts = pack4(codes) if four else codes
            e = {"input": mn, "scheme": sn, "shape": list(codes.shape), "scale_shape": list(np.shape(q.scale)), "scale": scale_hex(q), "packed4": int(four)}
            if "amax" in q.extra: e["amax"] = hx32(q.extra["amax"])
            if codes.size <= 2048 or sn in full_c: e["codes"] = hx(byts)
            else:
                e["codes_fnv"] = fnv(byts.tobytes())
                if len(e["scale"]) > 4096: e["scale_fnv"] = fnv(bytes.fromhex(e.pop("scale")))
            if mn[0] not in "AZN" and "rht" not in sn:
                o = m.T if sn == "nvfp4_t" else m
                e["calc_diff"] = "%.3e" % calc_diff(o, q.deq); e["snr_db"] = round(snr_db(o, q.deq), 2); meas.setdefault(sn, {})[mn] = [e["calc_diff"], e["snr_db"], "%.3e" % np.abs(o - q.deq).max()]
            cases.append(e)
    # self-check of two schemes with a scalar method
    for m in (Bm, Bo):
        am = max(abs(float(v)) for v in m.ravel()); s = f32(f32(448) / f32(am))
        assert (q_tile(m, E4M3, 0, 0).codes == E4M3.encode_search((m * s).astype(f32))).all()
        q = q_mx(m, E4M3)
        for i in range(0, 32, 5):
            for j in range(2):
                am = max(abs(float(v)) for v in m[i, j * 32:j * 32 + 32]); e = math.ceil(math.log2(am / 448.0)) if am else -127
                if am / 448.0 != 2.0 ** round(math.log2(am / 448.0)): assert q.scale[i, j] == e + 127, (i, j)
                assert (q.codes[i, j * 32:j * 32 + 32] == E4M3.encode_search((m[i, j * 32:j * 32 + 32].astype(f64) * 2.0 ** -e).astype(f32))).all()
    G["quantize"] = cases
    sw = np.arange(130 * 5, dtype=np.int64).reshape(130, 5) % 251
    s = swizzle_128x4(sw.astype(u8)); G["swizzle_128x4"] = {"rows": 130, "cols": 5, "fill": "(row*5+col)%251", "out_len": int(s.size), "out_fnv": fnv(s.tobytes()),
        "probe": [[r, c, int((r // 128) * 2 * 512 + (c // 4) * 512 + (r % 32) * 16 + (r % 128 // 32) * 4 + c % 4)] for r, c in ((0, 0), (1, 0), (32, 0), (33, 3), (127, 4), (128, 0), (129, 4))]}
    for r_, c_, o_ in G["swizzle_128x4"]["probe"]: assert s[o_] == (r_ * 5 + c_) % 251
    # linear
    M, K, N = 32, 144, 16
    x, w, dy = gen_input(M, K, 3, 1, "bands"), gen_input(N, K, 3, 2, "wide"), gen_input(M, N, 3, 3, "bands")
    dy = bf16(dy * f32(2.0 ** -12))
    G["linear"] = {"M": M, "K": K, "N": N, "seed": 3, "x": hx16(x), "w": hx16(w), "dy": hx16(dy), "sr_seed": "%016x" % SR_SEED, "sr_offset": SR_OFFSET,
                   "cases": []}
    seen = {}
    for rec in RECIPES:
        c = linear_case(rec, x, w, dy); meas["linear_" + c["name"]] = {k: [v["calc_diff_vs_unquantized"], v["snr_db_vs_unquantized"]] for k, v in c["outputs"].items()}
        for k, v in c["outputs"].items():
            key = (k, v["f32"])
            if key in seen: v.pop("f32"); v["same_as"] = seen[key]
            else: seen[key] = c["name"]
        G["linear"]["cases"].append(c)
    # epilogue S5.3
    acc, bias, cc = gen_input(1, 64, 5, 1, "wide", "f32").ravel(), gen_input(1, 64, 5, 2, "normal").ravel(), gen_input(1, 64, 5, 3, "wide", "f32").ravel()
    al = f32(0.3)
    t1 = (acc * al).astype(f32); t2 = (t1 + bias).astype(f32); t3 = (t1 + cc).astype(f32)
    G["epilogue"] = {"acc": hx32(acc), "alpha": hx32(al), "bias_bf16": hx16(bias), "c_f32": hx32(cc), "bias_out_f32": hx32(t2), "bias_out_bf16": hx16(t2), "main_grad_out_f32": hx32(t3)}
    # attention
    S, D = 48, 32
    q, k, v, do = [gen_input(S, D, 4, i, "normal") for i in (1, 2, 3, 4)]
    alpha = float(f32(1.0 / math.sqrt(D)))
    G["attention"] = {"S": S, "D": D, "heads": 1, "q": hx16(q), "k": hx16(k), "v": hx16(v), "do": hx16(do), "cases": []}
    for i, a in enumerate(ATT):
        c, ref = attention_case(a, q, k, v, do, alpha)
        if i == 0: G["attention"]["exact_f32"] = {n: hx32(t.astype(f32)) for n, t in ref.items()}
        if c["name"].endswith("natural"):
            for v_ in c["outputs"].values(): v_.pop("f32"); v_["same_as"] = "triton_fa_bf16_for_all_base_2"
        meas["attention_%s_%s" % (c["kind"], c["name"])] = {n: [o["calc_diff_vs_exact"], o["snr_db_vs_exact"], o["max_abs_vs_exact"]] for n, o in c["outputs"].items()}
        G["attention"]["cases"].append(c)
    G["measured"] = meas
    with open(out, "w") as fh: json.dump(G, fh, indent=None, separators=(",", ":"))
    print("encode self-check values:", nchk, " bytes:", os.path.getsize(out))
    if "-v" in sys.argv:
        for k_, v_ in meas.items(): print(k_, v_)

if __name__ == "__main__":
    a = [v for v in sys.argv[1:] if v != "-v"]
    main(a[0] if a else os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.json"))
