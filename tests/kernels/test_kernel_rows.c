/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kernel of a backend against the scalar reference.  What the backend claims is found by asking: each operation with
 * each combination of formats.  Every claim is then run on random shapes, layouts, data, addresses and numbers of lanes,
 * with guards around its output, through the contract's table only.
 *
 *   test_kernel_rows [PLUGIN.so] [--seed=N] [--only=TEXT] [--bench]
 *
 * Without a path it tests the built-in backend.  --only keeps the kernels whose name contains TEXT.
 */
#include "conformance/kernel_compare.h"
#include "conformance/oracle.h"
#include "kernel_host.h"
#include "sanitized.h"

#include "base/dynamic_library.h"
#include "base/error.h"
#include "plugin/builtin_plugins.h"

#define BACKEND "cpu"
#define SEED UINT64_C(20240607)
#ifdef __SANITIZE_THREAD__              /* how threads share a row does not depend on what is in it; all others are one thread */
#define CASES_PER_CLAIM 4
#define CASES_PER_CLAIM_STATS 8
#define FIRST_HOST LANE_COUNTS
#else
#define CASES_PER_CLAIM TM_WHOLE_OR_PART(24, 8)
#define CASES_PER_CLAIM_STATS TM_WHOLE_OR_PART(100, 24)        /* its order of additions depends on content */
#define FIRST_HOST 0u
#endif
#define CASES_PER_CLAIM_BINS 4          /* results of half a megabyte */
#define CASES_PER_CLAIM_MIXED 3         /* comparisons of two formats: there are hundreds, and each format is read the same way in all */
#define TEST_ELEMENTS 8000u
#define TEST_ELEMENTS_ONE_PASS 150000u
#define TEST_ELEMENTS_REDUCE 270000u    /* beyond where threads begin to share a row */
#define BENCH_ELEMENTS (UINT64_C(1) << 22)
#define MAX_FAILURES 20

static const uint32_t all_formats[] = {
  TM_FORMAT_F32, TM_FORMAT_F64, TM_FORMAT_F16, TM_FORMAT_BF16, TM_FORMAT_F8_E4M3FN, TM_FORMAT_F8_E5M2, TM_FORMAT_I4,
  TM_FORMAT_U4, TM_FORMAT_I8, TM_FORMAT_U8, TM_FORMAT_I16, TM_FORMAT_U16, TM_FORMAT_I32, TM_FORMAT_U32, TM_FORMAT_I64,
  TM_FORMAT_U64, TM_FORMAT_BOOL, TM_FORMAT_C64, TM_FORMAT_Q8_0, TM_FORMAT_Q4_0, TM_FORMAT_Q4_K,
};
#define FORMAT_COUNT (sizeof all_formats / sizeof all_formats[0])

static const uint32_t lane_counts[] = { 1, 2, 3, 7 };
#define LANE_COUNTS (sizeof lane_counts / sizeof lane_counts[0])

typedef struct options {
  tm_plugin_query_fn query;
  const char        *only;
  const char        *isa;               /* of which the kernels are tested */
  uint64_t           seed;
  bool               bench;
} options;

typedef struct session {
  options     options;
  kernel_host hosts[LANE_COUNTS];       /* serial, with as many lanes */
  kernel_host threads;                  /* really in parallel */
  uint32_t    claims, runs, refused_layouts, failures;
} session;

static void describe(const kernel_case *c, const char *text) {
  char dims[160];
  printf("  %s %s:", tm_op_find(c->operation.op)->name, text);
  for (uint32_t i = 0; i <= c->operation.input_count; ++i) {
    tm_format_dims(&c->operands[i], dims, sizeof dims);
    printf(" %s%s%s", tm_format_find(c->operands[i].format)->name, dims, c->operands[i].flags & TM_OPERAND_CONTIGUOUS ? "" : "(view)");
  }
  printf("\n");
}

static bool fail(session *s, const kernel_case *c, const char *kernel, const char *what) {
  s->failures++;
  printf("FAILED %s: %s\n", kernel, what);
  describe(c, "with");
  return false;
}

/* The scale and the integers; the lowest integer becomes the highest one, as nearly as it goes. */
static void make_block_positive(uint32_t format, unsigned char *block) {
  block[1] &= 0x7f;
  for (uint32_t i = 2; i < tm_format_find(format)->block_bytes; ++i) {
    const int low = block[i] & 15, high = block[i] >> 4, whole = (int8_t)block[i];
    if (format == TM_FORMAT_Q8_0) block[i] = (unsigned char)(whole == INT8_MIN ? INT8_MAX : abs(whole));
    else block[i] = (unsigned char)((low == 0 ? 15 : 8 + abs(low - 8)) | (high == 0 ? 15 : 8 + abs(high - 8)) << 4);
  }
}

/* Magnitudes of all elements; `sign` -1 makes them negative (of zero points, which are subtracted). */
static void make_magnitudes(const tm_operand *operand, const case_buffer *buffer, double sign) {
  const tm_format_info *info = tm_format_find(operand->format);
  double values[256];
  for (uint64_t b = 0; b + info->block_bytes <= operand->byte_count; b += info->block_bytes) {
    unsigned char *block = buffer->lowest + b;
    if (info->kind == TM_KIND_BLOCK) {
      make_block_positive(info->format, block);
      continue;
    }
    tm_codec_find(info->format)->decode(block, info->block_elements, values);
    for (uint32_t e = 0; e < info->block_elements; ++e) values[e] = sign * fabs(values[e]);
    tm_codec_find(info->format)->encode(values, info->block_elements, block);
  }
}

/* The terms of operations that say themselves what these are, laid out as the output. */
static bool make_oracle_terms(const kernel_case *c, void *const *pointers, const case_buffer *terms) {
  const tm_operand *y = &c->operands[c->operation.input_count];
  const tm_codec *codec = tm_codec_find(y->format);
  oracle o;
  if (!oracle_make(&o, c, pointers)) return false;
  for (uint64_t i = 0; i < o.count; ++i) {
    unsigned char *at = terms->first;
    uint64_t rest = i;
    for (uint32_t axis = y->rank; axis-- > 0; rest /= y->dims[axis]) at += (int64_t)(rest % y->dims[axis]) * y->strides_bytes[axis];
    codec->encode(&o.terms[i], 1, at);
  }
  oracle_free(&o);
  return true;
}

/* The magnitudes that are added up in each output: the reference of the operation over absolute values. */
static bool make_terms(const kernel_case *c, const case_buffer *inputs, case_buffer *terms) {
  static const uint32_t sums[] = { TM_OP_MATMUL, TM_OP_MATMUL_SCALED, TM_OP_SUM, TM_OP_MEAN };
  const uint32_t op = c->operation.op, y = c->operation.input_count;
  void *at[CASE_MAX_OPERANDS];
  case_buffer magnitudes[CASE_MAX_OPERANDS];
  bool is_sum = false;
  for (size_t i = 0; i < sizeof sums / sizeof sums[0]; ++i) is_sum = is_sum || sums[i] == op;
  const bool is_told = op == TM_OP_ROPE || op == TM_OP_ATTENTION;
  if ((!is_sum && !is_told) || !buffer_make(terms, &c->operands[y], 0)) return false;
  for (uint32_t i = 0; i < y; ++i) at[i] = inputs[i].first;
  if (is_told) return make_oracle_terms(c, at, terms);
  for (uint32_t i = 0; i < y; ++i) {
    buffer_make(&magnitudes[i], &c->operands[i], 0);
    memcpy(magnitudes[i].lowest, inputs[i].lowest, c->operands[i].byte_count);
    make_magnitudes(&c->operands[i], &magnitudes[i], i >= 4 ? -1 : 1);
    at[i] = magnitudes[i].first;
  }
  at[y] = terms->first;
  const tm_op_row *row = tm_op_find(op);
  row->reference(&c->operation, at, 0, row->units(&c->operation));
  for (uint32_t i = 0; i < y; ++i) free(magnitudes[i].memory);
  return true;
}

static bool compare_outputs(session *s, const kernel_case *c, const tm_answer *answer, const case_buffer *actual,
                            const case_buffer *expected, const case_buffer *terms) {
  const tm_operand *y = &c->operands[c->operation.input_count];
  const uint32_t step = tm_format_find(y->format)->block_bytes;
  const char *kernel = answer->text.data;
  const uint64_t offset = (uint64_t)(actual->lowest - actual->memory);
  const uint64_t end = offset + y->byte_count;
  if (!case_is_guard(actual->memory, offset) || !case_is_guard(actual->memory + end, actual->bytes - end))
    return fail(s, c, kernel, "wrote outside its output");
  if (memcmp(actual->lowest, expected->lowest, y->byte_count) == 0) return true;
  for (uint64_t at = 0; at + step <= y->byte_count; at += step) {
    if (block_is_close(&c->operation, answer, actual->lowest + at, expected->lowest + at, terms != NULL ? terms->lowest + at : NULL)) continue;
    char text[200];
    uint64_t bits[2] = { 0, 0 };
    memcpy(&bits[0], actual->lowest + at, step < 8 ? step : 8);
    memcpy(&bits[1], expected->lowest + at, step < 8 ? step : 8);
    snprintf(text, sizeof text, "element %llu: bits %llx, the reference has %llx", (unsigned long long)(at / step),
             (unsigned long long)bits[0], (unsigned long long)bits[1]);
    return fail(s, c, kernel, text);
  }
  return true;
}

/* Runs a claimed case on one host and compares. */
static bool run_on(session *s, kernel_host *host, const kernel_case *c, const tm_answer *answer, case_buffer *buffers,
                   const case_buffer *expected, const case_buffer *terms, uint64_t misalignment) {
  const uint32_t y = c->operation.input_count;
  void *pointers[CASE_MAX_OPERANDS];
  kernel_run run;
  bool good = true;
  if (!buffer_make(&buffers[y], &c->operands[y], misalignment)) return fail(s, c, answer->text.data, "no memory");
  for (uint32_t i = 0; i <= y; ++i) pointers[i] = buffers[i].first;
  if (kernel_run_prepare(&run, host, &c->operation) != TM_OK || kernel_run_launch(&run, pointers) != TM_OK) {
    good = fail(s, c, answer->text.data, host->text);
  } else {
    good = compare_outputs(s, c, answer, &buffers[y], expected, terms);
  }
  kernel_run_release(&run);
  free(buffers[y].memory);
  s->runs++;
  return good;
}

static bool inputs_unchanged(const kernel_case *c, const case_buffer *buffers, const case_buffer *copies) {
  for (uint32_t i = 0; i < c->operation.input_count; ++i) {
    if (memcmp(buffers[i].memory, copies[i].memory, buffers[i].bytes) != 0) return false;
  }
  return true;
}

/* Data, reference result, then every host. */
static bool run_case(session *s, const kernel_case *c, const tm_answer *answer, temper t, uint64_t *state) {
  const tm_op_row *row = tm_op_find(c->operation.op);
  const uint32_t y = c->operation.input_count;
  case_buffer buffers[CASE_MAX_OPERANDS], copies[CASE_MAX_OPERANDS], expected, terms;
  void *pointers[CASE_MAX_OPERANDS];
  bool good = true;
  for (uint32_t i = 0; i < y; ++i) {
    const uint64_t step = tm_format_find(c->operands[i].format)->block_bytes;
    const uint64_t misalignment = random_below(state, 3) == 0 ? random_below(state, 16) : random_below(state, 8) * step;
    if (!buffer_make(&buffers[i], &c->operands[i], misalignment) || !buffer_make(&copies[i], &c->operands[i], misalignment)) return false;
    buffer_fill(&buffers[i], &c->operands[i], t, state);
    case_fill_special(c, i, buffers[i].lowest, state);
    memcpy(copies[i].memory, buffers[i].memory, buffers[i].bytes);
    pointers[i] = buffers[i].first;
  }
  if (!buffer_make(&expected, &c->operands[y], 0)) return false;
  pointers[y] = expected.first;
  row->reference(&c->operation, pointers, 0, row->units(&c->operation));
  const bool has_terms = answer->numerics == TM_NUMERICS_N2 && make_terms(c, buffers, &terms);
  for (size_t h = FIRST_HOST; h <= LANE_COUNTS && good; ++h) {
    good = run_on(s, h < LANE_COUNTS ? &s->hosts[h] : &s->threads, c, answer, buffers, &expected, has_terms ? &terms : NULL, random_below(state, 16));
  }
  if (good && !inputs_unchanged(c, buffers, copies)) good = fail(s, c, answer->text.data, "wrote to an input");
  for (uint32_t i = 0; i < y; ++i) {
    free(buffers[i].memory);
    free(copies[i].memory);
  }
  free(expected.memory);
  if (has_terms) free(terms.memory);
  return good;
}

/* A refusal says why, and what it says would help does help. */
static bool check_refusal(session *s, const kernel_case *c, const tm_answer *answer) {
  if (answer->reasons == 0) return fail(s, c, "refusal", "no reason given");
  if (answer->change_count > TM_MAX_CHANGES) return fail(s, c, "refusal", "too many changes");
  kernel_case changed = *c;
  changed.operation.operands = changed.operands;
  for (uint32_t i = 0; i < answer->change_count; ++i) {
    const tm_change *change = &answer->changes[i];
    tm_operand *operand = &changed.operands[change->operand];
    if (change->kind != TM_CHANGE_CONTIGUOUS) operand->format = change->format;
    const tm_operand before = *operand;
    if (tm_operand_contiguous(before.format, before.rank, before.dims, operand, NULL) != TM_OK) return fail(s, c, "refusal", "an impossible change");
  }
  if (answer->change_count == 0) return true;
  tm_op_normalize(&changed.operation, changed.operands);
  if (kernel_host_query(&s->hosts[0], &changed.operation).level == TM_LEVEL_REFUSED) return fail(s, c, "refusal", "the changes do not help");
  return true;
}

/* Several superblocks where sums are split at them. */
static uint64_t test_elements(const tm_op_row *row) {
  if (row->op_class == TM_CLASS_REDUCE) return TEST_ELEMENTS_REDUCE;
  return row->combine == TM_COMBINE_WORDS ? TEST_ELEMENTS_ONE_PASS : TEST_ELEMENTS;
}

static int cases_of(const tm_op_row *row, const uint32_t *formats) {
  if (row->op == TM_OP_COMPARE_TENSORS && formats[0] != formats[1]) return CASES_PER_CLAIM_MIXED;
  if (row->op == TM_OP_MAGNITUDES) return CASES_PER_CLAIM_BINS;
  return row->op == TM_OP_STATS ? CASES_PER_CLAIM_STATS : CASES_PER_CLAIM;
}

/* Large enough for every part of a kernel once, then at random; every third is spread out in memory. */
static void test_claim(session *s, const tm_op_row *row, uint32_t inputs, const uint32_t *formats) {
  uint64_t state = s->options.seed ^ ((uint64_t)row->op << 32) ^ (formats[0] << 16) ^ formats[inputs];
  const int cases = cases_of(row, formats);
  for (int i = 0; i < cases && s->failures < MAX_FAILURES; ++i) {
    kernel_case c;
    if (!case_make(&c, row, inputs, formats, test_elements(row), &state)) continue;
    if (row->op == TM_OP_COPY && i % 3 != 2 && tm_format_find(formats[0])->block_elements == 1) case_transpose(&c.operands[0]);
    for (uint32_t k = 0; k <= inputs && i % 3 == 2; ++k) {
      if (random_below(&state, 2)) case_spread(&c.operands[k], &state);
    }
    tm_op_normalize(&c.operation, c.operands);
    const tm_answer answer = kernel_host_query(&s->hosts[0], &c.operation);
    if (answer.level == TM_LEVEL_REFUSED) {
      s->refused_layouts++;
      check_refusal(s, &c, &answer);
      continue;
    }
    const temper t = answer.numerics >= TM_NUMERICS_N2 ? TEMPER_PLAIN : (temper)(i % TEMPER_COUNT);
    run_case(s, &c, &answer, t, &state);
  }
}

/* ---- benchmark ---- */

static double best_of(uint32_t rounds, void (*function)(void *argument), void *argument) {
  double best = HUGE_VAL;
  for (uint32_t r = 0; r < rounds; ++r) {
    const uint64_t start = tm_now_ns();
    function(argument);
    const double ns = (double)(tm_now_ns() - start);
    if (ns < best) best = ns;
  }
  return best;
}

typedef struct bench_job {
  const kernel_case *c;
  const kernel_run  *run;
  void             **pointers;
  void              *copy;
} bench_job;

static void bench_kernel(void *argument) {
  const bench_job *job = argument;
  kernel_run_launch(job->run, job->pointers);
}
static void bench_reference(void *argument) {
  const bench_job *job = argument;
  const tm_op_row *row = tm_op_find(job->c->operation.op);
  row->reference(&job->c->operation, job->pointers, 0, row->units(&job->c->operation));
}
static void bench_copy(void *argument) {
  const bench_job *job = argument;
  memcpy(job->copy, job->pointers[0], job->c->operands[0].byte_count);
}

/* Large enough to be worth measuring; of attention by its products. */
static bool is_large(const kernel_case *c, uint64_t limit) {
  const tm_operand *x = &c->operands[0], *k = &c->operands[1];
  if (c->operation.op == TM_OP_ATTENTION) return x->element_count * k->dims[k->rank - 3] >= limit;
  return x->element_count >= limit / 8;
}

static void bench_claim(session *s, const tm_op_row *row, uint32_t inputs, const uint32_t *formats) {
  uint64_t state = s->options.seed;
  kernel_case c;
  const uint64_t limit = BENCH_ELEMENTS;
  do {
    if (!case_make(&c, row, inputs, formats, limit, &state)) return;
  } while (!is_large(&c, limit) || c.operands[inputs].element_count == 0);
  if (row->op == TM_OP_COPY) case_transpose(&c.operands[0]);
  tm_op_normalize(&c.operation, c.operands);
  const tm_answer answer = kernel_host_query(&s->hosts[0], &c.operation);
  kernel_run run;
  if (answer.level == TM_LEVEL_REFUSED || kernel_run_prepare(&run, &s->hosts[0], &c.operation) != TM_OK) return;
  case_buffer buffers[CASE_MAX_OPERANDS];
  void *pointers[CASE_MAX_OPERANDS];
  double bytes = 0;
  for (uint32_t i = 0; i <= inputs; ++i) {
    buffer_make(&buffers[i], &c.operands[i], 0);
    if (i < inputs) buffer_fill(&buffers[i], &c.operands[i], TEMPER_PLAIN, &state);
    if (i < inputs) case_fill_special(&c, i, buffers[i].lowest, &state);
    pointers[i] = buffers[i].first;
    bytes += (double)c.operands[i].byte_count;
  }
  if (row->op == TM_OP_GATHER) bytes = 2 * (double)c.operands[inputs].byte_count;
  bench_job job = { &c, &run, pointers, malloc(c.operands[0].byte_count + 1) };
  const double kernel = best_of(7, bench_kernel, &job), reference = best_of(2, bench_reference, &job), copy = best_of(7, bench_copy, &job);
  const double declared = (double)answer.cost_ns / kernel;
  printf("%-36s %6.2f GB/s  reference x%6.2f  memcpy of x: %5.1f %%  declared/measured %5.2f ", answer.text.data, bytes / kernel,
         reference / kernel, 100 * (bytes / kernel) / (2 * (double)c.operands[0].byte_count / copy), declared);
  describe(&c, "");
  kernel_run_release(&run);
  for (uint32_t i = 0; i <= inputs; ++i) free(buffers[i].memory);
  free(job.copy);
}

/* ---- every claim ---- */

/* Some kernels are for views only, so a refusal of dense operands is not the last word. */
static tm_answer ask(session *s, const tm_op_row *row, uint32_t inputs, const uint32_t *formats, bool *out_is_valid) {
  uint64_t state = s->options.seed;
  tm_answer answer = { 0 };
  for (int attempt = 0; attempt < 12; ++attempt) {
    kernel_case c;
    if (!case_make(&c, row, inputs, formats, 64, &state)) break;
    *out_is_valid = true;
    const bool is_plain = tm_format_find(formats[0])->block_elements == 1;
    if (attempt % 2 == 1 && is_plain) case_transpose(&c.operands[0]);
    else if (attempt > 0) case_spread(&c.operands[0], &state);
    tm_op_normalize(&c.operation, c.operands);
    answer = kernel_host_query(&s->hosts[0], &c.operation);
    if (answer.level != TM_LEVEL_REFUSED) break;
    check_refusal(s, &c, &answer);
  }
  return answer;
}

static void try_formats(session *s, const tm_op_row *row, uint32_t inputs, const uint32_t *formats) {
  bool is_valid = false;
  const tm_answer answer = ask(s, row, inputs, formats, &is_valid);
  if (!is_valid || answer.level == TM_LEVEL_REFUSED) return;
  if (s->options.only != NULL && strstr(answer.text.data, s->options.only) == NULL) return;
  if (strstr(answer.text.data, s->options.isa) == NULL) return;
  s->claims++;
  if (s->options.bench) bench_claim(s, row, inputs, formats);
  else test_claim(s, row, inputs, formats);
}

static void try_operation(session *s, const tm_op_row *row) {
  uint32_t formats[CASE_MAX_OPERANDS];
  for (uint32_t inputs = row->input_min; inputs <= case_most_inputs(row); ++inputs) {
    for (size_t a = 0; a < FORMAT_COUNT; ++a) {
      for (size_t b = 0; b < (inputs > 1 ? FORMAT_COUNT : 1); ++b) {
        for (size_t y = 0; y < FORMAT_COUNT && s->failures < MAX_FAILURES; ++y) {
          formats[0] = all_formats[a];
          if (inputs > 1) formats[1] = all_formats[b];
          case_fill_formats(row, inputs, formats);
          formats[inputs] = all_formats[y];
          try_formats(s, row, inputs, formats);
        }
      }
    }
  }
}

/* Without an instruction set nothing is claimed, and an unknown one is an error that says so. */
static void test_forced_variants(session *s) {
  kernel_host none, unknown;
  kernel_case c;
  uint64_t state = s->options.seed;
  kernel_host_open(&none, s->options.query, "none", 2, 0);
  if (none.status != TM_OK || !case_make(&c, tm_op_find(TM_OP_STATS), 1, (uint32_t[]){ TM_FORMAT_F32, TM_FORMAT_U64 }, 64, &state)) {
    s->failures++;
    printf("FAILED isa=none does not open\n");
    return;
  }
  tm_op_normalize(&c.operation, c.operands);
  const tm_answer answer = kernel_host_query(&none, &c.operation);
  if (answer.level != TM_LEVEL_REFUSED || answer.reasons == 0 || answer.text.length == 0) fail(s, &c, "isa=none", "is no refusal with a reason");
  kernel_host_close(&none);
  kernel_host_open(&unknown, s->options.query, "pocket-calculator", 2, 0);
  if (unknown.status != TM_ERROR_ARGUMENT || unknown.text[0] == 0) {
    s->failures++;
    printf("FAILED an unknown isa is accepted\n");
  }
  kernel_host_close(&unknown);
}

static tm_plugin_query_fn find_backend(const char *path) {
  tm_plugin_query_fn query = NULL;
  void *library = NULL;
  tm_error error = TM_ERROR_INIT;
  for (uint32_t i = 0; i < tm_builtin_plugin_count && path == NULL; ++i) {
    if (strcmp(tm_builtin_plugins[i].name, BACKEND) == 0) query = tm_builtin_plugins[i].query;
  }
  if (path != NULL && (tm_library_open(path, &library, &error) != TM_OK || tm_library_symbol(library, path, "tm_plugin_query", &query, &error) != TM_OK)) {
    printf("%s: %s\n", path, error.text);
  }
  return query;
}

static bool read_options(int argc, char **argv, options *out) {
  const char *path = NULL;
  *out = (options){ .seed = SEED };
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--bench") == 0) out->bench = true;
    else if (strncmp(argv[i], "--seed=", 7) == 0) out->seed = strtoull(argv[i] + 7, NULL, 10);
    else if (strncmp(argv[i], "--only=", 7) == 0) out->only = argv[i] + 7;
    else path = argv[i];
  }
  out->query = find_backend(path);
  return out->query != NULL;
}

/* Rows of other instruction sets than this one have their turn with those.  Returns 0 if the machine has no such set. */
static bool test_isa(session *s, const char *isa) {
  s->options.isa = isa;
  for (size_t h = 0; h < LANE_COUNTS; ++h) kernel_host_open(&s->hosts[h], s->options.query, isa, lane_counts[h], 0);
  kernel_host_open(&s->threads, s->options.query, isa, 0, 3);
  const bool is_there = s->hosts[0].status == TM_OK;
  if (is_there) for (uint32_t i = 0; tm_op_at(i) != NULL; ++i) try_operation(s, tm_op_at(i));
  else printf("not tested: %s\n", s->hosts[0].text);
  for (size_t h = 0; h < LANE_COUNTS; ++h) kernel_host_close(&s->hosts[h]);
  kernel_host_close(&s->threads);
  return is_there;
}

int main(int argc, char **argv) {
  session s = { 0 };
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (!read_options(argc, argv, &s.options)) return 1;
  printf("seed %llu\n", (unsigned long long)s.options.seed);
  if (!test_isa(&s, "avx2")) {
    printf("skipped: there is nothing to test\n");
    return 77;
  }
  test_isa(&s, "avx512");
  test_forced_variants(&s);
  printf("%u claims, %u runs, %u refused layouts, %u failures\n", s.claims, s.runs, s.refused_layouts, s.failures);
  return s.failures > 0 || s.claims == 0;
}
