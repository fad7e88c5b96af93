// The sizes that every ready-made model is declared with, and the names that data sets and models agree on.
#pragma once

#include <cstdint>
#include <string_view>

namespace cavs {

struct ModelSizes {
  int64_t vocabulary = 0;  // rows of the lookup table "words"
  int64_t classes = 5;     // of the head
  int64_t embed = 300;
  int64_t hidden = 150;
  int64_t layers = 1;  // of models that stack them
  double dropout = 0;  // on what is looked up and on the head's input, and between layers
};

// The id column of words, the id column of classes to be learnt, and the float column of distributions to be learnt.
inline constexpr std::string_view kWordColumn = "word";
inline constexpr std::string_view kLabelColumn = "label";
inline constexpr std::string_view kTargetColumn = "target";

// The output of every model's head, [classes]: logarithms of what a softmax makes probabilities.
inline constexpr std::string_view kLogitsOutput = "logits";

}  // namespace cavs
