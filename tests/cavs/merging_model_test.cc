// Models that are written gate by gate, with their products merged and not: equal numbers, equal files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "cavs/base/random.h"
#include "cavs/cavs.h"
#include "cavs/checkpoint.h"
#include "cavs/file_output.h"
#include "cavs/models/tree_models.h"
#include "tests/cavs/scratch_folder.h"
#include "tests/support/gate_models.h"

namespace cavs {
namespace {

constexpr ModelSizes kSizes = {.vocabulary = 50, .classes = 3, .embed = 6, .hidden = 5, .layers = 2};

struct GateModel {
  const char* name;
  void (*declare)(Model& model, const ModelSizes& sizes);
  int64_t leaf_type;  // -1: a chain of one type
  int64_t products;   // of the recursion, merged
};

constexpr GateModel kTree = {"tree_lstm", DeclareTreeLstmByGates, 0, 1};
constexpr GateModel kLstm = {"lstm", DeclareLstmByGates, -1, 2};
constexpr GateModel kGru = {"gru", DeclareGruByGates, -1, 1};

void PrintTo(const GateModel& model, std::ostream* out) { *out << model.name; }

std::unique_ptr<Model> Make(const GateModel& kind, bool merging, Precision precision = Precision::kFp32,
                            const ModelSizes& sizes = kSizes) {
  ModelOptions options;
  options.passes.merging = merging;
  options.precision = precision;
  auto model = std::make_unique<Model>(options);
  kind.declare(*model, sizes);
  return model;
}

// Random trees, or chains, that fit a model.
std::vector<InputGraph> RandomGraphs(const GateModel& kind, const Model& model, int64_t count) {
  CounterRandom random(5);
  const std::shared_ptr<const ColumnSet> columns = model.columns();
  const int word = columns->Find("word"), label = columns->Find("label");
  InputGraphBuilder builder(columns);
  std::vector<InputGraph> graphs;
  for (int64_t g = 0; g < count; ++g) {
    const int64_t words = 1 + random.Below(9);
    std::vector<int32_t> roots;
    for (int64_t w = 0; w < words; ++w) {
      const bool chain = kind.leaf_type < 0;
      const int32_t before = roots.empty() ? kNone : roots.back();
      const int32_t vertex = chain ? builder.AddVertex(0, {before}) : builder.AddVertex(0);
      builder.SetId(word, vertex, static_cast<int32_t>(random.Below(kSizes.vocabulary)));
      builder.SetId(label, vertex, static_cast<int32_t>(random.Below(kSizes.classes)));
      roots.push_back(vertex);
    }
    while (kind.leaf_type >= 0 && roots.size() > 1) {
      const auto left = static_cast<size_t>(random.Below(std::ssize(roots) - 1));
      roots[left] = builder.AddVertex(1, {roots[left], roots[left + 1]});
      builder.SetId(label, roots[left], static_cast<int32_t>(random.Below(kSizes.classes)));
      roots.erase(roots.begin() + static_cast<int64_t>(left) + 1);
    }
    graphs.push_back(builder.Build());
  }
  return graphs;
}

// Largest difference of the parameters over the largest value of each.
double Distance(const Model& a, const Model& b) {
  double worst = 0;
  for (int32_t p = 0; p < a.parameters().count(); ++p) {
    const std::vector<float> left = a.parameters().Get(p), right = b.parameters().Get(p);
    double scale = 1e-3, difference = 0;
    for (size_t i = 0; i < left.size(); ++i) {
      scale = std::max(scale, std::abs(static_cast<double>(left[i])));
      difference = std::max(difference, std::abs(static_cast<double>(left[i]) - static_cast<double>(right[i])));
    }
    worst = std::max(worst, difference / scale);
  }
  return worst;
}

OptimizerOptions StepsOf(OptimizerKind kind) {
  return {.kind = kind, .lr = 0.02, .weight_decay = 0.01, .clip = 0.5, .sparse_updates = false};
}

class MergedModel : public ::testing::TestWithParam<GateModel> {
 protected:
  const GateModel& kind() const { return GetParam(); }
  std::unique_ptr<Model> merged_ = Make(kind(), true), apart_ = Make(kind(), false);
  std::vector<InputGraph> graphs_ = RandomGraphs(kind(), *apart_, 40);
};

TEST_P(MergedModel, RunsOneProductForEachTask) {
  const auto products = [&](const Model& model) {
    const auto executable = model.executable(true);
    int64_t count = 0;
    const auto type = static_cast<int32_t>(executable->signature().types.size()) - 1;
    for (const Step& step : executable->function(false, type).phase(Phase::kRecurrent).steps) {
      const Op op = executable->forward().instructions[static_cast<size_t>(step.instruction)].op;
      count += step.kind == StepKind::kKernel && op == Op::kMatMul ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(products(*merged_), kind().products);
  EXPECT_GE(products(*apart_), 3 * kind().products);
}

TEST_P(MergedModel, BeginsWithTheSameValues) {
  EXPECT_EQ(Distance(*merged_, *apart_), 0);
  const std::string name = merged_->parameters().declaration(3).name;
  std::vector<float> values = merged_->Get(name);
  values.front() = 7;
  merged_->Set(name, values);
  EXPECT_EQ(merged_->Get(name), values);
}

TEST_P(MergedModel, GivesTheSameLossesAndGradients) {
  Session one(*merged_), other(*apart_);
  std::vector<Example> examples;
  for (const InputGraph& graph : graphs_) examples.push_back({&graph, std::ssize(examples)});
  const double loss = one.Accumulate(examples).loss;
  EXPECT_NEAR(loss, other.Accumulate(examples).loss, 1e-6 * loss);
  for (int32_t p = 0; p < merged_->parameters().count(); ++p) {
    const std::vector<float> actual = one.gradients().Get(p), expected = other.gradients().Get(p);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 2e-6f);
  }
}

TEST_P(MergedModel, SavesTheSameFileAndLoadsTheOther) {
  const ScratchFolder folder;
  Session session(*merged_);
  Optimizer optimizer = session.MakeOptimizer(StepsOf(OptimizerKind::kAdam));
  session.Train(graphs_, optimizer);
  merged_->Save(folder.File("merged"));
  apart_->Load(folder.File("merged"));
  EXPECT_EQ(Distance(*merged_, *apart_), 0);
  apart_->Save(folder.File("apart"));
  EXPECT_EQ(ReadText(folder.File("merged")), ReadText(folder.File("apart")));
  const std::unique_ptr<Model> fresh = Make(kind(), true);
  fresh->Load(folder.File("apart"));
  EXPECT_EQ(Distance(*merged_, *fresh), 0);
}

TEST_P(MergedModel, CheckpointsGoOnInTheOther) {
  const ScratchFolder folder;
  for (const bool from_merged : {false, true}) {
    const std::unique_ptr<Model> from = Make(kind(), from_merged), to = Make(kind(), !from_merged);
    Session first(*from), second(*to);
    Optimizer optimizer = first.MakeOptimizer(StepsOf(OptimizerKind::kAdam));
    Optimizer resumed = second.MakeOptimizer(StepsOf(OptimizerKind::kAdam));
    for (int step = 0; step < 2; ++step) first.Train(graphs_, optimizer);
    TrainingState state;
    state.current.epoch = 1;
    SaveCheckpoint(folder.File("state"), state, {}, *from, optimizer);
    LoadCheckpoint(folder.File("state"), {}, *to, resumed);
    EXPECT_EQ(Distance(*from, *to), 0);
    for (int step = 0; step < 3; ++step) {
      first.Train(graphs_, optimizer);
      second.Train(graphs_, resumed);
    }
    EXPECT_LT(Distance(*from, *to), 2e-4);
  }
}

TEST_P(MergedModel, InBf16IsNear) {
  if (!cpu::HasFastBf16()) GTEST_SKIP() << cpu::kNoFastBf16;
  const std::unique_ptr<Model> rounded = Make(kind(), true, Precision::kBf16);
  Session one(*rounded), other(*apart_);
  Optimizer optimizer = one.MakeOptimizer({.kind = OptimizerKind::kSgd, .lr = 0.02});
  Optimizer exact = other.MakeOptimizer({.kind = OptimizerKind::kSgd, .lr = 0.02});
  for (int step = 0; step < 3; ++step) {
    one.Train(graphs_, optimizer);
    other.Train(graphs_, exact);
  }
  EXPECT_GT(Distance(*rounded, *apart_), 0);
  EXPECT_LT(Distance(*rounded, *apart_), 1e-2);
}

INSTANTIATE_TEST_SUITE_P(Models, MergedModel, ::testing::Values(kTree, kLstm, kGru),
                         [](const auto& model) { return std::string(model.param.name); });

class MergedSteps : public ::testing::TestWithParam<std::tuple<GateModel, OptimizerKind>> {};

// Five steps with clipping and decay, lookup tables included.
TEST_P(MergedSteps, TrainAlike) {
  const auto& [kind, optimizer_kind] = GetParam();
  const std::unique_ptr<Model> merged = Make(kind, true), apart = Make(kind, false);
  const std::vector<InputGraph> graphs = RandomGraphs(kind, *apart, 12);
  Session one(*merged), other(*apart);
  Optimizer first = one.MakeOptimizer(StepsOf(optimizer_kind)), second = other.MakeOptimizer(StepsOf(optimizer_kind));
  for (int step = 0; step < 5; ++step) {
    const double loss = one.Train(graphs, first);
    EXPECT_NEAR(loss, other.Train(graphs, second), 1e-5 * loss);
  }
  EXPECT_LT(Distance(*merged, *apart), 2e-4) << "Adam and Adagrad divide by small numbers";
  const std::vector<OptimizerTensor> left = first.SaveState(), right = second.SaveState();
  ASSERT_EQ(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(left[i].name, right[i].name);
    EXPECT_EQ(left[i].shape, right[i].shape);
    for (size_t j = 0; j < left[i].values.size(); ++j) ASSERT_NEAR(left[i].values[j], right[i].values[j], 1e-5f);
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, MergedSteps,
                         ::testing::Combine(::testing::Values(kTree, kLstm, kGru),
                                            ::testing::Values(OptimizerKind::kSgd, OptimizerKind::kMomentum,
                                                              OptimizerKind::kAdagrad, OptimizerKind::kAdam)),
                         [](const auto& both) {
                           return std::string(std::get<0>(both.param).name) + "_" +
                                  std::string(OptimizerName(std::get<1>(both.param)));
                         });

// The same cell with the gates side by side, with the values of the gates.
TEST(MergedTreeLstm, IsTheOneThatIsWrittenSideBySide) {
  const std::unique_ptr<Model> gates = Make(kTree, true);
  Model whole;
  DeclareTreeLstm(whole, kSizes);
  const auto copy = [&](const std::string& name, const std::vector<std::vector<std::string>>& parts) {
    std::vector<float> values;
    for (const std::vector<std::string>& side : parts) {
      std::vector<std::vector<float>> blocks;
      for (const std::string& part : side) blocks.push_back(gates->Get(part));
      const int64_t rows = std::ssize(blocks.front()) / kSizes.hidden;
      for (int64_t row = 0; row < rows; ++row) {
        for (const std::vector<float>& block : blocks) {
          values.insert(values.end(), block.begin() + row * kSizes.hidden, block.begin() + (row + 1) * kSizes.hidden);
        }
      }
    }
    whole.Set(name, values);
  };
  copy("leaf.W", {{"leaf.i.W", "leaf.o.W", "leaf.u.W"}});
  copy("leaf.b", {{"leaf.i.b", "leaf.o.b", "leaf.u.b"}});
  copy("node.U", {{"node.i.W", "node.o.W", "node.u.W", "node.f_l.W", "node.f_r.W"},
                  {"node.i.U", "node.o.U", "node.u.U", "node.f_l.U", "node.f_r.U"}});
  copy("node.b", {{"node.i.b", "node.o.b", "node.u.b", "node.f_l.b", "node.f_r.b"}});
  for (const char* name : {"words", "head.W", "head.b"}) whole.Set(name, gates->Get(name));

  const std::vector<InputGraph> graphs = RandomGraphs(kTree, whole, 30);
  Session one(*gates), other(whole);
  Optimizer first = one.MakeOptimizer(), second = other.MakeOptimizer();
  for (int step = 0; step < 3; ++step) {
    const double loss = one.Train(graphs, first);
    EXPECT_NEAR(loss, other.Train(graphs, second), 1e-6 * loss);
  }
}

// A gate that is frozen and gates that two types share.
void DeclareTied(Model& model, const ModelSizes& sizes) {
  const Expression words = model.Lookup("words", sizes.vocabulary, sizes.embed);
  const State h = model.State("h", {sizes.hidden});
  std::vector<Expression> shared, own;
  for (const char* name : {"Wi", "Wu", "Wo"}) shared.push_back(model.Parameter(name, {sizes.embed, sizes.hidden}));
  for (const char* name : {"Ui", "Uu", "Uo", "Uf"}) own.push_back(model.Parameter(name, {sizes.hidden, sizes.hidden}));
  for (const size_t frozen : {2, 3}) model.Freeze(own[frozen]);
  const auto publish = [&](Vertex& v, const Expression& out) {
    v.Scatter(h, out);
    v.Push("h", out);
  };
  model.VertexType("leaf", 0).Define([&](Vertex& v) {
    const Expression x = v.Pull(words, "word");
    publish(v, Sigmoid(MatMul(x, shared[0])) * Tanh(MatMul(x, shared[1])) * Sigmoid(MatMul(x, shared[2])));
  });
  model.VertexType("node", 2).Define([&](Vertex& v) {
    const Expression x = v.Pull(words, "word"), y = v.Gather(0, h), z = v.Gather(1, h);
    const Expression i = Sigmoid(MatMul(x, shared[0]) + MatMul(y, own[0]));
    const Expression u = Tanh(MatMul(x, shared[1]) + MatMul(y, own[1]));
    const Expression o = Sigmoid(MatMul(x, shared[2]) + MatMul(y, own[2]));
    publish(v, o * Tanh(i * u + Sigmoid(MatMul(y, own[3])) * z));
  });
  DeclareClassifier(model, sizes);
}

TEST(MergedTies, FrozenGatesDoNotMoveAndSharedOnesMoveOnce) {
  constexpr GateModel kTied = {"tied", DeclareTied, 0, 0};
  const std::unique_ptr<Model> merged = Make(kTied, true), apart = Make(kTied, false);
  std::vector<std::string> names;
  for (const ParameterDeclaration& p : merged->simplified().signature->parameters) {
    if (!p.parts.empty()) names.push_back(p.name);
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("[Wi Wu Wo]", "[Ui Uu]", "[Uo Uf]"));
  const std::vector<float> frozen = merged->Get("Uf");
  const std::vector<InputGraph> graphs = RandomGraphs(kTied, *apart, 20);
  Session one(*merged), other(*apart);
  Optimizer first = one.MakeOptimizer(StepsOf(OptimizerKind::kMomentum));
  Optimizer second = other.MakeOptimizer(StepsOf(OptimizerKind::kMomentum));
  for (int step = 0; step < 5; ++step) {
    one.Train(graphs, first);
    other.Train(graphs, second);
  }
  EXPECT_LT(Distance(*merged, *apart), 1e-5);
  EXPECT_EQ(merged->Get("Uf"), frozen);
  EXPECT_NE(merged->Get("Wi"), Make(kTied, true)->Get("Wi"));
}

}  // namespace
}  // namespace cavs
