// The language model: its formula against a sentence computed in double precision, and its two forms against each
// other.
#include "cavs/models/lstm_lm.h"

#include <gtest/gtest.h>

#include "cavs/base/random.h"
#include "cavs/session.h"
#include "tests/cavs/model_testing.h"

namespace cavs {
namespace {

constexpr int64_t kEmbed = 3, kHidden = 2, kWords = 4;

ModelSizes Sizes(int64_t layers) {
  ModelSizes sizes;
  sizes.vocabulary = sizes.classes = kWords;
  sizes.embed = kEmbed;
  sizes.hidden = kHidden;
  sizes.layers = layers;
  return sizes;
}

// A chain that reads words[i] and predicts words[i + 1].
InputGraph Sentence(const Model& model, const std::vector<int32_t>& words) {
  const std::shared_ptr<const ColumnSet> columns = model.columns();
  InputGraphBuilder builder(columns);
  for (int32_t v = 0; v + 1 < std::ssize(words); ++v) {
    builder.AddVertex(kTokenType, {v == 0 ? kNone : v - 1});
    builder.SetId(columns->Find(kWordColumn), v, words[static_cast<size_t>(v)]);
    builder.SetId(columns->Find(kLabelColumn), v, words[static_cast<size_t>(v) + 1]);
  }
  return builder.Build();
}

TEST(LstmLm, TwoLayersOverThreeTokensByHand) {
  Model model;
  DeclareLstmLm(model, Sizes(2));
  SetSmallValues(&model);
  const std::vector<int32_t> words = {0, 2, 3, 0};
  const InputGraph graph = Sentence(model, words);
  const Example example{&graph, 0};
  Session session(std::as_const(model));
  session.Forward({&example, 1}, HeadRows::kLabelled);

  std::vector<DoubleRow> h(2, DoubleRow(kHidden, 0.0)), c = h;
  double loss = 0;
  for (size_t t = 0; t < 3; ++t) {
    DoubleRow x = RowOf(model, "words", words[t], kEmbed);
    for (size_t l = 0; l < 2; ++l) {
      const std::string name = l == 0 ? "layer1" : "layer2";
      const DoubleRow gates = Plus(Plus(Product(model, x, name + ".W", 4 * kHidden), Bias(model, name + ".b")),
                                   Product(model, h[l], name + ".U", 4 * kHidden));
      for (size_t j = 0; j < kHidden; ++j) {
        c[l][j] = SigmoidOf(gates[kHidden + j]) * c[l][j] + SigmoidOf(gates[j]) * std::tanh(gates[3 * kHidden + j]);
        h[l][j] = SigmoidOf(gates[2 * kHidden + j]) * std::tanh(c[l][j]);
      }
      x = h[l];
    }
    const DoubleRow logits = Plus(Product(model, x, "head.W", kWords), Bias(model, "head.b"));
    for (size_t j = 0; j < kWords; ++j) {
      EXPECT_NEAR(double{session.executor().output(0)[t * kWords + j]}, logits[j], 1e-6) << "token " << t;
    }
    loss += LogSumExp(logits) - logits[static_cast<size_t>(words[t + 1])];
  }
  EXPECT_NEAR(session.executor().loss(), loss, 1e-6);
}

TEST(LstmLm, ForgetBiasesBeginAtOne) {
  Model model;
  DeclareLstmLm(model, Sizes(1));
  const std::vector<float> bias = model.Get("layer1.b");
  for (size_t i = 0; i < bias.size(); ++i) EXPECT_EQ(bias[i], i / kHidden == 1 ? 1.0f : 0.0f) << i;
  Model empty;
  EXPECT_THROW(DeclareLstmLm(empty, Sizes(0)), std::invalid_argument);
}

// The layers of a token are one vertex or several: the same losses and the same gradients, whatever the policy.
class LayeredLstmLm : public ::testing::TestWithParam<BatchingPolicy> {};

TEST_P(LayeredLstmLm, EqualsTheModelOfOneType) {
  for (const int64_t layers : {1, 2, 3}) {
    Model flat, layered;
    DeclareLstmLm(flat, Sizes(layers));
    DeclareLayeredLstmLm(layered, Sizes(layers));
    for (Model* model : {&flat, &layered}) SetSmallValues(model);
    CounterRandom random(7);
    std::vector<InputGraph> sentences, stacks;
    for (int i = 0; i < 9; ++i) {
      std::vector<int32_t> words(static_cast<size_t>(2 + random.Below(6)));
      for (int32_t& word : words) word = static_cast<int32_t>(random.Below(kWords));
      sentences.push_back(Sentence(flat, words));
      stacks.push_back(MakeLayered(sentences.back(), layers, layered.columns()));
      EXPECT_EQ(stacks.back().vertex_count(), layers * sentences.back().vertex_count());
    }
    const auto examples = [](const std::vector<InputGraph>& graphs) {
      std::vector<Example> result;
      for (const InputGraph& graph : graphs) result.push_back({&graph, std::ssize(result)});
      return result;
    };
    const SessionOptions options{.batching = GetParam()};
    Session one(flat, options), several(layered, options);
    const BatchReport& report = one.Accumulate(examples(sentences));
    const BatchReport& stacked = several.Accumulate(examples(stacks));
    EXPECT_NEAR(stacked.loss, report.loss, 1e-5 * report.loss);
    EXPECT_EQ(stacked.predictions, report.predictions);
    for (int32_t p = 0; p < flat.parameters().count(); ++p) {
      const ParameterDeclaration& parameter = flat.parameters().declaration(p);
      const int32_t other = layered.parameters().Find(parameter.name);
      const std::vector<float> expected = one.gradients().Get(p), actual = several.gradients().Get(other);
      ASSERT_EQ(actual.size(), expected.size()) << parameter.name;
      for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 2e-6f) << parameter.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Batching, LayeredLstmLm,
                         ::testing::Values(BatchingPolicy::kSerial, BatchingPolicy::kDepth, BatchingPolicy::kFrontier,
                                           BatchingPolicy::kAgenda, BatchingPolicy::kFsm));

}  // namespace
}  // namespace cavs
