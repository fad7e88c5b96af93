#include "cavs/graph_builder.h"

#include <fmt/format.h>

#include "cavs/base/error.h"

namespace cavs {

int32_t GraphBuilder::Add(const VertexType& type, std::initializer_list<ColumnId> ids,
                          std::span<const int32_t> children) {
  for (const ColumnId& entry : ids) Find(entry.column);  // before anything is added
  const int32_t vertex = builder_.AddVertex(type.index(), children);
  for (const ColumnId& entry : ids) builder_.SetId(Find(entry.column), vertex, entry.id);
  return vertex;
}

void GraphBuilder::SetRow(int32_t vertex, std::string_view column, std::span<const float> row) {
  builder_.SetRow(Find(column), vertex, row);
}

int GraphBuilder::Find(std::string_view column) const {
  const int found = columns_->Find(column);
  if (found == kNone)
    ThrowInvalid("graph", fmt::format("expected a column that the model pulls or labels, got \"{}\"", column));
  return found;
}

}  // namespace cavs
