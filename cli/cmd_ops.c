/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "complain.h"
#include "json_writer.h"
#include "numerics_text.h"
#include "op_request.h"
#include "printable_text.h"
#include "session.h"

/* One answer to "this operation, with this format, on this device?". */
typedef struct support {
  const char *format;
  tm_support  answer;
} support;

#define FORMAT_CAPACITY 128

/* All formats that the operation takes on the device; returns how many. */
static uint32_t ask(tm_context *context, uint32_t device, uint32_t op, support *out) {
  tm_format_description format = { .struct_size = sizeof format };
  uint32_t              count = 0;
  for (uint32_t i = 0; count < FORMAT_CAPACITY && tm_format_describe(i, &format) == TM_OK; i++) {
    out[count] = (support){ format.name, { .struct_size = sizeof(tm_support) } };
    if (tm_support_query(context, device, op, format.format, &out[count].answer) != TM_OK) continue;
    if (out[count].answer.level != TM_LEVEL_REFUSED) count++;
  }
  return count;
}

static bool same_promise(const support *a, const support *b) {
  return a->answer.level == b->answer.level && a->answer.numerics == b->answer.numerics;
}

/* "  dev:0  native N0: f64 f32 f16", a line for each promise that the device makes. */
static void print_device(const char *name, support *answers, uint32_t count, tm_invocation *invocation) {
  bool done[FORMAT_CAPACITY] = { false };
  for (uint32_t i = 0; i < count; i++) {
    if (done[i]) continue;
    char         formats[FORMAT_CAPACITY * 12] = "", term[128];
    snprintf(term, sizeof term, "  %-14s %-8s %s: ", name, tm_level_name(answers[i].answer.level),
             tm_numerics_name(answers[i].answer.numerics));
    for (uint32_t j = i; j < count; j++) {
      if (!same_promise(&answers[i], &answers[j])) continue;
      done[j] = true;
      const size_t used = strlen(formats);
      snprintf(formats + used, sizeof formats - used, "%s%s", used > 0 ? " " : "", answers[j].format);
    }
    tm_printable_sentence(invocation->output, term, formats, invocation->terminal.width);
  }
}

static void print_op(tm_context *context, const tm_op_description *op, tm_invocation *invocation) {
  tm_output_stream     *stream = invocation->output;
  tm_device_description device = { .struct_size = sizeof device };
  support               answers[FORMAT_CAPACITY];
  const bool            color = invocation->terminal.color;
  char                  summary[256];
  snprintf(summary, sizeof summary, "%s (accepts %s)", op->summary, tm_numerics_name(op->default_numerics));
  tm_output_format(stream, "%s%s%s  ", color ? "\x1b[1m" : "", op->name, color ? "\x1b[0m" : "");
  tm_printable_wrap(stream, summary, strlen(op->name) + 2, invocation->terminal.width);
  for (uint32_t i = 0; tm_device_describe(context, i, &device) == TM_OK; i++) {
    const uint32_t count = device.state == TM_DEVICE_EXCLUDED ? 0 : ask(context, i, op->op, answers);
    print_device(device.name, answers, count, invocation);
  }
}

static void print_op_json(tm_context *context, const tm_op_description *op, tm_json_writer *json) {
  tm_device_description device = { .struct_size = sizeof device };
  support               answers[FORMAT_CAPACITY];
  tm_json_begin_object(json, NULL, false);
  tm_json_text(json, "name", op->name);
  tm_json_count(json, "number", op->op);
  tm_json_count(json, "version", op->version);
  tm_json_text(json, "summary", op->summary);
  tm_json_text(json, "accept", tm_numerics_name(op->default_numerics));
  tm_json_count(json, "input_min", op->input_min);
  tm_json_count(json, "input_max", op->input_max);
  tm_json_count(json, "output_count", op->output_count);
  tm_json_begin_array(json, "devices", false);
  for (uint32_t i = 0; tm_device_describe(context, i, &device) == TM_OK; i++) {
    if (device.state == TM_DEVICE_EXCLUDED) continue;
    const uint32_t count = ask(context, i, op->op, answers);
    tm_json_begin_object(json, NULL, false);
    tm_json_text(json, "device", device.name);
    tm_json_begin_array(json, "formats", false);
    for (uint32_t j = 0; j < count; j++) {
      tm_json_begin_object(json, NULL, true);
      tm_json_text(json, "format", answers[j].format);
      tm_json_text(json, "level", tm_level_name(answers[j].answer.level));
      tm_json_text(json, "numerics", tm_numerics_name(answers[j].answer.numerics));
      tm_json_number(json, "bound", answers[j].answer.numerics_bound);
      tm_json_end_object(json);
    }
    tm_json_end_array(json);
    tm_json_end_object(json);
  }
  tm_json_end_array(json);
  tm_json_end_object(json);
}

static bool is_wanted(const tm_arguments *arguments, const char *name) {
  for (uint32_t i = 0; i < arguments->operand_count; i++)
    if (strcmp(arguments->operands[i], name) == 0) return true;
  return arguments->operand_count == 0;
}

static void print_all(tm_context *context, tm_invocation *invocation) {
  tm_op_description op = { .struct_size = sizeof op };
  for (uint32_t i = 0; tm_op_describe(i, &op) == TM_OK && invocation->output->error == 0; i++)
    if (is_wanted(&invocation->arguments, op.name)) print_op(context, &op, invocation);
}

static void print_all_json(tm_context *context, tm_invocation *invocation) {
  tm_op_description op = { .struct_size = sizeof op };
  tm_json_writer    json;
  tm_json_init(&json, invocation->output);
  tm_json_begin_object(&json, NULL, false);
  tm_json_text(&json, "schema", "tensormorph.ops/1");
  tm_json_begin_array(&json, "operations", false);
  for (uint32_t i = 0; tm_op_describe(i, &op) == TM_OK && invocation->output->error == 0; i++)
    if (is_wanted(&invocation->arguments, op.name)) print_op_json(context, &op, &json);
  tm_json_end_array(&json);
  tm_json_end_object(&json);
  tm_json_finish(&json);
}

static int run(tm_invocation *invocation) {
  const tm_session_needs needs = { 0 };
  tm_context            *context = NULL;
  tm_error               error = TM_CLI_ERROR_INIT;
  tm_op_description      op;
  for (uint32_t i = 0; i < invocation->arguments.operand_count; i++)
    if (tm_op_describe_by_name(invocation->arguments.operands[i], &op, &error) != TM_OK) return tm_complain(&error);
  if (tm_session_open(&invocation->preferences, &needs, &context, &error) != TM_OK) return tm_complain(&error);
  if (invocation->preferences.json)
    print_all_json(context, invocation);
  else
    print_all(context, invocation);
  tm_context_destroy(context);
  return TM_EXIT_OK;
}

const tm_command tm_command_ops = {
  .name = "ops",
  .operands = "[OP...]",
  .operand_max = UINT32_MAX,
  .summary = "list operations: what each device can do, with which formats, how directly and how exactly",
  .notes =
      "Native: the device reads the format itself; emulated: correct through conversion or decomposition. N0: bits "
      "equal to the reference; N1: within ulps; N2: bounded by the terms of the sum; N3: within a tolerance. "
      "\"accepts\" is what a caller gets who says nothing.\n"
      "The formats listed are those of the inputs. The result y has the first input's where its line says nothing else; of "
      "several the first is usual, and --output-dtype of explain and bench chooses.",
  .run = run,
};
