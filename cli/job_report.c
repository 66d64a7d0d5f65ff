/* SPDX-License-Identifier: Apache-2.0 */
#include "job_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "complain.h"
#include "printable_text.h"
#include "quantity.h"

/* The job's own, then those that were found out here; NULL past the last. */
static const char *note_at(const tm_job_report *report, uint32_t index) {
  const char *note = NULL;
  uint32_t    own = 0;
  if (tm_job_note(report->job, index, &note) == TM_OK) return note;
  while (tm_job_note(report->job, own, &note) == TM_OK) own++;
  return report->elsewhere != NULL && index - own < report->elsewhere->count ? report->elsewhere->texts[index - own] : NULL;
}

/* ---- for people ---- */

/* Of notes that end alike, as one each tensor does, a few tell. */
#define MOST_ALIKE 5u
#define MOST_SHOWN 40u
#define LIKE_BYTES 24u
#define REST_BYTES 80u

typedef struct note_choice {
  uint32_t seen;                /* notes before this one */
  uint32_t shown;
} note_choice;

static const char *ending_of(const char *note) {
  const size_t length = strlen(note);
  return length > LIKE_BYTES ? note + length - LIKE_BYTES : note;
}

static bool is_shown(const tm_job_report *report, note_choice *choice, const char *note) {
  uint32_t alike = 0;
  for (uint32_t i = 0; i < choice->seen && alike < MOST_ALIKE; i++)
    alike += strcmp(ending_of(note_at(report, i)), ending_of(note)) == 0;
  choice->seen++;
  if (alike == MOST_ALIKE || choice->shown == MOST_SHOWN) return false;
  choice->shown++;
  return true;
}

/* "" if there is none; out has room for REST_BYTES. */
static void rest_text(const note_choice *choice, char *out) {
  tm_quantity    number;
  const uint32_t rest = choice->seen - choice->shown;
  out[0] = '\0';
  if (rest > 0) snprintf(out, REST_BYTES, "and %s more note%s; --json lists all", tm_quantity_count(rest, &number), rest == 1 ? "" : "s");
}

static void print_totals(const tm_job_report *report, tm_output_stream *stream) {
  tm_progress progress = { .struct_size = sizeof progress };
  tm_quantity a, b, c, d;
  tm_job_progress(report->job, &progress);
  tm_output_format(stream, "%s tensor%s, %s in %s: %s", tm_quantity_count(progress.items_done, &a),
                   progress.items_done == 1 ? "" : "s", tm_quantity_bytes(progress.bytes_done, &b),
                   tm_quantity_duration(progress.elapsed_ns, &c),
                   tm_quantity_rate(progress.bytes_done, progress.elapsed_ns, &d));
  if (report->status != TM_OK)
    tm_output_format(stream, " (%s after %s of %s tensors)", report->is_cancelled ? "cancelled" : "ended",
                     tm_quantity_count(progress.items_done, &a), tm_quantity_count(progress.items_total, &b));
  tm_output_char(stream, '\n');
}

static void print_notes(const tm_job_report *report, uint32_t width, tm_output_stream *stream) {
  const char *note = NULL;
  char        rest[REST_BYTES];
  note_choice choice = { 0, 0 };
  for (uint32_t i = 0; (note = note_at(report, i)) != NULL; i++)
    if (is_shown(report, &choice, note)) tm_printable_about(stream, "note", note, width);
  rest_text(&choice, rest);
  if (rest[0] != '\0') tm_printable_about(stream, "note", rest, width);
}

void tm_job_report_print(const tm_job_report *report, bool with_notes, uint32_t width, tm_output_stream *stream) {
  tm_device_usage usage = { .struct_size = sizeof usage };
  tm_quantity     a, b, c;
  if (!with_notes) return;
  tm_output_char(stream, '\n');
  print_totals(report, stream);
  for (uint32_t i = 0; tm_job_device_usage(report->job, i, &usage) == TM_OK; i++) {
    tm_output_text(stream, "  ");
    tm_printable_print(stream, usage.device_name);
    tm_output_format(stream, ": %s operation%s, %s, busy %s\n", tm_quantity_count(usage.operation_count, &a), usage.operation_count == 1 ? "" : "s",
                     tm_quantity_bytes(usage.bytes, &b), tm_quantity_duration(usage.busy_ns, &c));
  }
  print_notes(report, width, stream);
}

void tm_job_report_complain_notes(const tm_job_report *report) {
  const char *note = NULL;
  char        rest[REST_BYTES];
  note_choice choice = { 0, 0 };
  for (uint32_t i = 0; (note = note_at(report, i)) != NULL; i++)
    if (is_shown(report, &choice, note)) tm_complain_as(TM_EXIT_OK, "note: %s", note);
  rest_text(&choice, rest);
  if (rest[0] != '\0') tm_complain_as(TM_EXIT_OK, "note: %s", rest);
}

static void print_devices_json(const tm_job_report *report, tm_json_writer *json) {
  tm_device_usage usage = { .struct_size = sizeof usage };
  tm_json_begin_array(json, "devices", false);
  for (uint32_t i = 0; tm_job_device_usage(report->job, i, &usage) == TM_OK; i++) {
    tm_json_begin_object(json, NULL, true);
    tm_json_text(json, "name", usage.device_name);
    tm_json_count(json, "operations", usage.operation_count);
    tm_json_count(json, "bytes", usage.bytes);
    tm_json_number(json, "busy_seconds", (double)usage.busy_ns / 1e9);
    tm_json_end_object(json);
  }
  tm_json_end_array(json);
}

void tm_job_report_print_json(const tm_job_report *report, tm_json_writer *json) {
  tm_progress progress = { .struct_size = sizeof progress };
  const char *note = NULL;
  char text[2048];
  tm_job_progress(report->job, &progress);
  const double seconds = (double)progress.elapsed_ns / 1e9;
  tm_json_bool(json, "complete", report->status == TM_OK);
  tm_json_text(json, "error", report->status == TM_OK ? NULL : tm_in_flags(report->error->text, text, sizeof text));
  print_devices_json(report, json);
  tm_json_count(json, "bytes", progress.bytes_done);
  tm_json_number(json, "seconds", seconds);
  tm_json_number(json, "gb_per_s", progress.elapsed_ns > 0 ? (double)progress.bytes_done / seconds / 1e9 : (double)NAN);
  tm_json_begin_array(json, "notes", false);
  for (uint32_t i = 0; (note = note_at(report, i)) != NULL; i++) tm_json_text(json, NULL, note);
  tm_json_end_array(json);
}
