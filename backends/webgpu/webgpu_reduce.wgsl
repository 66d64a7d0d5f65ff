// SPDX-License-Identifier: Apache-2.0
// Where the terms of a reduction lie.  An output's terms are numbered in row-major order of the reduced axes.
// The prologue declares x0, y and w, sizes of elements and ONE_AXIS, whether one axis is reduced; X_LIFT moves an element to the
// upper end of a word.

struct Shape {
  outputs: u32,
  terms: u32,
  parts: u32,           // of an output
  work: u32,            // invocations
  x_first: i32,         // bytes, likewise below
  y_first: i32,
  kept_axes: u32,
  reduced_axes: u32,
  kept: array<vec4<i32>, 8>,            // extent, step in x, step in y; the innermost first
  reduced: array<vec4<i32>, 8>,         // extent, step in x
}
@group(0) @binding(0) var<uniform> shape: Shape;

// x: the byte of the output's first term; y: the byte of the output itself.
fn places_of(output: u32) -> vec2<i32> {
  var rest = output;
  var places = vec2<i32>(shape.x_first, shape.y_first);
  for (var i = 0u; i < shape.kept_axes; i++) {
    let extent = u32(shape.kept[i].x);
    let index = select(rest % extent, rest, i + 1u == shape.kept_axes);
    places += i32(index) * shape.kept[i].yz;
    rest /= extent;
  }
  return places;
}

fn step_to(term: u32) -> i32 {
  if (ONE_AXIS) { return i32(term) * shape.reduced[0].y; }
  var rest = term;
  var place = 0;
  for (var i = 0u; i < shape.reduced_axes; i++) {
    let extent = u32(shape.reduced[i].x);
    let index = select(rest % extent, rest, i + 1u == shape.reduced_axes);
    place += i32(index) * shape.reduced[i].y;
    rest /= extent;
  }
  return place;
}

// An element of at most 4 bytes, in the low bits.
fn raw_at(place: i32) -> u32 {
  let word = x0[u32(place) >> 2u];
  if (X_BYTES >= 4u) { return word; }
  return (word >> ((u32(place) & 3u) * 8u)) & select(0xffffu, 0xffu, X_BYTES == 1u);
}

// The invocations that store parts of one word change nothing but their own bits of it.
fn store_raw(place: i32, raw: u32) {
  let word = u32(place) >> 2u;
  if (Y_BYTES >= 4u) {
    atomicStore(&y[word], raw);
    return;
  }
  let shift = (u32(place) & 3u) * 8u;
  let mask = select(0xffffu, 0xffu, Y_BYTES == 1u) << shift;
  atomicXor(&y[word], (atomicLoad(&y[word]) ^ (raw << shift)) & mask);
}

fn store_words(place: i32, words: vec2<u32>) {
  atomicStore(&y[u32(place) >> 2u], words.x);
  atomicStore(&y[(u32(place) >> 2u) + 1u], words.y);
}
