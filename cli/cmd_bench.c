/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_inputs.h"
#include "command.h"
#include "complain.h"
#include "json_writer.h"
#include "named_devices.h"
#include "nearest_name.h"
#include "numerics_text.h"
#include "printable_text.h"
#include "quantity.h"
#include "row_printer.h"
#include "session.h"
#include "terminal.h"

#define MAX_DEVICES 64
#define MAX_SAMPLES 100000u
#define MOST_WARM_UPS 16u
#define USUAL_MIN_TIME_NS UINT64_C(500000000)

/* What everything is compared with; it is measured along unless a run would take too long. */
#define REFERENCE "reference"
#define LONGEST_COMPANION_NS UINT64_C(3000000000)

/* What was measured on one device. */
typedef struct measurement {
  const char *device;
  tm_status   status;           /* TM_OK, or why there are no figures */
  char        reason[sizeof((tm_error *)0)->text];
  uint32_t    level;
  uint32_t    numerics;
  uint64_t    sample_count;
  uint64_t    median_ns, min_ns, p90_ns;        /* launch until complete */
  uint64_t    call_ns;                          /* median of the whole call, from outside */
  uint64_t    expected_ns;
  uint64_t    first_ns;                         /* the first call of all: opening and preparing, then one run */
  const struct prediction *predicted;           /* what it is made of */
  double      speedup;          /* over the reference, by medians; 0: not known */
} measurement;

/* What was known of a device before anything ran. */
typedef struct prediction {
  uint64_t total_ns;            /* 0: nothing */
  uint64_t declared_ns;         /* the device's own formula, without copies */
  uint64_t copy_ns;
  uint64_t setup_ns;
} prediction;

typedef struct bench_run {
  tm_invocation          *invocation;
  tm_context             *context;
  tm_op_request           request;
  tm_bench_inputs         operands;
  tm_explanation_summary  work;
  prediction              predicted[MAX_DEVICES];       /* by device */
  uint64_t               *inside;       /* samples */
  uint64_t               *outside;
  measurement             results[MAX_DEVICES];
  uint32_t                result_count;
  uint32_t                absent_count; /* devices that were asked for by name and are not there */
} bench_run;

static int by_value(const void *left, const void *right) {
  const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return (a > b) - (a < b);
}

static const void *attributes_of(const bench_run *bench) {
  return bench->request.op.attribute_bytes > 0 ? bench->request.attributes.value.bytes : NULL;
}

/* --------------------------------------------------------------------------------------------------- measuring ---- */

static tm_status run_once(bench_run *bench, uint32_t device, tm_run_report *report, uint64_t *out_ns, tm_error *error) {
  const tm_op_request *request = &bench->request;
  report->struct_size = sizeof *report;
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT,
                                   .device_plus_one = device + 1, .report = report };
  const uint64_t  begin_ns = tm_terminal_now_ns();
  const tm_status      status =
      tm_run(bench->context, request->op.op, attributes_of(bench), request->op.attribute_bytes, bench->operands.inputs,
             request->input_count, bench->operands.outputs, request->op.output_count, &options, error);
  *out_ns = tm_terminal_now_ns() - begin_ns;
  return status;
}

/* Enough: as many as were asked for, or as fit into the time, but three at least. */
static bool is_enough(const bench_run *bench, uint64_t samples, uint64_t elapsed_ns) {
  const tm_arguments *arguments = &bench->invocation->arguments;
  const uint64_t      repeat = tm_arguments_count(arguments, "repeat", 0);
  if (samples == MAX_SAMPLES) return true;
  if (repeat != 0) return samples >= repeat;
  return samples >= 3 && elapsed_ns >= tm_arguments_duration(arguments, "min-time", USUAL_MIN_TIME_NS);
}

static void summarize(bench_run *bench, measurement *result) {
  const uint64_t count = result->sample_count;
  qsort(bench->inside, (size_t)count, sizeof *bench->inside, by_value);
  qsort(bench->outside, (size_t)count, sizeof *bench->outside, by_value);
  result->median_ns = bench->inside[count / 2];
  result->min_ns = bench->inside[0];
  result->p90_ns = bench->inside[(count - 1) * 9 / 10];
  result->call_ns = bench->outside[count / 2];
}

/* The first run opens the device and prepares the kernel, and the next few are watched; they are not counted. */
static tm_status warm_up(bench_run *bench, uint32_t device, tm_run_report *report, tm_error *error) {
  uint64_t  outside_ns = 0;
  tm_status status = TM_OK;
  report->watched = 1;
  for (uint32_t i = 0; i < MOST_WARM_UPS && status == TM_OK && report->watched != 0; i++)
    status = run_once(bench, device, report, &outside_ns, error);
  return status;
}

static void measure(bench_run *bench, uint32_t device, measurement *result) {
  tm_error      error = TM_CLI_ERROR_INIT;
  tm_run_report report = { 0 };
  uint64_t      outside_ns = 0;
  result->status = warm_up(bench, device, &report, &error);
  const uint64_t begin_ns = tm_terminal_now_ns();
  while (result->status == TM_OK && !is_enough(bench, result->sample_count, tm_terminal_now_ns() - begin_ns)) {
    result->status = run_once(bench, device, &report, &outside_ns, &error);
    if (result->status != TM_OK) break;
    bench->inside[result->sample_count] = report.measured_ns;
    bench->outside[result->sample_count++] = outside_ns;
  }
  if (result->status != TM_OK) {
    memcpy(result->reason, error.text, sizeof result->reason);
    return;
  }
  result->level = report.level;
  result->numerics = report.numerics;
  /* The estimate from before the first run: afterwards the library knows better. */
  result->predicted = device < MAX_DEVICES ? &bench->predicted[device] : NULL;
  result->expected_ns = result->predicted != NULL ? result->predicted->total_ns : 0;
  summarize(bench, result);
}

static bool is_named(const tm_name_list *names, const char *device) {
  for (uint32_t i = 0; i < names->count; i++)
    if (tm_named_devices_is(device, names->names[i])) return true;
  return false;
}

/* Compares with the reference, which may come after the others. */
static void compare(bench_run *bench) {
  const measurement *reference = NULL;
  for (uint32_t i = 0; i < bench->result_count; i++)
    if (tm_named_devices_is(bench->results[i].device, REFERENCE) && bench->results[i].status == TM_OK)
      reference = &bench->results[i];
  for (uint32_t i = 0; reference != NULL && i < bench->result_count; i++)
    if (bench->results[i].median_ns > 0)
      bench->results[i].speedup = (double)reference->median_ns / (double)bench->results[i].median_ns;
}

static void measure_all(bench_run *bench) {
  const tm_name_list   *names = &bench->invocation->preferences.devices;
  tm_device_description device = { .struct_size = sizeof device };
  for (uint32_t i = 0; i < MAX_DEVICES && tm_device_describe(bench->context, i, &device) == TM_OK; i++) {
    if (device.state != TM_DEVICE_READY) continue;
    measurement *result = &bench->results[bench->result_count++];
    result->device = device.name;
    if (is_named(names, device.name) || bench->predicted[i].total_ns <= LONGEST_COMPANION_NS) {
      measure(bench, i, result);
      continue;
    }
    tm_quantity quantity;
    result->status = TM_PENDING;
    snprintf(result->reason, sizeof result->reason,
             "not measured: one run would take about %s; --device %s does it anyway",
             tm_quantity_duration(bench->predicted[i].total_ns, &quantity), device.name);
  }
  compare(bench);
}

static void note_predictions(bench_run *bench, const tm_explanation *explanation) {
  tm_candidate candidate = { .struct_size = sizeof candidate };
  for (uint32_t i = 0; tm_explanation_candidate(explanation, i, &candidate) == TM_OK; i++) {
    if (candidate.device >= MAX_DEVICES || candidate.total_ns == 0) continue;
    prediction *known = &bench->predicted[candidate.device];
    if (known->total_ns == 0 || candidate.total_ns < known->total_ns)
      *known = (prediction){ candidate.total_ns, candidate.declared_ns, candidate.copy_ns, candidate.setup_ns };
  }
}

/* The core's own count of operations and bytes. */
static tm_status count_work(bench_run *bench, tm_error *error) {
  const tm_op_request *request = &bench->request;
  tm_explanation      *explanation = NULL;
  const tm_status      status =
      tm_explain(bench->context, request->op.op, attributes_of(bench), request->op.attribute_bytes, request->inputs,
                 request->input_count, request->outputs, request->op.output_count, NULL, &explanation, error);
  if (status != TM_OK) return status;
  bench->work.struct_size = sizeof bench->work;
  tm_explanation_summarize(explanation, &bench->work);
  bench->work.flip = "";
  note_predictions(bench, explanation);
  tm_explanation_destroy(explanation);
  return TM_OK;
}

/* ---------------------------------------------------------------------------------------------------- printing ---- */

static const tm_column columns[] = {
  { "device", TM_COLUMN_TEXT, 0, "" },       { "level", TM_COLUMN_TEXT, 0, "" },
  { "numerics", TM_COLUMN_TEXT, 0, "" },     { "samples", TM_COLUMN_COUNT, 0, "" },
  { "median_ns", TM_COLUMN_COUNT, 0, "" },   { "min_ns", TM_COLUMN_COUNT, 0, "" },
  { "p90_ns", TM_COLUMN_COUNT, 0, "" },      { "call_ns", TM_COLUMN_COUNT, 0, "" },
  { "expected_ns", TM_COLUMN_COUNT, 0, "" }, { "gflop_per_s", TM_COLUMN_NUMBER, 0, "" },
  { "gb_per_s", TM_COLUMN_NUMBER, 0, "" },   { "speedup", TM_COLUMN_NUMBER, 0, "" },
  { "reason", TM_COLUMN_TEXT, 0, "" },       { "declared_ns", TM_COLUMN_COUNT, 0, "" },
  { "copy_ns", TM_COLUMN_COUNT, 0, "" },     { "declared_setup_ns", TM_COLUMN_COUNT, 0, "" },
  { "setup_ns", TM_COLUMN_COUNT, 0, "" }
};
#define COLUMN_COUNT (sizeof columns / sizeof columns[0])

static tm_cell rate_cell(const measurement *result, uint64_t amount) {
  if (result->status != TM_OK || result->median_ns == 0 || amount == 0) return tm_cell_undefined(TM_COLUMN_NUMBER);
  return tm_cell_number((double)amount / (double)result->median_ns);
}

/* What happens once: as declared, and what the first call took beyond the others. */
static void fill_parts(const measurement *result, tm_cell *cells) {
  const prediction *known = result->predicted;
  const bool is_known = known != NULL && known->total_ns != 0;
  cells[0] = is_known && known->declared_ns != 0 ? tm_cell_count(known->declared_ns) : tm_cell_undefined(TM_COLUMN_COUNT);
  cells[1] = is_known ? tm_cell_count(known->copy_ns) : tm_cell_undefined(TM_COLUMN_COUNT);
  cells[2] = is_known ? tm_cell_count(known->setup_ns) : tm_cell_undefined(TM_COLUMN_COUNT);
  cells[3] = result->status != TM_OK ? tm_cell_undefined(TM_COLUMN_COUNT)
                                     : tm_cell_count(result->first_ns > result->call_ns ? result->first_ns - result->call_ns : 0);
}

static bool result_row(const void *source, uint64_t row, tm_cell *cells) {
  const bench_run *bench = source;
  if (row >= bench->result_count) return false;
  const measurement *result = &bench->results[row];
  const uint64_t     counts[] = { result->sample_count, result->median_ns, result->min_ns,
                                  result->p90_ns,       result->call_ns,   result->expected_ns };
  const bool ok = result->status == TM_OK;
  cells[0] = tm_cell_text(result->device);
  cells[1] = ok ? tm_cell_text(tm_level_name(result->level)) : tm_cell_undefined(TM_COLUMN_TEXT);
  cells[2] = ok ? tm_cell_text(tm_numerics_name(result->numerics)) : tm_cell_undefined(TM_COLUMN_TEXT);
  for (uint32_t i = 0; i < 6; i++) cells[3 + i] = ok ? tm_cell_count(counts[i]) : tm_cell_undefined(TM_COLUMN_COUNT);
  /* An estimate of 0 is one that nobody made. */
  if (result->expected_ns == 0) cells[8] = tm_cell_undefined(TM_COLUMN_COUNT);
  cells[9] = rate_cell(result, bench->work.flops);
  cells[10] = rate_cell(result, bench->work.read_bytes + bench->work.written_bytes);
  cells[11] = ok && result->speedup > 0 ? tm_cell_number(result->speedup) : tm_cell_undefined(TM_COLUMN_NUMBER);
  cells[12] = ok ? tm_cell_undefined(TM_COLUMN_TEXT) : tm_cell_text(result->reason);
  fill_parts(result, &cells[13]);
  return true;
}

/* The same for people: durations with units, and the estimate as a ratio. */
static const tm_column human_columns[] = {
  { "device", TM_COLUMN_TEXT, 0, "" },  { "level", TM_COLUMN_TEXT, 0, "" },     { "numerics", TM_COLUMN_TEXT, 0, "" },
  { "median", TM_COLUMN_TEXT, 0, "" },  { "min", TM_COLUMN_TEXT, 0, "" },       { "p90", TM_COLUMN_TEXT, 0, "" },
  { "GFLOP/s", TM_COLUMN_NUMBER, 0, "" }, { "GB/s", TM_COLUMN_NUMBER, 0, "" },  { "expected", TM_COLUMN_TEXT, 0, "" },
  { "runs", TM_COLUMN_COUNT, 0, "" },   { "call", TM_COLUMN_TEXT, 0, "" },      { "x ref", TM_COLUMN_NUMBER, 0, "" },
  { "declared", TM_COLUMN_TEXT, 0, "" }, { "copies", TM_COLUMN_TEXT, 0, "" },   { "set-up", TM_COLUMN_TEXT, 0, "" } };
#define HUMAN_COLUMN_COUNT (sizeof human_columns / sizeof human_columns[0])
static const tm_column_view human_views[] = {
  { 0, 12, 0, false, NULL }, { 1, 0, 6, false, NULL },  { 2, 0, 7, false, NULL }, { 3, 0, 0, false, NULL },
  { 4, 0, 2, false, NULL },  { 5, 0, 2, false, NULL },  { 6, 0, 0, false, NULL }, { 7, 0, 1, false, NULL },
  { 8, 0, 3, false, NULL },  { 12, 0, 4, false, NULL }, { 13, 0, 5, false, NULL }, { 14, 0, 5, false, NULL },
  { 11, 0, 0, false, NULL }, { 9, 0, 8, false, NULL },  { 10, 0, 9, false, NULL }
};
#define HUMAN_VIEW_COUNT (sizeof human_views / sizeof human_views[0])

#define DURATIONS 8u
typedef struct human_rows {
  const bench_run *bench;
  tm_quantity      quantities[DURATIONS];
} human_rows;

static bool human_row(const void *source, uint64_t row, tm_cell *cells) {
  human_rows *human = (human_rows *)(uintptr_t)source;
  tm_cell     raw[COLUMN_COUNT];
  static const uint8_t from[DURATIONS] = { 4, 5, 6, 8, 7, 13, 14, 16 }, to[DURATIONS] = { 3, 4, 5, 8, 10, 12, 13, 14 };
  if (!result_row(human->bench, row, raw)) return false;
  memcpy(cells, raw, 3 * sizeof cells[0]);
  for (uint32_t i = 0; i < DURATIONS; i++)
    cells[to[i]] = raw[from[i]].defined ? tm_cell_text(tm_quantity_duration(raw[from[i]].count, &human->quantities[i]))
                                        : tm_cell_undefined(TM_COLUMN_TEXT);
  cells[6] = raw[9];
  cells[7] = raw[10];
  cells[9] = raw[3];
  cells[11] = raw[11];
  return true;
}

static void print_operands(const bench_run *bench) {
  tm_output_stream *stream = bench->invocation->output;
  char              text[256];
  tm_quantity       a, b;
  tm_output_text(stream, bench->request.op.name);
  for (uint32_t i = 0; i < bench->request.input_count; i++) {
    tm_operand_describe(&bench->request.inputs[i], text, sizeof text);
    tm_output_format(stream, "%s %s%s", i > 0 ? "," : "", text, (bench->request.inputs[i].flags & TM_OPERAND_CONSTANT) != 0 ? " (constant)" : "");
  }
  tm_op_attributes_print(&bench->request.attributes, text, sizeof text);
  if (text[0] != '\0') tm_output_format(stream, "  [%s]", text);
  tm_output_format(stream, "\nwork: %s operation%s, %s moved\n", tm_quantity_short_count(bench->work.flops, &a),
                   bench->work.flops == 1 ? "" : "s",
                   tm_quantity_bytes(bench->work.read_bytes + bench->work.written_bytes, &b));
}

static void print_human(const bench_run *bench) {
  tm_output_stream   *stream = bench->invocation->output;
  const tm_terminal  *terminal = &bench->invocation->terminal;
  const tm_table_look look = { .width = terminal->width, .color = terminal->color, .all_in = "--json shows" };
  human_rows          human = { .bench = bench };
  const tm_rows       rows = { human_columns, HUMAN_COLUMN_COUNT, human_row, &human, bench->result_count, NULL };
  print_operands(bench);
  if (bench->request.note[0] != '\0') {
    tm_output_text(stream, "note: ");
    tm_printable_wrap(stream, bench->request.note, 6, terminal->width);
  }
  tm_output_char(stream, '\n');
  tm_rows_print_table(&rows, human_views, HUMAN_VIEW_COUNT, &look, stream);
  for (uint32_t i = 0; i < bench->result_count; i++) {
    const measurement *result = &bench->results[i];
    if (result->status != TM_OK) tm_printable_about(stream, result->device, result->reason, terminal->width);
  }
}

static void print_json(const bench_run *bench) {
  const tm_op_request *request = &bench->request;
  tm_json_writer       json;
  tm_cell              cells[COLUMN_COUNT];
  tm_json_init(&json, bench->invocation->output);
  tm_json_begin_object(&json, NULL, false);
  tm_json_text(&json, "schema", "tensormorph.bench/1");
  tm_json_text(&json, "op", request->op.name);
  tm_json_begin_array(&json, "inputs", false);
  for (uint32_t i = 0; i < request->input_count; i++) tm_operand_print_json(&request->inputs[i], &json);
  tm_json_end_array(&json);
  tm_json_begin_object(&json, "attributes", true);
  tm_op_attributes_print_json(&request->attributes, &json);
  tm_json_end_object(&json);
  tm_json_count(&json, "flops", bench->work.flops);
  tm_json_count(&json, "read_bytes", bench->work.read_bytes);
  tm_json_count(&json, "written_bytes", bench->work.written_bytes);
  tm_json_begin_array(&json, "notes", false);
  if (request->note[0] != '\0') tm_json_text(&json, NULL, request->note);
  tm_json_end_array(&json);
  tm_json_begin_array(&json, "results", false);
  for (uint64_t row = 0; result_row(bench, row, cells); row++)
    tm_row_print_json(columns, COLUMN_COUNT, cells, 0, &json);
  tm_json_end_array(&json);
  tm_json_end_object(&json);
  tm_json_finish(&json);
}

/* A device that was asked for by name and is not there, or could not do it, is trouble; one of many that cannot is an answer. */
static int judge(const bench_run *bench) {
  const tm_name_list *names = &bench->invocation->preferences.devices;
  uint32_t            done = 0, failed = bench->absent_count;
  for (uint32_t i = 0; i < bench->result_count; i++) {
    done += bench->results[i].status == TM_OK;
    failed += bench->results[i].status < 0 && is_named(names, bench->results[i].device);
  }
  if (bench->result_count == 0)
    return tm_complain_as(TM_EXIT_TROUBLE, "no device is ready to measure on; tensormorph backends says why");
  return done == 0 || failed > 0 ? TM_EXIT_TROUBLE : TM_EXIT_OK;
}

static int bench_all(bench_run *bench, tm_error *error) {
  if (count_work(bench, error) != TM_OK) return tm_complain(error);
  if (tm_bench_inputs_create(bench->context, &bench->request, &bench->operands, error) != TM_OK)
    return tm_complain(error);
  bench->absent_count = tm_named_devices_complain(bench->context, &bench->invocation->preferences.devices);
  measure_all(bench);
  tm_bench_inputs_destroy(&bench->operands);
  if (bench->invocation->preferences.json)
    print_json(bench);
  else
    print_human(bench);
  tm_output_flush(bench->invocation->output);
  return judge(bench);
}

static int open_and_bench(bench_run *bench) {
  const tm_session_needs needs = { .uses_profile = true };
  tm_error               error = TM_CLI_ERROR_INIT;
  const uint64_t repeat = tm_arguments_count(&bench->invocation->arguments, "repeat", 1);
  if (repeat == 0 || repeat > MAX_SAMPLES)
    return tm_complain_as(TM_EXIT_USAGE, "bench: --repeat wants a whole number from 1 to %u", (unsigned)MAX_SAMPLES);
  if (tm_op_request_parse(&bench->invocation->arguments, &bench->request, &error) != TM_OK) return tm_complain(&error);
  if (tm_session_open(&bench->invocation->preferences, &needs, &bench->context, &error) != TM_OK)
    return tm_complain(&error);
  const int exit_code = bench_all(bench, &error);
  tm_context_destroy(bench->context);
  return exit_code;
}

static int run(tm_invocation *invocation) {
  bench_run *bench = calloc(1, sizeof *bench);
  uint64_t  *samples = calloc(2 * (size_t)MAX_SAMPLES, sizeof *samples);
  int        exit_code = TM_EXIT_TROUBLE;
  if (bench == NULL || samples == NULL) {
    tm_complain_as(exit_code, "out of memory");
  } else {
    bench->invocation = invocation;
    bench->inside = samples;
    bench->outside = samples + MAX_SAMPLES;
    exit_code = open_and_bench(bench);
  }
  free(samples);
  free(bench);
  return exit_code;
}

static const tm_flag flags[] = {
  TM_OP_REQUEST_FLAGS,
  { "repeat", 0, TM_FLAG_COUNT, false, "N", "measure exactly so many runs" },
  { "min-time", 0, TM_FLAG_DURATION, false, "TIME", "measure at least so long on each device (usually 500ms)" },
  { NULL, 0, TM_FLAG_SWITCH, false, NULL, NULL },
};

const tm_command tm_command_bench = {
  .name = "bench",
  .operands = "OP",
  .operand_min = 1,
  .operand_max = 1,
  .summary = "measure an operation on the device that --device names, or on all, beside the reference",
  .notes =
      "Example: tensormorph bench add --device reference --dtype f32 --shape 1000000\n"
      "Times are from launch until complete, of warm runs; \"call\" is the whole call as an application sees it. "
      "Rates are the operation's own work over the median; \"x ref\" is how many times as fast as the reference. "
      "What was foretold stands beside: \"declared\" is the device's own formula, \"copies\" what operands and results cost to "
      "move, \"expected\" both, corrected by what was measured before. \"set-up\" is what the first call took beyond the others.",
  .flags = flags,
  .run = run,
};
