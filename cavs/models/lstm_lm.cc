#include "cavs/models/lstm_lm.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cavs/base/error.h"

namespace cavs {
namespace {

// One layer: its parameters, and its state of the vertex before.
struct Layer {
  Layer(Model& model, int64_t number, const ModelSizes& sizes)
      : h(model.State(fmt::format("h{}", number), {sizes.hidden})),
        c(model.State(fmt::format("c{}", number), {sizes.hidden})) {
    const int64_t hidden = sizes.hidden;
    const std::string name = fmt::format("layer{}", number);
    std::vector<float> initial_bias(static_cast<size_t>(4 * hidden), 0.0f);
    std::fill_n(initial_bias.begin() + hidden, hidden, 1.0f);
    input_weights = model.Parameter(name + ".W", {number == 1 ? sizes.embed : hidden, 4 * hidden});
    weights = model.Parameter(name + ".U", {hidden, 4 * hidden});
    bias = model.Parameter(name + ".b", {4 * hidden}, Initializer::Values(std::move(initial_bias)));
  }

  // The h of this vertex; child 0 is the vertex before.
  Expression Step(Vertex& v, const Expression& x) const {
    const auto [i, f, o, u] = Split<4>(Affine(x, input_weights, bias) + MatMul(v.Gather(0, h), weights));
    const Expression cell = Sigmoid(f) * v.Gather(0, c) + Sigmoid(i) * Tanh(u);
    const Expression out = Sigmoid(o) * Tanh(cell);
    v.Scatter(c, cell);
    v.Scatter(h, out);
    return out;
  }

  State h, c;
  Expression input_weights, weights, bias;
};

std::vector<Layer> DeclareLayers(Model& model, const ModelSizes& sizes) {
  if (sizes.layers < 1) ThrowInvalid("lstm_lm", fmt::format("expected at least one layer, got {}", sizes.layers));
  std::vector<Layer> layers;
  for (int64_t number = 1; number <= sizes.layers; ++number) layers.emplace_back(model, number, sizes);
  return layers;
}

void PredictNext(Model& model, const ModelSizes& sizes) {
  const Expression weights = model.Parameter("head.W", {sizes.hidden, sizes.classes});
  const Expression bias = model.Parameter("head.b", {sizes.classes});
  const Expression logits = Affine(Dropout(model.Pushed("h"), sizes.dropout), weights, bias);
  model.Output(kLogitsOutput, logits);
  model.Loss(CrossEntropy(logits, model.Label(kLabelColumn, sizes.classes)));
}

}  // namespace

void DeclareLstmLm(Model& model, const ModelSizes& sizes) {
  const Expression words = model.Lookup("words", sizes.vocabulary, sizes.embed);
  const std::vector<Layer> layers = DeclareLayers(model, sizes);
  model.VertexType("token", 1).Define([&](Vertex& v) {
    Expression x = v.Pull(words, kWordColumn);
    for (const Layer& layer : layers) x = layer.Step(v, Dropout(x, sizes.dropout));
    v.Push("h", x);
  });
  PredictNext(model, sizes);
}

void DeclareLayeredLstmLm(Model& model, const ModelSizes& sizes) {
  const Expression words = model.Lookup("words", sizes.vocabulary, sizes.embed);
  const std::vector<Layer> layers = DeclareLayers(model, sizes);
  for (size_t l = 0; l < layers.size(); ++l) {
    model.VertexType(fmt::format("layer{}", l + 1), l == 0 ? 1 : 2).Define([&](Vertex& v) {
      const Expression x = l == 0 ? v.Pull(words, kWordColumn) : v.Gather(1, layers[l - 1].h);
      const Expression out = layers[l].Step(v, Dropout(x, sizes.dropout));
      if (l + 1 == layers.size()) v.Push("h", out);
    });
  }
  PredictNext(model, sizes);
}

InputGraph MakeLayered(const InputGraph& sentence, int64_t layers, std::shared_ptr<const ColumnSet> columns) {
  const int word = sentence.columns().Find(kWordColumn), label = sentence.columns().Find(kLabelColumn);
  const int layered_word = columns->Find(kWordColumn), layered_label = columns->Find(kLabelColumn);
  const auto count = static_cast<int32_t>(layers);
  InputGraphBuilder builder(std::move(columns));
  for (int32_t t = 0; t < sentence.vertex_count(); ++t) {
    const int32_t before = sentence.children(t)[0];
    for (int32_t l = 0; l < count; ++l) {
      const std::array<int32_t, 2> children = {before == kNone ? kNone : before * count + l, t * count + l - 1};
      const int32_t vertex = builder.AddVertex(l, std::span(children).first(l == 0 ? 1 : 2));
      if (l == 0) builder.SetId(layered_word, vertex, sentence.ids(word)[static_cast<size_t>(t)]);
      if (l + 1 == count) builder.SetId(layered_label, vertex, sentence.ids(label)[static_cast<size_t>(t)]);
    }
  }
  return builder.Build();
}

}  // namespace cavs
