# Installs the library from BUILD_DIR into SCRATCH, then configures, builds and runs the consumer against it.
# Use: cmake -DBUILD_DIR= -DSCRATCH= -DGENERATOR= -DCXX= -DSANITIZE= -P run.cmake

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE STATUS)
  if(NOT STATUS EQUAL 0)
    list(JOIN ARGV " " LINE)
    message(FATAL_ERROR "consumer: failed (${STATUS}): ${LINE}")
  endif()
endfunction()

set(FLAGS "")
if(SANITIZE)
  set(FLAGS "-fsanitize=${SANITIZE}")
endif()

file(REMOVE_RECURSE "${SCRATCH}")
run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --component library --prefix "${SCRATCH}/installed")
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${SCRATCH}/build" -G "${GENERATOR}"
  "-DCMAKE_PREFIX_PATH=${SCRATCH}/installed" "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_CXX_FLAGS=${FLAGS}")
run("${CMAKE_COMMAND}" --build "${SCRATCH}/build")
run("${SCRATCH}/build/consumer")
