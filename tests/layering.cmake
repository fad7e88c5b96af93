cmake_minimum_required(VERSION 3.25)

# Fails when a file includes a header of a layer that its own layer may not know (ctest: layering).
# Use: cmake -DROOT=<repository> -P layering.cmake

# What each folder may include besides itself. The most specific folder that holds a file decides.
set(RULES
  "cavs/base:"
  "memory:cavs/base"
  "graph:cavs/base"
  "vertex/kernels/cpu:cavs/base memory vertex/kernels"
  "vertex/kernels/cuda:cavs/base memory vertex/kernels"
  "vertex/kernels:cavs/base memory"
  "vertex:cavs/base memory graph vertex/kernels vertex/kernels/cpu vertex/kernels/cuda"
  "backprop:cavs/base memory graph vertex vertex/kernels"
  "cavs:cavs/base memory graph vertex vertex/kernels backprop"
  "samples:cavs/base cavs"
  "tests/support:cavs/base graph cavs"
  "perf:cavs/base memory graph vertex vertex/kernels vertex/kernels/cpu vertex/kernels/cuda backprop cavs tests/support"
  "tests:cavs/base memory graph vertex vertex/kernels vertex/kernels/cpu vertex/kernels/cuda backprop cavs tests/support"
)

set(FOLDERS "")
foreach(RULE IN LISTS RULES)
  string(REGEX MATCH "^([^:]+):(.*)$" _ "${RULE}")
  set(FOLDER "${CMAKE_MATCH_1}")
  string(REPLACE " " ";" "ALLOWED_${FOLDER}" "${CMAKE_MATCH_2}")
  list(APPEND FOLDERS "${FOLDER}")
endforeach()

# The longest folder of FOLDERS that holds PATH, or empty.
function(folder_of PATH RESULT)
  set(BEST "")
  foreach(FOLDER IN LISTS FOLDERS)
    string(FIND "${PATH}" "${FOLDER}/" AT)
    string(LENGTH "${FOLDER}" LENGTH)
    string(LENGTH "${BEST}" BEST_LENGTH)
    if(AT EQUAL 0 AND LENGTH GREATER BEST_LENGTH)
      set(BEST "${FOLDER}")
    endif()
  endforeach()
  set(${RESULT} "${BEST}" PARENT_SCOPE)
endfunction()

set(FILES 0)
set(FAULTS "")
foreach(TOP IN ITEMS cavs memory graph vertex backprop samples perf tests)
  file(GLOB_RECURSE PATHS RELATIVE "${ROOT}"
    "${ROOT}/${TOP}/*.h" "${ROOT}/${TOP}/*.cc" "${ROOT}/${TOP}/*.cu" "${ROOT}/${TOP}/*.cuh"
  )
  foreach(PATH IN LISTS PATHS)
    math(EXPR FILES "${FILES} + 1")
    folder_of("${PATH}" OWN)
    file(STRINGS "${ROOT}/${PATH}" INCLUDES REGEX "^[ \t]*#[ \t]*include[ \t]*[<\"]")
    foreach(LINE IN LISTS INCLUDES)
      string(REGEX MATCH "include[ \t]*[<\"]([^>\"]+)[>\"]" _ "${LINE}")
      set(INCLUDED "${CMAKE_MATCH_1}")
      folder_of("${INCLUDED}" THEIRS)
      if(THEIRS STREQUAL "" OR THEIRS STREQUAL OWN OR THEIRS IN_LIST "ALLOWED_${OWN}")
        continue()
      endif()
      string(REPLACE ";" ", " MAY "${ALLOWED_${OWN}}")
      string(APPEND FAULTS "  ${PATH} includes ${INCLUDED}; ${OWN} may include only itself and: ${MAY}\n")
    endforeach()
  endforeach()
endforeach()

if(FILES EQUAL 0)
  message(FATAL_ERROR "layering: no source files under ROOT='${ROOT}'")
endif()
if(FAULTS)
  message(FATAL_ERROR "layering: includes against the order of the folders:\n${FAULTS}")
endif()
message(STATUS "layering: ${FILES} files follow the order of the folders")
