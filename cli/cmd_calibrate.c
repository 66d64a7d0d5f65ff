/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "complain.h"
#include "json_writer.h"
#include "micro_suite.h"
#include "printable_text.h"
#include "quantity.h"
#include "row_printer.h"
#include "session.h"

#define DEFAULT_SECONDS 10
#define MOST_SECONDS 86400
#define SECOND_NS UINT64_C(1000000000)

typedef struct calibration_row {
  char            device[128];
  char            operation[160];
  tm_micro_result result;
} calibration_row;

typedef struct calibration {
  tm_invocation   *invocation;
  tm_context      *context;
  calibration_row *rows;
  _Atomic uint64_t row_count;   /* of those that are whole: an interrupt tells of them, too */
  uint64_t         case_count;  /* of all devices */
  uint64_t         begin_ns;
  uint64_t         budget_ns;
  _Atomic bool     is_shown;    /* progress stands on the error stream */
  _Atomic uint64_t kept_count;  /* of measurements that are in the profile on disk */
  _Atomic uint64_t lost_count;  /* of those that could not be written there */
} calibration;

/* ---- progress ---- */

static void show_progress(calibration *c, uint64_t done, const char *device, const char *operation) {
  const tm_terminal *terminal = &c->invocation->terminal;
  char               text[300], clean[300];
  if (!terminal->can_redraw || c->invocation->preferences.quiet) return;
  snprintf(text, sizeof text, "%3u%%  %s  %s", (unsigned)(done * 100 / c->case_count), device, operation);
  tm_printable_clean(text, strlen(text), clean, sizeof clean);
  /* The last cell stays free: some terminals break the line when it is filled. */
  fprintf(stderr, "\r%.*s\x1b[K", (int)(terminal->redraw_width > 1 ? terminal->redraw_width - 1 : 1), clean);
  c->is_shown = true;
}

static void clear_progress(calibration *c) {
  if (atomic_exchange(&c->is_shown, false)) fputs("\r\x1b[K", stderr);
}

/* ---- the document ---- */

static void print_json(const calibration *c, bool is_whole) {
  const uint64_t count = atomic_load(&c->row_count);
  tm_json_writer json;
  tm_json_init(&json, c->invocation->output);
  tm_json_begin_object(&json, NULL, false);
  tm_json_text(&json, "schema", "tensormorph.calibration/1");
  tm_json_bool(&json, "complete", is_whole);
  tm_json_begin_array(&json, "measurements", false);
  for (uint64_t i = 0; i < count; i++) {
    const calibration_row *row = &c->rows[i];
    tm_json_begin_object(&json, NULL, true);
    tm_json_text(&json, "device", row->device);
    tm_json_text(&json, "operation", row->operation);
    tm_json_bool(&json, "can_run", row->result.can_run);
    tm_json_text(&json, "reason", row->result.reason);
    tm_json_count(&json, "runs", row->result.run_count);
    tm_json_count(&json, "declared_ns", row->result.declared_ns);
    tm_json_count(&json, "copy_ns", row->result.copy_ns);
    tm_json_count(&json, "measured_ns", row->result.measured_ns);
    tm_json_number(&json, "factor", row->result.correction);
    tm_json_count(&json, "samples", row->result.sample_count);
    tm_json_end_object(&json);
  }
  tm_json_end_array(&json);
  tm_json_end_object(&json);
  tm_json_finish(&json);
}

/* ---- what is kept ---- */

static bool has_place(void) {
  char folder[1024];
  return tm_preferences_state_path(getenv("XDG_STATE_HOME"), getenv("HOME"), folder, sizeof folder);
}

/* After each, so that it stays however this ends. */
static void keep(calibration *c) {
  const tm_status status = tm_context_save_profile(c->context, NULL);   /* the last one tells what fails */
  const uint64_t  found = atomic_load(&c->kept_count) + atomic_load(&c->lost_count) + 1;
  const bool      is_kept = status == TM_OK && has_place();
  /* What could not be written is written with the next. */
  atomic_store(&c->kept_count, is_kept ? found : atomic_load(&c->kept_count));
  atomic_store(&c->lost_count, is_kept ? 0 : found - atomic_load(&c->kept_count));
}

static const char no_place[] = "nothing that is measured is kept: neither XDG_STATE_HOME nor HOME says where";

/* The command goes on meanwhile, until the process ends. */
static void say_farewell(void *context) {
  calibration             *c = context;
  const unsigned long long kept = atomic_load(&c->kept_count), lost = atomic_load(&c->lost_count);
  clear_progress(c);
  if (c->invocation->preferences.json) {
    print_json(c, false);
    (void)tm_output_flush(c->invocation->output);
  }
  if (c->invocation->preferences.quiet) return;
  if (!has_place()) (void)tm_complain_as(TM_EXIT_OK, "interrupted, and %s", no_place);
  else if (lost != 0)
    (void)tm_complain_as(TM_EXIT_OK, "interrupted: of %llu measurements %llu are kept; the others could not be written",
                         kept + lost, kept);
  else
    (void)tm_complain_as(TM_EXIT_OK, "interrupted: %llu measurement%s kept, and the one under way is dropped; tensormorph "
                         "profile show lists what is known", kept, kept == 1 ? " is" : "s are");
}

static void watch_interrupts(calibration *c, void (*farewell)(void *context)) {
  tm_interrupt_watch *watch = &c->invocation->interrupt;
  tm_interrupt_watch_pause(watch);
  watch->farewell = farewell;
  watch->farewell_context = c;
  tm_interrupt_watch_begin(watch);
}

/* ---- measuring ---- */

/* What was not used by those before is shared by those that are left. */
static uint64_t share_of(const calibration *c, uint64_t done) {
  const uint64_t passed = tm_terminal_now_ns() - c->begin_ns;
  return passed >= c->budget_ns ? 0 : (c->budget_ns - passed) / (c->case_count - done);
}

static bool measure(calibration *c, uint32_t device, const char *name, uint32_t which, uint64_t done) {
  tm_op_request    request;
  calibration_row *row = &c->rows[c->row_count];
  const uint64_t   share_ns = share_of(c, done);
  if (share_ns == 0) return false;
  if (!tm_micro_suite_request(which, &request)) return true;
  snprintf(row->device, sizeof row->device, "%s", name);
  tm_micro_suite_describe(&request, row->operation, sizeof row->operation);
  show_progress(c, done, row->device, row->operation);
  tm_micro_suite_run(c->context, &request, device, share_ns, &row->result);
  c->row_count++;
  if (row->result.run_count != 0) keep(c);
  return true;
}

static uint32_t ready_count(tm_context *context) {
  tm_device_description device = { .struct_size = sizeof device };
  uint32_t              count = 0;
  for (uint32_t i = 0; tm_device_describe(context, i, &device) == TM_OK; i++) count += device.state == TM_DEVICE_READY;
  return count;
}

/* The suite from its small end on, every device in turn: what is cut off when time runs out is the large end, for all. */
static bool measure_all(calibration *c) {
  uint64_t done = 0;
  for (uint32_t which = 0; which < tm_micro_suite_count(); which++) {
    tm_device_description device = { .struct_size = sizeof device };
    for (uint32_t i = 0; tm_device_describe(c->context, i, &device) == TM_OK; i++) {
      if (device.state != TM_DEVICE_READY) continue;
      if (done < c->case_count && !measure(c, i, device.name, which, done)) return false;
      done++;
    }
  }
  return true;
}

/* ---- printing ---- */

static const tm_column columns[] = { { "device", TM_COLUMN_TEXT, 0, "" },   { "operation", TM_COLUMN_TEXT, 0, "" },
                                     { "declared", TM_COLUMN_TEXT, 0, "" }, { "copies", TM_COLUMN_TEXT, 0, "" },
                                     { "measured", TM_COLUMN_TEXT, 0, "" }, { "factor", TM_COLUMN_TEXT, 0, "" },
                                     { "runs", TM_COLUMN_COUNT, 0, "" } };
#define COLUMNS 7
static const tm_column_view views[COLUMNS] = { { 0, 8, 0, false, NULL }, { 1, 16, 0, false, NULL }, { 2, 0, 0, false, NULL },
                                               { 3, 0, 2, false, NULL }, { 4, 0, 0, false, NULL },  { 5, 0, 0, false, NULL },
                                               { 6, 0, 3, false, NULL } };

typedef struct printed_rows {
  const calibration *calibration;
  tm_quantity        declared, copies, measured;
  char               factor[32];
} printed_rows;

/* Only what a device can do is worth a line. */
static const calibration_row *find_row(const calibration *c, uint64_t row) {
  for (uint64_t i = 0; i < c->row_count; i++)
    if (c->rows[i].result.run_count != 0 && row-- == 0) return &c->rows[i];
  return NULL;
}

static bool printed_row(const void *source, uint64_t row, tm_cell *cells) {
  printed_rows          *printed = (printed_rows *)(uintptr_t)source;
  const calibration_row *from = find_row(printed->calibration, row);
  if (from == NULL) return false;
  const tm_micro_result *result = &from->result;
  snprintf(printed->factor, sizeof printed->factor, "x%.3g", result->correction);
  cells[0] = tm_cell_text(from->device);
  cells[1] = tm_cell_text(from->operation);
  cells[2] = tm_cell_text(tm_quantity_duration(result->declared_ns, &printed->declared));
  cells[3] = tm_cell_text(tm_quantity_duration(result->copy_ns, &printed->copies));
  cells[4] = tm_cell_text(tm_quantity_duration(result->measured_ns, &printed->measured));
  cells[5] = result->sample_count != 0 ? tm_cell_text(printed->factor) : tm_cell_undefined(TM_COLUMN_TEXT);
  cells[6] = tm_cell_count(result->run_count);
  return true;
}

static void print_failures(const calibration *c) {
  for (uint64_t i = 0; i < c->row_count && !c->invocation->preferences.quiet; i++) {
    const calibration_row *row = &c->rows[i];
    if (row->result.can_run && row->result.reason[0] != '\0')
      (void)tm_complain_as(TM_EXIT_OK, "%s failed at %s: %s", row->device, row->operation, row->result.reason);
  }
}

static void print_table(const calibration *c) {
  const tm_table_look look = { .width = c->invocation->terminal.width, .color = c->invocation->terminal.color,
                               .all_in = "--json shows" };
  printed_rows        source = { .calibration = c };
  const tm_rows       rows = { columns, COLUMNS, printed_row, &source, UINT64_MAX, NULL };
  tm_rows_print_table(&rows, views, COLUMNS, &look, c->invocation->output);
}

/* ---- all of it ---- */

static int calibrate(calibration *c) {
  tm_error error = TM_CLI_ERROR_INIT;
  if (tm_session_require_device(c->context, &error) != TM_OK) return tm_complain(&error);
  c->case_count = (uint64_t)ready_count(c->context) * tm_micro_suite_count();
  c->rows = calloc(c->case_count + 1, sizeof *c->rows);
  if (c->rows == NULL) return tm_complain_as(TM_EXIT_TROUBLE, "out of memory");
  c->begin_ns = tm_terminal_now_ns();
  const bool is_whole = measure_all(c);
  watch_interrupts(c, NULL);
  clear_progress(c);
  print_failures(c);
  if (c->invocation->preferences.json) print_json(c, is_whole);
  else print_table(c);
  if (!is_whole && !c->invocation->preferences.quiet)
    (void)tm_complain_as(TM_EXIT_OK, "time ran out before everything was measured; --seconds gives it more");
  if (!has_place() && !c->invocation->preferences.quiet) (void)tm_complain_as(TM_EXIT_OK, "note: %s", no_place);
  return tm_context_save_profile(c->context, &error) == TM_OK ? TM_EXIT_OK : tm_complain(&error);
}

static int run(tm_invocation *invocation) {
  const tm_session_needs needs = { .has_warnings = true };
  const uint64_t         seconds = tm_arguments_count(&invocation->arguments, "seconds", DEFAULT_SECONDS);
  calibration            c = { .invocation = invocation, .budget_ns = seconds * SECOND_NS };
  tm_error               error = TM_CLI_ERROR_INIT;
  if (seconds == 0 || seconds > MOST_SECONDS) return tm_complain_as(TM_EXIT_USAGE, "--seconds wants 1 to %d", MOST_SECONDS);
  watch_interrupts(&c, say_farewell);
  const bool is_open = tm_session_open(&invocation->preferences, &needs, &c.context, &error) == TM_OK;
  const int  exit_code = is_open ? calibrate(&c) : tm_complain(&error);
  watch_interrupts(&c, NULL);
  free(c.rows);
  tm_context_destroy(c.context);
  return exit_code;
}

static const tm_flag flags[] = {
  { "seconds", 0, TM_FLAG_COUNT, false, "N", "end after about so long (10); one operation that has begun is finished" },
  { NULL, 0, TM_FLAG_SWITCH, false, NULL, NULL },
};

const tm_command tm_command_calibrate = {
  .name = "calibrate",
  .operands = "",
  .operand_min = 0,
  .operand_max = 0,
  .summary = "measure each device with a fixed set of small operations, and remember what was found",
  .notes =
      "Copies of three sizes; an addition, a sum and a matrix product of f32, f16 and bf16. Devices are measured anyway while they "
      "are used; this saves the first runs from being placed by what devices declare. Each measurement is kept as soon as it is "
      "there, also when Ctrl-C ends this; --json then prints those that there are, with \"complete\": false. Declared is without "
      "copies, measured is the median of the runs with them. Factor is what is reckoned with from now on in place of declared: earlier "
      "measurements have a part in it, so it is not quite the quotient of this run's. tensormorph profile show lists all that is known.",
  .flags = flags,
  .run = run,
};
