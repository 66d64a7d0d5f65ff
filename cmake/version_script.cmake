# SPDX-License-Identifier: Apache-2.0
# tm_write_version_script(FILE HEADER...): exports exactly the functions that the headers declare and hides everything else.
function(tm_write_version_script file)
  set(text "")
  foreach(header ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
    file(READ ${header} one)
    string(APPEND text "${one}")
  endforeach()
  string(REGEX REPLACE "/[*][^*]*[*]+([^/*][^*]*[*]+)*/" "" text "${text}")
  string(REGEX MATCHALL "tm_[a-z0-9_]+[ ]*[(]" names "${text}")
  list(TRANSFORM names REPLACE "[ ]*[(]" "")
  list(REMOVE_DUPLICATES names)
  list(SORT names)
  list(JOIN names ";\n    " exports)
  file(CONFIGURE OUTPUT ${file} @ONLY
    CONTENT "TENSORMORPH_@PROJECT_VERSION_MAJOR@ {\n  global:\n    @exports@;\n  local:\n    *;\n};\n")
endfunction()
