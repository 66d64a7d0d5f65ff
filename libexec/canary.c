/* SPDX-License-Identifier: Apache-2.0 */
#include "canary.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/error.h"
#include "canary_table.h"
#include "execute/launcher.h"
#include "execute/scratch.h"
#include "journal.h"
#include "ops/output_parts.h"
#include "plugin/device.h"
#include "plugin/enumeration.h"
#include "plugin/probe_run.h"
#include "schedule/candidate.h"
#include "tensor/codec.h"
#include "tensor/format.h"

#define QUESTIONS 32u
#define SEARCH_NS UINT64_C(1000000000)  /* what questions that look for a device's claims may take */
#define LONGEST_FAULT 240

static const canary_sizes usual = { 8, 64, 32 };

/* ---- questions ---- */

static uint64_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 33;
}

static void add_device(canary_range *range, const tm_device_slot *device) {
  if (range->count != 0 && range->last == device->index_in_backend) return;
  if (range->count++ == 0) range->first = device->index_in_backend;
  range->last = device->index_in_backend;
}

static const uint32_t first_formats[] = { TM_FORMAT_F32, TM_FORMAT_F16, TM_FORMAT_BF16, TM_FORMAT_F64, TM_FORMAT_I32, TM_FORMAT_I8 };
#define FIRST_FORMATS ((uint32_t)(sizeof first_formats / sizeof first_formats[0]))

/* In the first format that the operation takes. */
static bool make_any(uint32_t example, tm_request *out_request, tm_operation *out_operation) {
  for (uint32_t i = 0; i < FIRST_FORMATS; i++)
    if (canary_table_make(example, first_formats[i], &usual, out_request, out_operation)) return true;
  for (uint32_t i = 0; tm_format_at(i) != NULL; i++)
    if (canary_table_make(example, tm_format_at(i)->format, &usual, out_request, out_operation)) return true;
  return false;
}

/* What is told of each step has its bounds, too. */
static bool is_over(uint64_t end_ns) { return tm_now_ns() >= end_ns || journal_is_full(); }

static void ask_each_kind(tm_device_slot *device, uint64_t end_ns, canary_report *report) {
  static tm_request request;
  tm_operation operation;
  const tm_operation *pointer = &operation;
  tm_answer answer;
  for (uint32_t i = 0; i < canary_table_count(); i++) {
    if (is_over(end_ns)) {
      add_device(&report->unasked, device);
      break;
    }
    if (!make_any(i, &request, &operation)) continue;
    journal_subject("%s on device %u", tm_op_find(operation.op)->name, device->index_in_backend);
    tm_device_query(device, &pointer, 1, NULL, &answer);
  }
  journal_subject("%s", "");
}

static void ask_odd_sizes(tm_device_slot *device, uint64_t end_ns) {
  static const uint64_t extents[] = { 1, 2, 3, 7, 31, 32, 33, 64, 1000, 4096, 65536, UINT64_C(1) << 31 };
  static tm_request requests[QUESTIONS];
  static tm_operation operations[QUESTIONS];
  static tm_answer answers[QUESTIONS];
  const tm_operation *pointers[QUESTIONS];
  const uint64_t kinds = sizeof extents / sizeof extents[0];
  uint64_t state = device->index_in_backend + 1;
  uint32_t count = 0;
  for (uint32_t tries = 0; tries < 1000 && count < QUESTIONS; tries++) {
    const tm_format_info *format = tm_format_at((uint32_t)(next_random(&state) % 48));
    const canary_sizes sizes = { extents[next_random(&state) % kinds], extents[next_random(&state) % kinds],
                                 extents[next_random(&state) % kinds] };
    const uint32_t example = (uint32_t)(next_random(&state) % canary_table_count());
    if (format == NULL || !canary_table_make(example, format->format, &sizes, &requests[count], &operations[count])) continue;
    pointers[count] = &operations[count];
    count++;
  }
  journal_subject("%u operations of odd sizes on device %u", count, device->index_in_backend);
  for (uint32_t i = 0; i < count && !is_over(end_ns); i++) tm_device_query(device, &pointers[i], 1, NULL, &answers[i]);
  journal_subject("%s", "");
}

void canary_ask(tm_device_slot *device, uint64_t end_ns, canary_report *report) {
  ask_each_kind(device, end_ns, report);
  ask_odd_sizes(device, end_ns);
}

/* ---- data ---- */

typedef struct canary {
  tm_device_slot   *device;
  tm_request        request;
  tm_operation      operation;
  tm_answer         answer;
  tm_memory        *memory;
  tm_scratch        scratch;
  void             *inputs[TM_MAX_OPERANDS];
  void             *got;
  void             *expected;           /* room for a part of it */
  uint64_t          asked_ns;           /* what questions took so far */
  char              name[64];
  char              fault[LONGEST_FAULT];
} canary;

static const tm_operand *output_of(const canary *c) { return &c->request.operands[c->operation.input_count]; }

/* Small positive numbers, which every format holds nearly and every operation takes. */
static void fill(const tm_operand *operand, void *data, double rows) {
  const tm_format_info *info = tm_format_find(operand->format);
  const tm_codec *codec = tm_codec_find(operand->format);
  const uint64_t count = operand->byte_count / info->block_bytes * info->block_elements;
  char *at = data;
  double values[256];
  for (uint64_t done = 0; done < count; done += info->block_elements) {
    for (uint64_t i = 0; i < info->block_elements && i < 256; i++) {
      const uint64_t n = done + i;
      values[i] = info->kind == TM_KIND_FLOAT || info->kind == TM_KIND_BLOCK ? 0.25 + (double)(n * 7 % 32) / 64 : (double)(1 + n % 7);
      if (info->kind == TM_KIND_BOOL) values[i] = (double)(n % 2);
      if (operand->format == TM_FORMAT_I64) values[i] = (double)(n % (uint64_t)rows);
    }
    codec->encode(values, info->block_elements, at);
    at += info->block_bytes;
  }
}

/* Pages of its own, which nobody may write to: a kernel that does would end any process that gave it a mapped file. */
static bool make_input(canary *c, uint32_t i) {
  const tm_operand *operand = &c->request.operands[i];
  void *pages = mmap(NULL, (size_t)operand->byte_count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return false;
  c->inputs[i] = pages;
  if (tm_codec_find(operand->format) == NULL) return false;
  fill(operand, pages, (double)usual.rows);
  return mprotect(pages, (size_t)operand->byte_count, PROT_READ) == 0;
}

static bool make_data(canary *c) {
  const tm_op_row *row = tm_op_find(c->operation.op);
  for (uint32_t i = 0; i < c->operation.input_count; i++)
    if (!make_input(c, i)) return false;
  c->got = tm_memory_alloc(c->memory, output_of(c)->byte_count, TM_BEST_ALIGNMENT);
  c->expected = tm_memory_alloc(c->memory, output_of(c)->byte_count, TM_BEST_ALIGNMENT);
  if (c->got == NULL || c->expected == NULL || row->reference == NULL) return false;
  memset(c->got, 0xa5, (size_t)output_of(c)->byte_count);
  return true;
}

static void free_data(canary *c) {
  const uint64_t bytes = output_of(c)->byte_count;
  for (uint32_t i = 0; i < c->operation.input_count; i++)
    if (c->inputs[i] != NULL) (void)munmap(c->inputs[i], (size_t)c->request.operands[i].byte_count);
  tm_memory_free(c->memory, c->got, bytes);
  tm_memory_free(c->memory, c->expected, bytes);
  memset(c->inputs, 0, sizeof c->inputs);
  c->got = c->expected = NULL;
}

/* ---- is it right? ---- */

/* Every part of the result, as running work is looked at in a few. */
static bool is_right(canary *c) {
  tm_output_parts parts;
  void *pointers[TM_MAX_OPERANDS];
  char fault[TM_OUTPUT_FAULT_BYTES];
  memcpy(pointers, c->inputs, sizeof pointers);
  pointers[c->operation.input_count] = c->got;
  if (!tm_output_parts_init(&parts, &c->operation)) return true;
  for (uint64_t i = 0; i < parts.count; i++) {
    if (tm_output_parts_check(&parts, &c->answer, pointers, i, c->expected, fault)) continue;
    if (c->answer.numerics == TM_NUMERICS_N0)
      snprintf(c->fault, sizeof c->fault, "it gave other bits than the reference for %s in its trial, though it claims N0", c->name);
    else snprintf(c->fault, sizeof c->fault, "in its trial with %s it gave %s", c->name, fault);
    return false;
  }
  return true;
}

/* ---- running one ---- */

static tm_status launch(canary *c, tm_error *error) {
  tm_kernel *kernel = NULL;
  void *pointers[TM_MAX_OPERANDS];
  tm_copy_times copies;
  memcpy(pointers, c->inputs, sizeof pointers);
  pointers[c->operation.input_count] = c->got;
  TM_TRY(tm_device_prepare(c->device, &(tm_preparation){ &c->operation, &c->answer, NULL, NULL }, &kernel, error));
  tm_device_use use = tm_device_use_begin(c->device, NULL);
  const tm_launch_site site = { .device = c->device, .kernel = kernel, .operation = &c->operation,
                                .workspace_bytes = c->answer.workspace_bytes, .pointers = pointers };
  /* Where a running program gives it operands as they lie, so does its trial. */
  const tm_status status = tm_launcher_run(&c->scratch, &site, &use, &copies, error);
  tm_device_use_end(&use);
  tm_device_release(c->device, kernel);
  return status;
}

static void add_fault(canary_report *report, const canary *c) {
  if (report->count == report->capacity) {
    const uint32_t capacity = report->capacity == 0 ? 16 : report->capacity * 2;
    tm_backend_fault *grown = tm_arena_calloc(report->arena, capacity, sizeof *grown);
    if (grown == NULL) return;
    if (report->count != 0) memcpy(grown, report->faults, report->count * sizeof *grown);
    report->faults = grown;
    report->capacity = capacity;
  }
  const char *text = tm_arena_string(report->arena, c->fault, strlen(c->fault));
  report->faults[report->count++] = (tm_backend_fault){ c->device->index_in_backend, c->operation.op, c->request.operands[0].format,
                                                        text == NULL ? "" : text };
}

/* What is no broken promise: lack of resources, a moved epoch, a lost device. */
static bool is_excused(tm_status status) {
  return status == TM_BUSY || status == TM_STALE || status == TM_ERROR_NO_MEMORY || status == TM_ERROR_DEVICE_LOST;
}

static void run_one(canary *c, canary_report *report) {
  tm_error error = TM_ERROR_INIT;
  if (!make_data(c)) return;
  journal_subject("%s on device %u", c->name, c->device->index_in_backend);
  const tm_status status = launch(c, &error);
  journal_subject("%s", "");
  if (status == TM_BUSY) report->busy = true;
  if (status != TM_OK && !is_excused(status))
    snprintf(c->fault, sizeof c->fault, "it said yes to %s in its trial and then failed: %s%s%.120s", c->name, tm_status_name(status),
             error.text[0] == '\0' ? "" : ": ", error.text);
  const bool is_bad = (status != TM_OK && !is_excused(status)) || (status == TM_OK && !is_right(c));
  if (is_bad && report->count < TM_MOST_FAULTS) add_fault(report, c);
}

/* Asks about the example with the format; true when the device claims it as it is. */
static bool is_claimed(canary *c, uint32_t example, uint32_t format) {
  if (c->asked_ns >= SEARCH_NS || !canary_table_make(example, format, &usual, &c->request, &c->operation)) return false;
  const tm_operation *pointer = &c->operation;
  snprintf(c->name, sizeof c->name, "%s %s", tm_op_find(c->operation.op)->name, tm_format_find(format)->name);
  journal_subject("%s on device %u", tm_op_find(c->operation.op)->name, c->device->index_in_backend);
  const uint64_t begin_ns = tm_now_ns();
  tm_device_query(c->device, &pointer, 1, NULL, &c->answer);
  c->asked_ns += tm_now_ns() - begin_ns;
  journal_subject("%s", "");
  return c->answer.level != TM_LEVEL_REFUSED;
}

static bool find_claim(canary *c, uint32_t example) {
  for (uint32_t i = 0; i < FIRST_FORMATS; i++)
    if (is_claimed(c, example, first_formats[i])) return true;
  for (uint32_t i = 0; tm_format_at(i) != NULL; i++)
    if (tm_format_at(i)->has_arithmetic && is_claimed(c, example, tm_format_at(i)->format)) return true;
  return false;
}

/* What it declares for its set-up it is given where it ends in time. */
static bool has_time(const canary *c, uint64_t last_ns) {
  const uint64_t now_ns = tm_now_ns();
  return now_ns < last_ns && c->answer.setup_ns <= last_ns - now_ns;
}

void canary_run(tm_device_slot *device, uint64_t end_ns, uint64_t last_ns, canary_report *report) {
  static canary c;              /* large for a stack */
  memset(&c, 0, sizeof c);
  c.device = device;
  c.memory = device->backend->inventory->memory;
  if (tm_scratch_init(&c.scratch, c.memory) != TM_OK) return;
  for (uint32_t i = 0; i < canary_table_count() && tm_device_is_usable(device) && !report->busy; i++) {
    if (is_over(end_ns) || c.asked_ns >= SEARCH_NS) {
      add_device(&report->unrun, device);
      break;
    }
    if (!find_claim(&c, i)) continue;
    if (has_time(&c, last_ns)) run_one(&c, report);
    else add_device(&report->unrun, device);
    free_data(&c);
  }
  tm_scratch_deinit(&c.scratch);
}
