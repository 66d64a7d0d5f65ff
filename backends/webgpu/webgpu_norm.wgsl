// SPDX-License-Identifier: Apache-2.0
// layer_norm and rms_norm over the last axis, in f64 on integers.  `parts` leaves sums of d and d^2 in w, where d is the
// distance from the line's first element (rms_norm: x itself); `lines` makes of them the centre and the inverse of the
// deviation; `results` makes the elements; `direct` does it all for short lines.  The first element is no further from the
// mean than sqrt(length) deviations, so the difference of the two sums cancels no more than log2(length) bits.

// A part's sum of d and of d^2; of a whole line the centre and the inverse of the deviation.
struct Pair {
  one: vec2<u32>,
  two: vec2<u32>,
}

fn put_record(at: u32, pair: Pair) {
  w[4u * at] = pair.one.x;
  w[4u * at + 1u] = pair.one.y;
  w[4u * at + 2u] = pair.two.x;
  w[4u * at + 3u] = pair.two.y;
}

fn record_at(at: u32) -> Pair {
  return Pair(vec2<u32>(w[4u * at], w[4u * at + 1u]), vec2<u32>(w[4u * at + 2u], w[4u * at + 3u]));
}

fn origin_of(first: i32) -> vec2<u32> {
  if (!IS_LAYER_NORM) { return WIDE_ZERO; }
  return wide_of_f32(x_at(first, 0u));
}

fn part_of(first: i32, begin: u32, stride: u32) -> Pair {
  let origin = wide_negate(origin_of(first));
  var sums = Pair(WIDE_ZERO, WIDE_ZERO);
  for (var e = begin; e < p.length; e += stride) {
    let x = x_at(first, e);
    if (IS_LAYER_NORM) {
      let distance = wide_add(wide_of_f32(x), origin);
      sums.one = wide_add(sums.one, distance);
      sums.two = wide_add(sums.two, wide_multiply(distance, distance));
    } else {
      sums.two = wide_add(sums.two, wide_of_product(x, x));
    }
  }
  return sums;
}

fn whole_of(sums: Pair, first: i32) -> Pair {
  let length = wide_of_u32(p.length);
  let mean = wide_divide(sums.one, length);
  var variance = wide_divide(sums.two, length);
  if (IS_LAYER_NORM) { variance = wide_add(variance, wide_negate(wide_multiply(mean, mean))); }
  if ((variance.y >> 31u) == 1u && wide_exponent(variance) != 0x7ff) { variance = WIDE_ZERO; }
  let deviation = wide_sqrt(wide_add(variance, p.epsilon));
  var inverse = WIDE_INFINITY;
  if (wide_exponent(deviation) != 0) { inverse = wide_divide(vec2<u32>(0u, 0x3ff00000u), deviation); }
  return Pair(wide_add(origin_of(first), mean), inverse);
}

@compute @workgroup_size(WG) fn parts(@builtin(global_invocation_id) id: vec3<u32>,
                                      @builtin(num_workgroups) groups: vec3<u32>) {
  for (var item = id.x; item < p.work; item += groups.x * WG) {
    put_record(item, part_of(places_of(item / p.parts).x, item % p.parts, p.parts));
  }
}

@compute @workgroup_size(WG) fn lines(@builtin(global_invocation_id) id: vec3<u32>,
                                      @builtin(num_workgroups) groups: vec3<u32>) {
  for (var line = id.x; line < p.work; line += groups.x * WG) {
    var sums = record_at(line * p.parts);
    for (var i = 1u; i < p.parts; i++) {
      let part = record_at(line * p.parts + i);
      sums = Pair(wide_add(sums.one, part.one), wide_add(sums.two, part.two));
    }
    put_record(line * p.parts, whole_of(sums, places_of(line).x));
  }
}

fn weight_of(word: u32, place: u32) -> vec2<u32> {
  if (SCALE_BYTES == 4u) { return wide_of_f32(word); }
  return wide_of_f32(x_bits((word >> ((place & 2u) * 8u)) & 0xffffu));
}

fn scale_at(e: u32) -> vec2<u32> {
  let place = u32(p.first.z + i32(e) * p.step.z);
  return weight_of(x1[place >> 2u], place);
}

fn shift_at(e: u32) -> vec2<u32> {
  let place = u32(p.first.w + i32(e) * p.step.w);
  return weight_of(shift_word(place >> 2u), place);
}

fn result_of(x: u32, e: u32, whole: Pair) -> vec2<u32> {
  var value = wide_of_f32(x);
  if (IS_LAYER_NORM) { value = wide_add(value, wide_negate(whole.one)); }
  value = wide_multiply(wide_multiply(value, whole.two), scale_at(e));
  if (IS_LAYER_NORM) { value = wide_add(value, shift_at(e)); }
  return value;
}

@compute @workgroup_size(WG) fn results(@builtin(global_invocation_id) id: vec3<u32>,
                                        @builtin(num_workgroups) groups: vec3<u32>) {
  for (var item = id.x; item < p.work; item += groups.x * WG) {
    let line = item / p.length;
    let e = item % p.length;
    let places = places_of(line);
    store(places.y, e, result_of(x_at(places.x, e), e, record_at(line * p.parts)));
  }
}

@compute @workgroup_size(WG) fn direct(@builtin(global_invocation_id) id: vec3<u32>,
                                       @builtin(num_workgroups) groups: vec3<u32>) {
  for (var line = id.x; line < p.work; line += groups.x * WG) {
    let places = places_of(line);
    let whole = whole_of(part_of(places.x, 0u, 1u), places.x);
    for (var e = 0u; e < p.length; e++) { store(places.y, e, result_of(x_at(places.x, e), e, whole)); }
  }
}
