// SPDX-License-Identifier: Apache-2.0
// sum of integers, which wraps in 64 bits.  `parts` adds every shape.parts-th term of an output into w, `results` those.

fn term_at(place: i32) -> vec2<u32> {
  if (X_BYTES == 8u) { return vec2<u32>(x0[u32(place) >> 2u], x0[(u32(place) >> 2u) + 1u]); }
  let lifted = raw_at(place) << X_LIFT;
  if (KIND == UNSIGNED) { return vec2<u32>(lifted >> X_LIFT, 0u); }
  let integer = u32(i32(lifted) >> X_LIFT);
  return vec2<u32>(integer, select(0u, 0xffffffffu, (integer >> 31u) == 1u));
}

fn sum_of_part(first: i32, part: u32, parts: u32) -> vec2<u32> {
  var sum = vec2<u32>(0u);
  for (var term = part; term < shape.terms; term += parts) { sum = words_add(sum, term_at(first + step_to(term))); }
  return sum;
}

fn finish(sum: vec2<u32>, place: i32) {
  if (Y_BYTES == 8u) { store_words(place, sum); }
  else { store_raw(place, sum.x & Y_MASK); }
}

@compute @workgroup_size(WG) fn direct(@builtin(global_invocation_id) id: vec3<u32>,
                                       @builtin(num_workgroups) groups: vec3<u32>) {
  for (var output = id.x; output < shape.work; output += groups.x * WG) {
    let places = places_of(output);
    finish(sum_of_part(places.x, 0u, 1u), places.y);
  }
}

@compute @workgroup_size(WG) fn parts(@builtin(global_invocation_id) id: vec3<u32>,
                                      @builtin(num_workgroups) groups: vec3<u32>) {
  for (var item = id.x; item < shape.work; item += groups.x * WG) {
    let sum = sum_of_part(places_of(item / shape.parts).x, item % shape.parts, shape.parts);
    w[2u * item] = sum.x;
    w[2u * item + 1u] = sum.y;
  }
}

@compute @workgroup_size(WG) fn results(@builtin(global_invocation_id) id: vec3<u32>,
                                        @builtin(num_workgroups) groups: vec3<u32>) {
  for (var output = id.x; output < shape.work; output += groups.x * WG) {
    var sum = vec2<u32>(0u);
    for (var part = 0u; part < shape.parts; part++) {
      let item = output * shape.parts + part;
      sum = words_add(sum, vec2<u32>(w[2u * item], w[2u * item + 1u]));
    }
    finish(sum, places_of(output).y);
  }
}
