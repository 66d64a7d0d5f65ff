/* SPDX-License-Identifier: Apache-2.0 */
/* What plans of all families are made of. */
#include <stdarg.h>
#include <stdio.h>

#include "webgpu_kernel.h"

/* A prologue that does not fit is cut: the module then fails to compile, which a test of the row shows. */
void webgpu_say(webgpu_plan *plan, const char *format, ...) {
  const uint32_t room = WEBGPU_PROLOGUE_BYTES - plan->prologue_length;
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(plan->prologue + plan->prologue_length, room, format, arguments);
  va_end(arguments);
  if (length > 0) plan->prologue_length += (uint32_t)length < room ? (uint32_t)length : room - 1;
}

static void say_binding(webgpu_plan *plan, uint32_t binding, const char *access, const char *name) {
  webgpu_say(plan, "@group(0) @binding(%u) var<storage, %s> %s: array<u32>;\n", binding, access, name);
}

void webgpu_say_bindings(webgpu_plan *plan, const tm_operation *operation, int has_workspace) {
  uint32_t binding = 1;
  char name[16];
  for (uint32_t i = 0; i < operation->input_count; ++i) {
    snprintf(name, sizeof name, "x%u", i);
    say_binding(plan, binding++, "read", name);
  }
  for (uint32_t i = 0; i < operation->output_count; ++i) {
    snprintf(name, sizeof name, i == 0 ? "y" : "y%u", i);
    say_binding(plan, binding++, "read_write", name);
  }
  if (has_workspace) say_binding(plan, binding, "read_write", "w");
}

webgpu_pass *webgpu_add_pass(const webgpu_limits *limits, webgpu_plan *plan, const char *entry, uint64_t items) {
  if (items == 0 || plan->pass_count == WEBGPU_PASSES) return NULL;
  const uint64_t wanted = (items + limits->workgroup_size - 1) / limits->workgroup_size;
  webgpu_pass *pass = &plan->passes[plan->pass_count++];
  pass->entry = entry;
  pass->workgroups[0] = wanted < limits->workgroup_count ? (uint32_t)wanted : limits->workgroup_count;
  pass->workgroups[1] = pass->workgroups[2] = 1;
  return pass;
}

void webgpu_put(webgpu_pass *pass, uint32_t word) {
  if (pass->parameter_count < WEBGPU_PARAMETER_WORDS) pass->parameters[pass->parameter_count++] = word;
}

uint32_t webgpu_first_byte(const webgpu_limits *limits, const tm_operand *operand) {
  const uint64_t below = kernel_bytes_below(operand);
  return (uint32_t)((below + limits->offset_alignment - 1) / limits->offset_alignment * limits->offset_alignment);
}
