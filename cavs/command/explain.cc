#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backprop/differentiate.h"
#include "cavs/command/commands.h"
#include "cavs/command/figures.h"
#include "cavs/command/inputs.h"
#include "cavs/command/metrics.h"
#include "cavs/command/settings.h"
#include "cavs/text.h"
#include "vertex/executable.h"
#include "vertex/input_sharing.h"
#include "vertex/merging.h"

namespace cavs {
namespace {

constexpr size_t kTasksShown = 40;

void PrintSection(std::string_view title, std::string_view text, Output& out) {
  out.Line("== {}", title);
  out.Write(text);
  if (text.empty() || text.back() != '\n') out.Write("\n");
  out.Write("\n");
}

// Prints a program as it is and behind each pass, in the order in which a Model applies them.
void PrintPasses(std::string_view name, const Program& program, const PassOptions& options, bool shares_inputs,
                 Output& out) {
  std::string before = ToString(program);
  PrintSection(fmt::format("{} as {}", name, program.is_backward() ? "derived" : "written"), before, out);
  const auto print = [&](std::string_view pass, const Program& result) {
    std::string after = ToString(result);
    PrintSection(fmt::format("{} behind {}", name, pass), after == before ? "unchanged" : after, out);
    before = std::move(after);
  };
  const Program distinct = options.common_expressions ? MergeCommonExpressions(program) : program;
  print("common subexpressions (--cse)", distinct);
  const Program live = options.dead_code ? DropDeadCode(distinct) : distinct;
  print("dead code", live);
  const bool merges = options.merging && !program.is_backward();
  const Program merged = merges ? MergeProducts(live, options) : live;
  if (!program.is_backward()) print("merging of products (--merging)", merged);
  const bool shared = shares_inputs && !program.is_backward();
  const Program distinct_inputs = shared ? ShareInputs(merged, options) : merged;
  if (shared) print("sharing of inputs (--sharing)", distinct_inputs);
  print("partition (--hoisting, --lazy_batching)", Partition(distinct_inputs, options));
}

void PrintSchedule(const Session& session, const ScheduleReport& report, const std::vector<TypeDeclaration>& types,
                   Output& out) {
  out.Line("== schedule of the first minibatch (--batching={})", BatchingPolicyName(session.options().batching));
  out.Line("{} graphs, {} vertices, {} of them distinct (--sharing={})", session.batch().graph_count(),
           session.batch().vertex_count(), report.vertices, SharingPolicyName(session.options().sharing));
  out.Line("{} edges, {} levels", report.edges, report.levels);
  out.Line("{} tasks, {:.1f} vertices on average; no schedule has fewer than {} tasks", report.tasks, report.mean_width,
           report.task_lower_bound);
  const std::span<const Task> tasks = session.schedule().tasks();
  out.Line("{:>6} {:>12} {:>8}", "task", "type", "width");
  for (size_t i = 0; i < std::min(tasks.size(), kTasksShown); ++i) {
    out.Line("{:>6} {:>12} {:>8}", i, types[static_cast<size_t>(tasks[i].type)].name, tasks[i].count);
  }
  if (tasks.size() > kTasksShown) out.Line("and {} more", tasks.size() - kTasksShown);
  out.Write("\n");
}

void PrintBatching(const Model& model, Output& out) {
  const std::shared_ptr<const FsmPolicy> policy = FsmPolicyOf(model);
  if (policy == nullptr) return;
  const std::vector<TypeDeclaration>& types = model.program().signature->types;
  std::vector<std::string> names(types.size());
  std::transform(types.begin(), types.end(), names.begin(), [](const TypeDeclaration& type) { return type.name; });
  PrintSection("learned batching policy (ready types: the one that runs)", ToString(*policy, names), out);
}

int64_t PrintMemory(const Session& session, std::vector<TensorBytes> tensors, int64_t parameters, Output& out) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const TensorBytes& a, const TensorBytes& b) { return a.bytes() > b.bytes(); });
  int64_t total = 0;
  for (const TensorBytes& tensor : tensors) total += tensor.bytes();
  out.Line("== memory of a training step by tensor (--memory={})", PoolPolicyName(session.options().memory));
  for (const TensorBytes& tensor : tensors) {
    const std::string place = tensor.offset >= 0 ? fmt::format(" at {}", tensor.offset) : "";
    const std::string life = tensor.from == tensor.to ? std::string(tensor.from)  //
                                                      : fmt::format("{} to {}", tensor.from, tensor.to);
    out.Line("{:>10}  {:<16} {:<24} {}{}", FormatSize(tensor.bytes()),
             fmt::format("[{}, {}]", tensor.rows, tensor.width), tensor.name, life, place);
  }
  const MemoryStatistics& memory = session.memory();
  out.Line("{:>10}  in all; {} needed at one time; {} at the peak, {} held for it; parameters {}", FormatSize(total),
           FormatSize(memory.needed), FormatSize(memory.peak), FormatSize(memory.peak + memory.waste),
           FormatSize(parameters * static_cast<int64_t>(sizeof(float))));
  return total;
}

// The schedule and the memory of the minibatch that the session holds, and their figures.
nlohmann::ordered_json PrintRun(Session& session, const Model& model, Output& out) {
  const ScheduleReport report = Report(session.scheduled(), session.schedule());
  if (session.options().batching == BatchingPolicy::kFsm) PrintBatching(model, out);
  PrintSchedule(session, report, model.program().signature->types, out);
  const int64_t bytes = PrintMemory(session, session.executor().tensors(), model.parameters().total_elements(), out);
  return {{"graphs", session.batch().graph_count()},
          {"vertices", session.batch().vertex_count()},
          {"distinct_vertices", report.vertices},
          {"edges", report.edges},
          {"levels", report.levels},
          {"tasks", report.tasks},
          {"mean_width", report.mean_width},
          {"task_lower_bound", report.task_lower_bound},
          {"tensor_bytes", bytes},
          {"needed_bytes", session.memory().needed},
          {"peak_bytes", session.memory().peak},
          {"reserved_bytes", session.memory().peak + session.memory().waste}};
}

}  // namespace

void RunExplain(Invocation& call) {
  RequireMetricsPlace(call.flags);
  const SessionOptions options = SessionFrom(call.flags);
  const ModelAndData task = ReadModelAndData(call);
  Model& model = *task.trained.model;
  MetricsWriter metrics(call.flags.Text("metrics"), /*append=*/false);
  metrics.Write("config", Configuration(call));
  if (task.batching) metrics.Write("batching", BatchingFields(*task.batching));
  const bool shares_inputs = options.sharing != SharingPolicy::kOff;
  if (call.flags.Bool("dot")) {
    return call.out.Write(ToDot(model.executable(/*training=*/false, options.sharing)->forward()));
  }

  const PassOptions& passes = model.options().passes;
  const std::shared_ptr<const Executable> executable = model.executable(/*training=*/true, options.sharing);
  PrintPasses("F", model.program(), passes, shares_inputs, call.out);
  PrintPasses("dF", Differentiate(executable->forward()), passes, shares_inputs, call.out);
  PrintSection(fmt::format("compiled steps (--{}fusion)", passes.fusion ? "" : "no"), ToString(*executable), call.out);

  Session session(model, options);
  std::vector<Example> examples;
  for (int64_t i = 0; i < std::min(call.flags.Int("batch_size"), task.data.size()); ++i) {
    examples.push_back({&task.data.graphs[static_cast<size_t>(i)], i});
  }
  nlohmann::ordered_json fields;
  const BatchReport& batch = session.Accumulate(examples, 0, [&] {
    if (fields.empty()) fields = PrintRun(session, model, call.out);
  });
  if (batch.parts > 1) {
    call.out.Line("\nthe minibatch of {} graphs runs in {} parts (--memory_limit={}); this was the first", batch.graphs,
                  batch.parts, FormatSize(options.memory_limit));
  }
  fields["parts"] = batch.parts;
  metrics.Write("explain", fields);
}

}  // namespace cavs
