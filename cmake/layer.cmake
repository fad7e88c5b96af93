# cavs_layer(NAME SOURCES file... [PUBLIC target...] [PRIVATE target...])
#
# Declares one folder of the library as an OBJECT library. All layers together become the one real library, cavs::cavs;
# tests link the layers that they are about. PUBLIC targets appear in the layer's headers, PRIVATE ones do not.
# A layer without sources is left out.
function(cavs_layer NAME)
  cmake_parse_arguments(PARSE_ARGV 1 LAYER "" "" "SOURCES;PUBLIC;PRIVATE")
  if(LAYER_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "cavs_layer(${NAME}): unknown arguments ${LAYER_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT LAYER_SOURCES)
    return()
  endif()
  add_library(${NAME} OBJECT ${LAYER_SOURCES})
  target_include_directories(${NAME} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${NAME} PUBLIC fmt::fmt ${LAYER_PUBLIC} PRIVATE ${LAYER_PRIVATE} cavs_warnings)
  set_property(GLOBAL APPEND PROPERTY CAVS_LAYERS ${NAME})
endfunction()
