// Builds one ListOps tree after another, in post order, and evaluates it on the way. Shared by the reader and the
// generator, which decide what follows what; the builder trusts them. For one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/readers/listops.h"

namespace cavs {

class ListOpsBuilder {
 public:
  // Begins a new tree, which replaces the last.
  void Start(int64_t line);

  // Adds a digit; returns its vertex.
  int32_t AddDigit(int32_t digit);

  // Adds an operator token; the applications that are open around it wait. Returns its vertex.
  int32_t AddOperator(int32_t op);

  // Adds the `]` token; returns its vertex.
  int32_t AddClose();

  // Adds a bracket around the innermost open application so far and its next argument, a complete expression that has
  // just been built; returns the bracket's vertex.
  int32_t Apply(int32_t application, int32_t argument);

  // Adds a bracket around the innermost open application, which has at least one argument, and its `]`: the application
  // is complete. Returns the bracket's vertex, labelled with the value.
  int32_t Finish(int32_t application, int32_t close);

  // Arguments of the innermost open application.
  int64_t argument_count() const { return static_cast<int64_t>(arguments_.size() - open_.back().first_argument); }

  const Tree& tree() const { return tree_; }

 private:
  struct Application {
    int32_t op;
    size_t first_argument;  // where its arguments begin in arguments_
  };

  int32_t AddLeaf(int32_t token, int32_t label);
  int32_t AddInner(int32_t left, int32_t right, int32_t label);

  Tree tree_;
  std::vector<Application> open_;   // outermost first
  std::vector<int32_t> arguments_;  // values, grouped by application
};

}  // namespace cavs
