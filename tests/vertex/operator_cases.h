// The table of operators: for each differentiable one a small model around it, in which gradients flow to parameters
// through it. It drives the checks of gradients against finite differences, and of the Executor against the
// Interpreter. Values are kept away from kinks and poles.
#pragma once

#include <ostream>
#include <span>
#include <string_view>

#include "vertex/builder.h"

namespace cavs {

struct OperatorCase {
  std::string_view name;
  Op op;  // occurs in F
  void (*build)(ProgramBuilder& b);
  int vertices;  // of a graph; the last one has the type that was declared last
};

inline void PrintTo(const OperatorCase& c, std::ostream* out) { *out << c.name; }

std::span<const OperatorCase> OperatorCases();

}  // namespace cavs
