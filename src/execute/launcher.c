/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/launcher.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "execute/staging.h"
#include "tensor/shape.h"

/* Aligned and padded like a buffer of the device's memory. */
static tm_scratch_block take_workspace(tm_scratch *scratch, const tm_launch_site *site, tm_binding *out_binding) {
  const tm_memory_space *space = &site->device->memories[0];
  const tm_scratch_block block =
      tm_scratch_take_aligned(scratch, site->workspace_bytes + space->store_granule - 1, space->alignment);
  *out_binding = (tm_binding){ block.memory == NULL ? NULL : (tm_buffer *)tm_scratch_start(&block, space->alignment), 0,
                               site->workspace_bytes };
  return block;
}

static void *address_of(const tm_launch_site *site, uint32_t index) {
  const bool is_resident = site->residents != NULL && site->residents[index].buffer != NULL;
  return is_resident ? (void *)site->residents[index].buffer : site->pointers[index];
}

static bool are_alike(const tm_operand *read, const tm_operand *written) {
  return read->format == written->format && tm_same_dims(read, written) &&
         (read->flags & written->flags & TM_OPERAND_CONTIGUOUS) != 0;
}

uint32_t tm_launch_place_of(const tm_launch_site *site, uint32_t output) {
  const tm_operation *operation = site->operation;
  const tm_operand *written = &operation->operands[operation->input_count + output];
  if (output >= 8 || (written->flags & TM_OPERAND_IN_PLACE) == 0) return TM_NO_OPERAND;
  for (uint32_t i = 0; i < 8 && i < operation->input_count; i++)
    if ((site->alias_mask >> (output * 8 + i) & 1u) != 0 && are_alike(&operation->operands[i], written)) return i;
  return TM_NO_OPERAND;
}

/* Such outputs begin as what is read. */
static void bind_places(const tm_launch_site *site, tm_binding *bindings, tm_copy_times *copies) {
  const tm_operation *operation = site->operation;
  for (uint32_t i = 0; i < operation->output_count; i++) {
    const uint32_t place = tm_launch_place_of(site, i), output = operation->input_count + i;
    const uint64_t bytes = operation->operands[output].byte_count;
    if (place == TM_NO_OPERAND || bytes == 0 || bindings[place].buffer == bindings[output].buffer) continue;
    const tm_clock *clock = &site->device->backend->inventory->clock;
    const uint64_t begin = tm_clock_now(clock);
    memcpy(bindings[output].buffer, bindings[place].buffer, (size_t)bytes);
    copies->in_ns += tm_clock_since(clock, begin);
    bindings[place].buffer = bindings[output].buffer;
  }
}

static tm_status run_in_place(tm_scratch *scratch, const tm_launch_site *site, tm_device_use *use, tm_copy_times *copies,
                              tm_error *error) {
  const tm_operation *operation = site->operation;
  uint32_t count = operation->input_count + operation->output_count;
  tm_binding bindings[TM_MAX_OPERANDS + 1];
  for (uint32_t i = 0; i < count; i++) bindings[i] = (tm_binding){ address_of(site, i), 0, operation->operands[i].byte_count };
  bind_places(site, bindings, copies);
  tm_scratch_block workspace = { NULL, 0 };
  if (site->workspace_bytes != 0) {
    workspace = take_workspace(scratch, site, &bindings[count]);
    if (workspace.memory == NULL)
      return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a workspace of %llu bytes",
                     (unsigned long long)site->workspace_bytes);
    count++;
  }
  const tm_status status = tm_device_run(use, site->kernel, bindings, count, error);
  if (use->queue_is_left) tm_device_memory_free(site->device, workspace.memory, workspace.bytes);
  else if (!use->is_abandoned) tm_scratch_give(scratch, workspace);
  return status;
}

/* Most devices take any address, and to divide takes long. */
static bool is_multiple(uint64_t value, uint64_t unit) { return unit == 1 || value % unit == 0; }

/* Operands lie where the application has them: on a device that is particular about it they may have to be moved first.
   One that writes whole units must not reach beyond an output that it shares memory with. */
static bool works_in_place(const tm_launch_site *site) {
  const tm_memory_space *space = &site->device->memories[0];
  if (!site->device->is_host_memory) return false;
  const tm_operation *operation = site->operation;
  for (uint32_t i = 0; i < operation->input_count + operation->output_count; i++) {
    const tm_operand *operand = &operation->operands[i];
    if (site->residents != NULL && site->residents[i].buffer != NULL) continue;
    const bool is_whole = (operand->flags & TM_OPERAND_CONTIGUOUS) != 0 && is_multiple(operand->byte_count, space->store_granule) &&
                          is_multiple((uintptr_t)site->pointers[i], space->store_granule);
    if (operand->byte_count != 0 && !is_multiple((uintptr_t)site->pointers[i], space->alignment)) return false;
    if (i >= operation->input_count && space->store_granule > 1 && !is_whole) return false;
  }
  return true;
}

tm_status tm_launcher_run(tm_scratch *scratch, const tm_launch_site *site, tm_device_use *use, tm_copy_times *out_copies, tm_error *error) {
  if (!works_in_place(site)) return tm_staging_run(site, use, out_copies, error);
  tm_copy_times copies = { 0 };
  TM_TRY(run_in_place(scratch, site, use, &copies, error));
  *out_copies = copies;
  return TM_OK;
}
