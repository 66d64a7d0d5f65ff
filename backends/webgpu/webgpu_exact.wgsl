// SPDX-License-Identifier: Apache-2.0
// add, mul, div and sqrt of f32 on their bits, rounded once to nearest, ties to even, subnormals included.  WGSL's own may
// round either way, and flush what goes in as well as what comes out.  Where it can be, without a branch: an adapter that takes
// several elements at a time goes both ways of each.

const QUIET_NAN: u32 = 0x7fc00000u;

fn is_infinite_bits(v: u32) -> bool { return (v & 0x7fffffffu) == F32_INFINITY; }

// A finite number that is not zero: m in [2^23, 2^24), value m * 2^(exponent - 150).
struct Parts { m: u32, exponent: i32 }
fn parts_of(v: u32) -> Parts {
  let exponent = (v >> 23u) & 0xffu;
  let m = (v & 0x7fffffu) | (min(exponent, 1u) << 23u);
  let shift = 23u - firstLeadingBit(m | 1u);
  return Parts(m << shift, i32(max(exponent, 1u)) - i32(shift));
}

// h * 2^(exponent - 158), rounded; h has its top bit set, `rest` tells that something lies below it.
fn rounded(sign: u32, exponent: i32, h: u32, rest: bool) -> u32 {
  let down = clamp(1 - exponent, 0, 25);
  let cut = u32(7 + min(down, 24));            // bits below the one that decides
  let upper = h >> cut;
  let below = (h & ((1u << cut) - 1u)) != 0u || rest;
  let m = (upper >> 1u) + (upper & select((upper >> 1u) & 1u, 1u, below));
  let bits = (u32(clamp(exponent, 1, 255) - 1) << 23u) + m;
  return sign | select(min(bits, F32_INFINITY), 0u, down == 25);
}

// v * 2^n, rounded once; v is finite.
fn scaled(v: u32, n: i32) -> u32 {
  let sign = v & F32_SIGN;
  if ((v & 0x7fffffffu) == 0u) { return v; }
  let parts = parts_of(v);
  return rounded(sign, clamp(parts.exponent + n, -64, 300), parts.m << 8u, false);
}

// Three bits below the last one, the lowest of them telling of all that was moved out, are enough to round by.
fn add_bits(a: u32, b: u32) -> u32 {
  let a_is_big = (a & 0x7fffffffu) >= (b & 0x7fffffffu);
  let big = select(b, a, a_is_big);
  let small = select(a, b, a_is_big);
  let differ = ((a ^ b) & F32_SIGN) != 0u;
  let x = big & 0x7fffffffu;
  let y = small & 0x7fffffffu;
  var exponent = max(x >> 23u, 1u);
  let distance = min(exponent - max(y >> 23u, 1u), 31u);
  let mx = ((x & 0x7fffffu) | (min(x >> 23u, 1u) << 23u)) << 3u;
  let my = ((y & 0x7fffffu) | (min(y >> 23u, 1u) << 23u)) << 3u;
  let moved = my >> distance;
  let part = moved | min(my ^ (moved << distance), 1u);
  var m = select(mx + part, mx - part, differ);
  let carry = m >> 27u;
  let is_zero = m == 0u;
  m = (m >> carry) | (m & carry);
  exponent += carry;
  let shift = min(26u - firstLeadingBit(m | 1u), exponent - 1u);
  m = m << shift;
  exponent -= shift;
  let q = (m >> 3u) + (((m & 7u) + ((m >> 3u) & 1u) + 3u) >> 3u);
  let sum = (big & F32_SIGN) | min(((exponent - 1u) << 23u) + q, F32_INFINITY);
  let finite = select(sum, select(big & F32_SIGN, 0u, differ), is_zero);
  let special = select(big, QUIET_NAN, x > F32_INFINITY || (differ && y == F32_INFINITY));
  return select(finite, special, x >= F32_INFINITY);
}

fn sub_bits(a: u32, b: u32) -> u32 { return add_bits(a, b ^ F32_SIGN); }

// The upper and lower words of a product.
fn product_of(a: u32, b: u32) -> vec2<u32> {
  let al = a & 0xffffu;
  let ah = a >> 16u;
  let bl = b & 0xffffu;
  let bh = b >> 16u;
  let low = al * bl;
  let m1 = ah * bl + (low >> 16u);
  let m2 = al * bh + (m1 & 0xffffu);
  return vec2<u32>(ah * bh + (m1 >> 16u) + (m2 >> 16u), (m2 << 16u) | (low & 0xffffu));
}

fn mul_bits(a: u32, b: u32) -> u32 {
  let sign = (a ^ b) & F32_SIGN;
  let p = a & 0x7fffffffu;
  let q = b & 0x7fffffffu;
  let zero = p == 0u || q == 0u;
  let x = parts_of(a);
  let y = parts_of(b);
  let words = product_of(x.m << 8u, y.m << 8u);
  let top = words.x >> 31u;
  let high = select((words.x << 1u) | (words.y >> 31u), words.x, top == 1u);
  let product = rounded(sign, x.exponent + y.exponent - 127 + i32(top), high, (words.y << (1u - top)) != 0u);
  let infinite = select(sign | F32_INFINITY, QUIET_NAN, zero || max(p, q) > F32_INFINITY);
  return select(select(product, sign, zero), infinite, max(p, q) >= F32_INFINITY);
}

fn div_bits(a: u32, b: u32) -> u32 {
  if (is_nan_bits(a) || is_nan_bits(b)) { return QUIET_NAN; }
  let sign = (a ^ b) & F32_SIGN;
  let a_zero = (a & 0x7fffffffu) == 0u;
  let b_zero = (b & 0x7fffffffu) == 0u;
  if (is_infinite_bits(a)) { return select(sign | F32_INFINITY, QUIET_NAN, is_infinite_bits(b)); }
  if (is_infinite_bits(b)) { return sign; }
  if (b_zero) { return select(sign | F32_INFINITY, QUIET_NAN, a_zero); }
  if (a_zero) { return sign; }
  let x = parts_of(a);
  let y = parts_of(b);
  let small = x.m < y.m;
  var rest = select(x.m, x.m << 1u, small) - y.m;
  var q = 1u;
  for (var i = 0; i < 4; i++) {
    let digits = select(8u, 7u, i == 3);
    let wide = rest << digits;
    let digit = wide / y.m;
    rest = wide - digit * y.m;
    q = (q << digits) | digit;
  }
  return rounded(sign, x.exponent - y.exponent + 127 - select(0, 1, small), q, rest != 0u);
}

fn sqrt_bits(v: u32) -> u32 {
  if (is_nan_bits(v)) { return QUIET_NAN; }
  if ((v & 0x7fffffffu) == 0u) { return v; }
  if ((v & F32_SIGN) != 0u) { return QUIET_NAN; }
  if (is_infinite_bits(v)) { return v; }
  let parts = parts_of(v);
  let odd = ((parts.exponent - 127) & 1) != 0;
  let m = select(parts.m, parts.m << 1u, odd) << 1u;  // 26 bits, in pairs
  var root = 0u;
  var rest = 0u;
  for (var i = 0u; i < 26u; i++) {
    rest = rest << 2u;
    if (i < 13u) { rest |= (m >> (24u - 2u * i)) & 3u; }
    root = root << 1u;
    let trial = (root << 1u) | 1u;
    if (rest >= trial) {
      rest -= trial;
      root |= 1u;
    }
  }
  let half = (parts.exponent - 127 - select(0, 1, odd)) / 2;
  return rounded(0u, half + 127, root << 6u, rest != 0u);
}
