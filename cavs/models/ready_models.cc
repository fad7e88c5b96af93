#include "cavs/models/ready_models.h"

#include <algorithm>

#include <fmt/format.h>

#include "cavs/base/error.h"
#include "cavs/models/child_sum_tree_lstm.h"
#include "cavs/models/lstm_lm.h"
#include "cavs/models/tree_models.h"

namespace cavs {
namespace {

std::vector<ReadyModel> MakeTable() {
  std::vector<ReadyModel> models;
  for (const TreeModel& model : TreeModels()) {
    models.push_back({model.name, model.summary, LearningTask::kTreeClasses, false, model.declare});
  }
  models.push_back({"lstm_lm", "LSTM language model with --layers (Zaremba et al. 2014)", LearningTask::kNextWord, true,
                    DeclareLstmLm});
  models.push_back({"child_sum_tree_lstm", "Child-Sum Tree-LSTM over pairs of dependency trees (Tai et al. 2015)",
                    LearningTask::kSimilarity, false, DeclareChildSumTreeLstm});
  return models;
}

}  // namespace

const std::vector<ReadyModel>& ReadyModels() {
  static const std::vector<ReadyModel> models = MakeTable();
  return models;
}

const ReadyModel& FindReadyModel(std::string_view name) {
  const std::vector<ReadyModel>& models = ReadyModels();
  const auto found = std::find_if(models.begin(), models.end(), [&](const ReadyModel& m) { return m.name == name; });
  if (found != models.end()) return *found;
  std::vector<std::string_view> names;
  for (const ReadyModel& model : models) names.push_back(model.name);
  ThrowInvalid("model", fmt::format("expected one of {}, got \"{}\"", fmt::join(names, ", "), name));
}

std::vector<std::string_view> ModelNamesFor(LearningTask task) {
  std::vector<std::string_view> names;
  for (const ReadyModel& model : ReadyModels()) {
    if (model.task == task) names.push_back(model.name);
  }
  return names;
}

}  // namespace cavs
