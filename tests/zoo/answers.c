/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that make no sense, a different one each time; what it says yes to it can often do. */
#include <math.h>
#include <string.h>

#include "zoo.h"

typedef void (*spoil_fn)(tm_answer *answer);

static void unknown_level(tm_answer *answer) { answer->level = 77; }
static void endless_costs(tm_answer *answer) {
  answer->cost_ns = answer->spread_ns = answer->launch_ns = answer->setup_ns = UINT64_MAX;
}
static void negative_cost(tm_answer *answer) { answer->cost_ns = UINT64_C(0) - 5; }
static void too_many_changes(tm_answer *answer) { answer->change_count = 99; }
static void no_reason(tm_answer *answer) { answer->level = TM_LEVEL_REFUSED; }
static void no_text(tm_answer *answer) { answer->text = (tm_string){ NULL, 12 }; }
static void endless_text(tm_answer *answer) {
  static const char text[] = { '?' };
  answer->text = (tm_string){ text, UINT64_MAX };
}
static void unknown_class(tm_answer *answer) { answer->numerics = 99; }
static void not_a_number(tm_answer *answer) {
  answer->numerics = TM_NUMERICS_N2;
  answer->numerics_bound = NAN;
}
static void endless_workspace(tm_answer *answer) { answer->workspace_bytes = UINT64_MAX; }
static void other_epoch(tm_answer *answer) { answer->epoch = UINT64_MAX; }
static void all_ones(tm_answer *answer) {
  const tm_string text = answer->text;
  memset(answer, 0xff, sizeof *answer);
  answer->text = text;
}
static void absurd_changes(tm_answer *answer) {
  answer->level = TM_LEVEL_REFUSED;
  answer->reasons = TM_REASON_FORMAT;
  answer->operand = 200;
  answer->change_count = 2;
  answer->changes[0] = (tm_change){ .kind = TM_CHANGE_CAST, .operand = 0, .format = 0x7ffffff0u };
  answer->changes[1] = (tm_change){ .kind = 12345, .operand = 77, .axis = 99, .value = UINT64_MAX };
}

static tm_status query_nonsense(tm_backend *backend, uint32_t index, const tm_operation *const *operations, uint32_t count,
                                tm_answer *const *out_answers) {
  static const spoil_fn all[] = {
    unknown_level, endless_costs, negative_cost, too_many_changes, no_reason, no_text, endless_text, unknown_class,
    not_a_number, endless_workspace, other_epoch, all_ones, absurd_changes,
  };
  (void)index, (void)operations;
  for (uint32_t i = 0; i < count; i++) {
    zoo_accept(out_answers[i]);
    const uint64_t call = atomic_fetch_add(&backend->calls, 1);
    all[call % (sizeof all / sizeof all[0])](out_answers[i]);
  }
  return TM_OK;
}

static tm_status prepare_if_able(tm_device *device, const tm_operation *operation, const tm_answer *answer,
                                 tm_kernel **out_kernel) {
  return zoo_refuses(operation) == 0 ? zoo_prepare(device, operation, answer, out_kernel) : TM_UNSUPPORTED;
}

static tm_status launch_without_workspace(tm_device *device, const tm_launch *launch, tm_ticket *out_ticket) {
  const uint32_t operands = launch->kernel->op == TM_OP_ADD ? 3 : 2;
  return launch->binding_count == operands ? zoo_launch(device, launch, out_ticket) : TM_ERROR_ARGUMENT;
}

static const tm_accelerator_backend_plugin table = {
  ZOO_TABLE(zoo_device_info, query_nonsense, prepare_if_able, launch_without_workspace) };

TM_DEFINE_PLUGIN("zoo_answers", "1", "zoo", table)
