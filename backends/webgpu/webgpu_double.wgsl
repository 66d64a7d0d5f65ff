// SPDX-License-Identifier: Apache-2.0
// Sums and products of f64 as IEEE 754 has them, subnormal numbers, overflow and all, in integers.  A number is
// vec2(low word, high word) of its f64 bits.

const DOUBLE_NAN = vec2<u32>(0u, 0x7ff80000u);
const DOUBLE_INFINITY = 0x7ff00000u;    // its high word

// Finite and not zero: m * 2^(e - 61), m with bit 61 uppermost and the 9 lowest bits zero.
struct Double { sign: u32, e: i32, m: vec2<u32> }

fn double_is_special(v: vec2<u32>) -> bool { return (v.y & 0x7fffffffu) >= DOUBLE_INFINITY; }
fn double_is_nan(v: vec2<u32>) -> bool {
  return (v.y & 0x7fffffffu) > DOUBLE_INFINITY || ((v.y & 0x7fffffffu) == DOUBLE_INFINITY && v.x != 0u);
}
fn double_is_zero(v: vec2<u32>) -> bool { return ((v.y & 0x7fffffffu) | v.x) == 0u; }

fn double_left(m: vec2<u32>, n: u32) -> vec2<u32> {
  if (n == 0u) { return m; }
  if (n >= 32u) { return vec2<u32>(0u, m.x << (n - 32u)); }
  return vec2<u32>(m.x << n, (m.y << n) | (m.x >> (32u - n)));
}

// What falls out below leaves a bit.
fn double_right(m: vec2<u32>, n: u32) -> vec2<u32> {
  if (n == 0u) { return m; }
  if (n > 63u) { return vec2<u32>(select(0u, 1u, (m.x | m.y) != 0u), 0u); }
  if (n >= 32u) {
    let lost = m.x | (m.y & ((1u << (n - 32u)) - 1u));
    return vec2<u32>((m.y >> (n - 32u)) | select(0u, 1u, lost != 0u), 0u);
  }
  return vec2<u32>((m.x >> n) | (m.y << (32u - n)) | select(0u, 1u, (m.x & ((1u << n) - 1u)) != 0u), m.y >> n);
}

fn double_top(m: vec2<u32>) -> u32 { return select(firstLeadingBit(m.x), 32u + firstLeadingBit(m.y), m.y != 0u); }

fn double_parts(v: vec2<u32>) -> Double {
  let field = (v.y >> 20u) & 0x7ffu;
  let fraction = vec2<u32>(v.x, (v.y & 0xfffffu) | select(0u, 0x100000u, field != 0u));
  let shift = 61u - double_top(fraction);
  return Double(v.y & 0x80000000u, i32(max(field, 1u)) - 1014 - i32(shift), double_left(fraction, shift));
}

// m * 2^(e - 61) rounded, m not zero and below bit 63.
fn double_rounded(sign: u32, exponent: i32, unrounded: vec2<u32>) -> vec2<u32> {
  let top = double_top(unrounded);
  let e = exponent + i32(top) - 61;
  if (e > 1023) { return vec2<u32>(0u, sign | DOUBLE_INFINITY); }
  var m = unrounded;
  if (top > 61u) { m = double_right(m, top - 61u); } else { m = double_left(m, 61u - top); }
  m = double_right(m, u32(clamp(-1022 - e, 0, 64)));
  let q = vec2<u32>((m.x >> 9u) | (m.y << 23u), m.y >> 9u);
  let below = m.x & 0x1ffu;
  let up = select(0u, 1u, below > 0x100u || (below == 0x100u && (q.x & 1u) == 1u));
  let low = q.x + up;
  let field = u32(max(e, -1022) + 1022) << 20u;
  return vec2<u32>(low, sign | (field + q.y + select(0u, 1u, low < up)));
}

fn double_sum_special(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if (double_is_nan(a) || double_is_nan(b)) { return DOUBLE_NAN; }
  if (double_is_special(a) && double_is_special(b) && a.y != b.y) { return DOUBLE_NAN; }
  return select(b, a, double_is_special(a));
}

fn double_sum(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if (double_is_special(a) || double_is_special(b)) { return double_sum_special(a, b); }
  if (double_is_zero(a) && double_is_zero(b)) { return vec2<u32>(0u, a.y & b.y); }
  if (double_is_zero(a)) { return b; }
  if (double_is_zero(b)) { return a; }
  let p = a.y & 0x7fffffffu;
  let q = b.y & 0x7fffffffu;
  let swap = p < q || (p == q && a.x < b.x);
  let large = double_parts(select(a, b, swap));
  let small = double_parts(select(b, a, swap));
  let part = double_right(small.m, u32(large.e - small.e));
  if (large.sign == small.sign) {
    let low = large.m.x + part.x;
    return double_rounded(large.sign, large.e, vec2<u32>(low, large.m.y + part.y + select(0u, 1u, low < part.x)));
  }
  let m = vec2<u32>(large.m.x - part.x, large.m.y - part.y - select(0u, 1u, large.m.x < part.x));
  if ((m.x | m.y) == 0u) { return vec2<u32>(0u, 0u); }
  return double_rounded(large.sign, large.e, m);
}

// Of a number and an f32, by its bits.
fn double_product(a: vec2<u32>, b: u32) -> vec2<u32> {
  let sign = (a.y ^ b) & F32_SIGN;
  let b_zero = (b & 0x7fffffffu) == 0u;
  if (double_is_nan(a) || is_nan_bits(b)) { return DOUBLE_NAN; }
  if (double_is_special(a) || is_infinite_bits(b)) {
    return select(vec2<u32>(0u, sign | DOUBLE_INFINITY), DOUBLE_NAN, b_zero || double_is_zero(a));
  }
  if (b_zero || double_is_zero(a)) { return vec2<u32>(0u, sign); }
  let x = double_parts(a);
  let y = parts_of(b);
  let low = product_of(y.m, (x.m.y << 23u) | (x.m.x >> 9u));
  let high = product_of(y.m, x.m.y >> 9u);
  let middle = low.x + high.y;
  let top = high.x + select(0u, 1u, middle < low.x);
  let m = vec2<u32>((middle << 18u) | (low.y >> 14u) | select(0u, 1u, (low.y & 0x3fffu) != 0u), (top << 18u) | (middle >> 14u));
  return double_rounded(sign, x.e + y.exponent - 127, m);
}
