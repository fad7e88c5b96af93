// The table of ready-made models, by the names that `--model` takes. Immutable; safe from any thread.
#pragma once

#include <string_view>
#include <vector>

#include "cavs/learning_task.h"
#include "cavs/model.h"
#include "cavs/models/model_sizes.h"

namespace cavs {

struct ReadyModel {
  std::string_view name;
  std::string_view summary;
  LearningTask task = LearningTask::kTreeClasses;
  bool has_layers = false;  // ModelSizes::layers may be other than 1
  void (*declare)(Model& model, const ModelSizes& sizes) = nullptr;
};

const std::vector<ReadyModel>& ReadyModels();

// Throws std::invalid_argument that lists the names.
const ReadyModel& FindReadyModel(std::string_view name);

// The names of the models for a task.
std::vector<std::string_view> ModelNamesFor(LearningTask task);

}  // namespace cavs
