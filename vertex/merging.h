// The pass `merging`: products of F become fewer and larger, without copies of parameters. It works on F alone; dF is
// derived from its result and so is merged too: of a merged product there is one dx and one dW.
//
// Sums, first: x W + h U + b = [x h] [W; U] + b. The products of a sum that run over the same rows in the same phase
// become one; so what is hoisted stays hoisted, and the rest of the sum is added behind it, in the order of phases. A
// bias that is added joins the earliest product that has none. The inputs must lie side by side: gathered rows are
// copied for a product anyhow, and a computed value is written right into its place; what is scattered, sliced, or read
// by other products or concatenations too is copied once more. A sum is merged where the floats that are copied for a
// row are not more than those of the products' results that are no longer written.
//
// Gates, then: x W, x U = [x] [W U]. Products that read the same rows in the same phase become one, and each result a
// slice of its; so do their biases when each has one, else these are added to the slices. A result is left alone when
// its reader would copy the slice: a product, a concatenation, a state or a push.
//
// A merged parameter is appended to the Signature, with the declared ones as its parts (ParameterLayout). Parameters
// merge when they are equally frozen, occur in the same places of F together, and occur nowhere else: what is tied in
// two places stays merged in both, or in neither.
#pragma once

#include "vertex/passes.h"
#include "vertex/program.h"

namespace cavs {

// `options` says what will be hoisted and deferred, which decides what may become one product.
Program MergeProducts(Program program, const PassOptions& options);

}  // namespace cavs
