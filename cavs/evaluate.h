// Measures a model on a data set, and predicts.
//
// All figures are sums over the data set divided by counts, taken in the order of the examples: the batch size and the
// last, shorter batch play no part. The model has a label "label" or a target "target", an output "logits" [classes]
// over the rows of its head, and losses. An Evaluator belongs to one thread; several may share a Model that none writes
// to.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "cavs/dataset.h"
#include "cavs/learning_task.h"
#include "cavs/prefetcher.h"
#include "cavs/session.h"

namespace cavs {

// Accuracy at the root among the examples of one group.
struct GroupAccuracy {
  int32_t group = 0;
  int64_t examples = 0;
  int64_t correct = 0;
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(examples); }
};

inline constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

// Figures over nothing, and those of other tasks, are NaN. A prediction from logits that are not all finite is wrong.
struct Evaluation {
  double loss = kNoFigure;             // per prediction
  double root_accuracy = kNoFigure;    // over roots with a label
  double vertex_accuracy = kNoFigure;  // over all vertices with a label
  double perplexity = kNoFigure;       // e to the loss, of sentences
  double pearson = kNoFigure;          // of the expected scores of pairs and the true ones: Pearson's r,
  double spearman = kNoFigure;         // Spearman's rho,
  double mse = kNoFigure;              // and the mean squared error
  int64_t examples = 0;
  int64_t vertices = 0;
  int64_t predictions = 0;  // vertices with a label
  int64_t correct = 0;
  int64_t root_predictions = 0;  // roots with a label
  int64_t root_correct = 0;
  double seconds = 0;
  std::vector<GroupAccuracy> groups;  // ascending; empty where the data set has none
};

// A figure of a task.
struct TaskMetric {
  std::string_view name;  // "accuracy"
  double Evaluation::*value;
  bool higher_is_better;
};

// The figures of a task; the first is what its best model is chosen by.
std::span<const TaskMetric> MetricsOf(LearningTask task);

// The answer for one vertex.
struct VertexPrediction {
  int32_t vertex = 0;
  int32_t predicted = kNone;          // class
  int32_t label = kNone;              // the true class, if the data have one
  std::vector<double> probabilities;  // [classes]
  double score = kNoFigure;           // of a pair: the expected score,
  double true_score = kNoFigure;      // and what the data say, if anything
};

struct Prediction {
  int64_t example = 0;
  VertexPrediction root;                   // of the first root
  std::vector<VertexPrediction> vertices;  // all of them, in the order of the graph, if asked for; else empty
};

class Evaluator {
 public:
  // Called with the number of examples that are done.
  using Progress = std::function<void(int64_t done)>;

  // `model` must outlive the Evaluator. Throws std::invalid_argument when it has no "logits", or nothing to learn.
  explicit Evaluator(const Model& model, const SessionOptions& options = {});

  // Both throw std::invalid_argument for a batch size below 1, OutOfMemory where one graph does not fit the memory
  // limit.
  Evaluation Evaluate(const Dataset& data, int64_t batch_size, const Progress& progress = {});

  // Calls take(prediction) for every example, in order. Throws std::runtime_error that names the example when a logit
  // is not finite.
  void Predict(const Dataset& data, int64_t batch_size, bool all_vertices,
               const std::function<void(const Prediction&)>& take);

  Session& session() { return session_; }

 private:
  // [classes] of a row of the head of the last Forward.
  std::span<const float> Logits(int64_t row) const;
  // The class that the data give a batch vertex, or kNone; the score, or NaN.
  int32_t LabelOf(int32_t vertex) const;
  double ScoreOf(int32_t vertex) const;
  // Runs all of `data` in order; calls visit() behind each part of a minibatch, and done() behind each minibatch.
  void RunAll(const Dataset& data, int64_t batch_size, HeadRows head, const Session::PartVisitor& visit,
              const std::function<void()>& done);
  void Count(const Dataset& data, Evaluation* result, double* loss);
  void CountClasses(const Dataset& data, Evaluation* result);
  void CollectScores();
  // Of the part of the minibatch that the session holds.
  void TakePredictions(const Dataset& data, bool all_vertices, const std::function<void(const Prediction&)>& take);
  VertexPrediction PredictRow(const Dataset& data, int32_t vertex, int64_t row) const;

  const Model* model_;
  size_t logits_ = 0;  // number of the output
  int64_t classes_ = 0;
  int label_ = kNone;  // number of the column
  int target_ = kNone;
  Session session_;
  Prefetcher prefetcher_;
  std::span<const float> output_;             // [head rows, classes]
  std::vector<double> scores_, true_scores_;  // of pairs, in the order of the data
};

}  // namespace cavs
