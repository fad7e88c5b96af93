// Draws an InputGraph as indented text, for people: one line per vertex, children below their parent.
//
//   #4 node label=3
//     #2 node label=2
//       #0 leaf word=17 label=2
//       #1 leaf word=4 label=2
//     #3 leaf word=9 label=3
//
// A vertex with several parents is drawn once and then referred to as ^id; a missing child is drawn as "-".
// No recursion, and output linear in the size of the graph: indentation stops growing at a depth of 40, where the depth
// is written instead. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "graph/input_graph.h"

namespace cavs {

struct DrawOptions {
  std::span<const std::string> type_names = {};  // by vertex type; a type without a name is drawn as "type N"
  // Text for a value of an id column, for instance the word; without it ids are drawn as numbers. Never sees kNone.
  std::function<std::string(int column, int32_t id)> id_text = {};
  int64_t max_lines = 200;  // lines drawn before the rest is only counted; 0: all
};

// Every line ends in '\n'.
std::string Draw(const InputGraph& graph, const DrawOptions& options = {});

}  // namespace cavs
