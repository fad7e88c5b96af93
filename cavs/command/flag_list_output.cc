// The flags of measuring, files and output, and the defaults that depend on something.

#include <array>

#include "cavs/command/flag_list.h"

namespace cavs {
namespace {

constexpr std::array kFlags = std::to_array<FlagSpec>({
    {.name = "tolerance",
     .type = FlagType::kDouble,
     .used_by = kVerify | kAblate,
     .group = kMeasuringGroup,
     .initial = "1e-5",
     .value = "X",
     .help =
         "Largest difference allowed, as a share of the tensor's largest value; for ablate of the losses, as a share "
         "of the base's.",
     .range = kPositive},
    {.name = "seconds",
     .type = FlagType::kDouble,
     .used_by = kBench | kAblate,
     .group = kMeasuringGroup,
     .initial = "2",
     .value = "X",
     .help = "How long to measure; for ablate each setting, in each of its turns.",
     .unit = "seconds",
     .range = {.low = 0, .high = 86400, .low_open = true}},
    {.name = "mode",
     .type = FlagType::kChoice,
     .used_by = kBench,
     .group = kMeasuringGroup,
     .initial = "train",
     .value = "WHAT",
     .help = "What to measure: training steps, or inference, of the losses of sentences and else of what roots answer.",
     .choices = "train|infer"},
    {.name = "minibatches",
     .type = FlagType::kInt,
     .used_by = kBench,
     .group = kMeasuringGroup,
     .initial = "0",
     .value = "N",
     .help = "Measure the first N minibatches, over and over.",
     .unit = "minibatches",
     .range = kCount,
     .zero_means = "those that two seconds of warming up reach"},
    {.name = "repeat",
     .type = FlagType::kInt,
     .used_by = kAblate,
     .group = kMeasuringGroup,
     .initial = "5",
     .value = "N",
     .help = "How often each setting is measured, in turns with the others; medians are reported.",
     .unit = "turns",
     .range = {.low = 1, .high = 1000}},
    {.name = "grid",
     .type = FlagType::kChoice,
     .used_by = kAblate,
     .group = kMeasuringGroup,
     .initial = "star",
     .value = "FORM",
     .help = "Which settings to compare: the first value of every list with one of them changed at a time, or all "
             "combinations, at most 64.",
     .choices = "star|full"},
    {.name = "profile",
     .type = FlagType::kSwitch,
     .used_by = kBench,
     .group = kMeasuringGroup,
     .initial = "false",
     .value = "",
     .help =
         "Time every kernel too, in steps of their own behind the measured ones: by operator and by compiled step."},

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
    {.name = "trace",
     .type = FlagType::kText,
     .used_by = kBench,
     .group = kFilesGroup,
     .initial = "",
     .value = "FILE",
     .help =
         "Draw three training steps, with phases, tasks and kernels, as a Chrome trace of at most 100000 events for "
         "chrome://tracing or Perfetto. Only an earlier trace is replaced."},
    {.name = "svg",
     .type = FlagType::kText,
     .used_by = kAblate,
     .group = kFilesGroup,
     .initial = "",
     .value = "FILE",
     .help = "A picture of the step times. Only an earlier SVG file is replaced."},
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
    {"seconds", SubCommand::kAblate, "0.5"},
    {"tolerance", SubCommand::kAblate, "1e-4"},
});

}  // namespace

std::span<const FlagSpec> OutputFlags() { return kFlags; }
std::span<const DependentDefault> DependentDefaults() { return kDependentDefaults; }
std::span<const CommandDefault> CommandDefaults() { return kCommandDefaults; }

}  // namespace cavs
