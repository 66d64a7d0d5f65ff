/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/printout.h"

void printout_json_text(const char *text, FILE *to) {
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

static void print_format(uint32_t format, bool is_first, FILE *to) {
  const tm_format_info *info = tm_format_find(format);
  if (info != NULL) fprintf(to, "%s\"%s\"", is_first ? "" : ",", info->name);
  else fprintf(to, "%s\"0x%x\"", is_first ? "" : ",", format);
}

static const char *level_name(uint32_t level) {
  static const char *const names[] = { "refused", "emulated", "native" };
  return level <= TM_LEVEL_NATIVE ? names[level] : "unknown";
}

static void print_json_claim(const report_claim *claim, FILE *to) {
  fprintf(to, "{\"operation\":\"%s\",\"formats\":[", claim->which.row->name);
  for (uint32_t i = 0; i <= claim->which.inputs; i++)
    print_format(claim->which.formats[i], i == 0, to);
  fprintf(to, "],\"level\":\"%s\",\"numerics\":\"N%u\",\"bound\":", level_name(claim->level), claim->numerics);
  print_json_number(claim->numerics_bound, to);
  fprintf(to, ",\"run_to_run\":%s,\"cases\":%u,\"worst\":", claim->numerics_flags & TM_NUMERICS_RUN_TO_RUN ? "true" : "false",
          claim->case_count);
  print_json_number(claim->worst, to);
  fprintf(to, ",\"failures\":%u,\"failed_case\":", claim->failure_count);
  if (claim->failure_count == 0) fputs("null", to);
  else fprintf(to, "%u", claim->failed_case);
  fputs(",\"failure\":", to);
  if (claim->failure_count == 0) fputs("null", to);
  else printout_json_text(claim->failure, to);
  fputc('}', to);
}

static void print_json_check(const report_check *check, FILE *to) {
  fprintf(to, "{\"name\":\"%s\",\"result\":\"%s\",\"text\":", check->name,
          check->failed    ? "failed"
          : check->skipped ? "not tried"
                           : "ok");
  if (check->text[0] == '\0') fputs("null", to);
  else printout_json_text(check->text, to);
  fputs(",\"note\":", to);
  if (check->note[0] == '\0') fputs("null", to);
  else printout_json_text(check->note, to);
  fputc('}', to);
}

static void print_member(const char *name, const char *text, FILE *to) {
  fprintf(to, "\"%s\":", name);
  printout_json_text(text, to);
  fputc(',', to);
}

void printout_json(const report *r, const printout_heading *heading, FILE *to) {
  fputc('{', to);
  print_member("backend", heading->backend, to);
  print_member("version", heading->version, to);
  print_member("origin", heading->origin, to);
  fprintf(to, "\"device\":%u,", heading->device_index);
  print_member("device_name", heading->device_name, to);
  fprintf(to, "\"seed\":%llu,\"cases\":%u,\"budget_ns\":%llu,\"questions\":%llu,\"refusals\":%llu,",
          (unsigned long long)heading->seed, heading->cases, (unsigned long long)heading->budget_ns,
          (unsigned long long)r->question_count, (unsigned long long)r->refusal_count);
  fprintf(to, "\"unchecked_changes\":%llu,\"withdrawn\":%llu,\"claimed\":%u,\"reached\":%u,", (unsigned long long)r->unchecked_change_count,
          (unsigned long long)r->withdrawn_count, r->claimed_count, r->reached_count);
  fprintf(to, "\"steps\":%u,\"all_steps\":%u,", r->step_count, r->all_step_count);
  print_member("never_accepted", r->never_accepted, to);
  print_member("given_up", r->given_up, to);
  print_member("nothing_checked", r->nothing_checked, to);
  fprintf(to, "\"failures\":%llu,\"checks\":[\n", (unsigned long long)r->failure_count);
  for (uint32_t i = 0; i < r->check_count; i++) {
    print_json_check(&r->checks[i], to);
    fputs(i + 1 < r->check_count ? ",\n" : "\n", to);
  }
  fputs("],\"claims\":[\n", to);
  for (uint32_t i = 0; i < r->count; i++) {
    print_json_claim(&r->claims[i], to);
    fputs(i + 1 < r->count ? ",\n" : "\n", to);
  }
  fputs("]}", to);
}
