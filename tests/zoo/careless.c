/* SPDX-License-Identifier: Apache-2.0 */
/* Works, and breaks one rule besides (ZOO_SLIP), mostly once only: what was changed already is not seen to change again. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "zoo.h"

#define ENVIRONMENT 0
#define FOLDER 1
#define SIGNAL 2
#define PRINTS_IN_INIT 3
#define PRINTS_IN_PREPARE 4
#define CRASHES_IN_PREPARE 5
#define WRONG_HALVES 6
#define DAWDLES 7
#define ARGUES 8
#define ARGUES_LATE 9
#define ANY_FORMAT 10
#define TRUSTS 11
#define SLOW_COMPILER 12
#define OPENS_DRIVER 13         /* of these four, none touches the environment itself */
#define OPENS_DRIVER_LATE 14
#define OPENS_RUDE_DRIVER 15
#define OPENS_BUSY_DRIVER 16
#define PONDERS 17
#define TWINS 18
#define LEAVES 19               /* the process, once it is let in */
#define SEVEN 20                /* devices */
#define BELIEVES 21             /* whatever attributes say */
#define COMPARES (ZOO_SLIP == TRUSTS || ZOO_SLIP == BELIEVES)

#define DAWDLE_NS 700000000l
#define COMPILER_NS 100000000l
#define PONDER_NS 100000000l

static void print(void) {
  const ssize_t done = write(STDOUT_FILENO, "nine byte", 9);
  (void)done;
}

/* Opened when it is first needed, as those of vendors are. */
static tm_status begin_driver(const char *variable, int times) {
  void *driver = dlopen(ZOO_DRIVER, RTLD_NOW | RTLD_LOCAL);
  void *address = driver == NULL ? NULL : dlsym(driver, "zoo_driver_begin");
  int (*begin)(const char *, int) = NULL;
  if (address == NULL) return TM_ERROR_NO_DEVICE;
  memcpy(&begin, &address, sizeof begin);
  return begin(variable, times) == 0 ? TM_OK : TM_ERROR_INTERNAL;
}

static tm_status init_carelessly(const tm_host *host, tm_backend **out_backend) {
  const struct timespec while_ = { 0, DAWDLE_NS };
  if (ZOO_SLIP == ENVIRONMENT && setenv("ZOO_WAS_HERE", "1", 1) != 0) return TM_ERROR_INTERNAL;
  if (ZOO_SLIP == OPENS_DRIVER && begin_driver("ZOO_DRIVER_WAS_HERE", 1) != TM_OK) return TM_ERROR_INTERNAL;
  if (ZOO_SLIP == OPENS_BUSY_DRIVER && begin_driver("ZOO_DRIVER_WAS_HERE", 3) != TM_OK) return TM_ERROR_INTERNAL;
  if (ZOO_SLIP == OPENS_RUDE_DRIVER && begin_driver("PATH", 1) != TM_OK) return TM_ERROR_INTERNAL;
  if (ZOO_SLIP == FOLDER && chdir("/") != 0) return TM_ERROR_INTERNAL;
  if (ZOO_SLIP == SIGNAL && signal(SIGUSR1, SIG_IGN) == SIG_ERR) return TM_ERROR_INTERNAL;
  if (ZOO_SLIP == PRINTS_IN_INIT) print();
  if (ZOO_SLIP == DAWDLES) nanosleep(&while_, NULL);
  return zoo_init(host, out_backend);
}

/* More than one, or two that say that they are one. */
static tm_status device_info_carelessly(tm_backend *backend, uint32_t index, tm_device_info *out_info) {
  const uint32_t count = ZOO_SLIP == SEVEN ? 7 : ZOO_SLIP == TWINS ? 2 : 1;
  const tm_status status = zoo_device_info(backend, index < count ? 0 : index, out_info);
  if (ZOO_SLIP == TWINS && status == TM_OK) memset(&out_info->uuid, 5, sizeof out_info->uuid);
  return status;
}

/* Halves after a cast: the refusal leads to a kernel that is wrong. */
static uint32_t propose(const tm_operation *operation, tm_answer *answer) {
  const uint32_t count = operation->input_count + operation->output_count;
  tm_operand operands[8];
  tm_operation cast = *operation;
  cast.struct_size = sizeof cast;
  if (count > 8 || zoo_strange(operation) != 0 || operation->operands[0].format != TM_FORMAT_F16) return zoo_refuses(operation);
  memcpy(operands, operation->operands, count * sizeof operands[0]);
  for (uint32_t i = 0; i < count; i++) operands[i].format = TM_FORMAT_F32, operands[i].alignment = 4;
  cast.operands = operands;
  if (zoo_refuses(&cast) != 0) return TM_REASON_FORMAT;
  for (uint32_t i = 0; i < count; i++)
    answer->changes[answer->change_count++] = (tm_change){ TM_CHANGE_CAST, i, 0, TM_FORMAT_F32, 4 };
  return TM_REASON_FORMAT;
}

/* Negates whatever has four bytes an element, or so it says. */
static uint32_t refuses_no_format(const tm_operation *operation) {
  tm_operand operands[2];
  tm_operation usual = *operation;
  usual.struct_size = sizeof usual;
  if (operation->op != TM_OP_NEG || zoo_strange(operation) != 0 || operation->operands[0].format < TM_FORMAT_U64) return zoo_refuses(operation);
  memcpy(operands, operation->operands, sizeof operands);
  operands[0].format = operands[1].format = TM_FORMAT_F32;
  usual.operands = operands;
  return zoo_refuses(&usual);
}

/* Compares, and does not look at y's format: the host has, as the operation's line leaves no choice. */
static uint32_t refuses_trustfully(const tm_operation *operation) {
  const tm_compare_attributes *attributes = operation->attributes;
  tm_operation known = *operation;
  if (operation->op != TM_OP_COMPARE) return zoo_refuses(operation);
  if (ZOO_SLIP == BELIEVES && attributes->predicate > TM_COMPARE_GREATER_EQUAL) abort();
  known.op = TM_OP_ADD;
  known.attribute_bytes = 0;
  if (!zoo_is_zero(operation, sizeof known, operation->struct_size)) return TM_REASON_DEMAND;
  known.struct_size = sizeof known;
  if (zoo_strange(&known) != 0) return zoo_strange(&known);
  if (!zoo_is_zero(attributes, sizeof *attributes, operation->attribute_bytes) || attributes->predicate > TM_COMPARE_GREATER_EQUAL || attributes->reserved != 0)
    return TM_REASON_ATTRIBUTE;
  if ((operation->flags & TM_OPERATION_ALL_SAME_SHAPE) == 0) return TM_REASON_SHAPE;
  for (uint32_t i = 0; i < 3; i++) {
    const tm_operand *operand = &operation->operands[i];
    if (i < 2 && operand->format != TM_FORMAT_F32) return TM_REASON_FORMAT;
    if ((operand->flags & TM_OPERAND_CONTIGUOUS) == 0) return TM_REASON_LAYOUT;
    if (i < 2 && operand->alignment < sizeof(float)) return TM_REASON_ALIGNMENT;
  }
  return 0;
}

static uint32_t refuses_carelessly(const tm_operation *operation, tm_answer *answer) {
  if (ZOO_SLIP == ANY_FORMAT) return refuses_no_format(operation);
  return COMPARES ? refuses_trustfully(operation) : propose(operation, answer);
}

static tm_status query_carelessly(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                                  tm_answer *const *out_answers) {
  if (ZOO_SLIP == PONDERS) nanosleep(&(struct timespec){ 0, PONDER_NS }, NULL);
  if (ZOO_SLIP != WRONG_HALVES && ZOO_SLIP != ANY_FORMAT && !COMPARES) return zoo_query(backend, index, operations, count, out_answers);
  for (uint32_t i = 0; i < count; i++) {
    tm_answer answer = { .struct_size = out_answers[i]->struct_size, .operand = TM_NO_OPERAND, .epoch = 1 };
    answer.reasons = refuses_carelessly(operations[i], &answer);
    if (answer.reasons == 0) zoo_accept(&answer);
    memcpy(out_answers[i], &answer, sizeof answer < answer.struct_size ? sizeof answer : answer.struct_size);
  }
  return TM_OK;
}

static tm_status prepare_comparison(tm_device *device, const tm_operation *operation, const tm_answer *answer, tm_kernel **out_kernel) {
  tm_operation plain = *operation;
  const uint32_t reasons = refuses_trustfully(operation);
  if (reasons != 0) return (reasons & (TM_REASON_DEMAND | TM_REASON_ATTRIBUTE)) != 0 ? TM_UNSUPPORTED : TM_ERROR_ARGUMENT;
  plain.op = TM_OP_ADD;
  plain.attribute_bytes = 0;
  plain.struct_size = sizeof plain;
  const tm_status status = zoo_prepare(device, &plain, answer, out_kernel);
  if (status != TM_OK) return status;
  (*out_kernel)->op = TM_OP_COMPARE;
  (*out_kernel)->reserved = ((const tm_compare_attributes *)operation->attributes)->predicate;
  return status;
}

static tm_status prepare_carelessly(tm_device *device, const tm_operation *operation, const tm_answer *answer,
                                    tm_kernel **out_kernel) {
  if (ZOO_SLIP == PRINTS_IN_PREPARE) print();
  if (ZOO_SLIP == OPENS_DRIVER_LATE && begin_driver("ZOO_DRIVER_WAS_HERE", 1) != TM_OK) return TM_ERROR_INTERNAL;
  if (ZOO_SLIP == ARGUES && operation->op == TM_OP_NEG) return TM_ERROR_ARGUMENT;
  if (ZOO_SLIP == CRASHES_IN_PREPARE && operation->op == TM_OP_NEG) raise(SIGSEGV);
  if (ZOO_SLIP == SLOW_COMPILER) nanosleep(&(struct timespec){ 0, COMPILER_NS }, NULL);
  if (COMPARES && operation->op == TM_OP_COMPARE) return prepare_comparison(device, operation, answer, out_kernel);
  const tm_status status = zoo_prepare(device, operation, answer, out_kernel);
  return ZOO_SLIP == ARGUES_LATE && status == TM_UNSUPPORTED ? TM_ERROR_ARGUMENT : status;
}

static void *address(const tm_binding *binding) { return (void *)((uintptr_t)binding->buffer + binding->offset); }

static tm_status launch_comparison(const tm_launch *launch) {
  const float *a = address(&launch->bindings[0]), *b = address(&launch->bindings[1]);
  unsigned char *y = address(&launch->bindings[2]);
  if (!zoo_is_zero(launch, sizeof *launch, launch->struct_size)) return TM_UNSUPPORTED;
  for (uint64_t i = 0; i < launch->kernel->count; i++) {
    const int results[] = { a[i] == b[i], a[i] != b[i], a[i] < b[i], a[i] <= b[i], a[i] > b[i], a[i] >= b[i] };
    y[i] = (unsigned char)results[launch->kernel->reserved];
  }
  return TM_OK;
}

static tm_status launch_carelessly(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  if (ZOO_SLIP == LEAVES && !zoo_is_on_trial()) exit(0);
  if (COMPARES && launch->kernel->op == TM_OP_COMPARE) return launch_comparison(launch);
  const tm_status status = zoo_launch(device, launch, out_ticket);
  const tm_binding *output = &launch->bindings[launch->binding_count - 1];
  if (ZOO_SLIP == WRONG_HALVES && status == TM_OK && launch->kernel->count != 0)
    *(float *)address(output) += 1;
  return status;
}

static const tm_accelerator_backend_plugin table = {
  .struct_size = sizeof table, .init = init_carelessly, .shutdown = zoo_shutdown, .device_info = device_info_carelessly,
  .query = query_carelessly, .prepare = prepare_carelessly, .release = zoo_release, .launch = launch_carelessly,
};

TM_DEFINE_PLUGIN(ZOO_NAME, "1", "zoo", table)
