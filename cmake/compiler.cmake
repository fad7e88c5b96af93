# What every target of the project is compiled with. The binary is portable: no -march; Highway and oneDNN choose their
# kernels at run time.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()

find_program(CAVS_CCACHE ccache)
if(CAVS_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CAVS_CCACHE}")
endif()

# Tests compare sizes with literals all day; everything else is held to -Wconversion too.
add_library(cavs_test_warnings INTERFACE)
target_compile_options(cavs_test_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105651: at -O3 the inlined concatenation of std::string is reported as overlapping copies.
  target_compile_options(cavs_test_warnings INTERFACE -Wno-restrict)
endif()
if(CAVS_WERROR)
  target_compile_options(cavs_test_warnings INTERFACE -Werror)
endif()
# Texts of CAVS_CHECK name files relative to the repository, wherever it was built.
target_compile_options(cavs_test_warnings INTERFACE "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")

add_library(cavs_warnings INTERFACE)
target_link_libraries(cavs_warnings INTERFACE cavs_test_warnings)
target_compile_options(cavs_warnings INTERFACE -Wconversion)

if(CAVS_SANITIZE)
  add_compile_options("-fsanitize=${CAVS_SANITIZE}" -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options("-fsanitize=${CAVS_SANITIZE}")
endif()
