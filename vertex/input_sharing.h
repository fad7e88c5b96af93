// The pass of `--sharing`, on F: what is hoisted at the vertices of a type is computed once for each distinct input.
//
// Of a type whose vertices have children (whole vertices without children are merged by graph/sharing.h), the hoisted
// instructions that depend on ids and parameters alone move from the rows of the vertices to Space::kInput, which has a
// row for each distinct tuple of the ids that they pull. kToVertices hands the results to the vertices, as an address
// wherever the reader takes rows through an index. dF is derived from the result of the pass: kSumVertices adds up, for
// each input, what its vertices send back, and all that follows (dW, dx, the gradient of a lookup) has a row for each
// input too. What depends on dropout or on rows of floats stays with the vertices.
//
// A type without a product among what would move stays as it is. There is no rule for minibatches with few equal
// inputs: see kToVertices in placement for what one costs.
#pragma once

#include "vertex/passes.h"
#include "vertex/program.h"

namespace cavs {

// `options` says what will be hoisted. Merge products (merging.h) before.
Program ShareInputs(Program program, const PassOptions& options);

}  // namespace cavs
