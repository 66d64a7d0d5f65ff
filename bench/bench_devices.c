/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_devices [--plugin=FILE]... [--bytes=N] [--backend=NAME]: what each device, or each of one backend, costs beside its
 * kernels, through the calls of the contract.
 *   launch    one operation on 64 elements: launch and wait; then 64 launches and one wait, a launch
 *   copies    upload and download of N bytes (64 MiB), beside the device's own copy of them
 *   pipeline  16 additions of N bytes each, enqueued in a row and waited for once; bytes read and written
 *   matmul    512 x 512 x 512 in f32, operands on the device: launch and wait
 * Medians of what a second has room for, three at least; N is smaller where a first run says that one alone would take long,
 * and printed.  Backends take their options from TENSORMORPH_<BACKEND>_<OPTION> only in the command; here from --set=B.O=V.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/context.h"
#include "base/checked.h"
#include "base/clock.h"
#include "bench.h"
#include "ops/op_table.h"
#include "plugin/device.h"
#include "tensor/shape.h"

#define ROUNDS   15u
#define FEWEST_ROUNDS 3u                        /* of a device that takes longer than this for all of them */
#define MOST_NS  UINT64_C(1000000000)
#define TRIAL_BYTES (UINT64_C(256) << 10)       /* what a device does with so few says how much it gets */
#define IN_A_ROW 64u
#define PIPELINE 16u
#define SMALL    8u             /* 8 x 8 elements */
#define SIDE     512u           /* of the product's matrices */
#define MOST_PLUGINS 16u

/* One operation made ready on one device: operands in the device's memory, filled with zeros. */
typedef struct ready {
  tm_device_slot *device;
  const tm_accelerator_backend_plugin *table;
  tm_device      *handle;
  tm_operation    operation;
  tm_operand      operands[TM_MAX_OPERANDS];
  tm_answer       answer;
  tm_kernel      *kernel;
  tm_binding      bindings[TM_MAX_OPERANDS + 1];
  uint64_t        buffer_bytes[TM_MAX_OPERANDS + 1];
  uint32_t        binding_count;
  const char     *problem;
} ready;

static const uint64_t no_attributes[8];

static bool describe(ready *r, uint32_t op, uint32_t format, uint32_t rank, const uint64_t *dims) {
  const tm_op_row *row = tm_op_find(op);
  r->operation = (tm_operation){ .struct_size = sizeof r->operation, .op = op, .version = row->version, .worst_numerics = TM_NUMERICS_N3,
                                 .attribute_bytes = row->attribute_bytes, .input_count = row->input_min, .output_count = row->output_count,
                                 .operands = r->operands, .attributes = row->attribute_bytes == 0 ? NULL : no_attributes };
  for (uint32_t i = 0; i < row->input_min; i++)
    if (tm_operand_contiguous(format, rank, dims, &r->operands[i], NULL) != TM_OK) return false;
  memset(&r->operands[row->input_min], 0, row->output_count * sizeof r->operands[0]);
  if (op == TM_OP_CAST) r->operands[1].format = TM_FORMAT_BF16;
  if (tm_op_infer_outputs(&r->operation, &r->operands[row->input_min], NULL) != TM_OK) return false;
  for (uint32_t i = 0; i < row->input_min + row->output_count; i++) r->operands[i].alignment = 64;
  tm_op_normalize(&r->operation, r->operands);
  return true;
}

static tm_status wait_for(const ready *r, tm_ticket ticket) {
  return ticket.value == 0 ? TM_OK : r->table->wait(r->handle, &ticket, 1, TM_WAIT_FOREVER);
}

static tm_status transfer(const ready *r, bool is_upload, tm_buffer *buffer, void *host, uint64_t bytes) {
  const tm_transfer what = { .struct_size = sizeof what, .destination = is_upload ? buffer : NULL, .source = is_upload ? NULL : buffer,
                             .host = host, .bytes = bytes };
  tm_ticket ticket = { 0, 0, 0 };
  const tm_status status = (is_upload ? r->table->upload : r->table->download)(r->handle, &what, &ticket);
  return status != TM_OK ? status : wait_for(r, ticket);
}

static tm_status make_buffer(ready *r, uint64_t bytes) {
  const uint32_t index = r->binding_count;
  const uint64_t granule = r->device->memories[0].store_granule;
  const uint64_t padded = (tm_max_u64(bytes, 1) + granule - 1) / granule * granule;
  tm_buffer *buffer = NULL;
  const tm_device_use use = tm_device_use_begin(r->device, NULL);
  const tm_status status = tm_device_buffer_create(&use, padded, &buffer, NULL);
  tm_device_use_end(&use);
  if (status != TM_OK) return status;
  r->bindings[index] = (tm_binding){ buffer, 0, padded };
  r->buffer_bytes[index] = padded;
  r->binding_count = index + 1;
  if (r->device->is_host_memory) {
    memset(buffer, 0, padded);
    return TM_OK;
  }
  void *zeros = calloc(1, padded);
  const tm_status moved = zeros == NULL ? TM_ERROR_NO_MEMORY : transfer(r, true, buffer, zeros, padded);
  free(zeros);
  return moved;
}

static void put_away(ready *r) {
  for (uint32_t i = 0; i < r->binding_count; i++) tm_device_buffer_destroy(r->device, r->bindings[i].buffer, r->buffer_bytes[i], NULL);
  tm_device_release(r->device, r->kernel);
}

static bool prepare(ready *r, tm_device_slot *device, uint32_t op, uint32_t format, uint32_t rank, const uint64_t *dims) {
  memset(r, 0, sizeof *r);
  r->device = device;
  r->table = &device->backend->table;
  r->problem = "cannot be described";
  if (!describe(r, op, format, rank, dims)) return false;
  const tm_operation *operation = &r->operation;
  tm_device_query(device, &operation, 1, NULL, &r->answer);
  r->problem = "refused";
  if (r->answer.level == TM_LEVEL_REFUSED) return false;
  r->problem = "failed";
  if (tm_device_prepare(device, &(tm_preparation){ operation, &r->answer, NULL, NULL }, &r->kernel, NULL) != TM_OK) return false;
  r->handle = atomic_load(&device->handle);
  tm_status status = TM_OK;
  for (uint32_t i = 0; i < operation->input_count + operation->output_count && status == TM_OK; i++)
    status = make_buffer(r, r->operands[i].byte_count);
  if (status == TM_OK && r->answer.workspace_bytes != 0) status = make_buffer(r, r->answer.workspace_bytes);
  if (status != TM_OK) put_away(r);
  return status == TM_OK;
}

/* Nanoseconds of `count` launches and one wait; 0 when a call failed. */
static double launches(const ready *r, uint32_t count) {
  const tm_launch launch = { .struct_size = sizeof launch, .kernel = r->kernel, .bindings = r->bindings, .binding_count = r->binding_count };
  tm_ticket ticket = { 0, 0, 0 };
  const uint64_t begin = tm_now_ns();
  for (uint32_t i = 0; i < count; i++) {
    tm_status status = TM_BUSY;
    while ((status = r->table->launch(r->handle, &launch, &ticket)) == TM_BUSY) (void)r->table->flush(r->handle, 0);
    if (status != TM_OK) return 0;
  }
  if (wait_for(r, ticket) != TM_OK) return 0;
  return (double)(tm_now_ns() - begin);
}

/* Whether there is another round after so many. */
static bool goes_on(uint32_t rounds, uint64_t begin_ns) {
  return rounds < FEWEST_ROUNDS || (rounds < ROUNDS && tm_now_ns() - begin_ns < MOST_NS);
}

static double median_launches(const ready *r, uint32_t count) {
  double taken[ROUNDS];
  uint32_t rounds = 0;
  const uint64_t begin = tm_now_ns();
  (void)launches(r, count);     /* what happens once is not what is asked for */
  while (goes_on(rounds, begin)) taken[rounds++] = launches(r, count);
  return bench_median(taken, rounds);
}

static void show_launches(tm_device_slot *device) {
  static const uint32_t ops[] = { TM_OP_COPY, TM_OP_CAST, TM_OP_ADD, TM_OP_EXP, TM_OP_SUM, TM_OP_STATS, TM_OP_MATMUL, TM_OP_SOFTMAX };
  const uint64_t dims[] = { SMALL, SMALL };
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
    ready r;
    const char *name = tm_op_find(ops[i])->name;
    if (!prepare(&r, device, ops[i], TM_FORMAT_F32, 2, dims)) {
      printf("  launch    %-9s %s\n", name, r.problem);
      continue;
    }
    printf("  launch    %-9s %9.2f us alone, %8.2f us in a row of %u\n", name, median_launches(&r, 1) / 1e3,
           median_launches(&r, IN_A_ROW) / 1e3 / IN_A_ROW, IN_A_ROW);
    put_away(&r);
  }
}

static double time_transfer(const ready *r, bool is_upload, void *host, uint64_t bytes) {
  double taken[ROUNDS];
  uint32_t rounds = 0;
  for (const uint64_t first = tm_now_ns(); goes_on(rounds, first); rounds++) {
    const uint64_t begin = tm_now_ns();
    if (transfer(r, is_upload, r->bindings[0].buffer, host, bytes) != TM_OK) return 0;
    taken[rounds] = (double)(tm_now_ns() - begin);
  }
  return bench_median(taken, rounds);
}

static double time_own_copy(const ready *r, uint64_t bytes) {
  double taken[ROUNDS];
  const tm_transfer what = { .struct_size = sizeof what, .destination = r->bindings[1].buffer, .source = r->bindings[0].buffer, .bytes = bytes };
  uint32_t rounds = 0;
  for (const uint64_t first = tm_now_ns(); goes_on(rounds, first); rounds++) {
    tm_ticket ticket = { 0, 0, 0 };
    const uint64_t begin = tm_now_ns();
    if (r->table->copy(r->handle, &what, &ticket) != TM_OK || wait_for(r, ticket) != TM_OK) return 0;
    taken[rounds] = (double)(tm_now_ns() - begin);
  }
  return bench_median(taken, rounds);
}

/* `moved` bytes in all, of buffers of so many. */
static void show_bandwidth(const char *what, double moved, uint64_t bytes, double ns) {
  if (ns > 0)
    printf("  %-19s %6.2f GB/s  of %llu KiB\n", what, moved / ns, (unsigned long long)(bytes >> 10));
  else
    printf("  %-19s not offered\n", what);
}

static bool prepare_addition(ready *r, tm_device_slot *device, uint64_t bytes) {
  const uint64_t count = bytes / sizeof(float);
  if (prepare(r, device, TM_OP_ADD, TM_FORMAT_F32, 1, &count)) return true;
  printf("  add of %llu KiB: %s\n", (unsigned long long)(bytes >> 10), r->problem);
  return false;
}

static void show_copies(tm_device_slot *device, uint64_t bytes) {
  ready r;
  if (device->is_host_memory || !prepare_addition(&r, device, bytes)) return;
  void *host = calloc(1, bytes);
  if (host != NULL) {
    show_bandwidth("upload", (double)bytes, bytes, time_transfer(&r, true, host, bytes));
    show_bandwidth("download", (double)bytes, bytes, time_transfer(&r, false, host, bytes));
    show_bandwidth("copy on the device", (double)bytes, bytes, time_own_copy(&r, bytes));
  }
  free(host);
  put_away(&r);
}

/* As many bytes as let all rounds take about their time; 0 if not even the trial runs. */
static uint64_t bytes_for_pipeline(tm_device_slot *device, uint64_t most) {
  ready r;
  uint64_t bytes = tm_min_u64(most, TRIAL_BYTES);
  if (!prepare_addition(&r, device, bytes)) return 0;
  (void)launches(&r, PIPELINE);
  double ns = launches(&r, PIPELINE);
  put_away(&r);
  for (; 2 * bytes <= most && 2 * ns * FEWEST_ROUNDS < (double)MOST_NS; ns *= 2) bytes *= 2;
  return bytes;
}

static void show_pipeline(tm_device_slot *device, uint64_t most_bytes) {
  ready r;
  const uint64_t bytes = bytes_for_pipeline(device, most_bytes);
  if (bytes == 0 || !prepare_addition(&r, device, bytes)) return;
  show_bandwidth("pipeline of add f32", 3.0 * (double)bytes * PIPELINE, bytes, median_launches(&r, PIPELINE));
  put_away(&r);
}

static void show_product(tm_device_slot *device) {
  const uint64_t dims[] = { SIDE, SIDE };
  ready r;
  if (!prepare(&r, device, TM_OP_MATMUL, TM_FORMAT_F32, 2, dims)) {
    printf("  matmul    %u f32: %s\n", SIDE, r.problem);
    return;
  }
  const double ns = median_launches(&r, 1);
  printf("  matmul    %u f32 %12.3f ms, %8.2f Gflop/s\n", SIDE, ns / 1e6, ns > 0 ? 2.0 * SIDE * SIDE * SIDE / ns : 0);
  put_away(&r);
}

static void show(tm_device_slot *device, uint64_t bytes) {
  printf("%s (%s)\n", device->name, device->description);
  show_launches(device);
  show_copies(device, bytes);
  show_pipeline(device, bytes);
  show_product(device);
}

static uint32_t collect(int argc, char **argv, const char *prefix, const char **values) {
  uint32_t count = 0;
  for (int i = 1; i < argc && count < MOST_PLUGINS; i++)
    if (strncmp(argv[i], prefix, strlen(prefix)) == 0) values[count++] = argv[i] + strlen(prefix);
  return count;
}

static bool is_wanted(tm_device_slot *device, int argc, char **argv) {
  const char *backends[MOST_PLUGINS];
  const uint32_t count = collect(argc, argv, "--backend=", backends);
  bool is_named = count == 0;
  for (uint32_t i = 0; i < count; i++) {
    const size_t length = strlen(backends[i]);
    is_named |= strncmp(device->name, backends[i], length) == 0 && device->name[length] == ':';
  }
  return is_named && tm_device_is_usable(device);
}

/* "backend.option=value", cut in place. */
static bool read_setting(char *text, tm_setting *out_setting) {
  char *dot = strchr(text, '.'), *equals = dot == NULL ? NULL : strchr(dot, '=');
  if (equals == NULL) return false;
  *dot = *equals = '\0';
  *out_setting = (tm_setting){ text, dot + 1, equals + 1 };
  return true;
}

int main(int argc, char **argv) {
  const char *plugins[MOST_PLUGINS], *sets[MOST_PLUGINS];
  tm_setting settings[MOST_PLUGINS];
  const uint32_t set_count = collect(argc, argv, "--set=", sets);
  for (uint32_t i = 0; i < set_count; i++)
    if (!read_setting((char *)(uintptr_t)sets[i], &settings[i])) return 2;
  const tm_context_options options = { .struct_size = sizeof options, .plugin_paths = plugins, .settings = settings, .setting_count = set_count,
                                       .plugin_path_count = collect(argc, argv, "--plugin=", plugins) };
  tm_context *context = NULL;
  tm_error error = { .struct_size = sizeof error };
  if (tm_context_create(&options, &context, &error) != TM_OK) {
    fprintf(stderr, "%s\n", error.text);
    return 1;
  }
  for (uint32_t i = 0; i < context->inventory->device_count; i++)
    if (is_wanted(context->inventory->devices[i], argc, argv)) show(context->inventory->devices[i], bench_option(argc, argv, "bytes", UINT64_C(64) << 20));
  tm_context_destroy(context);
  return 0;
}
