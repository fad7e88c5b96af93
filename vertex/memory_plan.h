// MemoryPlan: the memory of one run's buffers, from a Pool under its policy. Internal to vertex/.
//
// All of it is taken before the run begins, so that a minibatch that does not fit is refused before it has done
// anything. Policy `planned` takes one tensor and lays the buffers out in it by their lifetimes; the others take a
// tensor for each. Under AddressSanitizer, and under every policy, a buffer may be touched during its lifetime alone.
// Not thread-safe; a warm plan allocates nothing of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memory/offset_plan.h"
#include "memory/pool.h"
#include "vertex/executable.h"
#include "vertex/placement.h"

namespace cavs {

class MemoryPlan {
 public:
  // Both must outlive the plan.
  MemoryPlan(const Executable* executable, Pool* pool);

  // Ends the last run and takes memory for the coming one: of F, and of dF if `backward`, with `lanes` blocks of rows
  // side by side. Throws OutOfMemory, with no memory taken, when it does not fit.
  void Begin(const Placement& placement, bool backward, int32_t lanes);
  // Gives everything back.
  void End();

  // To be called in front of the steps of each position, in order.
  void Advance(int32_t position);

  // Null for a buffer that the present run does not own.
  float* data(size_t buffer) const { return data_[buffer]; }
  int64_t rows(size_t buffer) const { return rows_[buffer]; }
  // Bytes from the beginning of the tensor that the policy takes for all; -1 where it takes one for each.
  int64_t offset(size_t buffer) const { return planned() ? blocks_[buffer].offset : -1; }
  const std::string& name(size_t buffer) const { return names_[buffer]; }
  // Of the present run.
  const Liveness& liveness() const { return *liveness_; }

 private:
  bool planned() const { return pool_->policy() == PoolPolicy::kPlanned; }
  void CountBlocks(const Placement& placement, int32_t lanes);
  void TakeOne();
  void TakeEach();

  const Executable* executable_;
  Pool* pool_;
  const Liveness* liveness_;
  std::vector<std::string> names_;    // by buffer, as are the next three
  std::vector<PlannedBlock> blocks_;  // with the bytes of the present run
  std::vector<int64_t> rows_;
  std::vector<float*> data_;
  std::vector<int64_t> sizes_;  // of the tensors that are asked for
  OffsetPlanner planner_;
  size_t born_ = 0, dead_ = 0;  // buffers in the order of Liveness::births and deaths
};

}  // namespace cavs
