#include "cavs/models/child_sum_tree_lstm.h"

namespace cavs {
namespace {

void DeclareNode(Model& model, const ModelSizes& sizes, const State& h) {
  const int64_t hidden = sizes.hidden;
  const State c = model.State("c", {hidden});
  const Expression words = model.Lookup("words", sizes.vocabulary, sizes.embed);
  const Expression input_weights = model.Parameter("node.W", {sizes.embed, 4 * hidden});
  const Expression bias = model.Parameter("node.b", {4 * hidden});
  const Expression weights = model.Parameter("node.U", {hidden, 3 * hidden});
  const Expression forget_weights = model.Parameter("node.U_f", {hidden, hidden});

  model.VertexType("node", kAnyArity).Define([&](Vertex& v) {
    const Expression x = Affine(Dropout(v.Pull(words, kWordColumn), sizes.dropout), input_weights, bias);
    const Expression children = v.GatherAll(h);
    const auto [i, o, u] = Split<3>(Slice(x, 0, 3 * hidden) + MatMul(SumChildren(children), weights));
    const Expression forget = Sigmoid(Slice(x, 3 * hidden, hidden) + MatMul(children, forget_weights));
    const Expression cell = Sigmoid(i) * Tanh(u) + SumChildren(forget * v.GatherAll(c));
    v.Scatter(c, cell);
    v.Scatter(h, Sigmoid(o) * Tanh(cell));
  });
}

void DeclarePair(Model& model, const ModelSizes& sizes, const State& h) {
  const Expression weights = model.Parameter("pair.W", {2 * sizes.hidden, kSimilarityWidth});
  const Expression bias = model.Parameter("pair.b", {kSimilarityWidth});
  model.VertexType("pair", 2).Define([&](Vertex& v) {
    const Expression left = v.Gather(0, h), right = v.Gather(1, h);
    v.Push("similarity", Sigmoid(Affine(Concat(left * right, Abs(left - right)), weights, bias)));
  });
}

}  // namespace

void DeclareChildSumTreeLstm(Model& model, const ModelSizes& sizes) {
  const State h = model.State("h", {sizes.hidden});
  DeclareNode(model, sizes, h);
  DeclarePair(model, sizes, h);
  const Expression weights = model.Parameter("head.W", {kSimilarityWidth, sizes.classes});
  const Expression bias = model.Parameter("head.b", {sizes.classes});
  const Expression logits = Affine(Dropout(model.Pushed("similarity"), sizes.dropout), weights, bias);
  model.Output(kLogitsOutput, logits);
  model.Loss(KlDivergence(LogSoftmax(logits), model.Target(kTargetColumn, sizes.classes)));
}

}  // namespace cavs
