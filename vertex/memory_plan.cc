#include "vertex/memory_plan.h"

#include <algorithm>

#include "memory/poison.h"

namespace cavs {
namespace {

constexpr std::string_view kWhole = "the tensors of a minibatch";

}  // namespace

MemoryPlan::MemoryPlan(const Executable* executable, Pool* pool)
    : executable_(executable),
      pool_(pool),
      liveness_(&executable->liveness(false)),
      blocks_(executable->buffers().size()),
      rows_(blocks_.size(), 0),
      data_(blocks_.size(), nullptr) {
  names_.reserve(blocks_.size());
  for (const Buffer& buffer : executable->buffers()) names_.push_back(BufferName(*executable, buffer));
}

void MemoryPlan::Begin(const Placement& placement, bool backward, int32_t lanes) {
  End();
  liveness_ = &executable_->liveness(backward);
  pool_->set_context(placement.vertices());
  CountBlocks(placement, lanes);
  if (planned()) {
    TakeOne();
  } else {
    TakeEach();
  }
  pool_->BookNeeded(planner_.LeastBytes(blocks_));
}

void MemoryPlan::End() {
  std::fill(data_.begin(), data_.end(), nullptr);
  pool_->Rewind();
  born_ = dead_ = 0;
}

void MemoryPlan::CountBlocks(const Placement& placement, int32_t lanes) {
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const Lifetime& lifetime = liveness_->lifetimes[b];
    const Buffer& buffer = executable_->buffers()[b];
    rows_[b] = lifetime.used() ? placement.rows(buffer, lanes) : 0;
    blocks_[b] = {.bytes = rows_[b] * buffer.width * static_cast<int64_t>(sizeof(float)),
                  .first = lifetime.used() ? lifetime.first : 0,
                  .last = lifetime.last};
  }
}

void MemoryPlan::TakeOne() {
  const int64_t total = planner_.Plan(blocks_);
  pool_->Expect({&total, 1}, kWhole);
  char* const whole = static_cast<char*>(pool_->Allocate(total, kWhole));
  Poison(whole, total);
  for (const int32_t b : liveness_->births) {
    data_[static_cast<size_t>(b)] = reinterpret_cast<float*>(whole + blocks_[static_cast<size_t>(b)].offset);
  }
}

void MemoryPlan::TakeEach() {
  sizes_.clear();
  for (const int32_t b : liveness_->births) sizes_.push_back(blocks_[static_cast<size_t>(b)].bytes);
  pool_->Expect(sizes_, kWhole);
  for (const int32_t b : liveness_->births) {
    const auto i = static_cast<size_t>(b);
    data_[i] = static_cast<float*>(pool_->Allocate(blocks_[i].bytes, names_[i]));
    Poison(data_[i], blocks_[i].bytes);
  }
}

void MemoryPlan::Advance(int32_t position) {
  const std::vector<int32_t>& deaths = liveness_->deaths;
  const std::vector<int32_t>& births = liveness_->births;
  for (; dead_ < deaths.size(); ++dead_) {
    const auto b = static_cast<size_t>(deaths[dead_]);
    if (liveness_->lifetimes[b].last >= position) break;
    Poison(data_[b], blocks_[b].bytes);
  }
  for (; born_ < births.size(); ++born_) {
    const auto b = static_cast<size_t>(births[born_]);
    if (liveness_->lifetimes[b].first > position) break;
    Unpoison(data_[b], blocks_[b].bytes);
  }
}

}  // namespace cavs
