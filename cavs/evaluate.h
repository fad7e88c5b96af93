// Measures a model on a data set, and predicts.
//
// All figures are sums over the data set divided by counts, taken in the order of the examples: the batch size and the
// last, shorter batch play no part. The model has an id label "label", an output "logits" [classes] over the rows of
// its head, and losses. An Evaluator belongs to one thread; several may share a Model that none writes to.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "cavs/dataset.h"
#include "cavs/session.h"

namespace cavs {

// Accuracy at the root among the examples of one group.
struct GroupAccuracy {
  int32_t group = 0;
  int64_t examples = 0;
  int64_t correct = 0;
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(examples); }
};

// Accuracies and losses over nothing are NaN. A prediction from logits that are not all finite is wrong.
struct Evaluation {
  double loss = std::numeric_limits<double>::quiet_NaN();             // per prediction
  double root_accuracy = std::numeric_limits<double>::quiet_NaN();    // over roots with a label
  double vertex_accuracy = std::numeric_limits<double>::quiet_NaN();  // over all vertices with a label
  int64_t examples = 0;
  int64_t vertices = 0;
  int64_t predictions = 0;  // vertices with a label
  int64_t correct = 0;
  int64_t root_predictions = 0;  // roots with a label
  int64_t root_correct = 0;
  double seconds = 0;
  std::vector<GroupAccuracy> groups;  // ascending; empty where the data set has none
};

// The answer for one vertex.
struct VertexPrediction {
  int32_t vertex = 0;
  int32_t predicted = kNone;          // class
  int32_t label = kNone;              // the true class, if the data have one
  std::vector<double> probabilities;  // [classes]
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

  // `model` must outlive the Evaluator. Throws std::invalid_argument when it has no "logits" or no "label".
  explicit Evaluator(const Model& model, const SessionOptions& options = {});

  // Throws std::invalid_argument for a batch size below 1.
  Evaluation Evaluate(const Dataset& data, int64_t batch_size, const Progress& progress = {});

  // Calls take(prediction) for every example, in order. Throws std::runtime_error that names the example when a logit
  // is not finite.
  void Predict(const Dataset& data, int64_t batch_size, bool all_vertices,
               const std::function<void(const Prediction&)>& take);

  Session& session() { return session_; }

 private:
  // [classes] of a row of the head of the last Forward.
  std::span<const float> Logits(int64_t row) const;
  // The class that the data give a batch vertex, or kNone.
  int32_t LabelOf(int32_t vertex) const;
  void Pack(const Dataset& data, int64_t begin, int64_t batch_size);
  void Count(const Dataset& data, Evaluation* result, double* loss);
  VertexPrediction PredictRow(const Dataset& data, int32_t vertex, int64_t row) const;

  const Model* model_;
  size_t logits_ = 0;  // number of the output
  int64_t classes_ = 0;
  int label_ = 0;  // number of the column
  Session session_;
  std::vector<Example> examples_;  // of the batch
  std::span<const float> output_;  // [head rows, classes]
};

}  // namespace cavs
