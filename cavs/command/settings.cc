#include "cavs/command/settings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <vector>

#include "cavs/base/error.h"
#include "cavs/command/metrics.h"
#include "cavs/corpus.h"
#include "cavs/file_output.h"
#include "cavs/trainer.h"
#include "cavs/version.h"
#include "memory/device.h"
#include "vertex/kernels/gemm.h"

namespace cavs {
namespace {

constexpr size_t kLineWidth = 100;

// This version computes on the CPU; asking for another device gives that device's own refusal.
DeviceKind DeviceFrom(const FlagValues& flags) {
  if (flags.Text("device") != "cuda") return DeviceKind::kCpu;
  return MakeDevice(DeviceKind::kCuda)->kind();
}

bool UsesSparseUpdates(const FlagValues& flags) {
  const std::string& how = flags.Text("lookup_updates");
  if (how != "auto") return how == "sparse";
  const std::string& optimizer = flags.Text("optimizer");
  return (optimizer == "sgd" || optimizer == "adagrad") && flags.Double("weight_decay") == 0;
}

// A value as the command line would have it.
std::string AsWritten(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  if (value.is_array()) {
    std::vector<std::string> parts;
    parts.reserve(value.size());
    for (const nlohmann::ordered_json& part : value) parts.push_back(AsWritten(part));
    return fmt::format("{}", fmt::join(parts, ","));
  }
  return value.dump();
}

// Whether both names lead to the same file or folder, be it there already or not.
bool AreSame(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error)) return true;
  const std::filesystem::path first = std::filesystem::weakly_canonical(a, error);
  if (error) return false;
  const std::filesystem::path second = std::filesystem::weakly_canonical(b, error);
  return !error && first == second;
}

void RequireWritableFile(const std::string& path, std::string_view content) {
  const std::string expected = fmt::format("expected a file for {} that can be written", content);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw FileError(path, fmt::format("{}, got a folder", expected));
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  const bool exists = std::filesystem::exists(path, ignored);
  const bool writable = exists ? access(path.c_str(), W_OK) == 0 : access(folder.c_str(), W_OK | X_OK) == 0;
  if (writable) return;
  throw FileError(path, fmt::format("{}, got: {}", expected, std::generic_category().message(errno)));
}

// Throws FileError when the file of `flag` is one that the run reads, saves, or writes for another flag.
void RequireOwnFile(const FlagValues& flags, std::string_view flag, std::string_view content) {
  const std::string& path = flags.Text(flag);
  const auto refuse_if_at = [&](const std::string& other, std::string_view owner) {
    if (other.empty() || !AreSame(path, other)) return;
    throw FileError(path, fmt::format("expected a file of its own for {}, got one of --{}", content, owner));
  };
  for (const std::string_view data : {"data", "train", "dev", "test"}) {
    if (flags.is_set(data)) refuse_if_at(ParseDataSource(flags.Text(data)).path, data);
  }
  for (const std::string_view other : {"load", "metrics", "trace", "svg"}) {
    if (other != flag) refuse_if_at(flags.Text(other), other);
  }
  if (const std::string& folder = flags.Text("save"); !folder.empty()) {
    for (const std::string& saved : {folder, BestModelPath(folder), LastModelPath(folder), StatePath(folder)}) {
      refuse_if_at(saved, "save");
    }
  }
}

}  // namespace

int ThreadsFrom(const FlagValues& flags) {
  if (const int64_t threads = flags.Int("threads"); threads > 0) return static_cast<int>(threads);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

PassOptions PassesFrom(const FlagValues& flags) {
  PassOptions passes;
  passes.hoisting = flags.Bool("hoisting");
  passes.lazy_batching = flags.Bool("lazy_batching");
  passes.merging = flags.Bool("merging");
  passes.fusion = flags.Bool("fusion");
  passes.in_place = flags.Bool("in_place");
  passes.common_expressions = flags.Bool("cse");
  return passes;
}

Precision PrecisionFrom(const FlagValues& flags) {
  const Precision precision = ParsePrecision(flags.Text("precision"));
  if (precision == Precision::kBf16 && !cpu::HasFastBf16()) ThrowInvalid("precision", cpu::kNoFastBf16);
  return precision;
}

SessionOptions SessionFrom(const FlagValues& flags) {
  CAVS_CHECK(DeviceFrom(flags) == DeviceKind::kCpu, "a device without kernels");
  SessionOptions options;
  options.batching = ParseBatchingPolicy(flags.Text("batching"));
  options.memory = ParsePoolPolicy(flags.Text("memory"));
  options.sharing = ParseSharingPolicy(flags.Text("sharing"));
  options.memory_limit = flags.Int("memory_limit");
  options.threads = ThreadsFrom(flags);
  options.parallel = ParseParallelPolicy(flags.Text("parallel"));
  options.prefetch = ParsePrefetchPolicy(flags.Text("prefetch"));
  options.loss = flags.Text("loss") == "sum" ? LossReduction::kSum : LossReduction::kMean;
  options.seed = static_cast<uint64_t>(flags.Int("seed"));
  return options;
}

OptimizerOptions OptimizerFrom(const FlagValues& flags) {
  OptimizerOptions options;
  options.kind = *FindOptimizer(flags.Text("optimizer"));
  options.lr = flags.Double("lr");
  options.momentum = flags.Double("momentum");
  options.weight_decay = flags.Double("weight_decay");
  options.clip = flags.Double("clip");
  options.sparse_updates = UsesSparseUpdates(flags);
  return options;
}

nlohmann::ordered_json Configuration(const Invocation& call) {
  const auto uses = [&](std::string_view name) { return IsUsedBy(*FindFlag(name), call.command.command); };
  nlohmann::ordered_json config = {{"command", call.command.name}, {"version", Version()}};
  config.update(call.flags.ToJson(call.command.command));
  if (uses("device")) config["device"] = DeviceKindName(DeviceFrom(call.flags));
  if (uses("threads") && !config["threads"].is_array()) config["threads"] = ThreadsFrom(call.flags);
  if (uses("lookup_updates")) config["lookup_updates"] = UsesSparseUpdates(call.flags) ? "sparse" : "dense";
  return config;
}

std::string DescribeConfiguration(const Invocation& call) {
  std::string text = fmt::format("cavs {} {}\n", Version(), call.command.name);
  std::string line;
  const nlohmann::ordered_json config = Configuration(call);
  for (const auto& [name, value] : config.items()) {
    if (name == "command" || name == "version" || value.is_null()) continue;
    const std::string setting = fmt::format(" {}={}", name, AsWritten(value));
    if (line.size() + setting.size() > kLineWidth) {
      text += line + '\n';
      line.clear();
    }
    if (line.empty()) line = " ";
    line += setting;
  }
  return text + line;
}

void RequireMetricsPlace(const FlagValues& flags) {
  const std::string& path = flags.Text("metrics");
  if (path.empty()) return;
  RequireOwnFile(flags, "metrics", "metrics");
  RequireWritableFile(path, "metrics");
  if (MayHoldMetrics(path)) return;
  throw FileError(path, "expected a new file or an earlier metrics file, got a file that holds something else");
}

void RequireFilePlace(const FlagValues& flags, std::string_view flag, std::string_view content,
                      std::string_view begin) {
  const std::string& path = flags.Text(flag);
  if (path.empty()) return;
  RequireOwnFile(flags, flag, content);
  RequireWritableFile(path, content);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored) || BeginsWith(path, begin)) return;
  throw FileError(
      path, fmt::format("expected a new file or an earlier one of {}, got one that holds something else", content));
}

void RequireWritableFolder(const std::string& folder) {
  // A folder that is not there yet is not made either: the data may still be refused.
  std::filesystem::path nearest = std::filesystem::absolute(folder).lexically_normal();
  std::error_code ignored;
  while (nearest.has_relative_path() && !std::filesystem::exists(nearest, ignored)) nearest = nearest.parent_path();
  EnsureWritableFolder(nearest.string());
}

}  // namespace cavs
