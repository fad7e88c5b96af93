// The flags themselves; flag_table.cc holds the rest of the table and the look-ups.

#include <array>
#include <string>
#include <vector>

#include "cavs/command/flag_table.h"
#include "cavs/models/ready_models.h"

namespace cavs {
namespace {

constexpr SubCommandSet kTrain = SetOf(SubCommand::kTrain);
constexpr SubCommandSet kEval = SetOf(SubCommand::kEval);
constexpr SubCommandSet kPredict = SetOf(SubCommand::kPredict);
constexpr SubCommandSet kCheck = SetOf(SubCommand::kCheck);
constexpr SubCommandSet kVerify = SetOf(SubCommand::kVerify);
constexpr SubCommandSet kExplain = SetOf(SubCommand::kExplain);
constexpr SubCommandSet kBench = SetOf(SubCommand::kBench);
// Those that build a model, those that run one, and those that change one.
constexpr SubCommandSet kBuild = kTrain | kVerify | kExplain | kBench;
constexpr SubCommandSet kRun = kBuild | kEval | kPredict;
constexpr SubCommandSet kStep = kTrain | kBench;
constexpr SubCommandSet kAll = kRun | kCheck;

constexpr Range kPositive = {.low = 0, .low_open = true};
constexpr Range kWidth = {.low = 1, .high = 65536};
constexpr Range kCount = {.low = 0, .high = 1e15};
// The largest integer that JSON readers with doubles keep exactly.
constexpr Range kSeed = {.low = 0, .high = 9007199254740991.0};
constexpr Range kFraction = {.low = 0, .high = 1, .high_open = true};

constexpr std::string_view kModelGroup = "Model";
constexpr std::string_view kDataGroup = "Data";
constexpr std::string_view kTrainingGroup = "Training";
constexpr std::string_view kExecutionGroup = "Execution (every setting gives the same answers)";
constexpr std::string_view kFilesGroup = "Files and output";

constexpr std::array kFlags = std::to_array<FlagSpec>({
    {.name = "model",
     .type = FlagType::kChoice,
     .used_by = kBuild,
     .group = kModelGroup,
     .initial = "",
     .value = "NAME",
     .help = "The vertex function. A model that --load reads brings its own.",
     .initial_note = "the first one for the data's task"},
    {.name = "hidden",
     .type = FlagType::kInt,
     .used_by = kBuild,
     .group = kModelGroup,
     .initial = "150",
     .value = "N",
     .help = "Width of a vertex's state.",
     .unit = "floats",
     .range = kWidth},
    {.name = "embed",
     .type = FlagType::kInt,
     .used_by = kBuild,
     .group = kModelGroup,
     .initial = "300",
     .value = "N",
     .help = "Width of a word's vector.",
     .unit = "floats",
     .range = kWidth},
    {.name = "layers",
     .type = FlagType::kInt,
     .used_by = kBuild,
     .group = kModelGroup,
     .initial = "1",
     .value = "N",
     .help = "Layers on top of each other, of models that stack them (lstm_lm).",
     .unit = "layers",
     .range = {.low = 1, .high = 1024}},
    {.name = "dropout",
     .type = FlagType::kDouble,
     .used_by = kBuild,
     .group = kModelGroup,
     .initial = "0",
     .value = "P",
     .help = "Probability with which a value is dropped in training; the same values whatever the batching.",
     .range = kFraction},
    {.name = "loss",
     .type = FlagType::kChoice,
     .used_by = kTrain | kVerify | kBench,
     .group = kModelGroup,
     .initial = "mean",
     .value = "HOW",
     .help = "The losses of all labelled vertices, summed; 'mean' divides by the graphs of the minibatch.",
     .choices = "mean|sum"},

    {.name = "data",
     .type = FlagType::kData,
     .used_by = kAll,
     .group = kDataGroup,
     .initial = "",
     .value = "FORMAT:PATH",
     .help = "The data. Where a sub-command reads one data set, --train, --dev and --test mean the same."},
    {.name = "train",
     .type = FlagType::kData,
     .used_by = kAll,
     .group = kDataGroup,
     .initial = "",
     .value = "FORMAT:PATH",
     .help = "Training data; the vocabulary comes from here."},
    {.name = "dev",
     .type = FlagType::kData,
     .used_by = kAll,
     .group = kDataGroup,
     .initial = "",
     .value = "FORMAT:PATH",
     .help = "Data that choose the best model; without, the lowest training loss chooses it."},
    {.name = "test",
     .type = FlagType::kData,
     .used_by = kAll,
     .group = kDataGroup,
     .initial = "",
     .value = "FORMAT:PATH",
     .help = "Data on which the best model is measured at the end."},
    {.name = "max_examples",
     .type = FlagType::kInt,
     .used_by = kAll,
     .group = kDataGroup,
     .initial = "0",
     .value = "N",
     .help = "Use at most the first N examples of each data set; the size of the generated training data.",
     .unit = "examples",
     .range = kCount,
     .zero_means = "all"},
    {.name = "min_count",
     .type = FlagType::kInt,
     .used_by = kBuild | kCheck,
     .group = kDataGroup,
     .initial = "1",
     .value = "N",
     .help = "Words seen less often in the training data become <unk>.",
     .unit = "occurrences",
     .range = {.low = 1, .high = 1e9}},
    {.name = "binarize",
     .type = FlagType::kChoice,
     .used_by = kAll,
     .group = kDataGroup,
     .initial = "left",
     .value = "SIDE",
     .help = "To which side vertices with more than two children branch when a model wants two.",
     .choices = "left|right"},
    {.name = "unary",
     .type = FlagType::kChoice,
     .used_by = kAll,
     .group = kDataGroup,
     .initial = "collapse",
     .value = "HOW",
     .help = "What becomes of vertices with one child: merged with the child, or kept.",
     .choices = "collapse|keep"},

    {.name = "epochs",
     .type = FlagType::kInt,
     .used_by = kTrain,
     .group = kTrainingGroup,
     .initial = "10",
     .value = "N",
     .help = "Passes over the training data, counted from the beginning also when a run resumes.",
     .unit = "epochs",
     .range = {.low = 1, .high = 1e6}},
    {.name = "batch_size",
     .type = FlagType::kInt,
     .used_by = kRun,
     .group = kTrainingGroup,
     .initial = "25",
     .value = "N",
     .help = "Graphs of a minibatch.",
     .unit = "graphs",
     .range = {.low = 1, .high = 1e6}},
    {.name = "optimizer",
     .type = FlagType::kChoice,
     .used_by = kStep,
     .group = kTrainingGroup,
     .initial = "adagrad",
     .value = "NAME",
     .help = "The rule by which gradients change parameters.",
     .choices = "sgd|momentum|adagrad|adam"},
    {.name = "lr",
     .type = FlagType::kDouble,
     .used_by = kStep,
     .group = kTrainingGroup,
     .initial = "0.05",
     .value = "X",
     .help = "Learning rate.",
     .range = kPositive},
    {.name = "momentum",
     .type = FlagType::kDouble,
     .used_by = kStep,
     .group = kTrainingGroup,
     .initial = "0.9",
     .value = "X",
     .help = "Share of the last step that --optimizer=momentum keeps.",
     .range = kFraction},
    {.name = "clip",
     .type = FlagType::kDouble,
     .used_by = kStep,
     .group = kTrainingGroup,
     .initial = "0",
     .value = "X",
     .help = "Largest norm of the gradient over all parameters; a longer one is scaled down to it.",
     .zero_means = "no limit"},
    {.name = "weight_decay",
     .type = FlagType::kDouble,
     .used_by = kStep,
     .group = kTrainingGroup,
     .initial = "0",
     .value = "X",
     .help = "Added to the gradient: X times the parameter."},
    {.name = "lookup_updates",
     .type = FlagType::kChoice,
     .used_by = kStep,
     .group = kTrainingGroup,
     .initial = "auto",
     .value = "HOW",
     .help = "Rows of a lookup table that a minibatch does not use: 'dense' steps them too, 'sparse' leaves them "
             "alone. Both "
             "give the same numbers for sgd and adagrad without weight decay; momentum, adam and weight decay differ. "
             "'auto' is sparse where that is the same, and dense otherwise.",
     .choices = "auto|dense|sparse"},
    {.name = "shuffle",
     .type = FlagType::kSwitch,
     .used_by = kTrain,
     .group = kTrainingGroup,
     .initial = "true",
     .value = "",
     .help = "A new order of the training examples in each epoch, drawn from --seed."},
    {.name = "seed",
     .type = FlagType::kInt,
     .used_by = kAll,
     .group = kTrainingGroup,
     .initial = "1",
     .value = "N",
     .help = "Drives everything random: initial parameters, order, dropout, generated data.",
     .range = kSeed},
    {.name = "on_nan",
     .type = FlagType::kChoice,
     .used_by = kTrain,
     .group = kTrainingGroup,
     .initial = "stop",
     .value = "HOW",
     .help = "A loss that is not finite ends the run, or its minibatch is skipped and counted.",
     .choices = "stop|skip"},

    {.name = "threads",
     .type = FlagType::kInt,
     .used_by = kRun,
     .group = kExecutionGroup,
     .initial = "0",
     .value = "N",
     .help = "Threads that compute.",
     .unit = "threads",
     .range = {.low = 0, .high = 1024},
     .zero_means = "one for each core"},
    {.name = "parallel",
     .type = FlagType::kChoice,
     .used_by = kRun,
     .group = kExecutionGroup,
     .initial = "auto",
     .value = "POLICY",
     .help = "How threads share the work: inside of large kernels (task), or by graphs, each thread recurring over its "
             "part of the minibatch (shard); auto takes shards where there are graphs enough.",
     .choices = "auto|task|shard"},
    {.name = "device",
     .type = FlagType::kChoice,
     .used_by = kRun,
     .group = kExecutionGroup,
     .initial = "auto",
     .value = "NAME",
     .help = "Where to compute; 'auto' takes a GPU if there is one that works.",
     .choices = "cpu|cuda|auto"},
    {.name = "precision",
     .type = FlagType::kChoice,
     .used_by = kRun,
     .group = kExecutionGroup,
     .initial = "fp32",
     .value = "NAME",
     .help =
         "Number format of matrix products: bf16 rounds their operands and sums in f32, where the processor multiplies "
         "bf16; parameters and everything else stay f32. Answers differ by about 1 percent.",
     .choices = "fp32|bf16"},
    {.name = "batching",
     .type = FlagType::kChoice,
     .used_by = kRun,
     .group = kExecutionGroup,
     .initial = "frontier",
     .value = "POLICY",
     .help =
         "Which vertices become one task: one at a time, all of a depth, all ready ones of the largest type, of the "
         "type of lowest average depth, or of the type that a learned table says: it is kept with the model, and "
         "learned before the first step where there is none.",
     .choices = "serial|depth|frontier|agenda|fsm"},
    {.name = "sharing",
     .type = FlagType::kChoice,
     .used_by = kRun,
     .group = kExecutionGroup,
     .initial = "inputs",
     .value = "POLICY",
     .help = "Which equal vertices of a minibatch run once: none, those without children, or whole equal subgraphs. "
             "Minibatches that draw dropout share nothing.",
     .choices = "none|inputs|subgraphs"},
    {.name = "memory",
     .type = FlagType::kChoice,
     .used_by = kRun,
     .group = kExecutionGroup,
     .initial = "arena",
     .value = "POLICY",
     .help = "Where tensors live: a system allocation each, reused blocks by size, one range rewound each minibatch, "
             "or such a range in which values that nothing reads any more make room for others.",
     .choices = "malloc|pool|arena|planned"},
    {.name = "memory_limit",
     .type = FlagType::kSize,
     .used_by = kRun,
     .group = kExecutionGroup,
     .initial = "0",
     .value = "SIZE",
     .help =
         "Most memory for what a minibatch computes (activations and their gradients, not parameters), as 512MiB, 2GiB "
         "or 1500MB. A minibatch that needs more runs in parts, with equal results.",
     .unit = "bytes unless a unit follows",
     .zero_means = "no limit"},
    {.name = "hoisting",
     .type = FlagType::kSwitch,
     .used_by = kRun,
     .group = kExecutionGroup,
     .initial = "true",
     .value = "",
     .help = "Run what depends on inputs only once for all vertices, before the recursion."},
    {.name = "lazy_batching",
     .type = FlagType::kSwitch,
     .used_by = kRun,
     .group = kExecutionGroup,
     .initial = "true",
     .value = "",
     .help = "Run what the recursion does not need once for all vertices, after it."},
    {.name = "merging",
     .type = FlagType::kSwitch,
     .used_by = kRun,
     .group = kExecutionGroup,
     .initial = "true",
     .value = "",
     .help = "Make products over the same vertices one product, with parameters that share their memory."},
    {.name = "fusion",
     .type = FlagType::kSwitch,
     .used_by = kRun,
     .group = kExecutionGroup,
     .initial = "true",
     .value = "",
     .help = "Run chains of elementwise operators as one kernel."},
    {.name = "cse",
     .type = FlagType::kSwitch,
     .used_by = kRun,
     .group = kExecutionGroup,
     .initial = "true",
     .value = "",
     .help = "Compute equal expressions of the vertex function once."},

    {.name = "save",
     .type = FlagType::kText,
     .used_by = kTrain,
     .group = kFilesGroup,
     .initial = "",
     .value = "DIR",
     .help = "Folder for best.safetensors, last.safetensors and state; made if there is none."},
    {.name = "save_every",
     .type = FlagType::kInt,
     .used_by = kTrain,
     .group = kFilesGroup,
     .initial = "0",
     .value = "N",
     .help = "Save the last model and the state every N minibatches too.",
     .unit = "minibatches",
     .range = kCount,
     .zero_means = "at the end of each epoch only"},
    {.name = "load",
     .type = FlagType::kText,
     .used_by = kRun,
     .group = kFilesGroup,
     .initial = "",
     .value = "FILE",
     .help = "A saved model; it brings its sizes, vocabulary and label names."},
    {.name = "resume",
     .type = FlagType::kSwitch,
     .used_by = kTrain,
     .group = kFilesGroup,
     .initial = "false",
     .value = "",
     .help = "Go on where the run under --save stopped, in the middle of an epoch too."},
    {.name = "metrics",
     .type = FlagType::kText,
     .used_by = kAll,
     .group = kFilesGroup,
     .initial = "",
     .value = "FILE",
     .help =
         "Numbers for machines, as JSON lines. A new run replaces an earlier metrics file, one that resumes appends to "
         "it; any other file is left alone."},
    {.name = "tolerance",
     .type = FlagType::kDouble,
     .used_by = kVerify,
     .group = kFilesGroup,
     .initial = "1e-5",
     .value = "X",
     .help = "Largest difference allowed, as a share of the tensor's largest value.",
     .range = kPositive},
    {.name = "seconds",
     .type = FlagType::kDouble,
     .used_by = kBench,
     .group = kFilesGroup,
     .initial = "2",
     .value = "X",
     .help = "How long to measure.",
     .unit = "seconds",
     .range = {.low = 0, .high = 86400, .low_open = true}},
    {.name = "dot",
     .type = FlagType::kSwitch,
     .used_by = kExplain,
     .group = kFilesGroup,
     .initial = "false",
     .value = "",
     .help = "Print the vertex function for Graphviz."},
    {.name = "quiet",
     .type = FlagType::kSwitch,
     .used_by = kAll,
     .group = kFilesGroup,
     .initial = "false",
     .value = "",
     .help = "No progress on stderr; errors still appear there."},
});

constexpr std::array kDependentDefaults = std::to_array<DependentDefault>({
    {"lr", "optimizer", "momentum", "0.01"},
    {"lr", "optimizer", "adam", "0.001"},
    {"tolerance", "precision", "bf16", "3e-2"},
});

constexpr std::array kCommandDefaults = std::to_array<CommandDefault>({
    {"max_examples", SubCommand::kVerify, "32"},
});

// "tree_lstm|tree_rnn|...".
std::string ModelChoices() {
  std::string choices;
  for (const ReadyModel& model : ReadyModels()) {
    if (!choices.empty()) choices += '|';
    choices += model.name;
  }
  return choices;
}

std::vector<FlagSpec> MakeFlags(std::string_view models) {
  std::vector<FlagSpec> flags(kFlags.begin(), kFlags.end());
  for (FlagSpec& flag : flags) {
    if (flag.name == "model") flag.choices = models;
  }
  return flags;
}

}  // namespace

std::span<const FlagSpec> Flags() {
  static const std::string kModels = ModelChoices();
  static const std::vector<FlagSpec> kTable = MakeFlags(kModels);
  return kTable;
}

std::span<const DependentDefault> DependentDefaults() { return kDependentDefaults; }
std::span<const CommandDefault> CommandDefaults() { return kCommandDefaults; }

}  // namespace cavs
