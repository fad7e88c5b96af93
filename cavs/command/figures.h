// Figures of training and evaluation, as fields of metrics and as lines for people. Pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cavs/checkpoint.h"
#include "cavs/dataset.h"
#include "cavs/evaluate.h"
#include "graph/fsm_learner.h"

namespace cavs {

// The fields of an `epoch` event. `dev` is null without held-out data. A loss that does not exist is null, other
// figures are left out then.
nlohmann::ordered_json EpochFields(const EpochReport& report, LearningTask task, const Evaluation* dev);

// The fields of an `eval` event, their names behind `prefix`: "test_" gives "test_loss".
nlohmann::ordered_json EvaluationFields(const Evaluation& evaluation, LearningTask task, std::string_view prefix = {});

// The fields of a `batching` event.
nlohmann::ordered_json BatchingFields(const FsmReport& report);

// {"1": 0.97, "2": 0.81} of groups.
nlohmann::ordered_json GroupFields(const std::vector<GroupAccuracy>& groups);

// One line: losses, figures of the task, speed, tasks and mean width.
std::string DescribeEpoch(const EpochReport& report, int64_t epochs, LearningTask task, const Evaluation* dev);

// "loss 0.912  accuracy 0.4410  vertex_accuracy 0.7620  of 41447 predictions over 1101 trees".
std::string DescribeEvaluation(const Evaluation& evaluation, LearningTask task);

// "accuracy by depth: 1 0.971 (120)  2 0.812 (380)"; empty without groups.
std::string DescribeGroups(const std::vector<GroupAccuracy>& groups, std::string_view name);

// One line: examples, vertices, and the accuracy of answering the most frequent class. `part` is "train", "dev",
// "test".
std::string DescribeDataset(const Dataset& data, std::string_view part, const std::vector<std::string>& label_names);

}  // namespace cavs
