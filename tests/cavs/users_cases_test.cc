// Inputs that users of neighbouring systems have reported, through files and graphs to answers and training steps.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cavs/base/random.h"
#include "cavs/graph_builder.h"
#include "cavs/models/tree_models.h"
#include "tests/cavs/training_testing.h"

namespace cavs {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> VertexCounts(const Dataset& data) {
  std::vector<int64_t> counts;
  for (const InputGraph& graph : data.graphs) counts.push_back(graph.vertex_count());
  return counts;
}

int64_t Leaves(const InputGraph& graph) { return std::count(graph.types().begin(), graph.types().end(), kLeafType); }

// All graphs get one finite answer, twice the same.
void ExpectAnswers(const Fixture& task) {
  const auto answers = [&] {
    std::vector<double> all;
    Evaluator(task.model()).Predict(task.train, 3, false, [&](const Prediction& prediction) {
      for (const double p : prediction.root.probabilities) all.push_back(p);
    });
    return all;
  };
  const std::vector<double> first = answers();
  EXPECT_EQ(std::ssize(first), 5 * task.train.size());
  for (const double p : first) EXPECT_TRUE(std::isfinite(p));
  EXPECT_EQ(answers(), first);
}

std::string Refusal(const std::string& format, const std::string& text, const CorpusOptions& options = {}) {
  const ScratchFolder folder;
  const std::string message = MessageOf([&] { FileTask(folder, format, text, {}, options); });
  const size_t name = message.find("trees.txt");
  return name == std::string::npos ? message : message.substr(name);
}

TEST(UsersCases, O1TreesOverSeveralLinesWithABlankLineAndWithoutATopLabel) {
  const ScratchFolder folder;
  const std::string text =
      "( (S (NP (DT the)\n\n   (NN cat))\n (VP (VBD sat))))\n"
      "( (S (X yes)) (. .) )\n";
  const Fixture kept = FileTask(folder, "tree", text, {}, {.unary = Unary::kKeep});
  EXPECT_EQ(kept.train.statistics.brackets, 6 + 4);
  EXPECT_EQ(kept.train.statistics.max_depth, 3);
  EXPECT_EQ(kept.train.statistics.blank_lines, 1);
  EXPECT_THAT(VertexCounts(kept.train), ElementsAre(6, 4));
  EXPECT_EQ(Leaves(kept.train.graphs[0]), 3);
  EXPECT_EQ(Leaves(kept.train.graphs[1]), 2);
  EXPECT_THAT(kept.train.lines, ElementsAre(1, 5));
  const Fixture collapsed = FileTask(folder, "tree", text);
  EXPECT_THAT(VertexCounts(collapsed.train), ElementsAre(5, 3));
  ExpectAnswers(kept);
  ExpectAnswers(collapsed);
}

TEST(UsersCases, O2BracketsAndSlashesAsTokens) {
  const ScratchFolder folder;
  const Fixture task = FileTask(folder, "sst", "(2 (2 and\\/or) (3 (2 -LRB-) (2 \\*)))\n");
  EXPECT_THAT(task.trained->vocabulary.words(), ElementsAre("<unk>", "and/or", "(", "*"));
  EXPECT_EQ(task.train.statistics.brackets, 5);
  EXPECT_EQ(task.train.statistics.max_depth, 3);
  EXPECT_EQ(Leaves(task.train.graphs[0]), 3);
  ExpectAnswers(task);
  EXPECT_THAT(Refusal("sst", "(2 (2 x) (3 ())\n"), HasSubstr("trees.txt:1:"));
  EXPECT_THAT(Refusal("sst", "(2 (2 x) (3 y)\n"), AllOf(HasSubstr("trees.txt:1:"), HasSubstr("began on line 1")));
  EXPECT_THAT(Refusal("sst", "(2 (2 x) (3 y)) 0.75\n"), HasSubstr("trees.txt:1:17: "));
}

TEST(UsersCases, O4OneWordUnaryChainsAndThreeChildren) {
  const ScratchFolder folder;
  const std::string text = "(3 Good)\n(S (NP (NN rain)))\n";
  const Fixture kept = FileTask(folder, "tree", text, {}, {.unary = Unary::kKeep});
  EXPECT_THAT(VertexCounts(kept.train), ElementsAre(1, 3));
  EXPECT_THAT(kept.train.graphs[1].children(2), ElementsAre(1, kNone)) << "the second child is an exact zero state";
  EXPECT_THAT(VertexCounts(FileTask(folder, "tree", text).train), ElementsAre(1, 1));
  ExpectAnswers(kept);
  ExpectAnswers(FileTask(folder, "tree", text));

  const std::string wide = "(S (A a) (B b) (C c))\n";
  EXPECT_THAT(VertexCounts(FileTask(folder, "tree", wide, {}, {.binarize = Binarize::kLeft}).train), ElementsAre(5));
  EXPECT_THAT(VertexCounts(FileTask(folder, "tree", wide, {}, {.binarize = Binarize::kRight}).train), ElementsAre(5));
  EXPECT_THAT(Refusal("tree", "(A a)\n" + wide, {.binarize = Binarize::kKeep}),
              AllOf(HasSubstr("trees.txt:2:1"), HasSubstr("3 children, cell takes 2")));
}

TEST(UsersCases, O5WhiteSpaceOfAllKinds) {
  const ScratchFolder folder;
  const Fixture task = FileTask(folder, "tree",
                                "\xEF\xBB\xBF(S  (NN   rain )\t(VB falls))\r\n"
                                "(S (NN rain) (VB falls))\n"
                                "(S (A 3\xC2\xA0kg) (B b))\n"
                                "(S (A x\xE2\x80\xA8y) (B b))\n"
                                "(S (A \xE3\x80\x80) (B b))\n");
  ASSERT_EQ(task.train.size(), 5);
  EXPECT_THAT(VertexCounts(task.train), ElementsAre(3, 3, 3, 3, 3));
  const int word = task.model().columns()->Find(kWordColumn);
  EXPECT_THAT(task.train.graphs[0].ids(word), ::testing::ElementsAreArray(task.train.graphs[1].ids(word)));
  EXPECT_THAT(task.trained->vocabulary.words(),
              ElementsAre("<unk>", "rain", "falls", "3\xC2\xA0kg", "b", "x\xE2\x80\xA8y", "\xE3\x80\x80"));
  ExpectAnswers(task);
  EXPECT_THAT(Refusal("tree", "(A a)\n(S (A \xC3\x28) (B b))\n"), HasSubstr("trees.txt:2"));
}

TEST(UsersCases, O13GraphsWithoutEdgesAnywhereInABatch) {
  const ScratchFolder folder;
  const Fixture task = FileTask(folder, "tree", "(S (NP a))\n(1 b)\n", {}, {.unary = Unary::kKeep});
  const InputGraph& one = task.train.graphs[0];
  const InputGraph& two = task.train.graphs[1];
  ASSERT_EQ(one.vertex_count(), 2);
  ASSERT_EQ(two.vertex_count(), 1);
  const auto answers = [&](const std::vector<const InputGraph*>& graphs) {
    Dataset data;
    for (const InputGraph* graph : graphs) data.graphs.push_back(*graph);
    std::vector<std::vector<double>> result;
    Evaluator(task.model()).Predict(data, std::ssize(graphs), false, [&](const Prediction& prediction) {
      result.push_back(prediction.root.probabilities);
    });
    return result;
  };
  const std::vector<double> first = answers({&one}).at(0), second = answers({&two}).at(0);
  EXPECT_NE(first, second);
  EXPECT_THAT(answers({&one, &two}), ElementsAre(first, second));
  EXPECT_THAT(answers({&two, &one}), ElementsAre(second, first));
  EXPECT_THAT(answers({&two, &two}), ElementsAre(second, second));
  GraphBuilder builder(task.model());
  EXPECT_THAT(MessageOf([&] { builder.Build(); }), HasSubstr("expected")) << "a graph of no vertex, wherever it stands";
}

TEST(UsersCases, O14AVeryDeepTreeTrainsAndIsFreed) {
  const ScratchFolder folder;
  constexpr int64_t kDepth = 200000;
  std::string text;
  for (int64_t level = 1; level < kDepth; ++level) text += "(1 ";
  text += "(2 a)";
  for (int64_t level = 1; level < kDepth; ++level) text += " (3 b))";
  const Fixture task = FileTask(folder, "sst", text + "\n", {.hidden = 4, .embed = 3});
  EXPECT_EQ(task.train.statistics.max_depth, kDepth);
  EXPECT_EQ(task.train.graphs[0].vertex_count(), 2 * kDepth - 1);
  TrainerOptions options;
  options.epochs = 1;
  const std::vector<float> before = AllValues(task.model());
  const TrainingResult result = Trainer(task.model(), options).Run(task.train);
  EXPECT_EQ(result.steps, 1);
  EXPECT_EQ(result.best.predictions, 2 * kDepth - 1);
  EXPECT_NE(AllValues(task.model()), before);
}

// A model of one vertex type with any number of children: h = tanh(x + mean of the children).
struct StarTask {
  StarTask() {
    const Expression words = model.Lookup("words", 10, 3);
    const State h = model.State("h", {3});
    type = model.VertexType("any", kAnyArity);
    type.Define([&](Vertex& v) {
      const Expression out = Tanh(v.Pull(words, kWordColumn) + MeanChildren(v.GatherAll(h)));
      v.Scatter(h, out);
      v.Push("h", out);
    });
    model.Loss(CrossEntropy(model.Pushed("h"), model.Label(kLabelColumn, 3)));
  }

  InputGraph Star(int32_t children) {
    GraphBuilder builder(model);
    std::vector<int32_t> leaves;
    for (int32_t i = 0; i < children; ++i) leaves.push_back(builder.Add(type, {{kWordColumn, i % 10}}));
    builder.Add(type, {{kWordColumn, 1}, {kLabelColumn, 2}}, leaves);
    return builder.Build();
  }

  InputGraph Chain(int32_t length) {
    GraphBuilder builder(model);
    int32_t last = builder.Add(type, {{kWordColumn, 0}});
    for (int32_t i = 1; i < length; ++i) last = builder.Add(type, {{kWordColumn, i % 10}, {kLabelColumn, 0}}, {last});
    return builder.Build();
  }

  Model model;
  VertexType type;
};

TEST(UsersCases, O14AVeryWideStarAndAChainInOneBatch) {
  StarTask task;
  std::vector<InputGraph> graphs;
  graphs.push_back(task.Star(100000));
  graphs.push_back(task.Chain(20000));
  SessionOptions options;
  options.sharing = SharingPolicy::kOff;  // else most of the star's leaves would be one
  Session session(task.model, options);
  Optimizer optimizer = session.MakeOptimizer({.kind = OptimizerKind::kSgd, .lr = 0.01});
  const std::vector<float> before = task.model.Get("words");
  EXPECT_TRUE(std::isfinite(session.Train(graphs, optimizer)));
  EXPECT_EQ(Report(session.scheduled(), session.schedule()).levels, 20000);
  EXPECT_NE(task.model.Get("words"), before);
  const std::vector<Example> star = {{&graphs[0], 0}};
  session.Accumulate(star);
  EXPECT_EQ(Report(session.scheduled(), session.schedule()).levels, 2);
}

// h = c x + sum of the children, c and x read by each vertex.
struct ConstantsTask {
  ConstantsTask() {
    const Expression xs = model.Lookup("x", 500, 1, Initializer::Constant(1));
    const State h = model.State("h", {1});
    type = model.VertexType("sum", kAnyArity);
    type.Define([&](Vertex& v) {
      const Expression out = v.PullRow("c", 1) * v.Pull(xs, "x") + SumChildren(v.GatherAll(h));
      v.Scatter(h, out);
      v.Push("h", out);
    });
    const Expression root = model.Pushed("h");
    model.Output("root", root);
    // Cross-entropy over one class is zero; it only makes the root a row of the head.
    model.Loss(Sum(root) + CrossEntropy(root, model.Label("root", 1)));
  }

  int32_t Add(GraphBuilder* builder, int32_t x, float c, const std::vector<int32_t>& children = {}, bool root = false) {
    const int32_t v = builder->Add(type, {{"x", x}, {"root", root ? 0 : kNone}}, children);
    builder->SetRow(v, "c", std::span(&c, 1));
    return v;
  }

  Model model;
  VertexType type;
};

class Constants : public ::testing::TestWithParam<BatchingPolicy> {};

TEST_P(Constants, O15OfEqualVerticesOfALevelStayApart) {
  ConstantsTask task;
  // x of the leaves are rows 0 to 3, of the roots rows 4 and 5; the last is 4, all others 1.
  std::vector<float> xs(500, 1.0f);
  xs[5] = 4;
  task.model.Set("x", xs);
  GraphBuilder builder(task.model);
  int32_t a = task.Add(&builder, 0, 1.1f), b = task.Add(&builder, 1, 1.7f);
  task.Add(&builder, 4, 0.0f, {a, b}, true);
  std::vector<InputGraph> graphs;
  graphs.push_back(builder.Build());
  a = task.Add(&builder, 2, 2.5f), b = task.Add(&builder, 3, 2.5f);
  task.Add(&builder, 5, 1.0f, {a, b}, true);
  graphs.push_back(builder.Build());
  for (const size_t batch_size : {1u, 2u}) {
    Session session(task.model, {.batching = GetParam(), .loss = LossReduction::kSum});
    std::vector<float> roots;
    for (size_t begin = 0; begin < 2; begin += batch_size) {
      std::vector<Example> examples;
      for (size_t i = begin; i < begin + batch_size; ++i) examples.push_back({&graphs[i], static_cast<int64_t>(i)});
      session.Accumulate(examples);
      for (const float root : session.executor().output(0)) roots.push_back(root);
    }
    EXPECT_THAT(roots, ElementsAre(::testing::FloatEq(2.8f), ::testing::FloatEq(9.0f)));
    const SparseRows& gradient = session.gradients().sparse(task.model.parameters().Find("x"));
    EXPECT_THAT(gradient.ids, ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_THAT(gradient.rows, ElementsAre(1.1f, 1.7f, 2.5f, 2.5f, 0.0f, 1.0f));
  }
}

TEST_P(Constants, O15InARandomGraphOf500Vertices) {
  ConstantsTask task;
  CounterRandom random(15);
  std::vector<float> xs(500);
  for (float& x : xs) x = static_cast<float>(random.Uniform() - 0.5);
  task.model.Set("x", xs);
  GraphBuilder builder(task.model);
  std::vector<double> expected;
  for (int32_t v = 0; v < 500; ++v) {
    std::vector<int32_t> children;
    for (int64_t k = v > 0 ? random.Below(3) : 0; k > 0; --k) children.push_back(static_cast<int32_t>(random.Below(v)));
    const auto c = static_cast<float>(random.Uniform() - 0.5);
    double h = double{c} * double{xs[static_cast<size_t>(v)]};
    for (const int32_t child : children) h += expected[static_cast<size_t>(child)];
    expected.push_back(h);
    task.Add(&builder, v, c, children, true);
  }
  const std::vector<InputGraph> graphs = {builder.Build()};
  const std::vector<Example> examples = {{graphs.data(), 0}};
  Session session(task.model, {.batching = GetParam()});
  session.Forward(examples, HeadRows::kAll);
  const std::span<const float> values = session.executor().output(0);
  ASSERT_EQ(values.size(), expected.size());
  double scale = 0;
  for (const double h : expected) scale = std::max(scale, std::fabs(h));
  for (size_t v = 0; v < expected.size(); ++v) EXPECT_NEAR(double{values[v]}, expected[v], 1e-6 * scale) << v;
}

INSTANTIATE_TEST_SUITE_P(Batching, Constants,
                         ::testing::Values(BatchingPolicy::kSerial, BatchingPolicy::kDepth, BatchingPolicy::kFrontier,
                                           BatchingPolicy::kAgenda, BatchingPolicy::kFsm));

TEST(UsersCases, AParameterThatNoGraphTouchesIsLegal) {
  const ScratchFolder folder;
  // Single words use no node: node.U and node.b have no gradient.
  const Fixture task = FileTask(folder, "sst", "(3 good)\n(1 bad)\n");
  const std::vector<float> before = task.model().Get("node.U");
  TrainerOptions options;
  options.epochs = 2;
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdagrad, OptimizerKind::kAdam}) {
    options.optimizer.kind = kind;
    EXPECT_EQ(Trainer(task.model(), options).Run(task.train).best.epoch, 2);
    const std::vector<float> after = task.model().Get("node.U");
    EXPECT_EQ(std::vector<float>(after.begin(), after.end()), before) << OptimizerName(kind);
  }
  options.optimizer.weight_decay = 0.1;
  Trainer(task.model(), options).Run(task.train);
  EXPECT_NE(task.model().Get("node.U")[0], before[0]) << "weight decay counts a missing gradient as zero";
}

}  // namespace
}  // namespace cavs
