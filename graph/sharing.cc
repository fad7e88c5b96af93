#include "graph/sharing.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "cavs/base/error.h"

namespace cavs {
namespace {

constexpr std::array<std::pair<SharingPolicy, std::string_view>, 3> kPolicies = {{
    {SharingPolicy::kOff, "none"},
    {SharingPolicy::kInputs, "inputs"},
    {SharingPolicy::kSubgraphs, "subgraphs"},
}};

}  // namespace

std::string_view SharingPolicyName(SharingPolicy policy) { return kPolicies[static_cast<size_t>(policy)].second; }

SharingPolicy ParseSharingPolicy(std::string_view name) {
  for (const auto& [policy, known] : kPolicies) {
    if (known == name) return policy;
  }
  ThrowInvalid("sharing", fmt::format("expected one of none, inputs, subgraphs, got '{}'", name));
}

Sharer::Sharer(SharingPolicy policy, std::vector<TypeInputs> types) : policy_(policy), types_(std::move(types)) {
  first_column_.push_back(0);
  for (const TypeInputs& type : types_) first_column_.push_back(first_column_.back() + type.id_columns.size());
}

void Sharer::Merge(const GraphBatch& batch, GraphBatch* shared, std::vector<int32_t>* merged) {
  MapColumns(batch);
  merged_.assign(static_cast<size_t>(batch.vertex_count()), kNone);
  origin_.clear();
  keys_.Clear(batch.vertex_count());
  holders_.clear();
  for (const int32_t v : topological_.Compute(batch)) {
    if (Shares(batch, v)) {
      MakeKey(batch, v);
      merged_[static_cast<size_t>(v)] = FindOrAdd(v);
    } else {
      merged_[static_cast<size_t>(v)] = Add(v);
    }
  }
  shared->Merge(batch, origin_, merged_);
  merged->swap(merged_);
}

bool Sharer::Shares(const GraphBatch& batch, int32_t v) const {
  const auto type = static_cast<size_t>(batch.type(v));
  if (type >= types_.size() || !types_[type].shareable) return false;
  return policy_ == SharingPolicy::kSubgraphs || (policy_ == SharingPolicy::kInputs && batch.children(v).empty());
}

void Sharer::MapColumns(const GraphBatch& batch) {
  const size_t width = first_column_.back();
  columns_.resize(width * static_cast<size_t>(batch.graph_count()));
  const ColumnSet* mapped = nullptr;
  for (int64_t g = 0; g < batch.graph_count(); ++g) {
    int32_t* const row = columns_.data() + static_cast<size_t>(g) * width;
    const ColumnSet& set = batch.graph(g).columns();
    if (&set == mapped) {
      std::copy_n(row - width, width, row);
      continue;
    }
    mapped = &set;
    size_t next = 0;
    for (const TypeInputs& type : types_) {
      for (const std::string& name : type.id_columns) row[next++] = set.Find(name);
    }
  }
}

void Sharer::MakeKey(const GraphBatch& batch, int32_t v) {
  const auto type = static_cast<size_t>(batch.type(v));
  const auto g = static_cast<size_t>(batch.graph_of(v));
  const auto local = static_cast<size_t>(batch.local_id(v));
  key_.clear();
  key_.push_back(batch.type(v));
  key_.push_back(types_[type].recurrent ? batch.shard_of(v) : 0);
  for (size_t c = first_column_[type]; c < first_column_[type + 1]; ++c) {
    const int32_t column = columns_[g * first_column_.back() + c];
    key_.push_back(column == kNone ? kNone : batch.graph(static_cast<int64_t>(g)).ids(column)[local]);
  }
  for (const int32_t child : batch.children(v)) {
    key_.push_back(child == kNone ? kNone : merged_[static_cast<size_t>(child)]);
  }
}

int32_t Sharer::FindOrAdd(int32_t v) {
  const auto key = static_cast<size_t>(keys_.Number(key_));
  if (key == holders_.size()) {
    holders_.push_back({Add(v), 1});
  } else if (holders_[key].copies == kMostCopies) {
    holders_[key] = {Add(v), 1};
  } else {
    ++holders_[key].copies;
  }
  return holders_[key].merged;
}

int32_t Sharer::Add(int32_t v) {
  origin_.push_back(v);
  return static_cast<int32_t>(origin_.size()) - 1;
}

}  // namespace cavs
