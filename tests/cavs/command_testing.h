// Runs the built `cavs` command as its users do, and reads what it writes.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/cavs/scratch_folder.h"

namespace cavs {

struct CommandResult {
  int code = -1;  // exit code, or 1000 plus the signal that ended it
  std::string out;
  std::string err;
};

// A program that runs beside the test.
class RunningCommand {
 public:
  // The output goes through files, so that a test that reads late never blocks it.
  explicit RunningCommand(std::vector<std::string> words) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, folder_.File("out").c_str(), O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, folder_.File("err").c_str(), O_WRONLY | O_CREAT, 0600);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int error = posix_spawn(&process_, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error("cannot run " + words[0]);
  }
  ~RunningCommand() {
    if (process_ < 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  void Signal(int signal) const { kill(process_, signal); }

  CommandResult Wait() {
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    return {code, ReadText(folder_.File("out")), ReadText(folder_.File("err"))};
  }

 private:
  ScratchFolder folder_;
  pid_t process_ = -1;
};

// The words of a call of the command.
inline std::vector<std::string> CavsWords(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), CAVS_COMMAND);
  return arguments;
}

inline CommandResult Cavs(const std::vector<std::string>& arguments) {
  return RunningCommand(CavsWords(arguments)).Wait();
}

inline std::vector<nlohmann::json> ParseLines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

// The metrics of one event.
inline std::vector<nlohmann::json> Events(const std::string& path, const std::string& event) {
  std::vector<nlohmann::json> found;
  for (nlohmann::json& line : ParseLines(ReadText(path))) {
    if (line.at("event") == event) found.push_back(std::move(line));
  }
  return found;
}

// Fields that must not depend on when and how fast a run was.
inline nlohmann::json WithoutTimes(nlohmann::json event) {
  for (const char* name : {"seconds", "examples_per_s", "vertices_per_s", "schedule_s", "wait_s", "peak_bytes"})
    event.erase(name);
  return event;
}

// Some labelled trees of all shapes for `tree:`, a lone vertex and a unary chain among them.
inline std::string MixedTrees() {
  return "(3 good)\n"
         "(1 (2 not) (3 good))\n"
         "(4 (4 (2 very) (3 good)) (2 indeed))\n"
         "(2 (2 (2 fine)))\n"
         "(0 (1 (2 truly) (1 (1 bad) (2 and))) (0 (2 quite) (1 sad)))\n"
         "(1 bad)\n"
         "(2 (2 a) (2 (2 film) (2 (2 of) (2 (2 some) (2 length)))))\n";
}

}  // namespace cavs
