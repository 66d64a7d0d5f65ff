/* SPDX-License-Identifier: Apache-2.0 */
#include "elsewhere_notes.h"

#include <stdio.h>
#include <string.h>

#include "quantity.h"
#include "row_selection.h"

#define MOST_DTYPES 16u
#define MOST_INPUTS 3u
#define SAMPLE_ELEMENTS (UINT64_C(1) << 20)     /* what is asked about; jobs cut large tensors, too */

typedef struct dtype_use {
  char     name[32];
  uint64_t element_count;       /* of the largest tensor */
} dtype_use;

/* "name" stands for all devices of a backend. */
static bool is_asked(const tm_name_list *asked, const char *device) {
  for (uint32_t i = 0; i < asked->count; i++) {
    const size_t length = strlen(asked->names[i]);
    if (strncmp(device, asked->names[i], length) == 0 && (device[length] == ':' || device[length] == '\0')) return true;
  }
  return false;
}

static bool went_elsewhere(const tm_job *job, const tm_name_list *asked) {
  tm_device_usage usage = { .struct_size = sizeof usage };
  for (uint32_t i = 0; tm_job_device_usage(job, i, &usage) == TM_OK; i++)
    if (usage.operation_count != 0 && !is_asked(asked, usage.device_name)) return true;
  return false;
}

/* ---- what the rows are of ---- */

static void count_tensor(dtype_use *uses, uint32_t *count, const tm_cell *dtype, const tm_cell *shape) {
  uint64_t elements = 1;
  char     name[sizeof uses->name];
  if (!dtype->defined || !shape->defined) return;
  for (uint64_t i = 0; i < shape->count && elements < SAMPLE_ELEMENTS; i++) elements *= shape->shape[i];
  snprintf(name, sizeof name, "%.*s", (int)(dtype->count < sizeof name ? dtype->count : sizeof name - 1), dtype->text);
  uint32_t at = 0;
  while (at < *count && strcmp(uses[at].name, name) != 0) at++;
  if (at == MOST_DTYPES) return;
  if (at == *count) {
    memcpy(uses[at].name, name, sizeof name);
    uses[(*count)++].element_count = 0;
  }
  if (elements > uses[at].element_count) uses[at].element_count = elements;
}

static uint32_t collect(const tm_job *job, dtype_use *uses) {
  tm_cell          cells[TM_MAX_COLUMNS];
  uint32_t         column_count = 0, count = 0;
  const tm_column *columns = tm_job_columns(job, &column_count);
  const uint32_t   dtype = tm_column_find(columns, column_count, "dtype"), shape = tm_column_find(columns, column_count, "shape");
  if (dtype == TM_NO_COLUMN || shape == TM_NO_COLUMN) return 0;
  for (uint64_t row = 0; tm_job_row(job, row, cells) == TM_OK; row++) count_tensor(uses, &count, &cells[dtype], &cells[shape]);
  return count;
}

/* ---- why ---- */

static void add_note(tm_elsewhere_notes *notes, const dtype_use *use, const tm_candidate *candidate, const tm_candidate *chosen) {
  char       *text = notes->texts[notes->count];
  tm_quantity here, there;
  if (notes->count == TM_ELSEWHERE_NOTES) return;
  notes->count++;
  if (candidate->verdict == TM_VERDICT_SLOWER)
    snprintf(text, sizeof notes->texts[0], "%.31s tensors went to %.64s: on %.64s they are expected to take longer (%s, not %s)", use->name,
             chosen->device_name, candidate->device_name, tm_quantity_duration(candidate->price_ns, &here),
             tm_quantity_duration(chosen->price_ns, &there));
  else
    snprintf(text, sizeof notes->texts[0], "%.31s tensors went to %.64s: %.64s %s%s%.256s", use->name, chosen->device_name,
             candidate->device_name, candidate->verdict == TM_VERDICT_REFUSED ? "refuses them" : "is not used for them",
             candidate->reason[0] != '\0' ? ": " : "", candidate->reason);
}

static bool is_merging(uint32_t op) { return op == TM_OP_WEIGHTED_SUM || op == TM_OP_DARE_SUM || op == TM_OP_TIES_SUM; }

static uint32_t count_inputs(uint32_t op) {
  tm_op_description about = { .struct_size = sizeof about };
  for (uint32_t i = 0; tm_op_describe(i, &about) == TM_OK; i++)
    if (about.op == op) return about.input_min < 2 ? about.input_min : 2;
  return 1;
}

/* As many tensors as it takes at least; of what merges, two of them and the numbers between.  Returns how many. */
static uint32_t fill_inputs(uint32_t op, const tm_operand *tensor, tm_operand out_inputs[MOST_INPUTS]) {
  tm_operand numbers = { .format = op == TM_OP_DARE_SUM ? TM_FORMAT_U64 : TM_FORMAT_F64, .rank = 1, .dims = { 2 } };
  if (op == TM_OP_DARE_SUM) numbers.dims[0] = 1 + TM_DARE_WORDS;
  if (op == TM_OP_TIES_SUM) numbers.dims[0] = 3;
  out_inputs[0] = out_inputs[2] = *tensor;
  out_inputs[1] = is_merging(op) ? numbers : *tensor;
  return is_merging(op) ? 3 : count_inputs(op);
}

static void explain_one(tm_elsewhere_notes *notes, tm_context *context, const tm_name_list *asked, uint32_t op, const dtype_use *use) {
  const tm_operand       input = { .format = tm_format_lookup(use->name),
                                   .rank = 1,
                                   .dims = { use->element_count < SAMPLE_ELEMENTS ? use->element_count : SAMPLE_ELEMENTS } };
  const tm_operand       output = { .format = TM_FORMAT_NONE };
  tm_operand             inputs[MOST_INPUTS];
  const uint32_t         input_count = fill_inputs(op, &input, inputs);
  const tm_run_options   options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT };
  tm_explanation        *explanation = NULL;
  tm_explanation_summary summary = { .struct_size = sizeof summary };
  tm_candidate           chosen = { .struct_size = sizeof chosen }, candidate = { .struct_size = sizeof candidate };
  if (tm_explain(context, op, NULL, 0, inputs, input_count, &output, 1, &options, &explanation, NULL) != TM_OK) return;
  tm_explanation_summarize(explanation, &summary);
  if (tm_explanation_candidate(explanation, summary.chosen, &chosen) == TM_OK && !is_asked(asked, chosen.device_name))
    for (uint32_t i = 0; tm_explanation_candidate(explanation, i, &candidate) == TM_OK; i++)
      if (is_asked(asked, candidate.device_name)) add_note(notes, use, &candidate, &chosen);
  tm_explanation_destroy(explanation);
}

/* A backend without a device is no candidate for anything. */
static bool is_asked_backend(const tm_name_list *asked, const char *backend) {
  const size_t length = strlen(backend);
  for (uint32_t i = 0; i < asked->count; i++)
    if (strncmp(asked->names[i], backend, length) == 0 && (asked->names[i][length] == ':' || asked->names[i][length] == '\0')) return true;
  return false;
}

void tm_elsewhere_notes_absent(tm_elsewhere_notes *notes, tm_context *context, const tm_name_list *asked, const char *verb) {
  tm_backend_description backend = { .struct_size = sizeof backend };
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++) {
    if (backend.device_count != 0 || notes->count == TM_ELSEWHERE_NOTES || !is_asked_backend(asked, backend.name)) continue;
    snprintf(notes->texts[notes->count++], sizeof notes->texts[0], "nothing %s to %.64s: it has no device here%s%.400s", verb,
             backend.name, backend.reason[0] != '\0' ? ": " : "", backend.reason);
  }
}

const char *tm_elsewhere_notes_left_out(tm_elsewhere_notes *notes, tm_context *context) {
  tm_backend_description backend = { .struct_size = sizeof backend };
  char                  *text = notes->texts[notes->count];
  const size_t           capacity = sizeof notes->texts[0];
  size_t                 used = 0;
  if (notes->count == TM_ELSEWHERE_NOTES) return "";
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++) {
    if (backend.state != TM_BACKEND_EXCLUDED || used + 128 >= capacity) continue;
    snprintf(text + used, capacity - used, "%s%.64s", used != 0 ? ", " : "left out by request, and not asked: ", backend.name);
    used += strlen(text + used);
  }
  if (used == 0) return "";
  notes->count++;
  return text;
}

void tm_elsewhere_notes_make(tm_elsewhere_notes *notes, tm_context *context, const tm_name_list *asked, uint32_t op, const tm_job *job) {
  dtype_use uses[MOST_DTYPES];
  notes->count = 0;
  if (asked->count == 0 || !went_elsewhere(job, asked)) return;
  tm_elsewhere_notes_absent(notes, context, asked, "went");
  const uint32_t count = collect(job, uses);
  for (uint32_t i = 0; i < count; i++) explain_one(notes, context, asked, op, &uses[i]);
}
