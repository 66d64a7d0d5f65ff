/* SPDX-License-Identifier: Apache-2.0 */
#include "vocabulary.h"

#include <stdio.h>
#include <stdlib.h>

#define LONGEST_PIECE 4096
#define BEGIN_TOKEN 1u

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

int llama_vocabulary_read(llama_vocabulary *vocabulary, const char *path, uint32_t count) {
  int32_t longest;
  *vocabulary = (llama_vocabulary){ NULL, count };
  if (path == NULL) return 1;
  FILE *file = fopen(path, "rb");
  if (file != NULL) vocabulary->pieces = calloc(count, sizeof *vocabulary->pieces);
  int whole = vocabulary->pieces != NULL && fread(&longest, sizeof longest, 1, file) == 1;
  for (uint32_t i = 0; i < count && whole; i++) whole = (vocabulary->pieces[i] = read_piece(file)) != NULL;
  if (file != NULL) fclose(file);
  if (!whole) fprintf(stderr, "%s: is no vocabulary of %u tokens\n", path, count);
  if (!whole) llama_vocabulary_free(vocabulary);
  return whole;
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
