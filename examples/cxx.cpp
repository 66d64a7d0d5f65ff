// SPDX-License-Identifier: Apache-2.0
// The public header from C++: a context whose owner is a smart pointer, and the list of its backends.
#include <cstdio>
#include <memory>

#include <tensormorph/tensormorph.h>

int main() {
  tm_error error = {};
  error.struct_size = sizeof(error);
  tm_context *created = nullptr;
  if (tm_context_create(nullptr, &created, &error) != TM_OK) {
    std::fprintf(stderr, "%s\n", error.text);
    return 1;
  }
  const std::unique_ptr<tm_context, decltype(&tm_context_destroy)> context(created, tm_context_destroy);

  std::printf("tensormorph %s\n", tm_version());
  tm_backend_description backend = {};
  backend.struct_size = sizeof(backend);
  for (uint32_t i = 0; tm_backend_describe(context.get(), i, &backend) == TM_OK; i++) {
    std::printf("%s %s (%s)\n", backend.name, backend.version, backend.origin);
  }
  return 0;
}
