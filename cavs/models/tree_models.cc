#include "cavs/models/tree_models.h"

#include <algorithm>

namespace cavs {
namespace {

// What all tree models share: the vector of a leaf's word, and the classifier over h.
class TreeParts {
 public:
  TreeParts(Model& model, const ModelSizes& options)
      : model_(model), options_(options), words_(model.Lookup("words", options.vocabulary, options.embed)) {}

  Expression Word(Vertex& v) const { return Dropout(v.Pull(words_, kWordColumn), options_.dropout); }

  void Classify() const {
    const int64_t classes = options_.classes;
    const Expression weights = model_.Parameter("head.W", {options_.hidden, classes});
    const Expression bias = model_.Parameter("head.b", {classes});
    const Expression logits = Affine(Dropout(model_.Pushed("h"), options_.dropout), weights, bias);
    model_.Output(kLogitsOutput, logits);
    model_.Loss(CrossEntropy(logits, model_.Label(kLabelColumn, classes)));
  }

 private:
  Model& model_;
  ModelSizes options_;
  Expression words_;
};

}  // namespace

void DeclareTreeLstm(Model& model, const ModelSizes& options) {
  const int64_t hidden = options.hidden;
  const TreeParts parts(model, options);
  const State h = model.State("h", {hidden}), c = model.State("c", {hidden});
  const Expression leaf_weights = model.Parameter("leaf.W", {options.embed, 3 * hidden});
  const Expression leaf_bias = model.Parameter("leaf.b", {3 * hidden});
  std::vector<float> initial_bias(static_cast<size_t>(5 * hidden), 0.0f);
  std::fill(initial_bias.begin() + 3 * hidden, initial_bias.end(), 1.0f);
  const Expression weights = model.Parameter("node.U", {2 * hidden, 5 * hidden});
  const Expression bias = model.Parameter("node.b", {5 * hidden}, Initializer::Values(std::move(initial_bias)));

  const auto publish = [&](Vertex& v, const Expression& cell, const Expression& gate) {
    const Expression out = Sigmoid(gate) * Tanh(cell);
    v.Scatter(c, cell);
    v.Scatter(h, out);
    v.Push("h", out);
  };
  model.VertexType("leaf", 0).Define([&](Vertex& v) {
    const auto [i, o, u] = Split<3>(Affine(parts.Word(v), leaf_weights, leaf_bias));
    publish(v, Sigmoid(i) * Tanh(u), o);
  });
  model.VertexType("node", 2).Define([&](Vertex& v) {
    const Expression children = Concat(v.Gather(0, h), v.Gather(1, h));
    const auto [i, o, u, f_l, f_r] = Split<5>(Affine(children, weights, bias));
    publish(v, Sigmoid(i) * Tanh(u) + Sigmoid(f_l) * v.Gather(0, c) + Sigmoid(f_r) * v.Gather(1, c), o);
  });
  parts.Classify();
}

void DeclareTreeRnn(Model& model, const ModelSizes& options) {
  const int64_t hidden = options.hidden;
  const TreeParts parts(model, options);
  const State h = model.State("h", {hidden});
  const Expression leaf_weights = model.Parameter("leaf.W", {options.embed, hidden});
  const Expression leaf_bias = model.Parameter("leaf.b", {hidden});
  const Expression weights = model.Parameter("node.U", {2 * hidden, hidden});
  const Expression bias = model.Parameter("node.b", {hidden});

  const auto publish = [&](Vertex& v, const Expression& out) {
    v.Scatter(h, out);
    v.Push("h", out);
  };
  model.VertexType("leaf", 0).Define(
      [&](Vertex& v) { publish(v, Tanh(Affine(parts.Word(v), leaf_weights, leaf_bias))); });
  model.VertexType("node", 2).Define(
      [&](Vertex& v) { publish(v, Tanh(Affine(Concat(v.Gather(0, h), v.Gather(1, h)), weights, bias))); });
  parts.Classify();
}

void DeclareTreeFc(Model& model, const ModelSizes& options) {
  const int64_t hidden = options.hidden;
  const TreeParts parts(model, options);
  const State h = model.State("h", {hidden});
  const Expression leaf_weights = model.Parameter("leaf.W", {options.embed, hidden});
  const Expression weights = model.Parameter("node.U", {2 * hidden, hidden});
  const Expression bias = model.Parameter("node.b", {hidden});

  const auto publish = [&](Vertex& v, const Expression& out) {
    v.Scatter(h, out);
    v.Push("h", out);
  };
  model.VertexType("leaf", 0).Define([&](Vertex& v) { publish(v, MatMul(parts.Word(v), leaf_weights)); });
  model.VertexType("node", 2).Define(
      [&](Vertex& v) { publish(v, Relu(Affine(Concat(v.Gather(0, h), v.Gather(1, h)), weights, bias))); });
  parts.Classify();
}

}  // namespace cavs
