/* SPDX-License-Identifier: Apache-2.0 */
#include "vocabulary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_PIECE 4096
#define BEGIN_TOKEN 1u
#define EXPECTED "expected is llama2.c's tokenizer file of the model's %u tokens, and without one tokens are printed as numbers"

static char *read_piece(FILE *file) {
  float score;
  int32_t length;
  if (fread(&score, sizeof score, 1, file) != 1 || fread(&length, sizeof length, 1, file) != 1) return NULL;
  if (length < 0 || length > LONGEST_PIECE) return NULL;
  char *piece = calloc((size_t)length + 1, 1);
  if (piece == NULL || fread(piece, 1, (size_t)length, file) == (size_t)length) return piece;
  free(piece);
  return NULL;
}

/* How many tokens were read. */
static uint32_t read_pieces(llama_vocabulary *vocabulary, FILE *file) {
  int32_t longest;
  uint32_t read = 0;
  if (fread(&longest, sizeof longest, 1, file) != 1) return 0;
  while (read < vocabulary->count && (vocabulary->pieces[read] = read_piece(file)) != NULL) read++;
  return read;
}

int llama_vocabulary_read(llama_vocabulary *vocabulary, const char *path, uint32_t count) {
  *vocabulary = (llama_vocabulary){ NULL, count };
  if (path == NULL) return 1;
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    fprintf(stderr, "--vocabulary %s: cannot be opened: %s; " EXPECTED "\n", path, strerror(errno), count);
    return 0;
  }
  vocabulary->pieces = calloc(count, sizeof *vocabulary->pieces);
  const uint32_t read = vocabulary->pieces == NULL ? 0 : read_pieces(vocabulary, file);
  fclose(file);
  if (read == count) return 1;
  fprintf(stderr, "--vocabulary %s: only %u of its tokens can be read; " EXPECTED "\n", path, read, count);
  llama_vocabulary_free(vocabulary);
  return 0;
}

void llama_vocabulary_free(llama_vocabulary *vocabulary) {
  for (uint32_t i = 0; vocabulary->pieces != NULL && i < vocabulary->count; i++) free(vocabulary->pieces[i]);
  free(vocabulary->pieces);
  vocabulary->pieces = NULL;
}

int llama_vocabulary_print(const llama_vocabulary *vocabulary, uint32_t before, uint32_t token) {
  unsigned byte;
  if (vocabulary->pieces == NULL) {
    printf("%u ", token);
    return fflush(stdout) == 0;
  }
  const char *piece = vocabulary->pieces[token];
  if (before == BEGIN_TOKEN && piece[0] == ' ') piece++;        /* a word at the beginning has no space before it */
  if (sscanf(piece, "<0x%2X>", &byte) == 1) putchar((int)byte);
  else fputs(piece, stdout);
  return fflush(stdout) == 0;
}
