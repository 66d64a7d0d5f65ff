/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/printout.h"

#include <stdlib.h>

#include "conformance/manner.h"

#define FORMATS_WIDTH 56u
#define SECOND_NS 1e9
#define MOST_FAILURES 25u

static const char *level_name(uint32_t level) {
  static const char *const names[] = { "refused", "emulated", "native" };
  return level <= TM_LEVEL_NATIVE ? names[level] : "unknown";
}

/* ---- the table: claims of one operation, level and class share a line ---- */

static int by_line(const void *left, const void *right) {
  const report_claim *a = *(const report_claim *const *)left, *b = *(const report_claim *const *)right;
  if (a->which.row != b->which.row) return a->which.row->op < b->which.row->op ? -1 : 1;
  if (a->level != b->level) return a->level > b->level ? -1 : 1;
  if (a->numerics != b->numerics) return a->numerics < b->numerics ? -1 : 1;
  return (a > b) - (a < b);
}

static bool share_a_line(const report_claim *a, const report_claim *b) {
  return a->which.row == b->which.row && a->level == b->level && a->numerics == b->numerics;
}

/* "f32" where all operands have it, else "f32,q8_0,f32". */
static void short_formats(const combination *which, char *text, size_t capacity) {
  bool same = true;
  for (uint32_t i = 1; i <= which->inputs; i++) same &= which->formats[i] == which->formats[0];
  combination_describe(which, text, capacity);
  if (same) text[strcspn(text, ",")] = '\0';
}

/* As many as have room, and how many there are besides. */
static void join_formats(const report_claim *const *claims, uint32_t count, char *text, size_t capacity) {
  size_t length = 0;
  uint32_t shown = 0;
  text[0] = '\0';
  for (; shown < count; shown++) {
    char one[160];
    short_formats(&claims[shown]->which, one, sizeof one);
    if (shown > 0 && length + strlen(one) + 1 > FORMATS_WIDTH) break;
    length += (size_t)snprintf(text + length, capacity - length, "%s%s", shown == 0 ? "" : " ", one);
  }
  if (shown < count) snprintf(text + length, capacity - length, " +%u", count - shown);
}

static void print_line(const report_claim *const *claims, uint32_t count, FILE *to) {
  char formats[320];
  uint64_t cases = 0, failures = 0;
  double worst = 0;
  for (uint32_t i = 0; i < count; i++) {
    cases += claims[i]->case_count;
    failures += claims[i]->failure_count;
    if (claims[i]->worst > worst) worst = claims[i]->worst;
  }
  join_formats(claims, count, formats, sizeof formats);
  char numerics[8] = "N?";
  if (claims[0]->numerics <= TM_NUMERICS_N4) snprintf(numerics, sizeof numerics, "N%u", claims[0]->numerics);
  fprintf(to, "%-16s %-9s %-5s %6u %7llu %8.3g  %-6s %s\n", claims[0]->which.row->name, level_name(claims[0]->level), numerics, count,
          (unsigned long long)cases, worst, failures == 0 ? "ok" : "FAILED", formats);
}

static void print_claims(const report *r, FILE *to) {
  const report_claim **sorted = calloc((size_t)r->count + 1, sizeof *sorted);
  if (sorted == NULL || r->count == 0) {
    free(sorted);
    fprintf(to, "no claims\n");
    return;
  }
  for (uint32_t i = 0; i < r->count; i++) sorted[i] = &r->claims[i];
  qsort(sorted, r->count, sizeof *sorted, by_line);
  fprintf(to, "%-16s %-9s %-5s %6s %7s %8s  %-6s %s\n", "operation", "level", "class", "claims", "cases", "worst", "result", "formats");
  for (uint32_t begin = 0, end; begin < r->count; begin = end) {
    for (end = begin + 1; end < r->count && share_a_line(sorted[begin], sorted[end]);) end++;
    print_line(sorted + begin, end - begin, to);
  }
  free(sorted);
}

static void print_checks(const report *r, FILE *to) {
  for (uint32_t i = 0; i < r->check_count; i++) {
    const report_check *check = &r->checks[i];
    if (check->skipped) fprintf(to, "%-16s not tried: %s\n", check->name, check->text);
    else fprintf(to, "%-16s %s\n", check->name, check->failed ? "FAILED" : "ok");
  }
}

static void print_coverage(const report *r, const printout_heading *heading, FILE *to) {
  fprintf(to, "reached %u of the %u combinations of formats that it takes", r->reached_count, r->claimed_count);
  if (heading->budget_ns != 0) fprintf(to, " within %.3g s", (double)heading->budget_ns / SECOND_NS);
  fprintf(to, "; %llu questions, %llu refusals, seed %llu\n", (unsigned long long)r->question_count, (unsigned long long)r->refusal_count,
          (unsigned long long)heading->seed);
  if (r->reached_count < r->claimed_count)
    fprintf(to, "not reached: %s%s%s\n", r->unreached, r->unreached[0] != '\0' ? ", ..." : "", heading->budget_ns != 0 ? " (--full reaches all)" : "");
  if (r->unchecked_change_count != 0)
    fprintf(to, "%llu proposed changes are of a kind that is not tried on such an operation\n", (unsigned long long)r->unchecked_change_count);
  if (r->given_up[0] != '\0') fprintf(to, "ended early: %s\n", r->given_up);
}

static void print_repeat(const printout_heading *heading, FILE *to) {
  fprintf(to, "    %s --device %u --seed %llu", heading->command, heading->device_index, (unsigned long long)heading->seed);
}

/* A backend that breaks thousands of promises is told the first few. */
static void print_failures(const report *r, const printout_heading *heading, FILE *to) {
  uint32_t shown = 0, left = 0;
  for (uint32_t i = 0; i < r->check_count; i++) {
    if (!r->checks[i].failed) continue;
    fprintf(to, "FAILED %s: %s\n", r->checks[i].name, r->checks[i].text);
    print_repeat(heading, to);
    if (manner_by_name(r->checks[i].name) != NULL) fprintf(to, " --only %s", r->checks[i].name);
    fputc('\n', to);
  }
  for (uint32_t i = 0; i < r->count; i++) {
    const report_claim *claim = &r->claims[i];
    char formats[160], asked[160];
    if (claim->failure_count == 0) continue;
    if (shown++ >= MOST_FAILURES) {
      left++;
      continue;
    }
    combination_describe(&claim->which, formats, sizeof formats);
    combination_describe(&claim->failed_which, asked, sizeof asked);
    fprintf(to, "FAILED %s %s (%u of %u cases): %s\n", claim->which.row->name, formats, claim->failure_count, claim->case_count, claim->failure);
    print_repeat(heading, to);
    fprintf(to, " --only %s --formats %s --case %u\n", claim->which.row->name, asked, claim->failed_case);
  }
  if (left != 0) fprintf(to, "... and %u claims more; --json has all\n", left);
}

void printout_table(const report *r, const printout_heading *heading, FILE *to) {
  fprintf(to, "%s:%u  %s (%s %s)\n", heading->backend, heading->device_index, heading->device_name, heading->version, heading->origin);
  print_claims(r, to);
  print_checks(r, to);
  print_coverage(r, heading, to);
  print_failures(r, heading, to);
  fprintf(to, "%s:%u: %u claims, %llu failures%s\n", heading->backend, heading->device_index, r->count, (unsigned long long)r->failure_count,
          r->failure_count == 0 ? "" : ": NOT CONFORMANT");
}
