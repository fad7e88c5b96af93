#include "cavs/models/ready_models.h"

#include <algorithm>

#include <fmt/format.h>

#include "cavs/base/error.h"
#include "cavs/models/child_sum_tree_lstm.h"
#include "cavs/models/lstm_lm.h"
#include "cavs/models/tree_models.h"

namespace cavs {

const std::vector<ReadyModel>& ReadyModels() {
  static const std::vector<ReadyModel> kModels = {
      {"tree_lstm", "binary Tree-LSTM (Tai et al. 2015) with leaves of their own", LearningTask::kTreeClasses, false,
       DeclareTreeLstm},
      {"tree_rnn", "recursive network with tanh (Socher et al. 2011)", LearningTask::kTreeClasses, false,
       DeclareTreeRnn},
      {"tree_fc", "one fully connected layer and relu per node (Looks et al. 2017)", LearningTask::kTreeClasses, false,
       DeclareTreeFc},
      {"lstm_lm", "LSTM language model with --layers (Zaremba et al. 2014)", LearningTask::kNextWord, true,
       DeclareLstmLm},
      {"child_sum_tree_lstm", "Child-Sum Tree-LSTM over pairs of dependency trees (Tai et al. 2015)",
       LearningTask::kSimilarity, false, DeclareChildSumTreeLstm},
  };
  return kModels;
}

const ReadyModel& FindReadyModel(std::string_view name) {
  const std::vector<ReadyModel>& models = ReadyModels();
  const auto found = std::find_if(models.begin(), models.end(), [&](const ReadyModel& m) { return m.name == name; });
  if (found != models.end()) return *found;
  std::vector<std::string_view> names;
  names.reserve(models.size());
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
