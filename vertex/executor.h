// Executor: runs a compiled F over a Schedule, and dF over its reverse.
// An Executable is compiled once per model and is shared read-only; an Executor belongs to one Session and owns the
// memory of a run. Results (losses, outputs, states) live until the next Forward; other values until nothing is left in
// the run that reads them.
//
// Not thread-safe; any number of Executors may run over one Executable and one ParameterStore at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cavs/base/thread_pool.h"
#include "cavs/base/trace_log.h"
#include "graph/graph_batch.h"
#include "graph/schedule.h"
#include "memory/pool.h"
#include "vertex/gradients.h"
#include "vertex/parameters.h"
#include "vertex/passes.h"
#include "vertex/program.h"

namespace cavs {

// Which rows the head runs over.
enum class HeadRows : uint8_t {
  kLabelled,  // pushed vertices with at least one label; all where the head knows no labels
  kRoots,     // pushed vertices without parents
  kAll,       // every pushed vertex
};

struct RunOptions {
  bool training = false;  // dropout is drawn
  HeadRows head = HeadRows::kLabelled;
  uint64_t seed = 0;  // with `step`, the source of dropout's draws
  uint64_t step = 0;
  bool packed = false;      // products read the packed forms of parameters, which must be current
  float loss_scale = 1.0f;  // factor of every gradient: 1, or 1 / graphs of the minibatch
  bool backward = false;    // Backward follows: what dF reads is kept, and memory is taken for both
};

// A batch whose equal vertices were merged (graph/sharing.h): what the head, labels and callers know by their original
// numbers. Refers to the caller's memory.
struct SharedVertices {
  const GraphBatch* original = nullptr;
  std::span<const int32_t> merged;  // by original vertex: its number in the batch that runs
};

// Seconds of one Forward and Backward, by part.
struct RunTimes {
  double pack = 0, hoisted = 0, recurrent = 0, deferred = 0, backward = 0;
  RunTimes& operator+=(const RunTimes& other) {
    pack += other.pack;
    hoisted += other.hoisted;
    recurrent += other.recurrent;
    deferred += other.deferred;
    backward += other.backward;
    return *this;
  }
};

struct RunCounters {
  int64_t launches = 0;      // kernel calls
  int64_t copied_bytes = 0;  // moved by gathers, scatters and concatenations alone
  double flops = 0;          // useful floating-point operations of matrix products
  RunCounters& operator+=(const RunCounters& other) {
    launches += other.launches;
    copied_bytes += other.copied_bytes;
    flops += other.flops;
    return *this;
  }
};

// The first non-finite number of a run, in order of execution.
struct NonFinite {
  bool found = false;
  std::string operation;  // the instruction as text
  int64_t example = -1;   // number of the example in its data set
  int64_t vertex = -1;    // vertex inside of its graph
};

// Memory of one tensor of a run: [rows, width] f32. It has to be there from the first to the last step that touches it.
struct TensorBytes {
  std::string name;
  int64_t rows = 0, width = 0;
  int64_t offset = -1;        // in the memory of the run, bytes; -1 where each tensor has memory of its own
  std::string_view from, to;  // parts of the run: "hoisted", "recurrent", "d head", ...
  int64_t bytes() const { return rows * width * static_cast<int64_t>(sizeof(float)); }
};

// What the calls of one compiled step cost since profiling was switched on.
struct StepProfile {
  std::string step;       // as `explain` prints it
  std::string operation;  // "matmul", "fused", "copy"
  std::string function;   // the vertex type, or "head"
  Phase phase = Phase::kRecurrent;
  bool backward = false;
  int64_t calls = 0, rows = 0;
  int64_t bytes = 0;  // of operands and results, each counted once and as f32
  double flops = 0;   // useful floating-point operations, of products alone
  double seconds = 0;
};

class Executable;  // executable.h

class Executor {
 public:
  // `parameters`, `pool` and `threads` must outlive the Executor.
  Executor(std::shared_ptr<const Executable> executable, const ParameterStore* parameters, Pool* pool,
           ThreadPool* threads);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  ~Executor();

  // Runs F. `batch` and `schedule` must live until the next Forward. Ends the previous minibatch: its values are gone.
  // Throws std::invalid_argument when the graphs do not fit F, OutOfMemory at the pool's cap, both before anything
  // runs. `shared` is given when `batch` is a merged one; all vertices of results are then original ones.
  void Forward(const GraphBatch& batch, const Schedule& schedule, const RunOptions& options,
               const SharedVertices* shared = nullptr);
  // Runs dF over the reverse of the last Forward's schedule, once. Adds into `gradients`. Needs an Executable with dF,
  // and a Forward that was told (RunOptions::backward).
  void Backward(Gradients* gradients);

  // Sum of all losses over all head rows of the last Forward, not scaled.
  double loss() const;
  int64_t head_rows() const;
  // Batch vertex of a head row, in the order of (example, vertex).
  std::span<const int32_t> head_vertices() const;
  // Values of Program::outputs[output], [head_rows, width], row-major and dense.
  std::span<const float> output(size_t output) const;
  // The row [1] of Program::losses[loss] for each head row.
  std::span<const float> loss_rows(size_t loss) const;
  // State `channel` of a batch vertex, [width]; empty when its type does not scatter it.
  std::span<const float> state(int32_t channel, int32_t vertex) const;

  // Runs F like Forward, looking at what each step writes, to find the first number that is not finite.
  NonFinite FindNonFinite(const GraphBatch& batch, const Schedule& schedule, const RunOptions& options,
                          const SharedVertices* shared = nullptr);
  // Ends the last run: gives its memory back to the pool; there is nothing to read any more.
  void Forget();
  // The tensors of the last run.
  std::vector<TensorBytes> tensors() const;
  // Times every step from now on, at the cost of two clock readings for each; or stops. Forgets what was measured.
  void Profile(bool on);
  // Steps in order of functions, and behind them the merging of lookup gradients.
  std::vector<StepProfile> profile() const;
  // Draws every run from now on into `log`, which must outlive the tracing; null stops.
  void Trace(TraceLog* log);
  const RunTimes& times() const;
  const RunCounters& counters() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cavs
