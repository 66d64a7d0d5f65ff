/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/printout.h"

#include <stdarg.h>
#include <stdlib.h>

#include "conformance/manner.h"
#include "conformance/plain_print.h"

#define FORMATS_WIDTH 56u
#define COLUMNS_BEFORE_FORMATS 69u
#define COUNT_WIDTH 6u          /* " +1234" */
#define LEAST_FORMATS_WIDTH 4u
#define LONGEST_LINE 2048u
#define SECOND_NS 1e9
#define MOST_FAILURES 25u

static const char *level_name(uint32_t level) {
  static const char *const names[] = { "refused", "emulated", "native" };
  return level <= TM_LEVEL_NATIVE ? names[level] : "?";
}

/* Broken between words where the terminal ends; what follows the first line is indented. */
static void print_wrapped(const char *text, uint32_t width, FILE *to) {
  uint32_t column = 0;
  while (*text != '\0') {
    const size_t spaces = strspn(text, " "), length = strcspn(text + spaces, " ");
    if (width != 0 && column > 4 && column + spaces + length > width) {
      fputs("\n    ", to);
      column = 4;
    } else {
      plain_write(text, spaces, to);
      column += (uint32_t)spaces;
    }
    plain_write(text + spaces, length, to);
    column += (uint32_t)length;
    text += spaces + length;
  }
  fputc('\n', to);
}

static void print_text(const printout_heading *heading, FILE *to, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void print_text(const printout_heading *heading, FILE *to, const char *format, ...) {
  char text[LONGEST_LINE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  print_wrapped(text, heading->width, to);
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

static uint32_t formats_width(uint32_t width) {
  if (width == 0 || width >= COLUMNS_BEFORE_FORMATS + FORMATS_WIDTH + COUNT_WIDTH) return FORMATS_WIDTH;
  const uint32_t taken = COLUMNS_BEFORE_FORMATS + COUNT_WIDTH;
  return width < taken + LEAST_FORMATS_WIDTH ? LEAST_FORMATS_WIDTH : width - taken;
}

/* As many as have room, and how many there are besides. */
static void join_formats(const report_claim *const *claims, uint32_t count, uint32_t width, char *text, size_t capacity) {
  size_t length = 0;
  uint32_t shown = 0;
  text[0] = '\0';
  for (; shown < count; shown++) {
    char one[160];
    short_formats(&claims[shown]->which, one, sizeof one);
    if (length + strlen(one) + 1 > width && (shown > 0 || strlen(one) > width + COUNT_WIDTH)) break;
    length += (size_t)snprintf(text + length, capacity - length, "%s%s", shown == 0 ? "" : " ", one);
  }
  if (shown == 0) snprintf(text, capacity, "%u", count);
  else if (shown < count) snprintf(text + length, capacity - length, " +%u", count - shown);
}

/* "N1 2": the class and the largest of the bounds. */
static void name_class(const report_claim *const *claims, uint32_t count, char *text, size_t capacity) {
  const uint32_t numerics = claims[0]->numerics;
  double bound = 0;
  for (uint32_t i = 0; i < count; i++)
    if (!(claims[i]->numerics_bound <= bound)) bound = claims[i]->numerics_bound;
  if (numerics > TM_NUMERICS_N4) snprintf(text, capacity, "?");
  else if (numerics == TM_NUMERICS_N0 || numerics == TM_NUMERICS_N4) snprintf(text, capacity, "N%u", numerics);
  else snprintf(text, capacity, "N%u %.3g", numerics, bound);
}

static void print_line(const report_claim *const *claims, uint32_t count, uint32_t width, FILE *to) {
  char formats[320], numerics[24];
  uint64_t cases = 0, failures = 0;
  double worst = 0;
  for (uint32_t i = 0; i < count; i++) {
    cases += claims[i]->case_count;
    failures += claims[i]->failure_count;
    if (claims[i]->worst > worst) worst = claims[i]->worst;
  }
  join_formats(claims, count, formats_width(width), formats, sizeof formats);
  name_class(claims, count, numerics, sizeof numerics);
  fprintf(to, "%-16s %-9s %-9s %6u %7llu %8.3g  %-6s %s\n", claims[0]->which.row->name, level_name(claims[0]->level), numerics,
          count, (unsigned long long)cases, worst, failures == 0 ? "ok" : "FAILED", formats);
}

static void print_claims(const report *r, uint32_t width, FILE *to) {
  const report_claim **sorted = calloc((size_t)r->count + 1, sizeof *sorted);
  if (sorted == NULL || r->count == 0) {
    free(sorted);
    fprintf(to, "no claims\n");
    return;
  }
  for (uint32_t i = 0; i < r->count; i++) sorted[i] = &r->claims[i];
  qsort(sorted, r->count, sizeof *sorted, by_line);
  fprintf(to, "%-16s %-9s %-9s %6s %7s %8s  %-6s %s\n", "operation", "level", "class", "claims", "cases", "worst", "result",
          "formats");
  for (uint32_t begin = 0, end; begin < r->count; begin = end) {
    for (end = begin + 1; end < r->count && share_a_line(sorted[begin], sorted[end]);) end++;
    print_line(sorted + begin, end - begin, width, to);
  }
  free(sorted);
}

static void print_checks(const report *r, const printout_heading *heading, FILE *to) {
  for (uint32_t i = 0; i < r->check_count; i++) {
    const report_check *check = &r->checks[i];
    if (check->skipped) print_text(heading, to, "%-16s not tried: %s", check->name, check->text);
    else if (!check->failed && check->text[0] != '\0') print_text(heading, to, "%-16s ok, in part: %s", check->name, check->text);
    else fprintf(to, "%-16s %s\n", check->name, check->failed ? "FAILED" : "ok");
    if (check->note[0] != '\0') print_text(heading, to, "%-16s note: %s", "", check->note);
  }
}

static void print_coverage(const report *r, const printout_heading *heading, FILE *to) {
  char within[40] = "", shared[80] = "", ways[60] = "";
  if (heading->budget_ns != 0) snprintf(within, sizeof within, " within %.3g s", (double)heading->budget_ns / SECOND_NS);
  if (heading->sharer_count != 0)
    snprintf(shared, sizeof shared, " (%u devices share %.3g s; --budget gives each its own)", heading->sharer_count,
             (double)heading->shared_budget_ns / SECOND_NS);
  if (r->way_count != 0) snprintf(ways, sizeof ways, " (%llu changed as proposed, and run)", (unsigned long long)r->way_count);
  print_text(heading, to, "reached %u of the %u combinations of formats that it takes%s%s; %llu questions, %llu refusals%s, seed %llu",
             r->reached_count, r->claimed_count, within, shared, (unsigned long long)r->question_count,
             (unsigned long long)r->refusal_count, ways, (unsigned long long)heading->seed);
  if (r->reached_count < r->claimed_count)
    print_text(heading, to, "not reached: %s%s%s", r->unreached, r->unreached[0] != '\0' ? ", ..." : "",
               heading->budget_ns != 0 ? " (--full reaches all)" : "");
  if (r->operation_count != 0)
    print_text(heading, to, "sizes, ranks and layouts: %u of %u steps, all of them for %u of %u operations", r->step_count,
               r->all_step_count, r->walked_count, r->operation_count);
  if (r->never_accepted[0] != '\0')
    print_text(heading, to, "refused whenever asked, though it seems to know them: %s", r->never_accepted);
  if (r->withdrawn_count != 0)
    print_text(heading, to, "taken back when prepared, as the device's epoch moved: %llu",
               (unsigned long long)r->withdrawn_count);
  if (r->unchecked_change_count != 0)
    print_text(heading, to, "%llu proposed changes are of a kind that is not tried on such an operation",
               (unsigned long long)r->unchecked_change_count);
  if (r->given_up[0] != '\0') print_text(heading, to, "ended early: %s", r->given_up);
}

/* A command is never broken: it is there to be copied. */
static void print_repeat(const printout_heading *heading, FILE *to) {
  plain_print(to, "    %s --device %u --seed %llu", heading->command, heading->device_index, (unsigned long long)heading->seed);
}

static void print_failed_checks(const report *r, const printout_heading *heading, FILE *to) {
  for (uint32_t i = 0; i < r->check_count; i++) {
    if (!r->checks[i].failed) continue;
    print_text(heading, to, "FAILED %s: %s", r->checks[i].name, r->checks[i].text);
    print_repeat(heading, to);
    if (manner_by_name(r->checks[i].name) != NULL) fprintf(to, " --only %s", r->checks[i].name);
    fputc('\n', to);
  }
}

/* Under the formats that were asked about, as the command below has them; what ran may be something else. */
static void print_failed_claim(const report_claim *claim, const printout_heading *heading, FILE *to) {
  char formats[160], asked[160], changed[200] = "";
  combination_describe(&claim->which, formats, sizeof formats);
  combination_describe(&claim->failed_which, asked, sizeof asked);
  if (strcmp(formats, asked) != 0) snprintf(changed, sizeof changed, ", changed as it proposes to %s", formats);
  print_text(heading, to, "FAILED %s %s%s (%u of %u cases): %s", claim->which.row->name, asked, changed, claim->failure_count,
             claim->case_count, claim->failure);
  print_repeat(heading, to);
  fprintf(to, " --only %s --formats %s --case %u\n", claim->which.row->name, asked, claim->failed_case);
}

/* A backend that breaks thousands of promises is told the first few. */
static void print_failures(const report *r, const printout_heading *heading, FILE *to) {
  uint32_t shown = 0, left = 0;
  print_failed_checks(r, heading, to);
  for (uint32_t i = 0; i < r->count; i++) {
    if (r->claims[i].failure_count == 0) continue;
    if (shown++ < MOST_FAILURES) print_failed_claim(&r->claims[i], heading, to);
    else left++;
  }
  if (left != 0) fprintf(to, "... and %u claims more; --json has all\n", left);
}

/* "" if all of them were tried. */
static void count_untried(const report *r, char *text, size_t capacity) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < r->check_count; i++) count += r->checks[i].skipped;
  text[0] = '\0';
  if (count != 0) snprintf(text, capacity, ", %u of %u manners not tried", count, r->check_count);
}

static void print_verdict(const report *r, const printout_heading *heading, FILE *to) {
  char checked[80], untried[80];
  const char *verdict = r->failure_count == 0 ? "" : ": NOT CONFORMANT";
  if (r->nothing_checked[0] != '\0') {
    print_text(heading, to, "%s:%u: NOTHING WAS CHECKED: %s", heading->backend, heading->device_index, r->nothing_checked);
    if (r->failure_count == 0) return;
  }
  if (heading->is_check) snprintf(checked, sizeof checked, "1 check");
  else snprintf(checked, sizeof checked, "%u of %u claims checked", r->reached_count, r->claimed_count);
  count_untried(r, untried, sizeof untried);
  print_text(heading, to, "%s:%u: %s, %llu failures%s%s", heading->backend, heading->device_index, checked,
             (unsigned long long)r->failure_count, untried, verdict);
}

void printout_table(const report *r, const printout_heading *heading, FILE *to) {
  plain_print(to, "%s:%u  %s (%s %s)\n", heading->backend, heading->device_index, heading->device_name, heading->version,
              heading->origin);
  if (!heading->is_check) print_claims(r, heading->width, to);
  print_checks(r, heading, to);
  if (!heading->is_check) print_coverage(r, heading, to);
  print_failures(r, heading, to);
  print_verdict(r, heading, to);
}
