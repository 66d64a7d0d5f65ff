/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/time_order.h"

#include <stdbool.h>
#include <string.h>

#define DIGIT_BITS 11u
#define DIGITS     (1u << DIGIT_BITS)
#define FEW        256u         /* with less than this counting digits takes longer than it spares */

static void insert_each(uint32_t *numbers, uint32_t count, const uint64_t *times_ns) {
  for (uint32_t i = 1; i < count; i++) {
    const uint32_t number = numbers[i];
    uint32_t at = i;
    for (; at != 0 && times_ns[numbers[at - 1]] > times_ns[number]; at--) numbers[at] = numbers[at - 1];
    numbers[at] = number;
  }
}

/* By the digit at `shift`; false: there is only one, and `to` stays as it was. */
static bool deal_out(const uint32_t *from, uint32_t *to, uint32_t count, const uint64_t *times_ns, uint32_t shift) {
  uint32_t starts[DIGITS + 1] = { 0 };
  for (uint32_t i = 0; i < count; i++) starts[(times_ns[from[i]] >> shift) % DIGITS + 1]++;
  if (starts[(times_ns[from[0]] >> shift) % DIGITS + 1] == count) return false;
  for (uint32_t digit = 1; digit < DIGITS; digit++) starts[digit] += starts[digit - 1];
  for (uint32_t i = 0; i < count; i++) to[starts[(times_ns[from[i]] >> shift) % DIGITS]++] = from[i];
  return true;
}

void tm_time_order_sort(uint32_t *numbers, uint32_t *room, uint32_t count, const uint64_t *times_ns) {
  uint32_t *from = numbers, *to = room;
  uint64_t latest = 0;
  bool is_sorted = true;
  if (count < FEW) {
    insert_each(numbers, count, times_ns);
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    latest |= times_ns[numbers[i]];
    is_sorted = is_sorted && (i == 0 || times_ns[numbers[i - 1]] <= times_ns[numbers[i]]);
  }
  for (uint32_t shift = 0; shift < 64 && latest >> shift != 0 && !is_sorted; shift += DIGIT_BITS) {
    if (!deal_out(from, to, count, times_ns, shift)) continue;
    uint32_t *const dealt = to;
    to = from;
    from = dealt;
  }
  if (from != numbers) memcpy(numbers, from, count * sizeof *numbers);
}
