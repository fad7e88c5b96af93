#include "cavs/evaluate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "cavs/base/error.h"
#include "cavs/base/stop_watch.h"
#include "cavs/minibatches.h"
#include "cavs/models/model_sizes.h"
#include "cavs/similarity.h"

namespace cavs {
namespace {

constexpr TaskMetric kClassMetrics[] = {{"accuracy", &Evaluation::root_accuracy, true},
                                        {"vertex_accuracy", &Evaluation::vertex_accuracy, true}};
constexpr TaskMetric kWordMetrics[] = {{"perplexity", &Evaluation::perplexity, false}};
constexpr TaskMetric kSimilarityMetrics[] = {{"pearson", &Evaluation::pearson, true},
                                             {"spearman", &Evaluation::spearman, true},
                                             {"mse", &Evaluation::mse, false}};

// By value of LearningTask.
constexpr std::array<std::span<const TaskMetric>, 3> kMetrics = {kClassMetrics, kWordMetrics, kSimilarityMetrics};

// The class of the highest logit, the lowest of equals; kNone when one is not finite.
int32_t BestClass(std::span<const float> logits) {
  if (!std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); })) return kNone;
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<double> Probabilities(std::span<const float> logits) {
  const float highest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> result;
  double sum = 0;
  for (const float logit : logits) sum += result.emplace_back(std::exp(double{logit} - double{highest}));
  for (double& value : result) value /= sum;
  return result;
}

double Ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : kNoFigure;
}

void RequireBatchSize(int64_t batch_size) {
  if (batch_size < 1) ThrowInvalid("batch size", fmt::format("expected at least 1, got {}", batch_size));
}

}  // namespace

std::span<const TaskMetric> MetricsOf(LearningTask task) { return kMetrics[static_cast<size_t>(task)]; }

Evaluator::Evaluator(const Model& model, const SessionOptions& options)
    : model_(&model),
      label_(model.columns()->Find(kLabelColumn)),
      target_(model.columns()->Find(kTargetColumn)),
      session_(model, options),
      prefetcher_(session_, /*training=*/false) {
  const std::vector<NamedValue>& outputs = model.simplified().outputs;
  const auto logits = std::find_if(outputs.begin(), outputs.end(),
                                   [](const NamedValue& output) { return output.name == kLogitsOutput; });
  if (logits == outputs.end() || (label_ == kNone && target_ == kNone)) {
    ThrowInvalid("evaluate",
                 fmt::format("expected a model with an output \"{}\" and a \"{}\" or \"{}\", got one without",
                             kLogitsOutput, kLabelColumn, kTargetColumn));
  }
  logits_ = static_cast<size_t>(logits - outputs.begin());
  classes_ = model.simplified().value(logits->value).shape.width();
}

void Evaluator::RunAll(const Dataset& data, int64_t batch_size, HeadRows head, const Session::PartVisitor& visit,
                       const std::function<void()>& done) {
  RequireBatchSize(batch_size);
  const Minibatches minibatches(data.graphs, batch_size);
  Prefetcher::Pass pass(&prefetcher_, minibatches.size(), minibatches);
  while (const PlannedBatch* minibatch = pass.Next()) {
    session_.Forward(*minibatch, head, visit);
    done();
  }
}

std::span<const float> Evaluator::Logits(int64_t row) const {
  return output_.subspan(static_cast<size_t>(row * classes_), static_cast<size_t>(classes_));
}

int32_t Evaluator::LabelOf(int32_t vertex) const {
  if (label_ == kNone) return kNone;
  const GraphBatch& batch = session_.batch();
  return batch.graph(batch.graph_of(vertex)).ids(label_)[static_cast<size_t>(batch.local_id(vertex))];
}

// The score is the expectation of the distribution that was made of it.
double Evaluator::ScoreOf(int32_t vertex) const {
  if (target_ == kNone) return kNoFigure;
  const GraphBatch& batch = session_.batch();
  const std::span<const float> target = batch.graph(batch.graph_of(vertex)).row(target_, batch.local_id(vertex));
  if (target.empty()) return kNoFigure;
  return ExpectedScore(std::vector<double>(target.begin(), target.end()));
}

Evaluation Evaluator::Evaluate(const Dataset& data, int64_t batch_size, const Progress& progress) {
  const StopWatch watch;
  Evaluation result;
  double loss = 0;
  scores_.clear();
  true_scores_.clear();
  RunAll(
      data, batch_size, HeadRows::kLabelled, [&] { Count(data, &result, &loss); },
      [&] {
        if (progress) progress(result.examples);
      });
  if (result.predictions > 0) result.loss = loss / static_cast<double>(result.predictions);
  result.root_accuracy = Ratio(result.root_correct, result.root_predictions);
  if (data.task == LearningTask::kTreeClasses) result.vertex_accuracy = Ratio(result.correct, result.predictions);
  if (data.task == LearningTask::kNextWord) result.perplexity = std::exp(result.loss);
  result.pearson = Pearson(scores_, true_scores_);
  result.spearman = Spearman(scores_, true_scores_);
  result.mse = MeanSquaredError(scores_, true_scores_);
  std::erase_if(result.groups, [](const GroupAccuracy& group) { return group.examples == 0; });
  result.seconds = watch.Seconds();
  return result;
}

void Evaluator::Count(const Dataset& data, Evaluation* result, double* loss) {
  const GraphBatch& batch = session_.batch();
  Executor& executor = session_.executor();
  output_ = executor.output(logits_);
  result->examples += batch.graph_count();
  result->vertices += batch.vertex_count();
  result->predictions += executor.head_rows();
  // One running sum in the order of the examples does not depend on where batches end.
  for (size_t i = 0; i < model_->simplified().losses.size(); ++i) {
    for (const float row : executor.loss_rows(i)) *loss += double{row};
  }
  // Of sentences the loss says all; to look for the best of all words costs as much as to run the model.
  if (data.task == LearningTask::kTreeClasses) CountClasses(data, result);
  if (data.task == LearningTask::kSimilarity) CollectScores();
}

void Evaluator::CollectScores() {
  const std::span<const int32_t> vertices = session_.executor().head_vertices();
  for (int64_t row = 0; row < std::ssize(vertices); ++row) {
    scores_.push_back(ExpectedScore(Probabilities(Logits(row))));
    true_scores_.push_back(ScoreOf(vertices[static_cast<size_t>(row)]));
  }
}

void Evaluator::CountClasses(const Dataset& data, Evaluation* result) {
  const GraphBatch& batch = session_.batch();
  const std::span<const int32_t> vertices = session_.executor().head_vertices();
  for (int64_t row = 0; row < std::ssize(vertices); ++row) {
    const int32_t vertex = vertices[static_cast<size_t>(row)];
    const int32_t label = LabelOf(vertex);
    if (label == kNone) continue;
    const int64_t correct = BestClass(Logits(row)) == label ? 1 : 0;
    result->correct += correct;
    if (batch.parent_counts()[static_cast<size_t>(vertex)] > 0) continue;
    ++result->root_predictions;
    result->root_correct += correct;
    if (data.groups.empty()) continue;
    const int32_t group = data.groups[static_cast<size_t>(batch.example(batch.graph_of(vertex)))];
    while (std::ssize(result->groups) <= group) {
      result->groups.push_back({.group = static_cast<int32_t>(result->groups.size())});
    }
    GroupAccuracy& counts = result->groups[static_cast<size_t>(group)];
    ++counts.examples;
    counts.correct += correct;
  }
}

VertexPrediction Evaluator::PredictRow(const Dataset& data, int32_t vertex, int64_t row) const {
  const GraphBatch& batch = session_.batch();
  VertexPrediction result;
  result.vertex = batch.local_id(vertex);
  result.predicted = BestClass(Logits(row));
  if (result.predicted == kNone) {
    throw std::runtime_error(fmt::format("[{}] expected finite numbers from the model, got others at vertex {}",
                                         data.Describe(batch.example(batch.graph_of(vertex))), result.vertex));
  }
  result.label = LabelOf(vertex);
  result.probabilities = Probabilities(Logits(row));
  if (data.task == LearningTask::kSimilarity) {
    result.score = ExpectedScore(result.probabilities);
    result.true_score = ScoreOf(vertex);
  }
  return result;
}

void Evaluator::Predict(const Dataset& data, int64_t batch_size, bool all_vertices,
                        const std::function<void(const Prediction&)>& take) {
  RunAll(
      data, batch_size, all_vertices ? HeadRows::kAll : HeadRows::kRoots,
      [&] { TakePredictions(data, all_vertices, take); }, [] {});
}

void Evaluator::TakePredictions(const Dataset& data, bool all_vertices,
                                const std::function<void(const Prediction&)>& take) {
  output_ = session_.executor().output(logits_);
  const GraphBatch& batch = session_.batch();
  const std::span<const int32_t> vertices = session_.executor().head_vertices();
  int64_t row = 0;
  for (int64_t g = 0; g < batch.graph_count(); ++g) {
    Prediction prediction{.example = batch.example(g), .root = {}, .vertices = {}};
    const int32_t root = batch.graph(g).roots().front();
    for (; row < std::ssize(vertices) && batch.graph_of(vertices[static_cast<size_t>(row)]) == g; ++row) {
      VertexPrediction answer = PredictRow(data, vertices[static_cast<size_t>(row)], row);
      if (answer.vertex == root) prediction.root = answer;
      if (all_vertices) prediction.vertices.push_back(std::move(answer));
    }
    take(prediction);
  }
}

}  // namespace cavs
