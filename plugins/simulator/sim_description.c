/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "sim_description.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim_number.h"

#define MOST_NS 1e15
#define MOST_BYTES 0x1p46
#define MOST_RATE 1e21
#define LEAST_RATE 1.0
#define AT(type, member) offsetof(type, member)

/* ---- formats and operations ---- */

static int is_float(uint32_t format) { return format == TM_FORMAT_F32 || format == TM_FORMAT_F16 || format == TM_FORMAT_BF16; }

static int expect_format(sim_reader *reader, const char *key, const json_t *value, uint32_t computes, uint32_t *out_format) {
  char expected[200] = "a format among";
  const sim_format *format = json_is_string(value) ? sim_format_by_name(json_string_value(value)) : NULL;
  if (format != NULL && (format->computes || !computes)) {
    *out_format = format->format;
    return 1;
  }
  for (uint32_t i = 0; (format = sim_format_at(i)) != NULL; i++) {
    const size_t used = strlen(expected);
    if (format->computes || !computes) snprintf(expected + used, sizeof expected - used, " %s", format->name);
  }
  return sim_complain(reader, key, expected, value);
}

static int read_list(sim_reader *reader, const char *key, const json_t *list, uint32_t *out_formats, uint32_t *out_count) {
  if (list == NULL) return 1;
  if (!json_is_array(list) || json_array_size(list) > SIM_MAX_FROM)
    return sim_complain(reader, key, "a list of up to 8 formats", list);
  for (size_t i = 0; i < json_array_size(list); i++)
    if (!expect_format(reader, key, json_array_get(list, i), 0, &out_formats[i])) return 0;
  *out_count = (uint32_t)json_array_size(list);
  return 1;
}

/* What the loops compute: copies of anything, sums and products of floats, i8 by i8 in i32. */
static int are_computed(const sim_claim *claim) {
  const uint32_t count = claim->loop->operand_count;
  uint32_t floats = 0, alike = 0;
  for (uint32_t i = 0; i < count; i++) {
    floats += (uint32_t)is_float(claim->formats[i]);
    alike += claim->formats[i] == claim->formats[0];
  }
  if (claim->loop->op == TM_OP_MATMUL && floats == 0)
    return alike == 2 && claim->formats[0] == TM_FORMAT_I8 && claim->formats[2] == TM_FORMAT_I32;
  if (claim->loop->op == TM_OP_MATMUL || claim->loop->op == TM_OP_CAST || claim->loop->op == TM_OP_SUM) return floats == count;
  return alike == count && (floats == count || claim->loop->op == TM_OP_COPY);
}

/* One format is that of all operands. */
static int read_formats(sim_reader *reader, const json_t *list, sim_claim *claim) {
  char expected[96];
  const size_t count = json_array_size(list);
  snprintf(expected, sizeof expected, "a list of 1 format, or of %u for the operands of %s", claim->loop->operand_count,
           claim->loop->name);
  if (!json_is_array(list) || (count != 1 && count != claim->loop->operand_count))
    return sim_complain(reader, "formats", expected, list);
  for (uint32_t i = 0; i < claim->loop->operand_count; i++)
    if (!expect_format(reader, "formats", json_array_get(list, count == 1 ? 0 : i), 1, &claim->formats[i])) return 0;
  return are_computed(claim) ||
         sim_complain(reader, "formats", "floats (i8, i8, i32 for a matmul; any one format for a copy)", list);
}

static const sim_loop *expect_loop(sim_reader *reader, const json_t *value) {
  const char *name = json_string_value(value);
  const sim_loop *loop = name == NULL ? NULL : sim_loop_by_name(name);
  char expected[300] = "operations among";
  if (loop != NULL && loop->op != TM_OP_CONVERT) return loop;
  for (uint32_t i = 0; (loop = sim_loop_at(i)) != NULL; i++) {
    const size_t used = strlen(expected);
    if (loop->op != TM_OP_CONVERT) snprintf(expected + used, sizeof expected - used, " %s", loop->name);
  }
  (void)sim_complain(reader, "names", expected, value);
  return NULL;
}

/* ---- numerics ---- */

static const sim_field numerics_fields[] = {
  { "class", SIM_OTHER, 0, 0, 0, 1 },
  { "bound", SIM_RATE, AT(sim_numerics, bound), 1e-9, 1e9, 0 },
  { "growth", SIM_OTHER, 0, 0, 0, 0 },
  { "accumulator", SIM_OTHER, 0, 0, 0, 0 },
};

static uint32_t index_of(const json_t *value, const char *const *words, uint32_t count) {
  for (uint32_t i = 0; json_is_string(value) && i < count; i++)
    if (strcmp(json_string_value(value), words[i]) == 0) return i;
  return count;
}

static int read_numerics_words(sim_reader *reader, const json_t *object, sim_numerics *said) {
  static const char *const classes[] = { "N0", "N1", "N2", "N3", "N4" }, *const growths[] = { "1", "log2", "n" };
  const json_t *growth = json_object_get(object, "growth"), *accumulator = json_object_get(object, "accumulator");
  said->class_number = index_of(json_object_get(object, "class"), classes, 5);
  if (said->class_number == 5) return sim_complain_of(reader, object, "class", "N0, N1, N2, N3 or N4");
  if (growth != NULL) said->growth = index_of(growth, growths, 3);
  if (said->growth == 3) return sim_complain_of(reader, object, "growth", "\"1\", \"log2\" or \"n\"");
  return accumulator == NULL || expect_format(reader, "accumulator", accumulator, 1, &said->accumulator);
}

/* A described device may promise less than the loops keep, never more. */
static int check_numerics(sim_reader *reader, const json_t *object, const sim_loop *loop, const sim_numerics *said) {
  const int needs_bound = said->class_number >= TM_NUMERICS_N1 && said->class_number <= TM_NUMERICS_N3;
  char expected[96];
  snprintf(expected, sizeof expected, "a class no stronger than N%u, which %s has", loop->numerics.class_number, loop->name);
  if (said->class_number < loop->numerics.class_number) return sim_complain_of(reader, object, "class", expected);
  if (needs_bound && said->bound == 0) return sim_complain(reader, "bound", "it to be there", NULL);
  snprintf(expected, sizeof expected, "at least %g, which %s has", loop->numerics.bound, loop->name);
  const int is_same = said->class_number == loop->numerics.class_number;
  return !is_same || said->bound >= loop->numerics.bound || sim_complain_of(reader, object, "bound", expected);
}

static int read_numerics(sim_reader *reader, const json_t *object, sim_claim *claim) {
  const sim_numerics own = claim->loop->numerics;
  sim_numerics said = { .flags = TM_NUMERICS_RUN_TO_RUN, .accumulator = TM_FORMAT_F32, .growth = TM_GROWTH_LINEAR };
  const size_t place = strlen(reader->place);
  claim->numerics = own;
  if (object == NULL) return 1;
  snprintf(reader->place + place, sizeof reader->place - place, ".numerics");
  if (!sim_read_object(reader, object, numerics_fields, sizeof numerics_fields / sizeof numerics_fields[0], &said)) return 0;
  if (!read_numerics_words(reader, object, &said) || !check_numerics(reader, object, claim->loop, &said)) return 0;
  reader->place[place] = '\0';
  claim->numerics = said;
  if (said.class_number != own.class_number) return 1;
  claim->numerics = own;
  claim->numerics.bound = said.bound;
  return 1;
}

/* ---- claims ---- */

static const sim_field claim_fields[] = {
  { "names", SIM_OTHER, 0, 0, 0, 1 },
  { "formats", SIM_OTHER, 0, 0, 0, 1 },
  { "cast_from", SIM_OTHER, 0, 0, 0, 0 },
  { "quantize_from", SIM_OTHER, 0, 0, 0, 0 },
  { "numerics", SIM_OTHER, 0, 0, 0, 0 },
  { "flops_per_second", SIM_RATE, AT(sim_claim, flops_per_second), LEAST_RATE, MOST_RATE, 1 },
  { "bytes_per_second", SIM_RATE, AT(sim_claim, bytes_per_second), LEAST_RATE, MOST_RATE, 1 },
  { "launch_ns", SIM_COUNT, AT(sim_claim, launch_ns), 0, MOST_NS, 0 },
  { "setup_ns", SIM_COUNT, AT(sim_claim, setup_ns), 0, MOST_NS, 0 },
  { "setup_key", SIM_WORD, AT(sim_claim, setup_key), 0, 0, 0 },
  { "rank_max", SIM_COUNT, AT(sim_claim, rank_max), 1, TM_MAX_RANK, 0 },
  { "m_multiple", SIM_COUNT, AT(sim_claim, m_multiple), 1, 65536, 0 },
  { "n_multiple", SIM_COUNT, AT(sim_claim, n_multiple), 1, 65536, 0 },
  { "k_multiple", SIM_COUNT, AT(sim_claim, k_multiple), 1, 65536, 0 },
  { "k_max", SIM_COUNT, AT(sim_claim, k_max), 1, MOST_BYTES, 0 },
  { "elements_max", SIM_COUNT, AT(sim_claim, elements_max), 1, MOST_BYTES, 0 },
  { "packs_b", SIM_FLAG, AT(sim_claim, packs_b), 0, 0, 0 },
};
#define CLAIM_FIELDS (sizeof claim_fields / sizeof claim_fields[0])

/* Limits that speak of M, N and K are those of a product, and packing needs whole tiles. */
static int check_product(sim_reader *reader, const json_t *object, const sim_claim *claim) {
  static const char *const keys[] = { "m_multiple", "n_multiple", "k_multiple", "k_max", "packs_b", "quantize_from" };
  if (claim->loop->op != TM_OP_MATMUL) {
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
      if (json_object_get(object, keys[i]) != NULL)
        return sim_complain_of(reader, object, keys[i], "nothing but for a matmul");
    return 1;
  }
  if (claim->k_max % claim->k_multiple != 0)
    return sim_complain_of(reader, object, "k_max", "a multiple of k_multiple");
  if (claim->rank_max < 2) return sim_complain_of(reader, object, "rank_max", "at least 2 for a matmul");
  if (claim->quantize_count != 0 && claim->formats[0] != TM_FORMAT_I8)
    return sim_complain_of(reader, object, "quantize_from", "nothing but for a matmul of i8");
  if (!claim->packs_b) return 1;
  if (claim->rank_max != 2) return sim_complain_of(reader, object, "rank_max", "2 with packs_b");
  if (claim->k_multiple % 16 != 0) return sim_complain_of(reader, object, "k_multiple", "a multiple of 16 with packs_b");
  if (claim->n_multiple % 16 != 0) return sim_complain_of(reader, object, "n_multiple", "a multiple of 16 with packs_b");
  return 1;
}

static int read_claim(sim_reader *reader, const json_t *object, const json_t *name, sim_claim *claim) {
  *claim = (sim_claim){ .rank_max = TM_MAX_RANK, .m_multiple = 1, .n_multiple = 1, .k_multiple = 1 };
  claim->loop = expect_loop(reader, name);
  const json_t *casts = json_object_get(object, "cast_from"), *quantizes = json_object_get(object, "quantize_from");
  return claim->loop != NULL && sim_read_object(reader, object, claim_fields, CLAIM_FIELDS, claim) &&
         read_formats(reader, json_object_get(object, "formats"), claim) &&
         read_list(reader, "cast_from", casts, claim->cast_from, &claim->cast_count) &&
         read_list(reader, "quantize_from", quantizes, claim->quantize_from, &claim->quantize_count) &&
         read_numerics(reader, json_object_get(object, "numerics"), claim) && check_product(reader, object, claim);
}

static int read_claims(sim_reader *reader, const json_t *list, sim_description *description) {
  if (!json_is_array(list) || json_array_size(list) == 0)
    return sim_complain(reader, "operations", "a list that is not empty", list);
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *object = json_array_get(list, i), *names = json_object_get(object, "names");
    snprintf(reader->place, sizeof reader->place, "operations[%zu]", i);
    if (!json_is_object(object)) return sim_complain(reader, "", "an object", object);
    if (!json_is_array(names) || json_array_size(names) == 0) return sim_complain(reader, "names", "a list of operations", names);
    for (size_t j = 0; j < json_array_size(names); j++) {
      if (description->claim_count == SIM_MAX_CLAIMS) return sim_complain(reader, "names", "at most 128 claims in all", names);
      if (!read_claim(reader, object, json_array_get(names, j), &description->claims[description->claim_count++])) return 0;
    }
  }
  reader->place[0] = '\0';
  return 1;
}

/* ---- the device ---- */

static const sim_field memory_fields[] = {
  { "bytes", SIM_COUNT, AT(sim_memory, bytes), 1, MOST_BYTES, 1 },
  { "alignment", SIM_COUNT, AT(sim_memory, alignment), 1, 4096, 0 },
  { "offset_granule", SIM_COUNT, AT(sim_memory, offset_granule), 1, 4096, 0 },
  { "store_granule", SIM_COUNT, AT(sim_memory, store_granule), 1, 4096, 0 },
  { "largest_buffer_bytes", SIM_COUNT, AT(sim_memory, largest_buffer_bytes), 1, MOST_BYTES, 0 },
};

static const sim_field link_fields[] = {
  { "bytes_per_second", SIM_RATE, AT(sim_link, bytes_per_second), LEAST_RATE, MOST_RATE, 1 },
  { "latency_ns", SIM_COUNT, AT(sim_link, latency_ns), 0, MOST_NS, 0 },
};

static const sim_field device_fields[] = {
  { "name", SIM_WORD, AT(sim_description, name), 0, 0, 1 },
  { "comment", SIM_OTHER, 0, 0, 0, 0 },
  { "exclusive_process", SIM_FLAG, AT(sim_description, exclusive_process), 0, 0, 0 },
  { "queues", SIM_COUNT, AT(sim_description, queues), 1, SIM_MAX_QUEUES, 0 },
  { "open_ns", SIM_COUNT, AT(sim_description, open_ns), 0, MOST_NS, 0 },
  { "memory", SIM_OTHER, 0, 0, 0, 1 },
  { "link", SIM_OTHER, 0, 0, 0, 1 },
  { "profile", SIM_OTHER, 0, 0, 0, 0 },
  { "operations", SIM_OTHER, 0, 0, 0, 1 },
};

static int is_power_of_two(uint64_t number) { return (number & (number - 1)) == 0; }

/* f32 elements must be addressable wherever a binding or a buffer may begin. */
static int read_memory(sim_reader *reader, const json_t *object, sim_memory *memory) {
  static const char granule[] = "a power of two, at least 4 and at most the alignment";
  *memory = (sim_memory){ .alignment = 64, .offset_granule = 4, .store_granule = 1 };
  snprintf(reader->place, sizeof reader->place, "memory");
  if (!sim_read_object(reader, object, memory_fields, sizeof memory_fields / sizeof memory_fields[0], memory)) return 0;
  if (!is_power_of_two(memory->alignment) || memory->alignment < 4)
    return sim_complain_of(reader, object, "alignment", "a power of two from 4 to 4096");
  if (!is_power_of_two(memory->offset_granule) || memory->offset_granule < 4 || memory->offset_granule > memory->alignment)
    return sim_complain_of(reader, object, "offset_granule", granule);
  if (!is_power_of_two(memory->store_granule))
    return sim_complain_of(reader, object, "store_granule", "a power of two");
  if (memory->largest_buffer_bytes > memory->bytes)
    return sim_complain_of(reader, object, "largest_buffer_bytes", "at most bytes");
  reader->place[0] = '\0';
  return 1;
}

static int read_link(sim_reader *reader, const json_t *object, sim_link *link) {
  snprintf(reader->place, sizeof reader->place, "link");
  if (!sim_read_object(reader, object, link_fields, sizeof link_fields / sizeof link_fields[0], link)) return 0;
  reader->place[0] = '\0';
  return 1;
}

static const sim_field profile_fields[] = {
  { "file", SIM_OTHER, 0, 0, 0, 1 },
  { "device", SIM_WORD, AT(sim_profile, device), 0, 0, 1 },
};

/* What is in it is read later, with the description's folder at hand. */
static int read_profile(sim_reader *reader, const json_t *object, sim_profile *profile) {
  if (object == NULL) return 1;
  snprintf(reader->place, sizeof reader->place, "profile");
  if (!sim_read_object(reader, object, profile_fields, sizeof profile_fields / sizeof profile_fields[0], profile)) return 0;
  const char *file = json_string_value(json_object_get(object, "file"));
  const size_t length = file == NULL ? 0 : strlen(file);
  if (length == 0 || length >= sizeof profile->file) return sim_complain_of(reader, object, "file", "a path of 1 to 1023 bytes");
  memcpy(profile->file, file, length + 1);
  reader->place[0] = '\0';
  return 1;
}

static int read_device(sim_reader *reader, const json_t *root, sim_description *description) {
  description->queues = 1;
  if (!sim_read_object(reader, root, device_fields, sizeof device_fields / sizeof device_fields[0], description)) return 0;
  const json_t *comment = json_object_get(root, "comment");
  if (comment != NULL && !json_is_string(comment)) return sim_complain(reader, "comment", "a text", comment);
  return read_memory(reader, json_object_get(root, "memory"), &description->memory) &&
         read_link(reader, json_object_get(root, "link"), &description->link) &&
         read_profile(reader, json_object_get(root, "profile"), &description->profile) &&
         read_claims(reader, json_object_get(root, "operations"), description);
}

static uint64_t hash_of(const char *bytes, size_t count) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < count; i++) hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
  return hash == 0 ? 1 : hash;
}

/* Only characters that a terminal shows: the parser's words may quote the file. */
static void make_printable(char *text) {
  for (; *text != '\0'; text++)
    if (*text < ' ' || *text > '~') *text = '?';
}

int sim_description_parse(const char *json, size_t bytes, const char *file, sim_description *out_description,
                          char text[SIM_TEXT_BYTES]) {
  json_error_t error = { .line = 0 };
  sim_reader reader = { .file = file };
  memset(out_description, 0, sizeof *out_description);
  json_t *root = json_loadb(json, bytes, JSON_REJECT_DUPLICATES, &error);
  if (root == NULL)
    snprintf(reader.text, sizeof reader.text, "%.300s: line %d, column %d: expected JSON, found: %s", file, error.line,
             error.column, error.text);
  const int is_good = root != NULL && read_device(&reader, root, out_description);
  json_decref(root);
  out_description->hash = hash_of(json, bytes);
  memcpy(text, reader.text, sizeof reader.text);
  make_printable(text);
  return is_good;
}

/* ---- files ---- */

/* All of a file, to be freed; NULL with what is wrong. */
static char *read_all(int descriptor, size_t *out_bytes, const char **out_problem) {
  struct stat about;
  *out_problem = "expected a file that can be read";
  if (fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode)) return NULL;
  *out_problem = "expected at most 1 MiB";
  if (about.st_size > (off_t)SIM_MOST_FILE_BYTES) return NULL;
  char *bytes = malloc(SIM_MOST_FILE_BYTES + 1);
  *out_problem = "no memory to read it";
  if (bytes == NULL) return NULL;
  *out_bytes = 0;
  for (ssize_t count = 1; count > 0 && *out_bytes <= SIM_MOST_FILE_BYTES; *out_bytes += count > 0 ? (size_t)count : 0)
    count = read(descriptor, bytes + *out_bytes, SIM_MOST_FILE_BYTES + 1 - *out_bytes);
  *out_problem = "expected at most 1 MiB";
  if (*out_bytes <= SIM_MOST_FILE_BYTES) return bytes;
  free(bytes);
  return NULL;
}

/* All of the file at that path, to be freed; NULL with a text. */
static char *load(const char *path, const char *what, size_t *out_bytes, char text[SIM_TEXT_BYTES]) {
  const char *problem = NULL;
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    snprintf(text, SIM_TEXT_BYTES, "%.300s: expected %s, found: %s", path, what, strerror(errno));
    return NULL;
  }
  char *bytes = read_all(descriptor, out_bytes, &problem);
  (void)close(descriptor);
  if (bytes == NULL) snprintf(text, SIM_TEXT_BYTES, "%.300s: %s", path, problem);
  return bytes;
}

/* A path in a description begins at its folder. */
static int load_profile(const char *file, sim_description *description, char text[SIM_TEXT_BYTES]) {
  sim_profile *profile = &description->profile;
  const char *slash = profile->file[0] == '/' ? NULL : strrchr(file, '/');
  const size_t folder = slash == NULL ? 0 : (size_t)(slash - file) + 1;
  size_t bytes = 0;
  char *path = malloc(folder + sizeof profile->file);
  if (path == NULL) {
    snprintf(text, SIM_TEXT_BYTES, "%.300s: no memory to read its profile", file);
    return 0;
  }
  memcpy(path, file, folder);
  memcpy(path + folder, profile->file, sizeof profile->file);
  char *content = load(path, "a profile (profile.file)", &bytes, text);
  const int is_good = content != NULL && sim_profile_parse(content, bytes, path, profile, text);
  free(content);
  free(path);
  make_printable(text);
  description->hash = hash_of((const char *)&(const uint64_t[]){ description->hash, profile->hash }, 2 * sizeof(uint64_t));
  return is_good;
}

int sim_description_read(const char *file, sim_description *out_description, char text[SIM_TEXT_BYTES]) {
  size_t bytes = 0;
  char *json = load(file, "a description of a device", &bytes, text);
  int is_good = json != NULL && sim_description_parse(json, bytes, file, out_description, text);
  if (is_good && out_description->profile.file[0] != '\0') is_good = load_profile(file, out_description, text);
  free(json);
  return is_good;
}
