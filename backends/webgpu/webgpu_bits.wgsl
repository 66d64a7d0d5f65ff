// SPDX-License-Identifier: Apache-2.0
// Numbers as bits.  WGSL lets an implementation flush subnormal numbers, round either way and reorder; integer arithmetic
// is exact everywhere, so what must be bit-equal is computed on the bits of an f32 held in a u32.

const F32_SIGN: u32 = 0x80000000u;
const F32_INFINITY: u32 = 0x7f800000u;

fn is_nan_bits(v: u32) -> bool { return (v & 0x7fffffffu) > F32_INFINITY; }

// m * 2^scale as an f32; m has at most 24 bits, the result is normal.
fn bits_of_scaled(m: u32, scale: i32) -> u32 {
  if (m == 0u) { return 0u; }
  let top = firstLeadingBit(m);
  return (u32(i32(top) + scale + 127) << 23u) | ((m << (23u - top)) & 0x7fffffu);
}

// ---- to the bits of an f32; a NaN becomes quiet and keeps sign and payload ----

fn bits_from_f32(v: u32) -> u32 { return select(v, v | 0x400000u, is_nan_bits(v)); }

fn bits_from_bf16(v: u32) -> u32 { return bits_from_f32(v << 16u); }

fn bits_from_f16(v: u32) -> u32 {
  let sign = (v & 0x8000u) << 16u;
  let exponent = (v >> 10u) & 0x1fu;
  let m = v & 0x3ffu;
  if (exponent == 0x1fu) { return bits_from_f32(sign | F32_INFINITY | (m << 13u)); }
  if (exponent == 0u) { return sign | bits_of_scaled(m, -24); }
  return sign | ((exponent + 112u) << 23u) | (m << 13u);
}

fn bits_from_f8_e5m2(v: u32) -> u32 { return bits_from_f16(v << 8u); }

fn bits_from_f8_e4m3fn(v: u32) -> u32 {
  let sign = (v & 0x80u) << 24u;
  let m = v & 0x7fu;
  if (m == 0x7fu) { return sign | 0x7ff00000u; }
  if (m < 8u) { return sign | bits_of_scaled(m, -9); }
  return sign | ((m << 20u) + (120u << 23u));
}

// ---- from the bits of an f32: one rounding to nearest, ties to even ----

// The magnitude of a finite number in a format with `digits` bits behind the point and the given bias, as if its exponent
// had no end.
fn narrow_magnitude(a: u32, digits: u32, bias: u32) -> u32 {
  let shift = 23u - digits;
  let exponent = a >> 23u;
  let least = 128u - bias;
  if (exponent >= least) {
    let rounded = a + ((1u << (shift - 1u)) - 1u) + ((a >> shift) & 1u);
    return (rounded >> shift) - ((127u - bias) << digits);
  }
  let cut = shift + least - exponent;
  if (cut > 24u) { return 0u; }
  let m = (a & 0x7fffffu) | 0x800000u;
  let rest = m & ((1u << cut) - 1u);
  let half = 1u << (cut - 1u);
  let q = m >> cut;
  return q + select(0u, 1u, rest > half || (rest == half && (q & 1u) == 1u));
}

// Beyond the largest finite number lies `over`; a finite number goes no further than `most`.
fn limit_magnitude(a: u32, m: u32, largest: u32, over: u32, most: u32) -> u32 {
  if (a == F32_INFINITY) { return over; }
  return select(m, most, m > largest);
}

fn f16_of(v: u32, most: u32) -> u32 {
  let sign = (v >> 16u) & 0x8000u;
  let a = v & 0x7fffffffu;
  if (a > F32_INFINITY) { return sign | 0x7e00u | ((a >> 13u) & 0x3ffu); }
  return sign | limit_magnitude(a, narrow_magnitude(a, 10u, 15u), 0x7bffu, 0x7c00u, most);
}
fn f8_e5m2_of(v: u32, most: u32) -> u32 {
  let sign = (v >> 24u) & 0x80u;
  let a = v & 0x7fffffffu;
  if (a > F32_INFINITY) { return sign | 0x7eu | ((a >> 21u) & 3u); }
  return sign | limit_magnitude(a, narrow_magnitude(a, 2u, 15u), 0x7bu, 0x7cu, most);
}
fn f8_e4m3fn_of(v: u32, most: u32) -> u32 {
  let sign = (v >> 24u) & 0x80u;
  let a = v & 0x7fffffffu;
  if (a > F32_INFINITY) { return sign | 0x7fu; }
  return sign | limit_magnitude(a, narrow_magnitude(a, 3u, 7u), 0x7eu, 0x7fu, most);
}
fn bf16_of(v: u32, most: u32) -> u32 {
  let sign = (v >> 16u) & 0x8000u;
  let a = v & 0x7fffffffu;
  if (a > F32_INFINITY) { return sign | (a >> 16u) | 0x40u; }
  return sign | limit_magnitude(a, (a + 0x7fffu + ((a >> 16u) & 1u)) >> 16u, 0x7f7fu, 0x7f80u, most);
}

fn f32_from_bits(v: u32) -> u32 { return v; }
fn f16_from_bits(v: u32) -> u32 { return f16_of(v, 0x7c00u); }
fn bf16_from_bits(v: u32) -> u32 { return bf16_of(v, 0x7f80u); }
fn f8_e5m2_from_bits(v: u32) -> u32 { return f8_e5m2_of(v, 0x7cu); }
fn f8_e4m3fn_from_bits(v: u32) -> u32 { return f8_e4m3fn_of(v, 0x7fu); }
fn f16_saturated(v: u32) -> u32 { return f16_of(v, 0x7bffu); }
fn bf16_saturated(v: u32) -> u32 { return bf16_of(v, 0x7f7fu); }
fn f8_e5m2_saturated(v: u32) -> u32 { return f8_e5m2_of(v, 0x7bu); }
fn f8_e4m3fn_saturated(v: u32) -> u32 { return f8_e4m3fn_of(v, 0x7eu); }

// ---- integers ----

// |m| as the bits of an f32: rounded to nearest even, or to odd, so that a second rounding to a shorter format is right.
fn bits_from_magnitude(m: u32, to_odd: bool) -> u32 {
  if (m < 0x1000000u) { return bits_of_scaled(m, 0); }
  let top = firstLeadingBit(m);
  let cut = top - 23u;
  let rest = m & ((1u << cut) - 1u);
  let half = 1u << (cut - 1u);
  let q = m >> cut;
  let even = q + select(0u, 1u, rest > half || (rest == half && (q & 1u) == 1u));
  return ((top + 126u) << 23u) + select(even, q | select(0u, 1u, rest != 0u), to_odd);
}
fn bits_from_i32(v: u32, to_odd: bool) -> u32 {
  let negative = (v & F32_SIGN) != 0u;
  return bits_from_magnitude(select(v, 0u - v, negative), to_odd) | (v & F32_SIGN);
}

// The magnitude of a finite f32 cut to a whole number; 0xffffffff at 2^32 and beyond.
fn whole_magnitude(a: u32) -> u32 {
  let exponent = a >> 23u;
  let m = (a & 0x7fffffu) | 0x800000u;
  if (exponent < 127u) { return 0u; }
  if (exponent >= 159u) { return 0xffffffffu; }
  if (exponent <= 150u) { return m >> (150u - exponent); }
  return m << (exponent - 150u);
}
// Towards zero, to -least .. most; NaN gives 0.
fn whole_from_bits(v: u32, most: u32, least: u32) -> u32 {
  if (is_nan_bits(v)) { return 0u; }
  let m = whole_magnitude(v & 0x7fffffffu);
  if ((v & F32_SIGN) != 0u) { return 0u - min(m, least); }
  return min(m, most);
}

// ---- order ----

// Grows with the number, -0 equals +0; not for NaN.
fn order_of_bits(v: u32) -> i32 {
  let m = i32(v & 0x7fffffffu);
  return select(m, -m, (v & F32_SIGN) != 0u);
}
