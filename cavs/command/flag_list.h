// What the parts of the list of flags share. Internal to the list: others use flag_table.h. Immutable.
#pragma once

#include <span>
#include <string_view>

#include "cavs/command/flag_table.h"

namespace cavs {

inline constexpr SubCommandSet kTrain = SetOf(SubCommand::kTrain);
inline constexpr SubCommandSet kEval = SetOf(SubCommand::kEval);
inline constexpr SubCommandSet kPredict = SetOf(SubCommand::kPredict);
inline constexpr SubCommandSet kCheck = SetOf(SubCommand::kCheck);
inline constexpr SubCommandSet kVerify = SetOf(SubCommand::kVerify);
inline constexpr SubCommandSet kExplain = SetOf(SubCommand::kExplain);
inline constexpr SubCommandSet kBench = SetOf(SubCommand::kBench);
inline constexpr SubCommandSet kAblate = SetOf(SubCommand::kAblate);
// Those that build a model, those that run one, and those that change one.
inline constexpr SubCommandSet kBuild = kTrain | kVerify | kExplain | kBench | kAblate;
inline constexpr SubCommandSet kRun = kBuild | kEval | kPredict;
inline constexpr SubCommandSet kStep = kTrain | kBench | kAblate;
inline constexpr SubCommandSet kAll = kRun | kCheck;

inline constexpr Range kPositive = {.low = 0, .low_open = true};
inline constexpr Range kWidth = {.low = 1, .high = 65536};
inline constexpr Range kCount = {.low = 0, .high = 1e15};
// The largest integer that JSON readers with doubles keep exactly.
inline constexpr Range kSeed = {.low = 0, .high = 9007199254740991.0};
inline constexpr Range kFraction = {.low = 0, .high = 1, .high_open = true};

inline constexpr std::string_view kModelGroup = "Model";
inline constexpr std::string_view kDataGroup = "Data";
inline constexpr std::string_view kTrainingGroup = "Training";
inline constexpr std::string_view kExecutionGroup = "Execution (every setting gives the same answers)";
inline constexpr std::string_view kMeasuringGroup = "Measuring";
inline constexpr std::string_view kFilesGroup = "Files and output";

// The groups "Measuring" and "Files and output".
std::span<const FlagSpec> OutputFlags();

}  // namespace cavs
