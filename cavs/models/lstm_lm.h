// Language models over sentences: at each token, the next one is predicted.
//
// A sentence of n words is a chain of n + 1 vertices (cavs/dataset.h): the first reads `<eos>`, the others the words;
// the child of each is the one before, of the first it is missing. The id column "word" holds what a vertex reads,
// "label" what comes next; the output is "logits". Not thread-safe; each function declares into one fresh Model.
#pragma once

#include <cstdint>
#include <memory>

#include "cavs/model.h"
#include "cavs/models/model_sizes.h"

namespace cavs {

inline constexpr int32_t kTokenType = 0;

// LSTM (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000) in layers (Zaremba et al. 2014,
// eq. 4, dropout on what passes between layers alone). For layer l, with x the word's vector in the first and the h of
// the layer below in the others, h' and c' of the vertex before (zero at the first), and s the sigmoid:
//   i, f, o, u = x W_l + h' U_l + b_l;    c = s(f) c' + s(i) tanh(u);    h = s(o) tanh(c)
// One vertex type, "token", holds all layers; logits = h W + b of the last. Biases of f start at 1 (Jozefowicz et al.
// 2015), all others at 0.
void DeclareLstmLm(Model& model, const ModelSizes& sizes);

// The same network with the same parameters, but each layer a vertex type of its own, "layer1", "layer2", ...: the
// first has one child, the vertex before in its layer, the others that and the vertex below. A model of several types
// whose best order no simple policy finds.
void DeclareLayeredLstmLm(Model& model, const ModelSizes& sizes);

// The graph that the layered model reads in place of `sentence`, a graph of the other. `columns` are the layered
// model's. The vertex of layer l (from 0) at token t has the number t * layers + l.
InputGraph MakeLayered(const InputGraph& sentence, int64_t layers, std::shared_ptr<const ColumnSet> columns);

}  // namespace cavs
