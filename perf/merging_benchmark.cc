// What `--merging` gives to cells that are written gate by gate: the time of a training step with it, without it, and
// of the ready-made model whose gates lie side by side already; in one run, by turns, medians. Takes no arguments.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cavs/base/random.h"
#include "cavs/base/stop_watch.h"
#include "cavs/cavs.h"
#include "cavs/models/lstm_lm.h"
#include "cavs/models/tree_models.h"
#include "tests/support/gate_models.h"

namespace cavs {
namespace {

constexpr int kRepetitions = 21;
constexpr int64_t kWords = 20;  // of a sentence

struct Size {
  int64_t hidden, graphs;
};
constexpr std::array<Size, 4> kSizes = {{{64, 1}, {64, 25}, {150, 25}, {256, 64}}};

using Declare = std::function<void(Model&, const ModelSizes&)>;

// Balanced trees, or chains, with a label at every vertex.
std::vector<InputGraph> MakeGraphs(const Model& model, const ModelSizes& sizes, bool trees, int64_t count) {
  CounterRandom random(3);
  const std::shared_ptr<const ColumnSet> columns = model.columns();
  const int word = columns->Find("word"), label = columns->Find("label");
  InputGraphBuilder builder(columns);
  std::vector<InputGraph> graphs;
  for (int64_t g = 0; g < count; ++g) {
    std::vector<int32_t> row;
    const auto finish = [&](int32_t vertex) {
      builder.SetId(label, vertex, static_cast<int32_t>(random.Below(sizes.classes)));
      row.push_back(vertex);
    };
    for (int64_t w = 0; w < kWords; ++w) {
      const int32_t before = row.empty() ? kNone : row.back();
      const int32_t vertex = trees ? builder.AddVertex(0) : builder.AddVertex(0, {before});
      builder.SetId(word, vertex, static_cast<int32_t>(random.Below(sizes.vocabulary)));
      finish(vertex);
    }
    for (size_t next = 0; trees && next + 1 < row.size(); next += 2) {
      finish(builder.AddVertex(1, {row[next], row[next + 1]}));
    }
    graphs.push_back(builder.Build());
  }
  return graphs;
}

// One way to train; its steps are timed by turns with those of the others.
struct Contender {
  Contender(const Declare& declare, const ModelSizes& sizes, bool merging, bool trees, int64_t graphs)
      : model(std::make_unique<Model>(ModelOptions{.seed = 1, .passes = {.merging = merging}})) {
    declare(*model, sizes);
    batch = MakeGraphs(*model, sizes, trees, graphs);
    session = std::make_unique<Session>(*model, SessionOptions{.sharing = SharingPolicy::kOff});
    optimizer = std::make_unique<Optimizer>(session->MakeOptimizer());
  }
  void Step(int64_t steps) {
    const StopWatch watch;
    for (int64_t i = 0; i < steps; ++i) session->Train(batch, *optimizer);
    seconds.push_back(watch.Seconds() / static_cast<double>(steps));
  }
  double Median() {
    std::nth_element(seconds.begin(), seconds.begin() + kRepetitions / 2, seconds.end());
    return seconds[kRepetitions / 2];
  }

  std::unique_ptr<Model> model;
  std::vector<InputGraph> batch;
  std::unique_ptr<Session> session;
  std::unique_ptr<Optimizer> optimizer;
  std::vector<double> seconds;
};

void Compare(const char* name, const Declare& by_gates, const Declare& by_hand, bool trees, const Size& size) {
  ModelSizes sizes;
  sizes.vocabulary = 1000;
  sizes.classes = 5;
  sizes.embed = size.hidden;
  sizes.hidden = size.hidden;
  sizes.layers = trees ? 1 : 2;
  Contender merged(by_gates, sizes, true, trees, size.graphs), apart(by_gates, sizes, false, trees, size.graphs);
  Contender hand(by_hand, sizes, true, trees, size.graphs);
  const std::array<Contender*, 3> contenders = {&hand, &merged, &apart};
  for (Contender* contender : contenders) contender->Step(3);
  const auto steps = std::max<int64_t>(1, static_cast<int64_t>(0.03 / hand.seconds.front()));
  for (Contender* contender : contenders) contender->seconds.clear();
  for (int i = 0; i < kRepetitions; ++i) {
    for (Contender* contender : contenders) contender->Step(steps);
  }
  const double reference = hand.Median();
  fmt::print("{:<10} {:>4} {:>4} {:>14.3f} {:>14.2f} {:>14.2f}\n", name, size.hidden, size.graphs, 1e3 * reference,
             reference / merged.Median(), reference / apart.Median());
}

}  // namespace
}  // namespace cavs

int main() {
  fmt::print("one thread, f32, no sharing; speed over the model whose gates lie side by side\n");
  fmt::print("{:<10} {:>4} {:>4} {:>14} {:>14} {:>14}\n", "model", "H", "b", "that one, ms", "merged", "not merged");
  for (const cavs::Size& size : cavs::kSizes) {
    cavs::Compare("tree_lstm", cavs::DeclareTreeLstmByGates, cavs::DeclareTreeLstm, true, size);
    cavs::Compare("lstm x 2", cavs::DeclareLstmByGates, cavs::DeclareLstmLm, false, size);
  }
}
