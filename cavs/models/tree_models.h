// Ready-made models over binary trees with a word at each leaf and, where there is one, a class at each vertex.
//
// All have two vertex types, `leaf` (no children) and `node` (two slots, the second of which may be missing), pull the
// id column "word", push "h", classify h by one affine layer into the output "logits", and learn from the id column
// "label" by cross-entropy. Not thread-safe; each function declares into one fresh Model.
#pragma once

#include <cstdint>

#include "cavs/model.h"
#include "cavs/models/model_sizes.h"

namespace cavs {

// Vertex types of every tree model, in the order in which they are declared.
inline constexpr int32_t kLeafType = 0;
inline constexpr int32_t kNodeType = 1;

// Binary N-ary Tree-LSTM (Tai, Socher, Manning 2015, eq. 9-14, N = 2) with leaves of their own: x is the word's
// vector, s the sigmoid, and [l; r] the children side by side.
//   leaf: i, o, u = x W + b_leaf;                  c = s(i) tanh(u);                            h = s(o) tanh(c)
//   node: i, o, u, f_l, f_r = [h_l; h_r] U + b;    c = s(i) tanh(u) + s(f_l) c_l + s(f_r) c_r;  h = s(o) tanh(c)
// Biases of f start at 1 (Jozefowicz et al. 2015), all others at 0.
void DeclareTreeLstm(Model& model, const ModelSizes& options);

// Recursive network (Socher et al. 2011, eq. 5, with tanh): leaf: h = tanh(x W + b_leaf); node: h = tanh([h_l; h_r] U +
// b).
void DeclareTreeRnn(Model& model, const ModelSizes& options);

// Tree-FC (Looks et al. 2017, section 4.1): leaf: h = x W; node: h = relu([h_l; h_r] U + b).
void DeclareTreeFc(Model& model, const ModelSizes& options);

}  // namespace cavs
