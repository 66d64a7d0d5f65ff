/* SPDX-License-Identifier: Apache-2.0 */
/* y = x * w with the weights w quantized to q8_0: where it ran, and why there. */
#include <inttypes.h>
#include <stdio.h>

#include <tensormorph/tensormorph.h>

enum { ROWS = 4, INNER = 256, COLUMNS = 64 };

/* x and y of a row a token; w as weights are stored, a row an output, first as f32 and then quantized. */
typedef struct operands {
  tm_tensor *x;
  tm_tensor *w;
  tm_tensor *w_q8_0;
  tm_tensor *y;
} operands;

static tm_status create(tm_context *context, operands *all, tm_error *error) {
  const uint64_t x[] = { ROWS, INNER }, w[] = { COLUMNS, INNER }, y[] = { ROWS, COLUMNS };
  tm_status status = tm_tensor_create(context, TM_FORMAT_F32, 2, x, &all->x, error);
  if (status == TM_OK) status = tm_tensor_create(context, TM_FORMAT_F32, 2, w, &all->w, error);
  if (status == TM_OK) status = tm_tensor_create(context, TM_FORMAT_Q8_0, 2, w, &all->w_q8_0, error);
  if (status == TM_OK) status = tm_tensor_create(context, TM_FORMAT_F32, 2, y, &all->y, error);
  return status;
}

static void destroy(operands *all) {
  tm_tensor_destroy(all->y);
  tm_tensor_destroy(all->w_q8_0);
  tm_tensor_destroy(all->w);
  tm_tensor_destroy(all->x);
}

static void fill(operands *all) {
  float *x = tm_tensor_data(all->x), *w = tm_tensor_data(all->w);
  for (int i = 0; i < ROWS * INNER; i++) x[i] = (float)(i % 7) - 3.0f;
  for (int i = 0; i < COLUMNS * INNER; i++) w[i] = (float)(i % 11) / 11.0f - 0.5f;
}

static tm_status multiply(tm_context *context, const operands *all, const tm_matmul_attributes *attributes, tm_error *error) {
  tm_status status = tm_run(context, TM_OP_QUANTIZE, NULL, 0, &all->w, 1, &all->w_q8_0, 1, NULL, error);
  if (status != TM_OK) return status;
  tm_run_report report = { .struct_size = sizeof report };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .report = &report };
  tm_tensor *const inputs[] = { all->x, all->w_q8_0 };
  status = tm_run(context, TM_OP_MATMUL, attributes, sizeof *attributes, inputs, 2, &all->y, 1, &options, error);
  if (status != TM_OK) return status;
  tm_device_description device = { .struct_size = sizeof device };
  (void)tm_device_describe(context, report.device, &device);
  printf("y[0][0] = %g, computed by %s in %" PRIu64 " ns\n", (double)((const float *)tm_tensor_data(all->y))[0], device.name,
         report.measured_ns);
  return TM_OK;
}

static tm_status explain(tm_context *context, const operands *all, const tm_matmul_attributes *attributes, tm_error *error) {
  static const char *const verdicts[] = { "chosen", "slower", "refused", "inexact", "excluded", "quarantined" };
  const tm_operand inputs[] = { *tm_tensor_operand(all->x), *tm_tensor_operand(all->w_q8_0) };
  const tm_operand wanted = { .format = TM_FORMAT_F32 };
  tm_explanation *explanation = NULL;
  const tm_status status =
      tm_explain(context, TM_OP_MATMUL, attributes, sizeof *attributes, inputs, 2, &wanted, 1, NULL, &explanation, error);
  if (status != TM_OK) return status;
  tm_candidate candidate = { .struct_size = sizeof candidate };
  for (uint32_t i = 0; tm_explanation_candidate(explanation, i, &candidate) == TM_OK; i++)
    printf("%-16s %-11s %12" PRIu64 " ns  %s %s\n", candidate.device_name, verdicts[candidate.verdict], candidate.total_ns,
           candidate.lowering, candidate.reason);
  tm_explanation_destroy(explanation);
  return TM_OK;
}

int main(void) {
  tm_error error = { .struct_size = sizeof error };
  const tm_matmul_attributes attributes = { .transpose_b = 1 };
  operands all = { 0 };
  tm_context *context = NULL;
  tm_status status = tm_context_create(NULL, &context, &error);
  if (status == TM_OK) status = create(context, &all, &error);
  if (status == TM_OK) {
    fill(&all);
    status = multiply(context, &all, &attributes, &error);
  }
  if (status == TM_OK) status = explain(context, &all, &attributes, &error);
  if (status != TM_OK) fprintf(stderr, "%s: %s\n", tm_status_text(status), error.text);
  destroy(&all);
  tm_context_destroy(context);
  return status == TM_OK ? 0 : 1;
}
