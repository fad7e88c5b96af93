#include "vertex/gradients.h"

#include <algorithm>

#include "cavs/base/error.h"

namespace cavs {

Gradients::Gradients(std::shared_ptr<const Signature> signature)
    : layout_(std::move(signature)),
      touched_(static_cast<size_t>(layout_.total()), 0),
      dense_(static_cast<size_t>(layout_.total())),
      sparse_(static_cast<size_t>(layout_.total())) {
  for (int32_t i = 0; i < layout_.total(); ++i) {
    const ParameterDeclaration& parameter = layout_.declaration(i);
    if (parameter.is_lookup || parameter.frozen || !layout_.owns(i)) continue;
    dense_[static_cast<size_t>(i)].resize(static_cast<size_t>(parameter.shape.width()));
  }
}

std::vector<float>& Gradients::Own(int32_t parameter) {
  CAVS_CHECK(layout_.owns(parameter), "\"{}\" lies in another parameter", layout_.declaration(parameter).name);
  return dense_[static_cast<size_t>(parameter)];
}

void Gradients::Clear() {
  std::fill(touched_.begin(), touched_.end(), 0);
  for (std::vector<SparseRows>& sums : sparse_) sums.clear();
}

namespace {

// The rows of both, in order of ids; rows that both have are summed.
SparseRows Sum(const SparseRows& left, const SparseRows& right, size_t width) {
  SparseRows sum;
  sum.ids.reserve(left.ids.size() + right.ids.size());
  sum.rows.reserve(left.rows.size() + right.rows.size());
  const auto append = [&](const SparseRows& from, size_t i) {
    const auto row = from.rows.begin() + static_cast<int64_t>(i * width);
    sum.ids.push_back(from.ids[i]);
    sum.rows.insert(sum.rows.end(), row, row + static_cast<int64_t>(width));
  };
  size_t a = 0, b = 0;
  while (a < left.ids.size() || b < right.ids.size()) {
    const bool has_left = a < left.ids.size(), has_right = b < right.ids.size();
    if (!has_right || (has_left && left.ids[a] < right.ids[b])) {
      append(left, a++);
    } else if (!has_left || right.ids[b] < left.ids[a]) {
      append(right, b++);
    } else {
      append(left, a++);
      float* const row = sum.rows.data() + sum.rows.size() - width;
      for (size_t j = 0; j < width; ++j) row[j] += right.rows[b * width + j];
      ++b;
    }
  }
  return sum;
}

void MergeLastTwo(std::vector<SparseRows>* sums, size_t width) {
  SparseRows last = std::move(sums->back());
  sums->pop_back();
  sums->back() = Sum(sums->back(), last, width);
}

}  // namespace

void Gradients::AddSparse(int32_t parameter, const SparseRows& rows) {
  set_touched(parameter);
  std::vector<SparseRows>& sums = sparse_[static_cast<size_t>(parameter)];
  const auto width = static_cast<size_t>(layout_.declaration(parameter).shape.columns());
  sums.push_back(rows);
  while (sums.size() > 1 && sums[sums.size() - 2].ids.size() < 2 * sums.back().ids.size()) MergeLastTwo(&sums, width);
}

const SparseRows& Gradients::sparse(int32_t parameter) const {
  std::vector<SparseRows>& sums = sparse_[static_cast<size_t>(parameter)];
  const auto width = static_cast<size_t>(layout_.declaration(parameter).shape.columns());
  while (sums.size() > 1) MergeLastTwo(&sums, width);
  return sums.empty() ? none_ : sums.front();
}

std::vector<float> Gradients::Get(int32_t parameter) const {
  const ParameterDeclaration& declaration = layout_.declaration(parameter);
  if (touched(parameter) && !declaration.is_lookup) {
    return layout_.Read(parameter, dense(layout_.owner(parameter)));
  }
  std::vector<float> full(static_cast<size_t>(declaration.shape.width()), 0.0f);
  const SparseRows& rows = sparse(parameter);
  const int64_t width = declaration.shape.columns();
  for (int64_t i = 0; i < std::ssize(rows.ids); ++i) {
    std::copy_n(rows.rows.begin() + i * width, width, full.begin() + rows.ids[static_cast<size_t>(i)] * width);
  }
  return full;
}

}  // namespace cavs
