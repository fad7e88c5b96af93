#include "graph/sharing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "cavs/base/error.h"
#include "cavs/base/random.h"

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
  const size_t vertices = static_cast<size_t>(batch.vertex_count());
  merged_.assign(vertices, kNone);
  origin_.clear();
  copies_.clear();
  keys_.clear();
  key_begin_.assign(1, 0);
  table_.assign(std::bit_ceil(2 * vertices + 1), kNone);
  for (const int32_t v : topological_.Compute(batch)) {
    key_.clear();
    if (Shares(batch, v)) {
      MakeKey(batch, v);
      merged_[static_cast<size_t>(v)] = FindOrAdd(v);
    } else {
      merged_[static_cast<size_t>(v)] = static_cast<int32_t>(origin_.size());
      origin_.push_back(v);
      copies_.push_back(1);
      key_begin_.push_back(std::ssize(keys_));
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
  uint64_t hash = key_.size();
  for (const int32_t part : key_) hash = Mix(hash ^ static_cast<uint32_t>(part));
  const size_t mask = table_.size() - 1;
  size_t place = static_cast<size_t>(hash) & mask;
  for (; table_[place] != kNone; place = (place + 1) & mask) {
    const auto other = static_cast<size_t>(table_[place]);
    const auto begin = keys_.begin() + key_begin_[other], end = keys_.begin() + key_begin_[other + 1];
    if (!std::equal(begin, end, key_.begin(), key_.end())) continue;
    if (copies_[other] == kMostCopies) break;  // a new vertex takes its place in the table
    ++copies_[other];
    return table_[place];
  }
  const auto id = static_cast<int32_t>(origin_.size());
  table_[place] = id;
  origin_.push_back(v);
  copies_.push_back(1);
  keys_.insert(keys_.end(), key_.begin(), key_.end());
  key_begin_.push_back(std::ssize(keys_));
  return id;
}

}  // namespace cavs
