// Differentiate: the derivative of the vertex functions, once per model and never per graph.
// dF is a Program too: for each function of F one that runs over the same rows in the reversed schedule, reads the
// stored values of F by their ids, and ends in sinks that add into the gradients of parameters and of channels.
// A pure function, safe to call from any thread.
#pragma once

#include "vertex/program.h"

namespace cavs {

// The derivative of the sum of all losses of F. Its values extend those of F, first_own_value is their number, it has
// no losses or outputs, and its functions come in the order head, last type, ..., first type. Values without a path
// from a trained parameter to a loss get no gradient, and frozen parameters get no sink.
// Throws std::invalid_argument when a lookup table is trained as a matrix, a matrix by id, or a registered operator on
// a gradient's path has no gradient kernel.
Program Differentiate(const Program& f);

}  // namespace cavs
