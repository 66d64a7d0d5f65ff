/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/report.h"

#include <stdlib.h>

static bool is_row_of(const report_claim *claim, const combination *which, uint32_t level, uint32_t numerics) {
  return claim->which.row == which->row && claim->which.inputs == which->inputs && claim->level == level &&
         claim->numerics == numerics &&
         memcmp(claim->which.formats, which->formats, (which->inputs + 1) * sizeof which->formats[0]) == 0;
}

static report_claim *find(report *r, const combination *which, uint32_t level, uint32_t numerics) {
  for (uint32_t i = r->count; i-- > 0;)
    if (is_row_of(&r->claims[i], which, level, numerics)) return &r->claims[i];
  return NULL;
}

static report_claim *append(report *r) {
  if (r->count == r->capacity) {
    const uint32_t capacity = r->capacity == 0 ? 64 : 2 * r->capacity;
    report_claim *grown = realloc(r->claims, capacity * sizeof *grown);
    if (grown == NULL) return NULL;
    r->claims = grown;
    r->capacity = capacity;
  }
  report_claim *claim = &r->claims[r->count++];
  memset(claim, 0, sizeof *claim);
  return claim;
}

report_claim *report_row(report *r, const combination *which, const tm_answer *answer) {
  report_claim *claim = find(r, which, answer->level, answer->numerics);
  if (claim == NULL) claim = append(r);
  if (claim == NULL) return NULL;
  if (claim->case_count == 0 && claim->which.row == NULL) {
    claim->which = *which;
    claim->level = answer->level;
    claim->numerics = answer->numerics;
    claim->numerics_flags = answer->numerics_flags;
    claim->numerics_bound = answer->numerics_bound;
    claim->growth = answer->growth;
    claim->accumulator = answer->accumulator;
  }
  if (answer->numerics_bound > claim->numerics_bound) claim->numerics_bound = answer->numerics_bound;
  return claim;
}

bool report_add(report *r, const report_claim *from) {
  r->failure_count += from->failure_count;
  r->case_count += from->case_count;
  report_claim *claim = find(r, &from->which, from->level, from->numerics);
  if (claim == NULL) {
    claim = append(r);
    if (claim != NULL) *claim = *from;
    return claim != NULL;
  }
  claim->case_count += from->case_count;
  claim->failure_count += from->failure_count;
  if (claim->failure[0] == '\0') {
    memcpy(claim->failure, from->failure, sizeof claim->failure);
    claim->failed_case = from->failed_case;
    claim->failed_which = from->failed_which;
  }
  if (from->worst > claim->worst) claim->worst = from->worst;
  return true;
}

bool report_add_check(report *r, const report_check *check) {
  if (r->check_count == r->check_capacity) {
    const uint32_t capacity = r->check_capacity == 0 ? 16 : 2 * r->check_capacity;
    report_check *grown = realloc(r->checks, capacity * sizeof *grown);
    if (grown == NULL) return false;
    r->checks = grown;
    r->check_capacity = capacity;
  }
  r->checks[r->check_count++] = *check;
  r->failure_count += check->failed;
  return true;
}

void report_free(report *r) {
  free(r->claims);
  free(r->checks);
}
