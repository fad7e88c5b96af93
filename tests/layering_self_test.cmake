cmake_minimum_required(VERSION 3.25)

# Shows that layering.cmake accepts good includes and fails on bad ones, naming file and include.
# Use: cmake -DSCRATCH=<folder to fill> -P layering_self_test.cmake

# Runs layering.cmake over a tree of one file and checks the verdict.
function(expect VERDICT PATH INCLUDED)
  file(REMOVE_RECURSE "${SCRATCH}")
  file(WRITE "${SCRATCH}/${PATH}" "#pragma once\n#include <vector>\n#include \"${INCLUDED}\"\n")
  execute_process(COMMAND "${CMAKE_COMMAND}" "-DROOT=${SCRATCH}" -P "${CMAKE_CURRENT_LIST_DIR}/layering.cmake"
    RESULT_VARIABLE STATUS OUTPUT_VARIABLE OUTPUT ERROR_VARIABLE OUTPUT)
  if(VERDICT STREQUAL "good" AND NOT STATUS EQUAL 0)
    message(FATAL_ERROR "${PATH} may include ${INCLUDED}, but layering said: ${OUTPUT}")
  endif()
  if(VERDICT STREQUAL "bad" AND NOT (NOT STATUS EQUAL 0 AND OUTPUT MATCHES "${PATH} includes ${INCLUDED}"))
    message(FATAL_ERROR "${PATH} must not include ${INCLUDED}, but layering said: ${OUTPUT}")
  endif()
endfunction()

expect(good memory/pool.h cavs/base/error.h)
expect(good vertex/executor.cc graph/schedule.h)
expect(good vertex/kernels/cpu/gemm.cc vertex/kernels/operand.h)
expect(good cavs/session.h backprop/optimizer.h)
expect(good perf/benchmark.cc tests/support/shapes.h)
expect(bad cavs/base/error.h memory/pool.h)
expect(bad memory/pool.h graph/schedule.h)
expect(bad memory/pool.h cavs/model.h)
expect(bad graph/readers/tree.cc memory/pool.h)
expect(bad vertex/program.h backprop/rules.h)
expect(bad backprop/rules.cc cavs/cavs.h)
expect(bad vertex/kernels/cpu/gemm.cc vertex/kernels/cuda/gemm.h)
expect(bad vertex/kernels/cuda/gemm.cu vertex/kernels/cpu/gemm.h)
expect(bad samples/tree_lstm.cc tests/support/shapes.h)
expect(bad perf/benchmark.cc tests/graph/shapes.h)
expect(bad tests/support/shapes.h perf/benchmark.h)
file(REMOVE_RECURSE "${SCRATCH}")
