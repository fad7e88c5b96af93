// A Tree-LSTM in user code, from nothing to a trained model: it learns the value of boolean expressions such as
// ((1 and 0) xor (1 or 1)) from examples. Copy this file to begin a model of your own.
#include <cavs/base/random.h>
#include <cavs/cavs.h>

#include <cstdio>
#include <vector>

namespace {

constexpr int64_t kHidden = 32, kBatch = 50, kEpochs = 5;

// F: what happens at a leaf (a bit) and at a node (an operator over two children), and how a node's value is predicted.
struct Expressions : cavs::Model {
  cavs::VertexType leaf = VertexType("leaf", 0), node = VertexType("node", 2);

  Expressions() {
    const auto h = State("h", {kHidden}), c = State("c", {kHidden});
    const auto words = Lookup("words", 5, kHidden, cavs::Initializer::Normal(0.5f));
    const auto leaf_w = Parameter("leaf.W", {kHidden, 3 * kHidden}), leaf_b = Parameter("leaf.b", {3 * kHidden});
    const auto node_u = Parameter("node.U", {3 * kHidden, 5 * kHidden}), node_b = Parameter("node.b", {5 * kHidden});
    leaf.Define([&](cavs::Vertex& v) {
      const auto [i, o, u] = cavs::Split<3>(Affine(v.Pull(words, "word"), leaf_w, leaf_b));
      const auto cell = Sigmoid(i) * Tanh(u);
      v.Scatter(c, cell);
      v.Scatter(h, Sigmoid(o) * Tanh(cell));
    });
    node.Define([&](cavs::Vertex& v) {
      const auto inputs = Concat(v.Gather(0, h), v.Gather(1, h), v.Pull(words, "word"));
      const auto [i, o, u, f_l, f_r] = cavs::Split<5>(Affine(inputs, node_u, node_b));
      const auto cell = Sigmoid(i) * Tanh(u) + Sigmoid(f_l) * v.Gather(0, c) + Sigmoid(f_r) * v.Gather(1, c);
      const auto out = Sigmoid(o) * Tanh(cell);
      v.Scatter(c, cell);
      v.Scatter(h, out);
      v.Push("h", out);
    });
    const auto logits = Affine(Pushed("h"), Parameter("head.W", {kHidden, 2}), Parameter("head.b", {2}));
    Output("logits", logits);
    Loss(CrossEntropy(logits, Label("value", 2)));
  }
};

// G: random expressions; words are 0, 1, and, or, xor. Bits stand in a row, and neighbours are joined until one is
// left.
std::vector<cavs::InputGraph> Generate(const Expressions& model, int count, uint64_t seed) {
  cavs::CounterRandom random(seed);
  cavs::GraphBuilder graph(model);
  std::vector<cavs::InputGraph> graphs;
  for (int n = 0; n < count; ++n) {
    std::vector<int32_t> vertices, values;
    for (int64_t bits = 2 + random.Below(14); bits > 0; --bits) {
      values.push_back(static_cast<int32_t>(random.Below(2)));
      vertices.push_back(graph.Add(model.leaf, {{"word", values.back()}}));
    }
    while (vertices.size() > 1) {
      const auto at = random.Below(static_cast<int64_t>(vertices.size()) - 1);
      const auto left = vertices.begin() + at;
      const int32_t op = static_cast<int32_t>(random.Below(3)), a = values[size_t(at)], b = values[size_t(at) + 1];
      values[size_t(at)] = op == 0 ? a & b : op == 1 ? a | b : a ^ b;
      *left = graph.Add(model.node, {{"word", 2 + op}, {"value", values[size_t(at)]}}, {left[0], left[1]});
      vertices.erase(left + 1);
      values.erase(values.begin() + at + 1);
    }
    graphs.push_back(graph.Build());
  }
  return graphs;
}

// Share of expressions whose value is predicted right, with a forward-only Session.
double Accuracy(const Expressions& model, const std::vector<cavs::InputGraph>& graphs) {
  cavs::Session session(model);
  std::vector<cavs::Example> examples;
  examples.reserve(graphs.size());
  for (const auto& graph : graphs) examples.push_back({&graph, static_cast<int64_t>(examples.size())});
  session.Forward(examples);
  const auto logits = session.executor().output(0);  // [graphs, 2]
  int right = 0;
  for (size_t r = 0; r < graphs.size(); ++r) {
    const auto values = graphs[r].ids(graphs[r].columns().Find("value"));
    right += (logits[2 * r + 1] > logits[2 * r]) == (values[size_t(graphs[r].roots()[0])] == 1);
  }
  return right / static_cast<double>(graphs.size());
}

}  // namespace

int main() {
  Expressions model;
  const auto train = Generate(model, 2000, 1), held_out = Generate(model, 500, 2);
  cavs::Session session(model);
  auto optimizer = session.MakeOptimizer({.kind = cavs::OptimizerKind::kAdam, .lr = 0.005});
  for (int64_t epoch = 1; epoch <= kEpochs; ++epoch) {
    double loss = 0;
    for (size_t i = 0; i < train.size(); i += kBatch) {
      loss += session.Train(std::span(train).subspan(i, kBatch), optimizer) * kBatch;
    }
    std::printf("epoch %lld  loss per expression %.3f  held-out accuracy %.3f\n", static_cast<long long>(epoch),
                loss / static_cast<double>(train.size()), Accuracy(model, held_out));
  }
}
