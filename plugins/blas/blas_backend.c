/* SPDX-License-Identifier: Apache-2.0 */
/* f32 and f64 matmul by whatever CBLAS is installed, in the host's memory and on the host's cores. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blas_cost.h"
#include "blas_library.h"
#include "blas_product.h"

#define PATH_BYTES 4096u
#define MOST_THREADS 1024
#define MOST_GFLOPS 1000000

struct tm_backend {
  const tm_host *host;
  blas_library   library;
  blas_rates     rates;
};
struct tm_kernel {
  blas_product product;
};

static const tm_option library_option = {
  .struct_size = sizeof library_option, .type = TM_OPTION_TEXT, .name = TM_STRING("library"), .default_value = TM_STRING(""),
  .help = TM_STRING("File of the CBLAS to use; empty: the first of the usual ones that is found."),
};
static const tm_option threads_option = {
  .struct_size = sizeof threads_option, .type = TM_OPTION_INTEGER, .name = TM_STRING("threads"), .default_value = TM_STRING("0"),
  .help = TM_STRING("Threads of the CBLAS, set for the whole process; 0: see the plugin's README."),
};
static const tm_option gflops_option = {
  .struct_size = sizeof gflops_option, .type = TM_OPTION_INTEGER, .name = TM_STRING("gflops"), .default_value = TM_STRING("0"),
  .help = TM_STRING("Declared rate of one thread at f32, in 10^9 operations a second; 0: the usual one of this processor."),
};
static const tm_option *const options[] = { &library_option, &threads_option, &gflops_option };

static const tm_memory_space host_memory = {
  .struct_size = sizeof host_memory, .flags = TM_MEMORY_HOST_POINTER, .identity = TM_HOST_MEMORY,
  .name = TM_STRING("host memory"), .alignment = sizeof(float), .offset_granule = 1, .store_granule = 1,
};
static const tm_memory_space *const memories[] = { &host_memory };

/* ---- opening ---- */

static tm_status fail(const tm_host *host, tm_status status, const char *text) {
  return host->fail(host->context, status, 0, (tm_string){ text, strlen(text) });
}

static tm_status read_number(const tm_host *host, tm_string name, long most, uint32_t *out_number) {
  tm_string value = { NULL, 0 };
  char digits[24] = { 0 }, text[128];
  if (host->config_get(host->context, name, &value) != TM_OK) return TM_ERROR_INTERNAL;
  if (value.length < sizeof digits && value.length != 0) memcpy(digits, value.data, value.length);
  char *end = NULL;
  const long number = strtol(digits, &end, 10);
  if (end != digits && *end == '\0' && number >= 0 && number <= most) {
    *out_number = (uint32_t)number;
    return TM_OK;
  }
  snprintf(text, sizeof text, "option %.*s: expected a number from 0 to %ld, found %.23s", (int)name.length, name.data, most,
           digits[0] == '\0' ? "something else" : digits);
  return fail(host, TM_ERROR_ARGUMENT, text);
}

static tm_status read_path(const tm_host *host, char path[PATH_BYTES]) {
  tm_string value = { NULL, 0 };
  if (host->config_get(host->context, library_option.name, &value) != TM_OK) return TM_ERROR_INTERNAL;
  if (value.length >= PATH_BYTES) return fail(host, TM_ERROR_ARGUMENT, "option library: expected a path of less than 4096 bytes");
  if (value.length != 0) memcpy(path, value.data, value.length);
  path[value.length] = '\0';
  return TM_OK;
}

static tm_status blas_init(const tm_host *host, tm_backend **out_backend) {
  blas_library library;
  uint32_t threads = 0, gflops = 0;
  char path[PATH_BYTES], text[BLAS_TEXT_BYTES];
  tm_status status = read_path(host, path);
  if (status == TM_OK) status = read_number(host, threads_option.name, MOST_THREADS, &threads);
  if (status == TM_OK) status = read_number(host, gflops_option.name, MOST_GFLOPS, &gflops);
  if (status != TM_OK) return status;
  status = blas_library_open(path, threads, host->lane_count, &library, text);
  if (status != TM_OK) return fail(host, path[0] == '\0' ? status : TM_ERROR_ARGUMENT, text);
  tm_backend *backend = host->alloc(host->context, sizeof *backend, sizeof(void *));
  if (backend == NULL) return TM_ERROR_NO_MEMORY;
  *backend = (tm_backend){ host, library, blas_rates_make(&library, gflops) };
  *out_backend = backend;
  return TM_OK;
}

static void blas_shutdown(tm_backend *backend) { backend->host->free(backend->host->context, backend, sizeof *backend); }

static tm_status blas_device_info(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  if (index > 0) return TM_END;
  const tm_device_info info = {
    .struct_size = out_info->struct_size, .flags = TM_DEVICE_SYNCHRONOUS, .resource = TM_HOST_CORES,
    .name = backend->library.name, .driver_version = backend->library.version, .epoch = 1, .cost_model_id = 1,
    .queue_count = 1, .memory_count = 1, .memories = memories,
  };
  memcpy(out_info, &info, info.struct_size < sizeof info ? info.struct_size : sizeof info);
  return TM_OK;
}

/* ---- questions ---- */

static const char *text_for(uint32_t reasons, uint32_t format) {
  if (reasons == 0) return format == TM_FORMAT_F32 ? "cblas_sgemm" : "cblas_dgemm";
  if ((reasons & TM_REASON_OPERATION) != 0) return "only matmul";
  if ((reasons & TM_REASON_NUMERICS) != 0) return "sums in an order of its own, so N2 at best";
  if ((reasons & TM_REASON_DEMAND) != 0) return "bits may differ from run to run";
  if ((reasons & TM_REASON_FORMAT) != 0) return "f32 or f64, all three operands alike";
  if ((reasons & TM_REASON_SIZE) != 0) return "extents up to 2^31 - 1";
  return "one of a matrix's axes must be dense, the other a positive multiple of its elements";
}

/* Any order of adding n products: each is rounded at most n times, by half an epsilon.  NaN and infinities of the operands
   come through; where a sum overflows on its way, or not, depends on the order, so that nothing is promised of them. */
static void accept(const tm_backend *backend, const blas_product *product, tm_answer *answer) {
  answer->level = TM_LEVEL_NATIVE;
  answer->numerics = TM_NUMERICS_N2;
  answer->numerics_bound = 0.51;
  answer->growth = TM_GROWTH_LINEAR;
  answer->accumulator = product->format;
  blas_cost_fill(&backend->rates, product, answer);
}

static tm_status blas_query(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                            tm_answer *const *out_answers) {
  (void)index;
  for (uint32_t i = 0; i < count; i++) {
    blas_product product;
    tm_answer answer = { .struct_size = out_answers[i]->struct_size, .operand = TM_NO_OPERAND };
    answer.reasons = blas_product_make(operations[i], &product, &answer);
    if (answer.reasons == 0) accept(backend, &product, &answer);
    const char *text = text_for(answer.reasons, product.format);
    answer.text = (tm_string){ text, strlen(text) };
    memcpy(out_answers[i], &answer, answer.struct_size < sizeof answer ? answer.struct_size : sizeof answer);
  }
  return TM_OK;
}

static const tm_host *host_of(tm_device *device) { return ((tm_backend *)(void *)device)->host; }

static tm_status blas_prepare(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  tm_answer again = { .struct_size = sizeof again };
  blas_product product;
  (void)answer;
  const uint32_t reasons = blas_product_make(operation, &product, &again);
  if ((reasons & (TM_REASON_DEMAND | TM_REASON_ATTRIBUTE)) != 0) return TM_UNSUPPORTED;
  if (reasons != 0) return TM_ERROR_ARGUMENT;
  tm_kernel *kernel = host_of(device)->alloc(host_of(device)->context, sizeof *kernel, sizeof(uint64_t));
  if (kernel == NULL) return TM_ERROR_NO_MEMORY;
  kernel->product = product;
  *out_kernel = kernel;
  return TM_OK;
}

static void blas_release(tm_device *device, tm_kernel *kernel) {
  host_of(device)->free(host_of(device)->context, kernel, sizeof *kernel);
}

/* ---- running ---- */

static char *address_of(const tm_binding *binding) { return (char *)binding->buffer + binding->offset; }

static int is_known(const tm_launch *launch) {
  const unsigned char *bytes = (const unsigned char *)launch;
  for (uint64_t i = sizeof *launch; i < launch->struct_size; i++)
    if (bytes[i] != 0) return 0;
  return 1;
}

static tm_status blas_launch(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const tm_backend *backend = (const tm_backend *)(const void *)device;
  (void)out_ticket;
  if (!is_known(launch)) return TM_UNSUPPORTED;
  blas_product_run(&launch->kernel->product, &backend->library, address_of(&launch->bindings[0]), address_of(&launch->bindings[1]),
                   address_of(&launch->bindings[2]));
  return TM_OK;
}

static const tm_accelerator_backend_plugin blas = {
  .struct_size = sizeof blas, .option_count = sizeof options / sizeof options[0], .options = options, .init = blas_init,
  .shutdown = blas_shutdown, .device_info = blas_device_info, .query = blas_query, .prepare = blas_prepare,
  .release = blas_release, .launch = blas_launch,
};

TM_DEFINE_PLUGIN("blas", "0.1.0", "Tensormorph", blas)
