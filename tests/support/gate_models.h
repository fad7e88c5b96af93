// Models as a user writes them first: a product for each gate and each input, and a bias that is added.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "cavs/model.h"
#include "cavs/models/model_sizes.h"

namespace cavs {

// The parameters of one gate: x W + y U + b.
struct GateParameters {
  GateParameters(Model& model, const std::string& name, int64_t x, int64_t y, int64_t width)
      : w(model.Parameter(name + ".W", {x, width})),
        u(model.Parameter(name + ".U", {y, width})),
        b(model.Parameter(name + ".b", {width}, Initializer::Uniform(0.5f))) {}
  Expression operator()(const Expression& x, const Expression& y) const { return MatMul(x, w) + MatMul(y, u) + b; }

  Expression w, u, b;
};

inline void DeclareClassifier(Model& model, const ModelSizes& sizes) {
  const Expression logits = Affine(model.Pushed("h"), model.Parameter("head.W", {sizes.hidden, sizes.classes}),
                                   model.Parameter("head.b", {sizes.classes}));
  model.Output("logits", logits);
  model.Loss(CrossEntropy(logits, model.Label("label", sizes.classes)));
}

// The binary Tree-LSTM of cavs/models/tree_models.h, gate by gate.
inline void DeclareTreeLstmByGates(Model& model, const ModelSizes& sizes) {
  const int64_t hidden = sizes.hidden;
  const Expression words = model.Lookup("words", sizes.vocabulary, sizes.embed);
  const State h = model.State("h", {hidden}), c = model.State("c", {hidden});
  const auto publish = [&](Vertex& v, const Expression& cell, const Expression& gate) {
    const Expression out = Sigmoid(gate) * Tanh(cell);
    v.Scatter(c, cell);
    v.Scatter(h, out);
    v.Push("h", out);
  };
  const auto leaf = [&](const std::string& gate, const Expression& x) {
    return Affine(x, model.Parameter("leaf." + gate + ".W", {sizes.embed, hidden}),
                  model.Parameter("leaf." + gate + ".b", {hidden}));
  };
  model.VertexType("leaf", 0).Define([&](Vertex& v) {
    const Expression x = v.Pull(words, "word");
    const Expression i = leaf("i", x), o = leaf("o", x), u = leaf("u", x);
    publish(v, Sigmoid(i) * Tanh(u), o);
  });
  std::vector<GateParameters> gates;
  for (const char* name : {"i", "o", "u", "f_l", "f_r"}) {
    gates.emplace_back(model, fmt::format("node.{}", name), hidden, hidden, hidden);
  }
  model.VertexType("node", 2).Define([&](Vertex& v) {
    const Expression left = v.Gather(0, h), right = v.Gather(1, h);
    const Expression i = gates[0](left, right), o = gates[1](left, right), u = gates[2](left, right);
    const Expression f_l = gates[3](left, right), f_r = gates[4](left, right);
    publish(v, Sigmoid(i) * Tanh(u) + Sigmoid(f_l) * v.Gather(0, c) + Sigmoid(f_r) * v.Gather(1, c), o);
  });
  DeclareClassifier(model, sizes);
}

// Layers of LSTM over a chain, gate by gate: what the first layer reads is hoisted, each other one reads h of the one
// before.
inline void DeclareLstmByGates(Model& model, const ModelSizes& sizes) {
  const int64_t hidden = sizes.hidden;
  const Expression words = model.Lookup("words", sizes.vocabulary, sizes.embed);
  model.VertexType("token", 1).Define([&](Vertex& v) {
    Expression x = v.Pull(words, "word");
    for (int64_t layer = 1; layer <= sizes.layers; ++layer) {
      const State h = model.State(fmt::format("h{}", layer), {hidden});
      const State c = model.State(fmt::format("c{}", layer), {hidden});
      const Expression before = v.Gather(0, h);
      const auto gate = [&](const char* name) {
        return GateParameters(model, fmt::format("layer{}.{}", layer, name), x.shape().width(), hidden, hidden)(x,
                                                                                                                before);
      };
      const Expression i = gate("i"), f = gate("f"), o = gate("o"), u = gate("u");
      const Expression cell = Sigmoid(f) * v.Gather(0, c) + Sigmoid(i) * Tanh(u);
      x = Sigmoid(o) * Tanh(cell);
      v.Scatter(c, cell);
      v.Scatter(h, x);
    }
    v.Push("h", x);
  });
  DeclareClassifier(model, sizes);
}

// A GRU (Cho et al. 2014) over a chain, gate by gate, with the reset gate behind the product.
inline void DeclareGruByGates(Model& model, const ModelSizes& sizes) {
  const int64_t hidden = sizes.hidden;
  const Expression words = model.Lookup("words", sizes.vocabulary, sizes.embed);
  const State h = model.State("h", {hidden});
  model.VertexType("token", 1).Define([&](Vertex& v) {
    const Expression x = v.Pull(words, "word"), before = v.Gather(0, h);
    const GateParameters update(model, "z", sizes.embed, hidden, hidden);
    const GateParameters reset(model, "r", sizes.embed, hidden, hidden);
    const GateParameters candidate(model, "n", sizes.embed, hidden, hidden);
    const Expression z = Sigmoid(update(x, before)), r = Sigmoid(reset(x, before));
    const Expression fresh = Tanh(Affine(x, candidate.w, candidate.b) + r * MatMul(before, candidate.u));
    const Expression out = (1.0 - z) * fresh + z * before;
    v.Scatter(h, out);
    v.Push("h", out);
  });
  DeclareClassifier(model, sizes);
}

}  // namespace cavs
