# SPDX-License-Identifier: Apache-2.0
# tm_add_skipped_test(NAME REASON): a test that cannot run in this build, listed as skipped with its reason.
function(tm_add_skipped_test name reason)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${reason}")
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: ")
endfunction()
