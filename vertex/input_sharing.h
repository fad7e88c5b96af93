// The pass of `--sharing`, on F: what is hoisted at the vertices of a type is computed once for each distinct input.
//
// Of a type whose vertices have children (whole vertices without children are merged by graph/sharing.h), the hoisted
// instructions that depend on ids and parameters alone move from the rows of the vertices to Space::kInput, which has a
// row for each distinct tuple of the ids that they pull. kToVertices hands the results to the vertices, as an address
// wherever the reader takes rows through an index. dF is derived from the result of the pass: kSumVertices adds up, for
// each input, what its vertices send back, and all that follows (dW, dx, the gradient of a lookup) has a row for each
// input too. What depends on dropout or on rows of floats stays with the vertices; so do vertices without children,
// which in minibatches that draw dropout are not merged either.
//
// A type without a product among what would move stays as it is. There is no rule by how many inputs are equal: where
// none are, kSumVertices is a copy, and a step of a child-sum Tree-LSTM takes 3 % (H = 64) to 7 % (H = 256) longer; but
// words repeat, and already a minibatch of one sentence or of one pair of sentences gains 13 % to 16 %.
#pragma once

#include "vertex/passes.h"
#include "vertex/program.h"

namespace cavs {

// `options` says what will be hoisted. Merge products (merging.h) before.
Program ShareInputs(Program program, const PassOptions& options);

}  // namespace cavs
