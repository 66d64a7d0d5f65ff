// SPDX-License-Identifier: Apache-2.0
// min, max and argmax of every format of 1 to 8 bytes.  Elements are compared by keys of 64 bits, of which the larger one
// is the better; of equal ones the earlier element stays, and all its bits are kept.  `parts` takes every shape.parts-th
// term of an output and leaves key and number of the best in w, `results` takes the best of those.

struct Best {
  key: vec2<u32>,
  term: u32,            // NOTHING: none yet
}
const NOTHING = 0xffffffffu;

fn is_better(a: Best, b: Best) -> bool {
  if (a.term == NOTHING || b.term == NOTHING) { return b.term == NOTHING && a.term != NOTHING; }
  return wide_less(b.key, a.key) || (all(a.key == b.key) && a.term < b.term);
}

// The element at the upper end of the key.
fn lifted_at(place: i32) -> vec2<u32> {
  if (X_BYTES == 8u) { return vec2<u32>(x0[u32(place) >> 2u], x0[(u32(place) >> 2u) + 1u]); }
  return vec2<u32>(0u, raw_at(place) << X_LIFT);
}

fn key_at(place: i32) -> vec2<u32> {
  let lifted = lifted_at(place);
  if (KIND == UNSIGNED || KIND == SIGNED) {
    let key = vec2<u32>(lifted.x, select(lifted.y ^ 0x80000000u, lifted.y, KIND == UNSIGNED));
    return select(key, ~key, OP == MIN);
  }
  let magnitude = wide_magnitude(lifted);
  // INFINITE is the largest magnitude that is a number, so that of infinity or, without one, the largest finite.
  if (wide_less(INFINITE, magnitude)) { return vec2<u32>(0xffffffffu); }
  let is_negative = (lifted.y >> 31u) == 1u && !(OP == ARGMAX && all(magnitude == vec2<u32>(0u)));
  let key = select(vec2<u32>(magnitude.x, magnitude.y | 0x80000000u), ~lifted, is_negative);
  return select(key, ~key, OP == MIN);
}

fn store_bits(place: i32, bits: vec2<u32>) {
  if (Y_BYTES == 8u) { store_words(place, bits); }
  else { store_raw(place, bits.x); }
}

// Of no terms: -1, or what the prologue says.
fn finish(best: Best, places: vec2<i32>) {
  if (OP == ARGMAX) {
    store_words(places.y, vec2<u32>(best.term, select(0u, NOTHING, best.term == NOTHING)));
  } else if (best.term == NOTHING) {
    store_bits(places.y, OF_NOTHING);
  } else {
    let place = places.x + step_to(best.term);
    if (X_BYTES == 8u) { store_bits(places.y, lifted_at(place)); }
    else { store_bits(places.y, vec2<u32>(raw_at(place), 0u)); }
  }
}

fn best_of_part(first: i32, part: u32, parts: u32) -> Best {
  var best = Best(vec2<u32>(0u), NOTHING);
  for (var term = part; term < shape.terms; term += parts) {
    let key = key_at(first + step_to(term));
    if (best.term == NOTHING || wide_less(best.key, key)) { best = Best(key, term); }
  }
  return best;
}

@compute @workgroup_size(WG) fn direct(@builtin(global_invocation_id) id: vec3<u32>,
                                       @builtin(num_workgroups) groups: vec3<u32>) {
  for (var output = id.x; output < shape.work; output += groups.x * WG) {
    let places = places_of(output);
    finish(best_of_part(places.x, 0u, 1u), places);
  }
}

@compute @workgroup_size(WG) fn parts(@builtin(global_invocation_id) id: vec3<u32>,
                                      @builtin(num_workgroups) groups: vec3<u32>) {
  for (var item = id.x; item < shape.work; item += groups.x * WG) {
    let best = best_of_part(places_of(item / shape.parts).x, item % shape.parts, shape.parts);
    w[3u * item] = best.key.x;
    w[3u * item + 1u] = best.key.y;
    w[3u * item + 2u] = best.term;
  }
}

@compute @workgroup_size(WG) fn results(@builtin(global_invocation_id) id: vec3<u32>,
                                        @builtin(num_workgroups) groups: vec3<u32>) {
  for (var output = id.x; output < shape.work; output += groups.x * WG) {
    var best = Best(vec2<u32>(0u), NOTHING);
    for (var part = 0u; part < shape.parts; part++) {
      let item = output * shape.parts + part;
      let other = Best(vec2<u32>(w[3u * item], w[3u * item + 1u]), w[3u * item + 2u]);
      if (is_better(other, best)) { best = other; }
    }
    finish(best, places_of(output));
  }
}
