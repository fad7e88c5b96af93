// What the flags say about how to run: options of sessions, passes and optimizers, and the effective configuration.
// Pure functions, safe from any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "backprop/optimizer.h"
#include "cavs/command/commands.h"
#include "cavs/session.h"
#include "vertex/passes.h"

namespace cavs {

// The number of --threads, which may be one for each core.
int ThreadsFrom(const FlagValues& flags);

PassOptions PassesFrom(const FlagValues& flags);
// Throws std::invalid_argument for bf16 where the processor does not multiply it.
Precision PrecisionFrom(const FlagValues& flags);

// Throws std::invalid_argument when this machine has no such device as --device.
SessionOptions SessionFrom(const FlagValues& flags);

OptimizerOptions OptimizerFrom(const FlagValues& flags);

// Every flag of the sub-command as it takes effect, with version, device and threads.
nlohmann::ordered_json Configuration(const Invocation& call);

// The same for people, in lines of at most 100 characters.
std::string DescribeConfiguration(const Invocation& call);

// Throws FileError when --metrics is no place for metrics: no file that can be written, a file that the run reads or
// saves, or one that holds anything but metrics. Makes and changes nothing.
void RequireMetricsPlace(const FlagValues& flags);

// The same for the file of --`flag`, which shall hold `content` ("a trace") and then begins with `begin`: an earlier
// one is replaced, any other file is left alone.
void RequireFilePlace(const FlagValues& flags, std::string_view flag, std::string_view content, std::string_view begin);

// Throws FileError when `folder` is none where files can be written, or cannot be made; leaves no trace.
void RequireWritableFolder(const std::string& folder);

}  // namespace cavs
