// SPDX-License-Identifier: Apache-2.0
// rope of dense f32.  An invocation turns one pair, or copies one element of those that stay.  Angles are counted in turns,
// as fractions of 2^64, so that far positions keep theirs; the series for sine and cosine is as long as an f32 sees it.

struct Rope {
  items: u32,
  units: u32,           // of a head: pairs, then elements that stay
  pairs: u32,
  dim: u32,
  heads: u32,
  tokens: u32,
  halves: u32,
  position_words: u32,
  base: vec2<u32>,      // scale / (2 pi)
  unused: vec2<u32>,
  powers: array<vec4<u32>, 4>,  // theta^(-2 * 2^j / r), two in a vector
}
@group(0) @binding(0) var<uniform> p: Rope;

fn words_high_product(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = words_multiply(a.x, b.x);
  let first = words_add(words_multiply(a.y, b.x), vec2<u32>(low.y, 0u));
  let second = words_add(words_multiply(a.x, b.y), vec2<u32>(first.x, 0u));
  return words_add(words_add(words_multiply(a.y, b.y), vec2<u32>(first.y, 0u)), vec2<u32>(second.y, 0u));
}

fn frequency_of(pair: u32) -> vec2<u32> {
  var frequency = p.base;
  for (var j = 0u; j < 8u; j++) {
    let power = p.powers[j >> 1u];
    if (((pair >> j) & 1u) != 0u) { frequency = words_high_product(frequency, select(power.xy, power.zw, (j & 1u) != 0u)); }
  }
  return frequency;
}

// The low 64 bits of position * frequency; the position is a signed number of 32 bits.
fn turns_of(position: u32, frequency: vec2<u32>) -> vec2<u32> {
  let product = words_multiply(position, frequency.x);
  let above = select(0u, frequency.x, (position >> 31u) == 1u);
  return vec2<u32>(product.x, product.y + position * frequency.y - above);
}

// Sine and cosine.
fn turn_of(turns: vec2<u32>) -> vec2<f32> {
  let shifted = turns.y + 0x20000000u;
  let quarters = shifted >> 30u;
  let left = turns.y - (quarters << 30u);
  let x = (f32(bitcast<i32>(left)) + f32(turns.x) * 0x1p-32f) * 1.4629180792671596e-9f;
  let s = x * x;
  let sine = x + x * s * (-1.6666667e-1f + s * (8.3333333e-3f + s * (-1.9841270e-4f + s * 2.7557319e-6f)));
  let cosine = 1.0f - 0.5f * s + s * s * (4.1666667e-2f + s * (-1.3888889e-3f + s * (2.4801587e-5f - s * 2.7557319e-7f)));
  let turned = select(vec2<f32>(sine, cosine), vec2<f32>(cosine, sine), (quarters & 1u) == 1u);
  return vec2<f32>(select(turned.x, -turned.x, quarters >= 2u), select(turned.y, -turned.y, quarters == 1u || quarters == 2u));
}

@compute @workgroup_size(WG)
fn run(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  for (var i = id.x; i < p.items; i += groups.x * WG) {
    let unit = i % p.units;
    let row = i / p.units;
    let begin = row * p.dim;
    if (unit >= p.pairs) {
      y[begin + p.pairs + unit] = x0[begin + p.pairs + unit];
      continue;
    }
    let first = begin + select(2u * unit, unit, p.halves == 1u);
    let second = first + select(1u, p.pairs, p.halves == 1u);
    let position = x1[(row / p.heads) % p.tokens * p.position_words];
    let turn = turn_of(turns_of(position, frequency_of(unit)));
    let a = bitcast<f32>(x0[first]);
    let b = bitcast<f32>(x0[second]);
    y[first] = bitcast<u32>(a * turn.y - b * turn.x);
    y[second] = bitcast<u32>(a * turn.x + b * turn.y);
  }
}
