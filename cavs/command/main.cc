// The `cavs` command. Exit codes: 0 done, 1 refused input or failed run, 2 wrong command line; never a signal.

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cavs/base/error.h"
#include "cavs/command/command_line.h"
#include "cavs/command/commands.h"
#include "cavs/command/gflags_registry.h"
#include "cavs/command/help.h"
#include "cavs/command/output.h"
#include "cavs/version.h"

namespace cavs {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

void SayOnStderr(std::string_view text) { WriteStderr(fmt::format("{}\n", text)); }

// Which part of drawn data is meant where a sub-command reads one data set.
DataPart PartOf(const CommandLine& line) {
  if (line.data_flag == "train") return DataPart::kTrain;
  if (line.data_flag == "dev") return DataPart::kDev;
  if (line.data_flag == "test") return DataPart::kTest;
  const SubCommand command = line.command->command;
  const bool measures = command == SubCommand::kEval || command == SubCommand::kPredict;
  return measures ? DataPart::kDev : DataPart::kTrain;
}

void Dispatch(Invocation& call) {
  switch (call.command.command) {
    case SubCommand::kTrain:
      return RunTrain(call);
    case SubCommand::kEval:
      return RunEval(call);
    case SubCommand::kPredict:
      return RunPredict(call);
    case SubCommand::kCheck:
      return RunCheck(call);
    case SubCommand::kVerify:
      return RunVerify(call);
    case SubCommand::kExplain:
      return RunExplain(call);
    case SubCommand::kBench:
      return RunBench(call);
    case SubCommand::kAblate:
      return RunAblate(call);
  }
}

void RunProgram(const std::vector<std::string>& words) {
  Interrupt interrupt([] { SayOnStderr("\ncavs: ending behind the present step; once more to end at once"); });
  const CommandLine line = ParseCommandLine(words);
  Output out(STDOUT_FILENO);
  if (line.action == Action::kHelp) {
    out.Write(HelpText(line.command));
  } else if (line.action == Action::kVersion) {
    out.Write(fmt::format("cavs {}\n", Version()));
  } else {
    GflagsRegistry registry;
    registry.Assign(line.flags);
    Invocation call{*line.command, line.flags, PartOf(line), interrupt, out};
    Dispatch(call);
  }
  out.Flush();
}

// Runs the program and says on stderr why it failed.
int ExitCodeOf(const std::vector<std::string>& words) {
  try {
    RunProgram(words);
    return 0;
  } catch (const UsageError& error) {
    SayOnStderr(fmt::format("cavs: {}", error.what()));
    return kWrongUsage;
  } catch (const std::bad_alloc&) {
    SayOnStderr("cavs: the system has no more memory");
  } catch (const std::exception& error) {
    SayOnStderr(fmt::format("cavs: {}", error.what()));
  }
  return kFailed;
}

}  // namespace

void EndIfInterrupted(const Interrupt& interrupt) {
  if (interrupt.requested()) throw std::runtime_error("interrupted before the end");
}

}  // namespace cavs

int main(int argc, char** argv) {
  cavs::OccupyStandardStreams();
  // A reader that has gone and a limit on the size of files are errors of `write`, which know better what to say.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  return cavs::ExitCodeOf(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
