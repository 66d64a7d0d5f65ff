// SPDX-License-Identifier: Apache-2.0
// a + t * (b - a) for numbers that are f32, in the arithmetic of an f64: three roundings to 53 bits, then one to the
// output.  The exponents of f64 are never reached, so they need no care.

// m * 2^(e - 61), m with bit 61 (of x: bit 29) uppermost and the 9 lowest bits zero; or m zero.
struct Wide { sign: u32, e: i32, m: vec2<u32> }

fn shifted_left(m: vec2<u32>, n: u32) -> vec2<u32> {
  if (n == 0u) { return m; }
  if (n >= 32u) { return vec2<u32>(m.y << (n - 32u), 0u); }
  return vec2<u32>((m.x << n) | (m.y >> (32u - n)), m.y << n);
}

// What falls out below leaves a bit.
fn shifted_right(m: vec2<u32>, n: u32) -> vec2<u32> {
  if (n == 0u) { return m; }
  if (n > 63u) { return vec2<u32>(0u, select(0u, 1u, (m.x | m.y) != 0u)); }
  if (n >= 32u) {
    let low = select(m.x & ((1u << (n - 32u)) - 1u), 0u, n == 32u) | m.y;
    return vec2<u32>(0u, (m.x >> (n - 32u)) | select(0u, 1u, low != 0u));
  }
  return vec2<u32>(m.x >> n, (m.x << (32u - n)) | (m.y >> n) | select(0u, 1u, (m.y & ((1u << n) - 1u)) != 0u));
}

fn sum_of(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.y + b.y;
  return vec2<u32>(a.x + b.x + select(0u, 1u, low < a.y), low);
}

fn difference_of(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x - select(0u, 1u, a.y < b.y), a.y - b.y);
}

fn top_bit(m: vec2<u32>) -> u32 { return select(firstLeadingBit(m.y), 32u + firstLeadingBit(m.x), m.x != 0u); }

// Any m but zero, below bit 63.
fn rounded_wide(sign: u32, exponent: i32, unrounded: vec2<u32>) -> Wide {
  let top = top_bit(unrounded);
  var e = exponent + i32(top) - 61;
  var m = unrounded;
  if (top > 61u) { m = shifted_right(m, top - 61u); } else { m = shifted_left(m, 61u - top); }
  let below = m.y & 0x1ffu;
  m.y -= below;
  if (below > 0x100u || (below == 0x100u && (m.y & 0x200u) != 0u)) { m = sum_of(m, vec2<u32>(0u, 0x200u)); }
  if ((m.x & 0x40000000u) != 0u) {
    m = vec2<u32>(m.x >> 1u, (m.x << 31u) | (m.y >> 1u));
    e += 1;
  }
  return Wide(sign, e, m);
}

fn wide_of(v: u32) -> Wide {
  let sign = v & F32_SIGN;
  if ((v & 0x7fffffffu) == 0u) { return Wide(sign, 0, vec2<u32>(0u, 0u)); }
  let parts = parts_of(v);
  return Wide(sign, parts.exponent - 127, vec2<u32>(parts.m << 6u, 0u));
}

fn is_zero(w: Wide) -> bool { return (w.m.x | w.m.y) == 0u; }

fn is_below(a: Wide, b: Wide) -> bool {
  if (a.e != b.e) { return a.e < b.e; }
  if (a.m.x != b.m.x) { return a.m.x < b.m.x; }
  return a.m.y < b.m.y;
}

fn add_wide(a: Wide, b: Wide) -> Wide {
  if (is_zero(a) && is_zero(b)) { return Wide(a.sign & b.sign, 0, a.m); }
  if (is_zero(a)) { return b; }
  if (is_zero(b)) { return a; }
  let swap = is_below(a, b);
  var big = a;
  var small = b;
  if (swap) {
    big = b;
    small = a;
  }
  let part = shifted_right(small.m, u32(big.e - small.e));
  if (big.sign == small.sign) { return rounded_wide(big.sign, big.e, sum_of(big.m, part)); }
  let m = difference_of(big.m, part);
  if ((m.x | m.y) == 0u) { return Wide(0u, 0, m); }
  return rounded_wide(big.sign, big.e, m);
}

// t has no more than 24 bits.
fn mul_wide(t: Wide, d: Wide) -> Wide {
  let sign = t.sign ^ d.sign;
  if (is_zero(t) || is_zero(d)) { return Wide(sign, 0, vec2<u32>(0u, 0u)); }
  let factor = t.m.x >> 6u;
  let low = product_of(factor, (d.m.x << 23u) | (d.m.y >> 9u));
  let high = product_of(factor, d.m.x >> 9u);
  let middle = low.x + high.y;
  let top = high.x + select(0u, 1u, middle < low.x);
  let m = vec2<u32>((top << 18u) | (middle >> 14u), (middle << 18u) | (low.y >> 14u) | select(0u, 1u, (low.y & 0x3fffu) != 0u));
  return rounded_wide(sign, t.e + d.e, m);
}

// ---- back ----

fn nearest_f32(w: Wide) -> u32 {
  if (is_zero(w)) { return w.sign; }
  return rounded(w.sign, clamp(w.e + 127, -64, 300), (w.m.x << 2u) | (w.m.y >> 30u), (w.m.y << 2u) != 0u);
}

// Cut off, the last bit set if anything was lost: rounding that once more is rounding w.
fn odd_f32(w: Wide) -> u32 {
  if (is_zero(w)) { return w.sign; }
  if (w.e > 127) { return w.sign | 0x7f7fffffu; }
  let m = shifted_right(w.m, 38u + u32(clamp(-126 - w.e, 0, 25)));
  if (w.e < -126) { return w.sign | m.y; }
  return w.sign | ((u32(w.e + 126) << 23u) + m.y);
}

// ---- a + t * (b - a) ----

// Where one of them is infinite: the product is infinite too.
fn lerp_infinite(a: u32, b: u32, t: u32) -> u32 {
  var sign = (t ^ b) & F32_SIGN;
  if (!is_infinite_bits(b)) {
    sign = (t ^ sub_bits(b, a)) & F32_SIGN;
  }
  let product = sign | F32_INFINITY;
  if (is_infinite_bits(a)) { return select(QUIET_NAN, a, a == product); }
  return product;
}

fn lerp_wide(a: u32, b: u32, t: u32) -> Wide {
  let start = wide_of(a);
  return add_wide(start, mul_wide(wide_of(t), add_wide(wide_of(b), wide_of(a ^ F32_SIGN))));
}

// a, b, t: bits of f32 (the operands' values); 0: a itself, 1: b itself, 2: to be computed.
fn lerp_choice(a: u32, b: u32, t: u32) -> u32 {
  if ((t & 0x7fffffffu) == 0u) { return 0u; }
  if (!is_nan_bits(a) && !is_nan_bits(b) && order_of_bits(a) == order_of_bits(b)) { return 0u; }
  return select(2u, 1u, t == 0x3f800000u);
}

fn is_lerp_special(a: u32, b: u32, t: u32) -> bool {
  return max(max(a & 0x7fffffffu, b & 0x7fffffffu), t & 0x7fffffffu) >= F32_INFINITY;
}

fn lerp_special(a: u32, b: u32, t: u32) -> u32 {
  if (is_nan_bits(a) || is_nan_bits(b) || is_nan_bits(t)) { return QUIET_NAN; }
  return lerp_infinite(a, b, t);
}
