/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/setup_shares.h"

#include "base/checked.h"
#include "base/error.h"

tm_status tm_setup_shares_init(tm_setup_shares *shares, tm_arena *arena, uint64_t candidate_count, tm_error *error) {
  uint64_t slot_count = 16;
  while (slot_count < candidate_count * TM_CANDIDATE_SETUPS * 2) slot_count *= 2;
  shares->slots = tm_arena_calloc(arena, slot_count, sizeof *shares->slots);
  shares->slot_count = shares->slots == NULL ? 0 : slot_count;
  return shares->slots != NULL ? TM_OK : tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to plan a graph");
}

static tm_setup_share *find(const tm_setup_shares *shares, uint64_t key) {
  uint64_t at = key >> 1 & (shares->slot_count - 1);
  while (shares->slots[at].key != key && shares->slots[at].key != 0) at = (at + 1) & (shares->slot_count - 1);
  return &shares->slots[at];
}

void tm_setup_shares_add(tm_setup_shares *shares, const tm_market *market, const tm_plan_candidate *candidate, uint32_t placement,
                         uint32_t node_count) {
  tm_setup_item items[TM_CANDIDATE_SETUPS];
  const uint32_t count = tm_candidate_open_items(market, candidate, items);
  for (uint32_t i = 0; i < count; i++) {
    tm_setup_share *share = find(shares, items[i].key);
    if (share->last_placement == placement + 1) continue;
    share->key = items[i].key;
    share->last_placement = placement + 1;
    share->sharer_count += node_count;
  }
}

void tm_setup_shares_take(tm_setup_shares *shares, const tm_market *market, const tm_plan_candidate *candidate) {
  tm_setup_item items[TM_CANDIDATE_SETUPS];
  const uint32_t count = tm_candidate_open_items(market, candidate, items);
  for (uint32_t i = 0; i < count; i++) find(shares, items[i].key)->taker_count++;
}

bool tm_setup_shares_narrow(tm_setup_shares *shares) {
  bool any = false;
  for (uint64_t i = 0; i < shares->slot_count; i++) {
    tm_setup_share *share = &shares->slots[i];
    const bool is_narrower = share->taker_count != 0 && share->taker_count < share->sharer_count;
    if (is_narrower) share->sharer_count = share->taker_count;
    share->taker_count = 0;
    any |= is_narrower;
  }
  return any;
}

uint64_t tm_setup_shares_ns(const tm_setup_shares *shares, const tm_market *market, const tm_plan_candidate *candidate,
                            uint64_t repeats) {
  tm_setup_item items[TM_CANDIDATE_SETUPS];
  const uint32_t count = shares->slot_count == 0 ? 0 : tm_candidate_open_items(market, candidate, items);
  uint64_t ns = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t runs;
    const uint32_t sharers = find(shares, items[i].key)->sharer_count;
    if (tm_checked_mul(repeats, sharers == 0 ? 1 : sharers, &runs)) ns = tm_cost_add(ns, items[i].cost_ns / runs);
  }
  return ns;
}
