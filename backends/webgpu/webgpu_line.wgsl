// SPDX-License-Identifier: Apache-2.0
// Lines of x and y along one axis.  A line is worked on in parts: part q takes its elements q, q + parts, ...
// The prologue says x_bits(raw), which gives bits of f32, and sizes of elements.

struct Lines {
  lines: u32,
  length: u32,
  parts: u32,
  work: u32,            // invocations
  first: vec4<i32>,     // of x, y, scale, shift; bytes, likewise below
  step: vec4<i32>,
  epsilon: vec2<u32>,
  axes: u32,
  unused: u32,
  kept: array<vec4<i32>, 8>,    // extent, step in x, step in y; the innermost first
}
@group(0) @binding(0) var<uniform> p: Lines;

// The first element of the line, in x and y.
fn places_of(line: u32) -> vec2<i32> {
  var rest = line;
  var places = p.first.xy;
  for (var i = 0u; i < p.axes; i++) {
    let extent = u32(p.kept[i].x);
    places += i32(rest % extent) * p.kept[i].yz;
    rest /= extent;
  }
  return places;
}

fn x_at(first: i32, e: u32) -> u32 {
  let place = u32(first + i32(e) * p.step.x);
  if (X_BYTES == 4u) { return x_bits(x0[place >> 2u]); }
  return x_bits((x0[place >> 2u] >> ((place & 2u) * 8u)) & 0xffffu);
}

// The invocations that store halves of one word change nothing but their own.
fn store(first: i32, e: u32, value: vec2<u32>) {
  let place = u32(first + i32(e) * p.step.y);
  let raw = wide_to_narrow(value, Y_FRACTION_BITS, Y_EXPONENTS);
  if (Y_BYTES == 4u) {
    atomicStore(&y[place >> 2u], raw);
    return;
  }
  let shift = (place & 2u) * 8u;
  atomicXor(&y[place >> 2u], (atomicLoad(&y[place >> 2u]) ^ (raw << shift)) & (0xffffu << shift));
}
