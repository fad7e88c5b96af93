// Passes: Program -> Program, each with a switch for ablation; every combination gives equal answers.
// Pure functions; they work alike on F and on dF.
#pragma once

#include "vertex/program.h"

namespace cavs {

struct PassOptions {
  bool hoisting = true;            // run what does not depend on the recursion once, before it
  bool lazy_batching = true;       // run what the recursion does not depend on once, after it
  bool merging = true;             // products over the same rows become one (merging.h)
  bool fusion = true;              // elementwise chains become one kernel
  bool in_place = true;            // states are computed in the rows of the product that gathers them
  bool common_expressions = true;  // equal instructions run once
  bool dead_code = true;           // instructions without effect are dropped
  friend bool operator==(const PassOptions&, const PassOptions&) = default;
};

// Replaces the uses of an instruction that equals an earlier one of its function.
Program MergeCommonExpressions(Program program);

// Drops instructions that reach no sink, loss or output.
Program DropDeadCode(Program program);

// Sets the phase of every instruction of a vertex function (Neubig et al. 2017 and Cavs section 3.5, "lazy" and
// "eager"): hoisted where it does not depend on a gather (kScatterGrad in dF), deferred where no scatter
// (kGatherGrad in dF) depends on it, else recurrent. Over distinct inputs F is hoisted and dF deferred in any case.
Program Partition(Program program, const PassOptions& options);

// The first two and, on F, MergeProducts (merging.h), as `options` says. Differentiate what this returns, so that F and
// dF agree on values and on parameters.
Program Simplify(Program program, const PassOptions& options);

}  // namespace cavs
