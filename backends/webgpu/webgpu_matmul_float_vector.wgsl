// SPDX-License-Identifier: Apache-2.0
// Products with few rows, which read every element of b once: no scan.  Operands are raised always, and each part of a sum
// over k watches for numbers that need the exact way.  `parts` leaves sums (or IS_EXACT) in w, `sums` adds them up; part q
// takes four steps of k at a time, beginning with the q-th four.  PARTS_FIRST: b's columns lie along k, so neighbouring
// invocations take parts of one column.

const IS_EXACT = 0x7fffffffu;

struct Line {
  a: u32,
  b: u32,
  y: i32,
}

// Output number i, the columns innermost.
fn line_of(i: u32) -> Line {
  let column = i % p.columns;
  let row = i / p.columns % p.rows;
  let places = batch_places(i / p.columns / p.rows);
  return Line(u32(places.x + i32(row) * p.a_step.x), u32(places.y + i32(column) * p.b_step.x),
              places.z + i32(row) * p.y_step.x + i32(column) * p.y_step.y);
}

fn largest_of(bits: vec4<u32>, so_far: u32) -> u32 {
  let magnitude = bits & vec4<u32>(0x7fffffffu);
  return max(max(max(magnitude.x, magnitude.y), max(magnitude.z, magnitude.w)), so_far);
}

fn part_of(line: Line, part: u32) -> u32 {
  var sum = 0.0f;
  var largest = vec2<u32>(0u);
  for (var k = 4u * part; k < p.depth; k += 4u * p.scans) {
    let mask = mask_of(k);
    let a = select(vec4<u32>(0u), a_quad(line.a, k), mask);
    let b = select(vec4<u32>(0u), b_quad(line.b, k), mask);
    largest = vec2<u32>(largest_of(a, largest.x), largest_of(b, largest.y));
    sum += dot(bitcast<vec4<f32>>(raised(a)), bitcast<vec4<f32>>(raised(b)));
  }
  let path = path_of(vec2<u32>(0u, largest.x), vec2<u32>(0u, largest.y));
  if (path == EXACT) { return IS_EXACT; }
  // Plain here means that all of a or of b is zero; what the other one became when raised does not matter.
  return select(bitcast<u32>(sum), 0u, path == PLAIN);
}

@compute @workgroup_size(WG) fn parts(@builtin(global_invocation_id) id: vec3<u32>,
                                      @builtin(num_workgroups) groups: vec3<u32>) {
  let outputs = p.blocks;
  for (var item = id.x; item < outputs * p.scans; item += groups.x * WG) {
    let output = select(item % outputs, item / p.scans, PARTS_FIRST);
    let part = select(item / outputs, item % p.scans, PARTS_FIRST);
    w[output * p.scans + part] = part_of(line_of(output), part);
  }
}

@compute @workgroup_size(WG) fn sums(@builtin(global_invocation_id) id: vec3<u32>,
                                     @builtin(num_workgroups) groups: vec3<u32>) {
  for (var output = id.x; output < p.blocks; output += groups.x * WG) {
    let line = line_of(output);
    var sum = 0.0f;
    var is_exact = false;
    for (var part = 0u; part < p.scans; part++) {
      let bits = w[output * p.scans + part];
      is_exact |= bits == IS_EXACT;
      sum += bitcast<f32>(select(bits, 0u, bits == IS_EXACT));
    }
    var value = lowered(sum);
    if (is_exact) { value = exact_sum(line.a, line.b); }
    store_at(line.y, wide_to_narrow(value, Y_FRACTION_BITS, Y_EXPONENTS));
  }
}
