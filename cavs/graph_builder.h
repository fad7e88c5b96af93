// GraphBuilder: builds InputGraphs of a Model vertex by vertex, with columns by name. What samples and research code
// use. Not thread-safe; the Model must outlive it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "cavs/model.h"
#include "graph/input_graph.h"

namespace cavs {

struct ColumnId {
  std::string_view column;
  int32_t id;
};

class GraphBuilder {
 public:
  explicit GraphBuilder(const Model& model) : builder_(model.columns()), columns_(model.columns()) {}

  // Adds a vertex; returns its number in this graph. `children` are numbers returned before, or kNone; `ids` fill id
  // columns, labels included. Throws std::invalid_argument for a column that the Model does not have.
  int32_t Add(const VertexType& type, std::initializer_list<ColumnId> ids, std::span<const int32_t> children = {});
  int32_t Add(const VertexType& type, std::initializer_list<ColumnId> ids, std::initializer_list<int32_t> children) {
    return Add(type, ids, std::span<const int32_t>(children.begin(), children.size()));
  }
  // Fills a column of floats of a vertex; the width is the one that F pulls.
  void SetRow(int32_t vertex, std::string_view column, std::span<const float> row);

  // The graph of all vertices added since the last Build. Throws std::invalid_argument as InputGraph does.
  InputGraph Build() { return builder_.Build(); }

 private:
  int Find(std::string_view column) const;

  InputGraphBuilder builder_;
  std::shared_ptr<const ColumnSet> columns_;
};

}  // namespace cavs
