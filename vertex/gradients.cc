#include "vertex/gradients.h"

#include <algorithm>

namespace cavs {

Gradients::Gradients(std::shared_ptr<const Signature> signature)
    : signature_(std::move(signature)),
      touched_(signature_->parameters.size(), 0),
      dense_(signature_->parameters.size()),
      sparse_(signature_->parameters.size()) {
  for (size_t i = 0; i < dense_.size(); ++i) {
    const ParameterDeclaration& parameter = signature_->parameters[i];
    if (!parameter.is_lookup && !parameter.frozen) dense_[i].resize(static_cast<size_t>(parameter.shape.width()));
  }
}

void Gradients::Clear() {
  std::fill(touched_.begin(), touched_.end(), 0);
  for (SparseRows& rows : sparse_) {
    rows.ids.clear();
    rows.rows.clear();
  }
}

void Gradients::AddSparse(int32_t parameter, const SparseRows& rows) {
  SparseRows& own = sparse(parameter);
  const size_t width = static_cast<size_t>(signature_->parameters[static_cast<size_t>(parameter)].shape.columns());
  set_touched(parameter);
  if (own.ids.empty()) {
    own = rows;
    return;
  }
  SparseRows merged;
  merged.ids.reserve(own.ids.size() + rows.ids.size());
  merged.rows.reserve(own.rows.size() + rows.rows.size());
  const auto append = [&](const SparseRows& from, size_t i) {
    const auto row = from.rows.begin() + static_cast<int64_t>(i * width);
    merged.rows.insert(merged.rows.end(), row, row + static_cast<int64_t>(width));
  };
  size_t a = 0, b = 0;
  while (a < own.ids.size() || b < rows.ids.size()) {
    const bool left = b == rows.ids.size() || (a < own.ids.size() && own.ids[a] <= rows.ids[b]);
    const bool both = left && b < rows.ids.size() && own.ids[a] == rows.ids[b];
    merged.ids.push_back(left ? own.ids[a] : rows.ids[b]);
    append(left ? own : rows, left ? a : b);
    if (both) {
      float* sum = merged.rows.data() + merged.rows.size() - width;
      for (size_t j = 0; j < width; ++j) sum[j] += rows.rows[b * width + j];
    }
    a += left ? 1 : 0;
    b += !left || both ? 1 : 0;
  }
  own = std::move(merged);
}

}  // namespace cavs
