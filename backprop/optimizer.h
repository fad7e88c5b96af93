// Optimizers: SGD, momentum, Adagrad (Duchi et al. 2011) and Adam (Kingma & Ba 2015), with clipping by the global norm
// and L2 weight decay. With gradient g, value p, rate lr, step number t = 1, 2, ...:
//   sgd       p -= lr g
//   momentum  m = momentum m + g;  p -= lr m
//   adagrad   s += g^2;  p -= lr g / (sqrt(s) + epsilon)
//   adam      m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
//             p -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
// g is the gradient after clipping plus weight_decay p. Frozen parameters are never written.
//
// A parameter without a gradient in a step counts as a gradient of zeros: decay and momentum go on, Adam's moments
// fade. Lookup tables follow the same rule row by row, unless `sparse_updates`: then a row that no vertex of the
// minibatch pulled stays untouched, with its moments. t counts steps, not uses of a row.
//
// Equal bits for equal input at any number of threads. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backprop/optimizer_kernels.h"
#include "cavs/base/thread_pool.h"
#include "memory/shape.h"
#include "vertex/gradients.h"
#include "vertex/parameters.h"

namespace cavs {

enum class OptimizerKind : uint8_t { kSgd, kMomentum, kAdagrad, kAdam };

// "sgd", "momentum", "adagrad" or "adam".
std::string_view OptimizerName(OptimizerKind kind);
std::optional<OptimizerKind> FindOptimizer(std::string_view name);

inline constexpr std::string_view kOptimizerHelp =
    "sgd, momentum, adagrad or adam. Rows of lookup tables that a minibatch does not use stay untouched (sparse), "
    "unless sparse updates are off (dense). Without weight decay, sgd and adagrad give the same bits either way; "
    "momentum and adam differ, for in dense mode their moments move unused rows too, and so does weight decay.";

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdagrad;
  double lr = 0.05;       // > 0
  double momentum = 0.9;  // of momentum, in [0, 1)
  double beta1 = 0.9;     // of Adam, in [0, 1)
  double beta2 = 0.999;   // of Adam, in [0, 1)
  double epsilon = 1e-8;  // of Adagrad and Adam, > 0; added to the root
  double weight_decay = 0;
  double clip = 0;  // largest L2 norm of all gradients together; 0 for none
  bool sparse_updates = true;
};

// A named array of an optimizer's state, row-major.
struct OptimizerTensor {
  std::string name;
  Shape shape;
  std::vector<float> values;
};

struct StepResult {
  bool applied = false;  // false: the norm is not finite, and nothing was changed
  double norm = 0;       // L2 norm of all gradients together, before clipping
};

class Optimizer {
 public:
  // Moments begin at zero. `threads` must outlive the Optimizer. Throws std::invalid_argument for options out of range.
  Optimizer(const OptimizerOptions& options, const ParameterStore& parameters, ThreadPool* threads);

  // Writes the trained values of `parameters`, of the model it was made for, and marks them as changed; does not Pack.
  [[nodiscard]] StepResult Step(ParameterStore& parameters, const Gradients& gradients);

  // Steps that were applied.
  int64_t steps() const { return steps_; }
  const OptimizerOptions& options() const { return options_; }

  // All that a resumed run needs to give the same bits as one that never stopped: the moments of each declared
  // parameter, named "adam.first/<parameter>", and the step count as "steps" [2], high and low 24 bits.
  std::vector<OptimizerTensor> SaveState() const;
  // Takes over a saved state, in any order. Throws std::invalid_argument, and changes nothing, when it is of another
  // kind of optimizer or of another model.
  void LoadState(std::span<const OptimizerTensor> state);

 private:
  // The moments of one parameter, each empty or as long as the values that it owns.
  struct Moments {
    std::vector<float> first;
    std::vector<float> second;
  };
  // A stretch of work that one thread does.
  struct Job {
    enum class Kind : uint8_t { kElements, kZeroGradient, kSeenRows, kAllRows };
    Kind kind;
    int32_t parameter;
    int64_t begin;  // elements, places in SparseRows::ids, or rows of the table
    int64_t end;
  };

  // Calls body(job) for each of `jobs`, side by side where they have many floats in all.
  template <typename Body>
  void RunJobs(int64_t jobs, int64_t floats, const Body& body);
  double Norm(const Gradients& gradients);
  cpu::UpdateScalars Scalars(double norm) const;
  bool MovesWithoutGradient() const;
  void PlanJobs(const Gradients& gradients);
  void PlanStretches(Job::Kind kind, int32_t parameter, int64_t count, int64_t grain);
  void RunJob(const Job& job, const cpu::UpdateScalars& scalars, const Gradients& gradients, std::span<float> values);
  void UpdateRows(const Job& job, const cpu::UpdateScalars& scalars, const SparseRows& gradient,
                  std::span<float> values);
  void Update(const cpu::UpdateScalars& scalars, int32_t parameter, int64_t offset, std::span<const float> gradient,
              std::span<float> values);

  OptimizerOptions options_;
  cpu::UpdateKernel kernel_;
  ThreadPool* threads_;
  ParameterLayout layout_;
  std::vector<bool> trained_;  // by parameter: owns values and is not frozen
  std::vector<Moments> moments_;
  int64_t steps_ = 0;
  std::vector<float> zeros_;
  std::vector<Job> jobs_;       // of one step; kept for its memory
  int64_t planned_floats_ = 0;  // in all jobs
};

}  // namespace cavs
