/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/report.h"

#include <stdlib.h>

static bool is_row_of(const report_claim *claim, const combination *which, uint32_t level, uint32_t numerics) {
  return claim->which.row == which->row && claim->which.inputs == which->inputs && claim->level == level && claim->numerics == numerics &&
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
  report_claim *claim = find(r, &from->which, from->level, from->numerics);
  if (claim == NULL) {
    claim = append(r);
    if (claim != NULL) *claim = *from;
    return claim != NULL;
  }
  claim->case_count += from->case_count;
  claim->failure_count += from->failure_count;
  if (claim->failure[0] == '\0') memcpy(claim->failure, from->failure, sizeof claim->failure);
  if (from->worst > claim->worst) claim->worst = from->worst;
  return true;
}

void report_free(report *r) { free(r->claims); }

static void say_level(const report_claim *claim, char *text, size_t capacity) {
  static const char *const levels[] = { "refused", "emulated", "native" };
  snprintf(text, capacity, "%s", claim->level <= TM_LEVEL_NATIVE ? levels[claim->level] : "unknown");
}

void report_print(const report *r, const char *name, uint64_t seed, FILE *to) {
  fprintf(to, "%-16s %-30s %-9s %-5s %9s %6s %8s %s\n", "operation", "formats", "level", "class", "bound", "cases", "worst", "result");
  for (uint32_t i = 0; i < r->count; i++) {
    const report_claim *claim = &r->claims[i];
    char formats[160], level[16];
    combination_describe(&claim->which, formats, sizeof formats);
    say_level(claim, level, sizeof level);
    fprintf(to, "%-16s %-30s %-9s N%-4u %9.3g %6u %8.3g %s\n", claim->which.row->name, formats, level, claim->numerics,
            claim->numerics_bound, claim->case_count, claim->worst, claim->failure_count == 0 ? "ok" : "FAILED");
    if (claim->failure_count != 0) fprintf(to, "    %u failure(s); the first: %s\n", claim->failure_count, claim->failure);
  }
  if (r->failure_count != 0)
    fprintf(to, "One case again: --only OPERATION --formats FORMATS --case NUMBER, with the same --seed and --cases.\n");
  fprintf(to, "%s: %u claims, %llu questions, %llu refusals, %llu proposed changes not checked, %llu failures, seed %llu\n", name,
          r->count, (unsigned long long)r->question_count, (unsigned long long)r->refusal_count,
          (unsigned long long)r->unchecked_change_count, (unsigned long long)r->failure_count, (unsigned long long)seed);
}

static void print_json_text(const char *text, FILE *to) {
  fputc('"', to);
  for (; *text != '\0'; text++) {
    const unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') fprintf(to, "\\%c", c);
    else if (c < 0x20 || c > 0x7e) fprintf(to, "\\u%04x", c);
    else fputc(c, to);
  }
  fputc('"', to);
}

/* JSON has no infinity. */
static void print_json_number(double value, FILE *to) {
  if (value <= 1e300) fprintf(to, "%.6g", value);
  else fputs("null", to);
}

static void print_json_claim(const report_claim *claim, FILE *to) {
  char level[16];
  say_level(claim, level, sizeof level);
  fprintf(to, "{\"operation\":\"%s\",\"formats\":[", claim->which.row->name);
  for (uint32_t i = 0; i <= claim->which.inputs; i++)
    fprintf(to, "%s\"%s\"", i == 0 ? "" : ",", tm_format_find(claim->which.formats[i])->name);
  fprintf(to, "],\"level\":\"%s\",\"numerics\":\"N%u\",\"bound\":", level, claim->numerics);
  print_json_number(claim->numerics_bound, to);
  fprintf(to, ",\"run_to_run\":%s,\"cases\":%u,\"worst\":", claim->numerics_flags & TM_NUMERICS_RUN_TO_RUN ? "true" : "false", claim->case_count);
  print_json_number(claim->worst, to);
  fprintf(to, ",\"failures\":%u,\"failure\":", claim->failure_count);
  if (claim->failure_count == 0) fputs("null", to);
  else print_json_text(claim->failure, to);
  fputc('}', to);
}

void report_print_json(const report *r, const char *name, uint64_t seed, FILE *to) {
  fprintf(to, "{\"schema\":\"tensormorph.conformance/1\",\"backend\":");
  print_json_text(name, to);
  fprintf(to, ",\"seed\":%llu,\"questions\":%llu,\"refusals\":%llu,\"unchecked_changes\":%llu,\"failures\":%llu,\"claims\":[\n",
          (unsigned long long)seed, (unsigned long long)r->question_count, (unsigned long long)r->refusal_count,
          (unsigned long long)r->unchecked_change_count, (unsigned long long)r->failure_count);
  for (uint32_t i = 0; i < r->count; i++) {
    print_json_claim(&r->claims[i], to);
    fputs(i + 1 < r->count ? ",\n" : "\n", to);
  }
  fputs("]}\n", to);
}
