// States that are computed in the rows of the product that gathers them: which rows are copied, and that nothing but
// the copies changes.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cavs/graph_builder.h"
#include "cavs/session.h"
#include "tests/cavs/model_testing.h"

namespace cavs {
namespace {

constexpr int64_t kWidth = 6;
constexpr int64_t kRowBytes = kWidth * static_cast<int64_t>(sizeof(float));

enum class TreeShape : uint8_t {
  kTree,
  kSharedLeaf,   // b is a child of both inner vertices
  kMissingLeaf,  // there is no d
  kTwin,         // c is both children of its parent
};

// Leaves with a word, and two types of inner vertices that multiply [h of child 0, h of child 1], in that order unless
// `crossed`.
struct TreeModel {
  explicit TreeModel(bool in_place, bool crossed = false) : model({.passes = {.in_place = in_place}}) {
    const State h = model.State("h", {kWidth}), c = model.State("c", {kWidth});
    const Expression words = model.Lookup("words", 9, kWidth);
    leaf.Define([&](Vertex& v) {
      const Expression x = Tanh(v.Pull(words, "word"));
      v.Scatter(h, x);
      v.Scatter(c, x * x);
      v.Push("h", x);
    });
    for (VertexType* type : {&node, &root}) {
      const std::string name = type == &node ? "node" : "root";
      type->Define([&](Vertex& v) {
        const Expression left = v.Gather(crossed ? 1 : 0, h), right = v.Gather(crossed ? 0 : 1, h);
        const Expression u = model.Parameter(name + ".U", {2 * kWidth, kWidth});
        const Expression x = Tanh(Affine(Concat(left, right), u, model.Parameter(name + ".b", {kWidth}))) +
                             v.Gather(0, c) * v.Gather(1, c);
        v.Scatter(h, x);
        v.Scatter(c, Sigmoid(x));
        v.Push("h", x);
      });
    }
    const Expression logits =
        Affine(model.Pushed("h"), model.Parameter("W", {kWidth, 3}), model.Parameter("bias", {3}));
    model.Loss(CrossEntropy(logits, model.Label("label", 3)));
    SetSmallValues(&model);
  }

  // ((a b) (c d)), with what `shape` says.
  InputGraph Tree(TreeShape shape) const {
    GraphBuilder g(model);
    const int32_t a = g.Add(leaf, {{"word", 1}}), b = g.Add(leaf, {{"word", 2}, {"label", 1}});
    const int32_t left = g.Add(node, {{"label", 0}}, {a, b});
    const int32_t c = shape == TreeShape::kSharedLeaf ? b : g.Add(leaf, {{"word", 3}});
    const int32_t d = shape == TreeShape::kTwin          ? c
                      : shape == TreeShape::kMissingLeaf ? kNone
                                                         : g.Add(leaf, {{"word", 4}});
    g.Add(root, {{"label", 2}}, {left, g.Add(node, {}, {c, d})});
    return g.Build();
  }

  Model model;
  VertexType leaf = model.VertexType("leaf", 0), node = model.VertexType("node", 2), root = model.VertexType("root", 2);
};

// What a minibatch of two graphs gives, and the bytes that it copies.
struct Figures {
  std::vector<std::vector<float>> values;
  int64_t copied = 0;
};

Figures Run(TreeModel& subject, TreeShape shape, const SessionOptions& options) {
  Session session(subject.model, options);
  std::vector<InputGraph> graphs;
  graphs.push_back(subject.Tree(shape));
  graphs.push_back(subject.Tree(TreeShape::kTree));
  const std::vector<Example> examples = {{&graphs[0], 0}, {&graphs[1], 1}};
  Figures figures;
  const BatchReport report = session.Accumulate(examples);
  figures.values.push_back({static_cast<float>(report.loss)});
  figures.copied = session.executor().counters().copied_bytes;
  for (const int32_t channel : {0, 1}) {
    for (int32_t v = 0; v < session.batch().vertex_count(); ++v) {
      const std::span<const float> state = session.executor().state(channel, v);
      figures.values.emplace_back(state.begin(), state.end());
    }
  }
  const Gradients& gradients = session.gradients();
  for (int32_t p = 0; p < gradients.layout().declared(); ++p) figures.values.push_back(gradients.Get(p));
  return figures;
}

// In place, the gathers of both graphs copy fewer bytes, by those of `slots` rows; nothing else changes.
void ExpectSaved(TreeShape shape, SharingPolicy sharing, int64_t slots, bool crossed = false) {
  for (const PoolPolicy memory : {PoolPolicy::kArena, PoolPolicy::kPlanned, PoolPolicy::kMalloc}) {
    for (const int threads : {1, 2}) {
      const SessionOptions options{
          .memory = memory, .sharing = sharing, .threads = threads, .parallel = ParallelPolicy::kShard};
      TreeModel with(true, crossed), without(false, crossed);
      const Figures in_place = Run(with, shape, options);
      const Figures copied = Run(without, shape, options);
      EXPECT_EQ(in_place.values, copied.values);
      EXPECT_EQ(copied.copied - in_place.copied, slots * kRowBytes);
    }
  }
}

TEST(InPlace, TreesAreNotCopied) { ExpectSaved(TreeShape::kTree, SharingPolicy::kOff, 12); }

TEST(InPlace, ASharedChildIsCopiedForItsSecondParent) { ExpectSaved(TreeShape::kSharedLeaf, SharingPolicy::kOff, 11); }

TEST(InPlace, AChildInBothSlotsIsCopiedForTheSecond) { ExpectSaved(TreeShape::kTwin, SharingPolicy::kOff, 11); }

TEST(InPlace, AMissingChildIsAZeroRow) { ExpectSaved(TreeShape::kMissingLeaf, SharingPolicy::kOff, 11); }

// Leaves 1 to 4 are the same ones in both graphs.
TEST(InPlace, SharedLeavesAreCopiedForAllButOneParent) { ExpectSaved(TreeShape::kTree, SharingPolicy::kInputs, 8); }

TEST(InPlace, SlotsInAnotherOrderAreCopied) { ExpectSaved(TreeShape::kTree, SharingPolicy::kOff, 0, true); }

}  // namespace
}  // namespace cavs
