# SPDX-License-Identifier: Apache-2.0
# Every cpu_<family>.c belongs to the backend.  All kernels so far use one machine's vector instructions, so elsewhere only
# the frame is built, and refuses everything.
file(GLOB cpu_sources RELATIVE ${CMAKE_CURRENT_LIST_DIR} CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/cpu_*.c)
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(cpu_sources cpu_backend.c cpu_features.c cpu_query.c cpu_rows.c)
endif()
tm_add_backend(SOURCES ${cpu_sources})
# Nearly every file of it wants these, and reading them costs half of what compiling such a file does.  A cache of compilations
# cannot look into what is precompiled.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT CMAKE_C_COMPILER_LAUNCHER MATCHES "ccache")
  target_precompile_headers(backend_cpu_parts PRIVATE <immintrin.h>)
endif()
