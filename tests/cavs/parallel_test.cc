// Sessions on several threads, by kernels and by shards: the same answers, and the same bits where Session promises it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cavs/base/random.h"
#include "cavs/graph_builder.h"
#include "cavs/models/child_sum_tree_lstm.h"
#include "cavs/models/lstm_lm.h"
#include "cavs/models/tree_models.h"
#include "cavs/session.h"
#include "tests/cavs/model_testing.h"

namespace cavs {
namespace {

constexpr int64_t kWords = 9;
constexpr ParallelPolicy kPolicies[] = {ParallelPolicy::kAuto, ParallelPolicy::kTask, ParallelPolicy::kShard};

ModelSizes Sizes() {
  ModelSizes sizes;
  sizes.vocabulary = sizes.classes = kWords;
  sizes.embed = 12;
  sizes.hidden = 20;
  return sizes;
}

// Loss, outputs and gradients of one minibatch, each gradient as its own tensor.
using Figures = std::vector<std::vector<float>>;

Figures FiguresOf(Session& session, std::span<const InputGraph> graphs) {
  std::vector<Example> examples;
  for (const InputGraph& graph : graphs) examples.push_back({&graph, std::ssize(examples)});
  const double loss = session.Accumulate(examples).loss;
  Figures figures = {{static_cast<float>(loss)}};
  const std::span<const float> output = session.executor().output(0);
  figures.emplace_back(output.begin(), output.end());
  const Gradients& gradients = session.gradients();
  for (int32_t p = 0; p < gradients.layout().declared(); ++p) figures.push_back(gradients.Get(p));
  session.DropGradients();
  return figures;
}

// The largest difference over the largest value of its tensor.
double Apart(const Figures& a, const Figures& b) {
  double worst = a.size() == b.size() ? 0 : HUGE_VAL;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].size() != b[i].size()) return HUGE_VAL;
    float difference = 0, largest = 0;
    for (size_t j = 0; j < a[i].size(); ++j) {
      difference = std::max(difference, std::abs(a[i][j] - b[i][j]));
      largest = std::max(largest, std::abs(a[i][j]));
    }
    if (difference > 0) worst = std::max(worst, static_cast<double>(difference / largest));
  }
  return worst;
}

class Parallel : public ::testing::Test {
 protected:
  explicit Parallel(void (*declare)(Model&, const ModelSizes&)) {
    declare(model_, Sizes());
    SetSmallValues(&model_);
    columns_ = model_.columns();
  }

  int32_t Word() { return static_cast<int32_t>(random_.Below(kWords)); }
  void SetWord(InputGraphBuilder* builder, int32_t vertex) {
    builder->SetId(columns_->Find(kWordColumn), vertex, Word());
  }
  void SetLabel(InputGraphBuilder* builder, int32_t vertex) {
    builder->SetId(columns_->Find(kLabelColumn), vertex, Word());
  }

  // A training session of `options`, on `threads` threads in the way of `parallel`.
  Figures Run(int threads, ParallelPolicy parallel, int64_t graphs, SessionOptions options = {}) {
    options.threads = threads;
    options.parallel = parallel;
    Session session(model_, options);
    Figures figures = FiguresOf(session, std::span(graphs_).first(static_cast<size_t>(graphs)));
    shards_ = session.schedule().shard_count();
    return figures;
  }

  Model model_;
  std::shared_ptr<const ColumnSet> columns_;
  CounterRandom random_{21};
  std::vector<InputGraph> graphs_;
  int32_t shards_ = 0;  // of the last run
};

class ParallelTrees : public Parallel {
 protected:
  ParallelTrees() : Parallel(DeclareTreeLstm) {
    graphs_.reserve(40);
    for (int i = 0; i < 40; ++i) graphs_.push_back(Tree(1 + random_.Below(12)));
  }

  InputGraph Tree(int64_t leaves) {
    InputGraphBuilder builder(columns_);
    std::vector<int32_t> row;
    for (int64_t i = 0; i < leaves; ++i) {
      row.push_back(builder.AddVertex(kLeafType));
      SetWord(&builder, row.back());
    }
    while (row.size() > 1) {
      const auto left = row.begin() + random_.Below(std::ssize(row) - 1);
      *left = builder.AddVertex(kNodeType, {*left, *(left + 1)});
      SetLabel(&builder, *left);
      row.erase(left + 1);
    }
    SetLabel(&builder, row.front());
    return builder.Build();
  }
};

TEST_F(ParallelTrees, EqualOneThreadBitForBit) {
  for (const SharingPolicy sharing : {SharingPolicy::kOff, SharingPolicy::kInputs}) {
    const Figures one = Run(1, ParallelPolicy::kAuto, 40, {.sharing = sharing});
    EXPECT_EQ(shards_, 1);
    for (const int threads : {2, 3}) {
      for (const ParallelPolicy parallel : kPolicies) {
        EXPECT_EQ(one, Run(threads, parallel, 40, {.sharing = sharing})) << ParallelPolicyName(parallel);
        EXPECT_EQ(shards_, parallel == ParallelPolicy::kTask ? 1 : threads) << ParallelPolicyName(parallel);
      }
    }
  }
}

// A row of a product that is not packed depends on the rows beside it, and the sums of a subgraph on who shares it.
TEST_F(ParallelTrees, EqualOneThreadWithinRounding) {
  for (const auto& [graphs, sharing] :
       {std::pair{3, SharingPolicy::kInputs}, std::pair{40, SharingPolicy::kSubgraphs}}) {
    const Figures one = Run(1, ParallelPolicy::kShard, graphs, {.sharing = sharing});
    for (const int threads : {2, 3}) {
      EXPECT_LE(Apart(one, Run(threads, ParallelPolicy::kShard, graphs, {.sharing = sharing})), 2e-6);
      EXPECT_EQ(shards_, threads);
    }
  }
}

TEST_F(ParallelTrees, ThereAreNoMoreShardsThanGraphs) {
  const Figures two = Run(1, ParallelPolicy::kAuto, 2), one = Run(1, ParallelPolicy::kAuto, 1);
  EXPECT_LE(Apart(two, Run(4, ParallelPolicy::kShard, 2)), 2e-6);
  EXPECT_EQ(shards_, 2);
  for (const ParallelPolicy parallel : kPolicies) {
    EXPECT_EQ(one, Run(4, parallel, 1)) << ParallelPolicyName(parallel);
    EXPECT_EQ(shards_, 1);
  }
}

TEST_F(ParallelTrees, AutomaticShardsHaveTwoGraphsAndRowsEnough) {
  Run(2, ParallelPolicy::kAuto, 2);
  EXPECT_EQ(shards_, 1) << "too little work";
  graphs_.clear();
  for (int i = 0; i < 5; ++i) graphs_.push_back(Tree(70));
  const auto shards = [&](int threads, int64_t graphs) {
    Run(threads, ParallelPolicy::kAuto, graphs);
    return shards_;
  };
  EXPECT_EQ(shards(2, 1), 1);
  EXPECT_EQ(shards(2, 3), 1);
  EXPECT_EQ(shards(2, 4), 2);
  EXPECT_EQ(shards(4, 5), 2);
}

// One session, minibatches of all sizes: nothing of the shards of one shows in the next.
TEST_F(ParallelTrees, MinibatchesMayBeCutDifferently) {
  Session session(model_, {.threads = 3, .parallel = ParallelPolicy::kShard});
  for (const int64_t graphs : {40, 1, 2, 33, 40}) {
    const std::span<const InputGraph> first = std::span(graphs_).first(static_cast<size_t>(graphs));
    EXPECT_LE(Apart(Run(1, ParallelPolicy::kTask, graphs), FiguresOf(session, first)), 2e-6) << graphs;
    EXPECT_EQ(session.schedule().shard_count(), std::min<int64_t>(3, graphs));
  }
}

class ParallelSentences : public Parallel {
 protected:
  ParallelSentences() : Parallel(DeclareLstmLm) {
    graphs_.reserve(30);
    for (int i = 0; i < 30; ++i) {
      InputGraphBuilder builder(columns_);
      for (int32_t v = 0, length = 1 + static_cast<int32_t>(random_.Below(14)); v < length; ++v) {
        builder.AddVertex(kTokenType, {v == 0 ? kNone : v - 1});
        SetWord(&builder, v);
        SetLabel(&builder, v);
      }
      graphs_.push_back(builder.Build());
    }
  }
};

TEST_F(ParallelSentences, EqualOneThreadBitForBit) {
  const Figures one = Run(1, ParallelPolicy::kAuto, 30);
  for (const int threads : {2, 3}) {
    for (const ParallelPolicy parallel : kPolicies) EXPECT_EQ(one, Run(threads, parallel, 30));
  }
}

class ParallelPairs : public Parallel {
 protected:
  ParallelPairs() : Parallel(DeclareChildSumTreeLstm) {
    for (int i = 0; i < 20; ++i) {
      InputGraphBuilder builder(columns_);
      const int32_t left = AddTree(&builder), right = AddTree(&builder);
      const int32_t pair = builder.AddVertex(kPairType, {left, right});
      std::vector<float> target(kWords, 0.0f);
      target[static_cast<size_t>(Word())] = 1.0f;
      builder.SetRow(columns_->Find(kTargetColumn), pair, target);
      graphs_.push_back(builder.Build());
    }
  }

  // Adds a tree over 1 to 10 words; returns its root, which has the lowest number.
  int32_t AddTree(InputGraphBuilder* builder) {
    std::vector<std::vector<int32_t>> children(static_cast<size_t>(1 + random_.Below(10)));
    const auto root = static_cast<int32_t>(builder->vertex_count());
    for (int32_t v = 1; v < std::ssize(children); ++v) {
      children[static_cast<size_t>(random_.Below(v))].push_back(root + v);
    }
    for (const std::vector<int32_t>& below : children) SetWord(builder, builder->AddVertex(kDependencyType, below));
    return root;
  }
};

// Words without children recur as all others do, so each shard shares its own.
TEST_F(ParallelPairs, EqualOneThreadWithinRoundingWhereShardsShare) {
  for (const SharingPolicy sharing : {SharingPolicy::kOff, SharingPolicy::kInputs}) {
    const Figures one = Run(1, ParallelPolicy::kAuto, 20, {.sharing = sharing});
    for (const int threads : {2, 3}) {
      for (const ParallelPolicy parallel : kPolicies) {
        const Figures result = Run(threads, parallel, 20, {.sharing = sharing});
        EXPECT_LE(Apart(one, result), 2e-6) << ParallelPolicyName(parallel);
        if (sharing == SharingPolicy::kInputs && parallel != ParallelPolicy::kTask) continue;
        EXPECT_EQ(one, result) << ParallelPolicyName(parallel);
      }
    }
  }
}

TEST(ParallelPolicyNames, AreParsed) {
  for (const ParallelPolicy policy : kPolicies) EXPECT_EQ(ParseParallelPolicy(ParallelPolicyName(policy)), policy);
  EXPECT_EQ(ParallelPolicyName(ParallelPolicy::kShard), "shard");
  try {
    ParseParallelPolicy("thread");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "[parallel] expected one of auto, task, shard, got 'thread'");
  }
}

// The first shard is fine, and has more work: what went wrong in the second is found all the same.
TEST(ParallelFaults, AreTracedToTheirShard) {
  Model model;
  const Expression numbers = model.Lookup("numbers", 2, 3, Initializer::Values({1, 1, 1, 1, -20, 1}));
  const State sum = model.State("sum", {3});
  auto leaf = model.VertexType("leaf", 0), step = model.VertexType("step", 1);
  leaf.Define([&](Vertex& v) { v.Scatter(sum, v.Pull(numbers, "number")); });
  step.Define([&](Vertex& v) {
    const Expression next = Log(v.Gather(0, sum) + v.Pull(numbers, "number"));
    v.Scatter(sum, next);
    v.Push("sum", next);
  });
  model.Loss(Sum(model.Pushed("sum")));
  const auto chain = [&](const std::vector<int32_t>& ids) {
    GraphBuilder builder(model);
    auto last = builder.Add(leaf, {{"number", 0}});
    for (const int32_t id : ids) last = builder.Add(step, {{"number", id}}, {last});
    return builder.Build();
  };
  const InputGraph good = chain({0, 0, 0}), bad = chain({0, 1});
  const std::vector<Example> examples = {{&good, 3}, {&bad, 8}};
  Session session(model, {.threads = 2, .parallel = ParallelPolicy::kShard});
  EXPECT_TRUE(std::isnan(session.Accumulate(examples).loss));
  EXPECT_EQ(session.schedule().shard_count(), 2);
  const NonFinite place = session.FindNonFinite();
  ASSERT_TRUE(place.found);
  EXPECT_NE(place.operation.find("= log"), std::string::npos) << place.operation;
  EXPECT_EQ(place.example, 8);
  EXPECT_EQ(place.vertex, 2);
}

}  // namespace
}  // namespace cavs
