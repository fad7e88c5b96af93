#include "cavs/learning_task.h"

#include <array>
#include <cstddef>

namespace cavs {
namespace {

// By value of LearningTask.
constexpr std::array<LearningTaskInfo, 3> kTasks = {{{"classes of tree vertices", "trees", "tree_lstm"},
                                                     {"the next word of sentences", "sentences", "lstm_lm", true},
                                                     {"similarity of pairs", "pairs", "child_sum_tree_lstm"}}};

}  // namespace

const LearningTaskInfo& Describe(LearningTask task) { return kTasks[static_cast<size_t>(task)]; }

}  // namespace cavs
