// Optimizers against their formulas, written out in double precision, over several steps.
#include "backprop/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cavs/base/random.h"

namespace cavs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int32_t kWeights = 0, kTable = 1, kFrozen = 2, kBig = 3;
constexpr int64_t kEntries = 5, kWidth = 3;

std::shared_ptr<const Signature> MakeSignature() {
  auto signature = std::make_shared<Signature>();
  signature->parameters = {
      {"W", Shape::Matrix(2, 3), false, false, Initializer::Normal(1)},
      {"table", Shape::Matrix(kEntries, kWidth), true, false, Initializer::Normal(1)},
      {"frozen", Shape::Vector(4), false, true, Initializer::Normal(1)},
      {"big", Shape::Matrix(131, 127), false, false, Initializer::Normal(1)},  // several jobs and a ragged end
  };
  return signature;
}

std::vector<float> Copy(std::span<const float> values) { return {values.begin(), values.end()}; }

std::vector<float> Random(size_t count, CounterRandom* random) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random->Normal());
  return values;
}

// A model of four parameters and its gradients.
struct Model {
  std::shared_ptr<const Signature> signature = MakeSignature();
  ParameterStore parameters{signature, 7};
  Gradients gradients{signature};

  void SetDense(int32_t parameter, const std::vector<float>& values) {
    gradients.set_touched(parameter);
    std::copy(values.begin(), values.end(), gradients.dense(parameter).begin());
  }
  void SetRows(const std::vector<int32_t>& ids, CounterRandom* random) {
    gradients.AddSparse(kTable, {ids, Random(ids.size() * kWidth, random)});
    gradients.set_touched(kTable);
  }
};

// Rows that step `step` uses; row 3 is never used.
std::vector<int32_t> RowsOfStep(int step) {
  return step % 2 == 0 ? std::vector<int32_t>{0, 4} : std::vector<int32_t>{1, 4};
}

void SetRandomGradients(int step, Model* model) {
  CounterRandom random(11, static_cast<uint64_t>(step));
  model->gradients.Clear();
  model->SetDense(kWeights, Random(6, &random));
  model->SetDense(kBig, Random(131 * 127, &random));
  model->SetRows(RowsOfStep(step), &random);
}

// The formulas of optimizer.h for one element.
struct Element {
  double value = 0, first = 0, second = 0;

  void Step(const OptimizerOptions& o, double gradient, int t) {
    const double g = gradient + o.weight_decay * value;
    switch (o.kind) {
      case OptimizerKind::kSgd:
        value -= o.lr * g;
        break;
      case OptimizerKind::kMomentum:
        first = o.momentum * first + g;
        value -= o.lr * first;
        break;
      case OptimizerKind::kAdagrad:
        first += g * g;
        value -= o.lr * g / (std::sqrt(first) + o.epsilon);
        break;
      case OptimizerKind::kAdam:
        first = o.beta1 * first + (1 - o.beta1) * g;
        second = o.beta2 * second + (1 - o.beta2) * g * g;
        value -=
            o.lr * (first / (1 - std::pow(o.beta1, t))) / (std::sqrt(second / (1 - std::pow(o.beta2, t))) + o.epsilon);
        break;
    }
  }
};

std::vector<Element> ElementsOf(std::span<const float> values) {
  std::vector<Element> elements;
  for (const float value : values) elements.push_back({value, 0, 0});
  return elements;
}

void ExpectNear(std::span<const float> values, const std::vector<Element>& elements) {
  ASSERT_EQ(values.size(), elements.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], elements[i].value, 2e-6 * std::max(1.0, std::abs(elements[i].value))) << "element " << i;
  }
}

// Runs five steps, of which the fourth touches only W, beside the formulas.
void CheckAgainstFormulas(const OptimizerOptions& options) {
  SCOPED_TRACE(std::string(OptimizerName(options.kind)));
  Model model;
  ThreadPool threads(2);
  Optimizer optimizer(options, model.parameters, &threads);
  std::vector<Element> weights = ElementsOf(model.parameters.values(kWeights));
  std::vector<Element> big = ElementsOf(model.parameters.values(kBig));
  std::vector<Element> table = ElementsOf(model.parameters.values(kTable));
  const std::vector<float> frozen = Copy(model.parameters.values(kFrozen));
  for (int step = 0; step < 5; ++step) {
    const bool only_weights = step == 3;
    SetRandomGradients(step, &model);
    if (only_weights) {
      const std::vector<float> gradient = Copy(model.gradients.dense(kWeights));
      model.gradients.Clear();
      model.SetDense(kWeights, gradient);
    }
    double norm = 0;
    const auto count = [&](std::span<const float> gradient) {
      for (const float g : gradient) norm += double{g} * double{g};
    };
    count(model.gradients.dense(kWeights));
    if (!only_weights) count(model.gradients.dense(kBig));
    if (!only_weights) count(model.gradients.sparse(kTable).rows);
    norm = std::sqrt(norm);
    const double scale = options.clip > 0 && norm > options.clip ? options.clip / norm : 1;

    const int t = step + 1;
    for (size_t i = 0; i < weights.size(); ++i) weights[i].Step(options, scale * model.gradients.dense(kWeights)[i], t);
    for (size_t i = 0; i < big.size(); ++i) {
      big[i].Step(options, only_weights ? 0 : scale * model.gradients.dense(kBig)[i], t);
    }
    const std::vector<int32_t> ids = only_weights ? std::vector<int32_t>() : RowsOfStep(step);
    for (int32_t row = 0; row < kEntries; ++row) {
      const auto place = static_cast<size_t>(std::find(ids.begin(), ids.end(), row) - ids.begin());
      if (place == ids.size() && options.sparse_updates) continue;
      for (size_t i = 0; i < kWidth; ++i) {
        const double g = place < ids.size() ? scale * model.gradients.sparse(kTable).rows[place * kWidth + i] : 0;
        table[static_cast<size_t>(row) * kWidth + i].Step(options, g, t);
      }
    }

    const StepResult result = optimizer.Step(model.parameters, model.gradients);
    EXPECT_TRUE(result.applied);
    EXPECT_NEAR(result.norm, norm, 1e-12 * norm);
    ExpectNear(model.parameters.values(kWeights), weights);
    ExpectNear(model.parameters.values(kBig), big);
    ExpectNear(model.parameters.values(kTable), table);
  }
  EXPECT_EQ(Copy(model.parameters.values(kFrozen)), frozen);
  EXPECT_EQ(optimizer.steps(), 5);
}

class OptimizerOfKind : public ::testing::TestWithParam<OptimizerKind> {
 protected:
  static OptimizerOptions Options() { return {.kind = GetParam(), .lr = 0.03, .epsilon = 1e-7}; }
};

TEST_P(OptimizerOfKind, FollowsItsFormula) {
  for (const bool sparse : {true, false}) {
    for (const double decay : {0.0, 0.01}) {
      for (const double clip : {0.0, 0.5, 1e6}) {
        SCOPED_TRACE(fmt::format("sparse {} decay {} clip {}", sparse, decay, clip));
        OptimizerOptions options = Options();
        options.sparse_updates = sparse;
        options.weight_decay = decay;
        options.clip = clip;
        CheckAgainstFormulas(options);
      }
    }
  }
}

// What kOptimizerHelp says about both modes.
TEST_P(OptimizerOfKind, SparseAndDenseUpdatesDifferAsDocumented) {
  const auto run = [](double decay, bool sparse) {
    Model model;
    ThreadPool threads(1);
    OptimizerOptions options = Options();
    options.weight_decay = decay;
    options.sparse_updates = sparse;
    Optimizer optimizer(options, model.parameters, &threads);
    for (int step = 0; step < 4; ++step) {
      SetRandomGradients(step, &model);
      EXPECT_TRUE(optimizer.Step(model.parameters, model.gradients).applied);
    }
    return Copy(model.parameters.values(kTable));
  };
  const bool is_equal = GetParam() == OptimizerKind::kSgd || GetParam() == OptimizerKind::kAdagrad;
  EXPECT_EQ(run(0, true) == run(0, false), is_equal);
  EXPECT_NE(run(0.01, true), run(0.01, false));
}

TEST_P(OptimizerOfKind, GivesTheSameBitsAtAnyNumberOfThreads) {
  std::vector<std::vector<float>> results;
  for (const int size : {1, 3}) {
    Model model;
    ThreadPool threads(size);
    OptimizerOptions options = Options();
    options.clip = 1;
    Optimizer optimizer(options, model.parameters, &threads);
    for (int step = 0; step < 3; ++step) {
      SetRandomGradients(step, &model);
      EXPECT_TRUE(optimizer.Step(model.parameters, model.gradients).applied);
    }
    results.push_back(Copy(model.parameters.values(kBig)));
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_P(OptimizerOfKind, ResumingEqualsNotStopping) {
  for (const bool sparse : {true, false}) {
    Model whole, resumed;
    ThreadPool threads(2);
    OptimizerOptions options = Options();
    options.sparse_updates = sparse;
    Optimizer first(options, whole.parameters, &threads);
    std::vector<OptimizerTensor> state;
    for (int step = 0; step < 6; ++step) {
      if (step == 3) {
        state = first.SaveState();
        for (int32_t p = 0; p < whole.parameters.count(); ++p) resumed.parameters.Set(p, whole.parameters.values(p));
      }
      SetRandomGradients(step, &whole);
      EXPECT_TRUE(first.Step(whole.parameters, whole.gradients).applied);
    }
    Optimizer second(options, resumed.parameters, &threads);
    std::reverse(state.begin(), state.end());
    second.LoadState(state);
    EXPECT_EQ(second.steps(), 3);
    for (int step = 3; step < 6; ++step) {
      SetRandomGradients(step, &resumed);
      EXPECT_TRUE(second.Step(resumed.parameters, resumed.gradients).applied);
    }
    for (const int32_t p : {kWeights, kTable, kBig}) {
      EXPECT_EQ(Copy(whole.parameters.values(p)), Copy(resumed.parameters.values(p))) << p;
    }
  }
}

TEST_P(OptimizerOfKind, RefusesANonFiniteGradientAndChangesNothing) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const bool in_table : {false, true}) {
      Model model;
      ThreadPool threads(2);
      Optimizer optimizer(Options(), model.parameters, &threads);
      SetRandomGradients(0, &model);
      if (in_table) {
        model.gradients.AddSparse(kTable, {{1}, std::vector<float>(kWidth, bad)});
      } else {
        model.gradients.dense(kBig)[16600] = bad;
      }
      const std::vector<float> before = Copy(model.parameters.values(kBig));
      const StepResult result = optimizer.Step(model.parameters, model.gradients);
      EXPECT_FALSE(result.applied);
      EXPECT_FALSE(std::isfinite(result.norm));
      EXPECT_EQ(optimizer.steps(), 0);
      EXPECT_EQ(Copy(model.parameters.values(kBig)), before);
      for (const OptimizerTensor& tensor : optimizer.SaveState()) EXPECT_THAT(tensor.values, ::testing::Each(0.0f));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, OptimizerOfKind,
                         ::testing::Values(OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdagrad,
                                           OptimizerKind::kAdam),
                         [](const auto& kind) { return std::string(OptimizerName(kind.param)); });

// Two steps of one element, worked out by hand: value 1, gradients 0.5 and -1, lr 0.1.
std::vector<float> TwoSteps(OptimizerOptions options) {
  auto signature = std::make_shared<Signature>();
  signature->parameters = {{"p", Shape::Vector(1), false, false, Initializer::Constant(1)}};
  ParameterStore parameters(signature, 0);
  Gradients gradients(signature);
  ThreadPool threads(1);
  options.lr = 0.1;
  Optimizer optimizer(options, parameters, &threads);
  std::vector<float> values;
  for (const float gradient : {0.5f, -1.0f}) {
    gradients.Clear();
    gradients.set_touched(0);
    gradients.dense(0)[0] = gradient;
    EXPECT_TRUE(optimizer.Step(parameters, gradients).applied);
    values.push_back(parameters.values(0)[0]);
  }
  return values;
}

TEST(Optimizer, TwoStepsByHand) {
  const auto are = [](double first, double second) {
    return ElementsAre(::testing::FloatNear(static_cast<float>(first), 1e-6f),
                       ::testing::FloatNear(static_cast<float>(second), 1e-6f));
  };
  // 1 - 0.05; 0.95 + 0.1.
  EXPECT_THAT(TwoSteps({.kind = OptimizerKind::kSgd}), are(0.95, 1.05));
  // m = 0.5, then 0.45 - 1 = -0.55.
  EXPECT_THAT(TwoSteps({.kind = OptimizerKind::kMomentum, .momentum = 0.9}), are(0.95, 1.005));
  // s = 0.25, then 1.25: 1 - 0.1; 0.9 + 0.1 / sqrt(1.25).
  EXPECT_THAT(TwoSteps({.kind = OptimizerKind::kAdagrad}), are(0.9, 0.98944272));
  // m / (1 - 0.9) = 0.5, v / (1 - 0.999) = 0.25; then m = -0.055, v = 0.00124975, divided by 0.19 and 0.001999.
  EXPECT_THAT(TwoSteps({.kind = OptimizerKind::kAdam}), are(0.9, 0.93661035));
  // The gradient is clipped to 0.25 and -0.25, then 0.1 of the value is added: g = 0.35; p = 0.965, g = -0.1535.
  EXPECT_THAT(TwoSteps({.kind = OptimizerKind::kSgd, .weight_decay = 0.1, .clip = 0.25}), are(0.965, 0.98035));
}

TEST(Optimizer, FindsKindsByName) {
  for (const std::string_view name : {"sgd", "momentum", "adagrad", "adam"}) {
    const auto kind = FindOptimizer(name);
    ASSERT_TRUE(kind.has_value()) << name;
    EXPECT_EQ(OptimizerName(*kind), name);
    EXPECT_THAT(std::string(kOptimizerHelp), HasSubstr(std::string(name)));
  }
  EXPECT_FALSE(FindOptimizer("adamw").has_value());
}

TEST(Optimizer, MarksWhatItWritesAsChanged) {
  Model model;
  ThreadPool threads(1);
  for (const int32_t p : {kWeights, kBig}) model.parameters.RequestPacked(p);
  model.parameters.Pack();
  Optimizer optimizer({.kind = OptimizerKind::kSgd}, model.parameters, &threads);
  model.SetDense(kWeights, {1, 1, 1, 1, 1, 1});
  EXPECT_TRUE(optimizer.Step(model.parameters, model.gradients).applied);
  EXPECT_EQ(model.parameters.packed(kWeights), nullptr);
  EXPECT_NE(model.parameters.packed(kBig), nullptr);
}

template <typename Function>
std::string MessageOf(Function function) {
  try {
    function();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(Optimizer, RefusesOptionsOutOfRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  Model model;
  ThreadPool threads(1);
  const auto message = [&](const OptimizerOptions& options) {
    return MessageOf([&] { Optimizer(options, model.parameters, &threads); });
  };
  EXPECT_EQ(message({.lr = 0}), "[optimizer] expected lr above 0, got 0");
  EXPECT_EQ(message({.lr = nan}), "[optimizer] expected lr above 0, got nan");
  EXPECT_EQ(message({.lr = infinity}), "[optimizer] expected lr above 0, got inf");
  EXPECT_EQ(message({.momentum = 1}), "[optimizer] expected momentum in [0, 1), got 1");
  EXPECT_EQ(message({.beta1 = -0.5}), "[optimizer] expected beta1 in [0, 1), got -0.5");
  EXPECT_EQ(message({.beta2 = 1}), "[optimizer] expected beta2 in [0, 1), got 1");
  EXPECT_THAT(message({.epsilon = 0}), HasSubstr("epsilon"));
  EXPECT_THAT(message({.weight_decay = -1}), HasSubstr("weight_decay"));
  EXPECT_THAT(message({.clip = nan}), HasSubstr("clip"));
}

TEST(Optimizer, RefusesAStateOfAnotherKindOrModelAndChangesNothing) {
  Model model;
  ThreadPool threads(1);
  Optimizer adam({.kind = OptimizerKind::kAdam}, model.parameters, &threads);
  SetRandomGradients(0, &model);
  EXPECT_TRUE(adam.Step(model.parameters, model.gradients).applied);
  const std::vector<OptimizerTensor> saved = adam.SaveState();
  const auto refused = [&](const std::vector<OptimizerTensor>& state) {
    std::string message = MessageOf([&] { adam.LoadState(state); });
    EXPECT_EQ(adam.steps(), 1);
    const std::vector<OptimizerTensor> now = adam.SaveState();
    for (size_t i = 0; i < now.size(); ++i) EXPECT_EQ(now[i].values, saved[i].values);
    return message;
  };

  Optimizer momentum({.kind = OptimizerKind::kMomentum}, model.parameters, &threads);
  EXPECT_EQ(refused(momentum.SaveState()),
            "[optimizer state] expected tensors such as \"adam.second/big\" [131, 127], got "
            "\"momentum.velocity/W\" [2, 3]");
  std::vector<OptimizerTensor> state = saved;
  state.erase(state.begin() + 1);
  EXPECT_EQ(refused(state), "[optimizer state] expected \"adam.first/W\" [2, 3], got no such tensor");
  state = saved;
  state[1].shape = Shape::Matrix(3, 2);
  EXPECT_EQ(refused(state),
            "[optimizer state] expected \"adam.first/W\" [2, 3], got \"adam.first/W\" [3, 2] of 6 numbers");
  state = saved;
  state[1].values.pop_back();
  EXPECT_THAT(refused(state), HasSubstr("of 5 numbers"));
  for (const float bad : {-1.0f, 0.5f, 16777216.0f, std::numeric_limits<float>::quiet_NaN()}) {
    state = saved;
    state[0].values[1] = bad;
    EXPECT_THAT(refused(state), HasSubstr("expected a count in \"steps\""));
  }
}

TEST(Optimizer, CountsStepsBeyondTheIntegersOfAFloat) {
  Model model;
  ThreadPool threads(1);
  Optimizer optimizer({.kind = OptimizerKind::kSgd}, model.parameters, &threads);
  const std::vector<OptimizerTensor> state = {{"steps", Shape::Vector(2), {3, 16777215}}};
  optimizer.LoadState(state);
  EXPECT_EQ(optimizer.steps(), 4 * 16777216LL - 1);
  model.SetDense(kWeights, {1, 1, 1, 1, 1, 1});
  EXPECT_TRUE(optimizer.Step(model.parameters, model.gradients).applied);
  EXPECT_THAT(optimizer.SaveState().at(0).values, ElementsAre(4, 0));
}

}  // namespace
}  // namespace cavs
