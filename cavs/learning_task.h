// Tasks: what a data set asks of a model. A format has one task, and so has a ready-made model; everything that differs
// from task to task hangs on this enum in tables. Immutable.
#pragma once

#include <cstdint>
#include <string_view>

namespace cavs {

enum class LearningTask : uint8_t {
  kTreeClasses,  // a class at vertices of trees
  kNextWord,     // the next word at each word of sentences
  kSimilarity,   // a score for each pair of trees
};

struct LearningTaskInfo {
  std::string_view name;           // "similarity of pairs"
  std::string_view examples;       // what one calls them: "pairs"
  std::string_view default_model;  // a name of ReadyModels()
  bool words_are_classes = false;  // the classes are the vocabulary, not part of the data
};

const LearningTaskInfo& Describe(LearningTask task);

}  // namespace cavs
