#include "graph/draw.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace cavs {

namespace {

constexpr int64_t kMaxIndentedDepth = 40;

class Drawing {
 public:
  Drawing(const InputGraph& graph, const DrawOptions& options)
      : graph_(graph), options_(options), drawn_(static_cast<size_t>(graph.vertex_count())) {
    PushReversed(graph.roots(), 0);
  }

  std::string Finish() && {
    while (!stack_.empty()) {
      if (options_.max_lines > 0 && lines_ >= options_.max_lines) {
        fmt::format_to(std::back_inserter(text_), "... {} more vertices\n", graph_.vertex_count() - drawn_count_);
        break;
      }
      const Line line = stack_.back();
      stack_.pop_back();
      DrawLine(line);
    }
    return std::move(text_);
  }

 private:
  struct Line {
    int32_t vertex;
    int64_t depth;
  };

  void PushReversed(std::span<const int32_t> vertices, int64_t depth) {
    for (auto v = vertices.rbegin(); v != vertices.rend(); ++v) stack_.push_back({*v, depth});
  }

  void DrawLine(const Line& line) {
    ++lines_;
    text_.append(static_cast<size_t>(2 * std::min(line.depth, kMaxIndentedDepth)), ' ');
    if (line.depth > kMaxIndentedDepth) fmt::format_to(std::back_inserter(text_), "(depth {}) ", line.depth);
    const int32_t v = line.vertex;
    if (v == kNone) {
      text_ += '-';
    } else if (drawn_[static_cast<size_t>(v)]) {
      fmt::format_to(std::back_inserter(text_), "^{}", v);
    } else {
      drawn_[static_cast<size_t>(v)] = true;
      ++drawn_count_;
      DrawVertex(v);
      PushReversed(graph_.children(v), line.depth + 1);
    }
    text_ += '\n';
  }

  void DrawVertex(int32_t v) {
    const auto type = static_cast<size_t>(graph_.type(v));
    if (type < options_.type_names.size()) {
      fmt::format_to(std::back_inserter(text_), "#{} {}", v, options_.type_names[type]);
    } else {
      fmt::format_to(std::back_inserter(text_), "#{} type {}", v, type);
    }
    for (int column = 0; column < graph_.columns().size(); ++column) {
      const int32_t id = graph_.ids(column)[static_cast<size_t>(v)];
      if (id == kNone) continue;
      const Column& described = graph_.columns()[column];
      if (described.kind == ColumnKind::kRows) {
        fmt::format_to(std::back_inserter(text_), " {}[{}]", described.name, described.width);
      } else {
        fmt::format_to(std::back_inserter(text_), " {}={}", described.name,
                       options_.id_text ? options_.id_text(column, id) : fmt::to_string(id));
      }
    }
  }

  const InputGraph& graph_;
  const DrawOptions& options_;
  std::vector<bool> drawn_;
  std::vector<Line> stack_;
  std::string text_;
  int64_t lines_ = 0;
  int64_t drawn_count_ = 0;
};

}  // namespace

std::string Draw(const InputGraph& graph, const DrawOptions& options) { return Drawing(graph, options).Finish(); }

}  // namespace cavs
