// How alike two sentences are, from their dependency trees.
//
// A pair is one graph (cavs/dataset.h): a vertex of the type "node" for each word, with any number of children, and one
// of the type "pair" whose two children are the roots of both trees. The id column "word" is pulled by nodes, where it
// may be missing; the row column "target" of the pair is a distribution over the scores 1, 2, ..., classes. The output
// is "logits". Not thread-safe; declares into one fresh Model.
#pragma once

#include <cstdint>

#include "cavs/model.h"
#include "cavs/models/model_sizes.h"

namespace cavs {

inline constexpr int32_t kDependencyType = 0;
inline constexpr int32_t kPairType = 1;

// Width of h_s, as in the paper's experiments.
inline constexpr int64_t kSimilarityWidth = 50;

// Child-Sum Tree-LSTM and similarity head of Tai, Socher, Manning (2015), with s the sigmoid and x the word's vector.
//   node, eq. 2-8 (k runs over the children):
//     i, o, u = x W_iou + (sum_k h_k) U + b_iou;    f_k = s(x W_f + h_k U_f + b_f)
//     c = s(i) tanh(u) + sum_k f_k c_k;             h = s(o) tanh(c)
//   pair, section 4.2: h_s = s((h_L h_R) W_x + |h_L - h_R| W_+ + b_h);  logits = h_s W_p + b_p
// The loss is KL(target || p) with p = softmax(logits); the penalty of the paper is the optimizer's weight decay. The
// answer is the expected score, sum_j j p_j (cavs/similarity.h). All biases start at 0. W_iou and W_f are columns of
// one matrix, "node.W", and W_x and W_+ rows of "pair.W".
void DeclareChildSumTreeLstm(Model& model, const ModelSizes& sizes);

}  // namespace cavs
