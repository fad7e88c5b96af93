// A Tree-LSTM in user code, from nothing to a trained model: learns the value of boolean expressions such as
// ((1 and 0) xor (1 or 1)) from examples. Copy this file to begin your own model.
#include <cstdio>
#include <vector>

#include <cavs/base/random.h>
#include <cavs/cavs.h>

namespace {

constexpr int kHidden = 32, kBatch = 50, kEpochs = 12;

// F: what happens at a leaf (a bit), at a node (an operator over two children), and at the root (a class).
struct Expressions : cavs::Model {
  cavs::VertexType leaf = VertexType("leaf", 0), node = VertexType("node", 2);

  Expressions() {
    const auto h = State("h", {kHidden}), c = State("c", {kHidden});
    const auto words = Lookup("words", 5, kHidden, cavs::Initializer::Normal(0.5f));
    const auto W = Parameter("W", {kHidden, 3 * kHidden}), b_leaf = Parameter("b_leaf", {3 * kHidden});
    const auto U = Parameter("U", {3 * kHidden, 5 * kHidden}), b = Parameter("b", {5 * kHidden});
    leaf.Define([&](cavs::Vertex& v) {
      const auto [i, o, u] = cavs::Split<3>(Affine(v.Pull(words, "word"), W, b_leaf));
      const auto cell = Sigmoid(i) * Tanh(u);
      v.Scatter(c, cell);
      v.Scatter(h, Sigmoid(o) * Tanh(cell));
    });
    node.Define([&](cavs::Vertex& v) {
      const auto inputs = Concat(v.Gather(0, h), v.Gather(1, h), v.Pull(words, "word"));
      const auto [i, o, u, f_l, f_r] = cavs::Split<5>(Affine(inputs, U, b));
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

// G: a random expression of `size` bits; words are 0, 1, and, or, xor. Returns its value.
int Grow(const Expressions& model, int64_t size, cavs::CounterRandom& random, cavs::GraphBuilder& graph,
         int32_t* vertex) {
  if (size == 1) {
    const int bit = static_cast<int>(random.Below(2));
    *vertex = graph.Add(model.leaf, {{"word", bit}});
    return bit;
  }
  int32_t left = 0, right = 0;
  const int64_t first = 1 + random.Below(size - 1);
  const int a = Grow(model, first, random, graph, &left), b = Grow(model, size - first, random, graph, &right);
  const int op = static_cast<int>(random.Below(3)), value = op == 0 ? a & b : op == 1 ? a | b : a ^ b;
  *vertex = graph.Add(model.node, {{"word", 2 + op}, {"value", value}}, {left, right});
  return value;
}

std::vector<cavs::InputGraph> Expressions2Graphs(const Expressions& model, int count, uint64_t seed) {
  cavs::CounterRandom random(seed);
  cavs::GraphBuilder graph(model);
  std::vector<cavs::InputGraph> graphs;
  for (int32_t i = 0, root = 0; i < count; ++i) {
    Grow(model, 4 + random.Below(12), random, graph, &root);
    graphs.push_back(graph.Build());
  }
  return graphs;
}

// Share of held-out vertices whose value is predicted right.
double Accuracy(const Expressions& model, const std::vector<cavs::InputGraph>& graphs) {
  cavs::Session session(model);
  std::vector<cavs::Example> examples;
  for (const cavs::InputGraph& graph : graphs) examples.push_back({&graph, 0});
  session.Forward(examples, cavs::HeadRows::kRoots);
  const auto logits = session.executor().output(0);
  int64_t right = 0;
  for (size_t r = 0; r < graphs.size(); ++r) {
    const int32_t root = graphs[r].roots()[0];
    right +=
        (logits[2 * r + 1] > logits[2 * r] ? 1 : 0) == graphs[r].ids(graphs[r].columns().Find("value"))[size_t(root)];
  }
  return double(right) / double(graphs.size());
}

}  // namespace

int main() {
  Expressions model;
  const auto train = Expressions2Graphs(model, 2000, 1), held_out = Expressions2Graphs(model, 500, 2);
  cavs::Session session(model);
  cavs::Optimizer optimizer = session.MakeOptimizer({.kind = cavs::OptimizerKind::kAdam, .lr = 0.005});
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    double loss = 0;
    for (size_t i = 0; i < train.size(); i += kBatch) {
      loss += session.Train(std::span(train).subspan(i, kBatch), optimizer) * kBatch / double(train.size());
    }
    std::printf("epoch %2d  loss per expression %.3f  held-out accuracy %.3f\n", epoch, loss,
                Accuracy(model, held_out));
  }
}
