/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over files or folders of files without libFuzzer, so that every corpus is part of the ordinary tests. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each input gets memory of exactly its size, so that a sanitizer sees a byte read beyond it. */
static int replay_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return -1;
  (void)fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  (void)fseek(file, 0, SEEK_SET);
  uint8_t *data = malloc((size_t)size + (size == 0));
  const int ok = data != NULL && fread(data, 1, (size_t)size, file) == (size_t)size;
  (void)fclose(file);
  if (ok) (void)LLVMFuzzerTestOneInput(data, (size_t)size);
  free(data);
  return ok ? 1 : -1;
}

static int replay_folder(const char *path) {
  DIR *folder = opendir(path);
  int count = 0;
  if (folder == NULL) return -1;
  for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    char name[4096];
    if (entry->d_name[0] == '.') continue;
    (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
    if (replay_file(name) < 0) {
      (void)fprintf(stderr, "cannot read %s\n", name);
      count = -1;
      break;
    }
    count++;
  }
  (void)closedir(folder);
  return count;
}

int main(int argc, char **argv) {
  int total = 0;
  for (int i = 1; i < argc; i++) {
    struct stat status;
    const int is_folder = stat(argv[i], &status) == 0 && S_ISDIR(status.st_mode);
    const int count = is_folder ? replay_folder(argv[i]) : replay_file(argv[i]);
    if (count <= 0) {
      (void)fprintf(stderr, "nothing to replay in %s\n", argv[i]);
      return 1;
    }
    total += count;
  }
  (void)printf("%d inputs\n", total);
  return total == 0;
}
