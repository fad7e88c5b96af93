// Models and data that the flags name. Whatever is wrong with them is thrown before anything is written.
// Plain functions for the main thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cavs/command/commands.h"
#include "cavs/dataset.h"
#include "cavs/learned_batching.h"
#include "cavs/trained_model.h"

namespace cavs {

// The model of --load, or nothing. Its configuration becomes the default of the flags that describe a model; one that
// the command line gave with another value is refused with std::invalid_argument that names both.
std::optional<TrainedModel> LoadModel(FlagValues* flags);

// How the flags say that data without a model are read.
CorpusOptions ReadingFrom(const FlagValues& flags);
// The same for data that `config` shall be used on.
CorpusOptions ReadingFrom(const FlagValues& flags, const ModelConfig& config, DataPart part);

// A model with initial values for training on `corpus`.
TrainedModel NewModel(const Corpus& corpus, const FlagValues& flags);

// Throws std::invalid_argument unless some example has a class or a score to be learnt.
void RequireLabels(const Dataset& data);

// With --batching=fsm, a model that keeps no batching policy learns one from these data, and a line on stderr says so.
std::optional<FsmReport> LearnMissingBatching(const SubCommandSpec& command, const FlagValues& flags,
                                              const Dataset& data, Model* model);

struct ModelAndData {
  TrainedModel trained;
  Dataset data;
  double read_seconds = 0;            // of the data
  std::optional<FsmReport> batching;  // of a policy that was learned from the data
};

// The model, loaded or new, and the one data set of --data, of all sub-commands but train and check. With
// --batching=fsm a model that keeps no batching policy learns one from these data, and a line on stderr says so.
ModelAndData ReadModelAndData(Invocation& call);

}  // namespace cavs
