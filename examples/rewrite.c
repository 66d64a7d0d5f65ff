/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a checkpoint and writes it again, in the format that the new name says, in one file or in several:
 *
 *   rewrite FILE NEW.safetensors [LARGEST_FILE_BYTES]
 *   rewrite FILE NEW.gguf
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tensormorph/tensormorph.h>

#define PIECE_BYTES (UINT64_C(4) << 20)

typedef struct rewriting {
  tm_context       *context;
  tm_checkpoint    *source;
  tm_writer_tensor *tensors;
  uint64_t          tensor_count;
  tm_writer        *writer;
} rewriting;

static int complain(const char *what, const tm_error *error) {
  fprintf(stderr, "%s: %s\n", what, error->text);
  return 1;
}

static uint32_t format_of(const char *path) {
  const size_t length = strlen(path);
  return length >= 5 && strcmp(path + length - 5, ".gguf") == 0 ? TM_WRITER_GGUF : TM_WRITER_SAFETENSORS;
}

static int list_tensors(rewriting *work) {
  tm_checkpoint_description about = { .struct_size = sizeof about };
  tm_checkpoint_describe(work->source, &about);
  work->tensor_count = about.tensor_count;
  work->tensors = calloc((size_t)about.tensor_count + 1, sizeof *work->tensors);
  if (work->tensors == NULL) return 1;
  tm_tensor_description tensor = { .struct_size = sizeof tensor };
  for (uint64_t i = 0; tm_checkpoint_tensor(work->source, i, &tensor) == TM_OK; i++)
    work->tensors[i] = (tm_writer_tensor){ .name = tensor.name, .name_length = tensor.name_length, .dims = tensor.dims,
                                           .rank = tensor.rank, .format = tensor.format, .type_name = tensor.type_name,
                                           .bytes = tensor.bytes };
  return 0;
}

/* What will happen, before anything does. */
static void print_plan(const tm_writer *writer) {
  tm_writer_description plan = { .struct_size = sizeof plan };
  tm_writer_file_description file = { .struct_size = sizeof file };
  const char *text = NULL;
  tm_writer_describe(writer, &plan);
  printf("%" PRIu64 " tensors, %" PRIu64 " bytes in %" PRIu64 " file%s\n", plan.tensor_count, plan.file_bytes, plan.file_count,
         plan.file_count == 1 ? "" : "s");
  for (uint64_t i = 0; tm_writer_file(writer, i, &file) == TM_OK; i++)
    printf("  %s  %" PRIu64 "%s\n", file.path, file.bytes, file.replaces ? "  replaces what is there" : "");
  for (uint64_t i = 0; tm_writer_removal(writer, i, &text) == TM_OK; i++) printf("  %s  goes\n", text);
  for (uint64_t i = 0; tm_writer_note(writer, i, &text) == TM_OK; i++) fprintf(stderr, "note: %s\n", text);
}

static tm_status copy_tensor(rewriting *work, uint64_t index, char *piece, tm_error *error) {
  uint64_t bytes = 0;
  (void)tm_writer_tensor_bytes(work->writer, index, &bytes);
  for (uint64_t done = 0; done < bytes; done += PIECE_BYTES) {
    const uint64_t count = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
    tm_status status = tm_checkpoint_read(work->source, index, done, piece, count, error);
    if (status == TM_OK) status = tm_writer_write(work->writer, index, done, piece, count, error);
    if (status != TM_OK) return status;
  }
  return TM_OK;
}

/* The source is looked at once more before the copy takes its place: had it changed meanwhile, the copy would be of two files. */
static tm_status copy_all(rewriting *work, tm_error *error) {
  char *piece = malloc(PIECE_BYTES);
  if (piece == NULL) return TM_ERROR_NO_MEMORY;
  tm_status status = tm_writer_begin(work->writer, error);
  for (uint64_t i = 0; i < work->tensor_count && status == TM_OK; i++) status = copy_tensor(work, i, piece, error);
  free(piece);
  if (status == TM_OK) status = tm_checkpoint_verify(work->source, error);
  return status == TM_OK ? tm_writer_finish(work->writer, error) : status;
}

static int rewrite(rewriting *work, const char *target, uint64_t shard_bytes) {
  tm_error error = { .struct_size = sizeof error };
  if (list_tensors(work) != 0) return 1;
  const tm_writer_options options = {
    .struct_size = sizeof options,
    .format = format_of(target),
    .shard_bytes = shard_bytes,
    .tensors = work->tensors,
    .tensor_count = work->tensor_count,
    .metadata_from = work->source,
  };
  if (tm_writer_create(work->context, target, &options, &work->writer, &error) != TM_OK) return complain("plan", &error);
  print_plan(work->writer);
  return copy_all(work, &error) == TM_OK ? 0 : complain("write", &error);
}

int main(int argument_count, char **arguments) {
  if (argument_count != 3 && argument_count != 4) {
    fprintf(stderr, "usage: %s FILE NEW.safetensors|NEW.gguf [LARGEST_FILE_BYTES]\n", arguments[0]);
    return 2;
  }
  tm_error error = { .struct_size = sizeof error };
  const tm_context_options options = { .struct_size = sizeof options };
  rewriting work = { 0 };
  int result = 0;
  if (tm_context_create(&options, &work.context, &error) != TM_OK)
    result = complain("context", &error);
  else if (tm_checkpoint_open(work.context, arguments[1], 0, &work.source, &error) != TM_OK)
    result = complain("open", &error);
  else
    result = rewrite(&work, arguments[2], argument_count == 4 ? strtoull(arguments[3], NULL, 10) : 0);
  tm_writer_destroy(work.writer);
  free(work.tensors);
  tm_checkpoint_close(work.source);
  tm_context_destroy(work.context);
  return result;
}
