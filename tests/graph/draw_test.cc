#include "graph/draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace cavs {
namespace {

TEST(Draw, TreeWithSharedAndMissingChildren) {
  const auto columns =
      MakeColumns({{.name = "word"}, {.name = "feature", .kind = ColumnKind::kRows, .width = 3}, {.name = "label"}});
  InputGraphBuilder builder(columns);
  const auto leaf = builder.AddVertex(0);
  const auto inner = builder.AddVertex(1, {leaf, kNone});
  const auto root = builder.AddVertex(1, {inner, leaf});
  builder.AddVertex(7);
  builder.SetId(0, leaf, 17);
  builder.SetRow(1, inner, std::vector{1.0f, 2.0f, 3.0f});
  builder.SetId(2, root, 4);
  const InputGraph graph = builder.Build();

  const std::vector<std::string> names = {"leaf", "node"};
  const auto text = [](int column, int32_t id) { return column == 0 ? "'cat'" : std::to_string(id); };
  EXPECT_EQ(Draw(graph, {.type_names = names, .id_text = text}),
            "#2 node label=4\n"
            "  #1 node feature[3]\n"
            "    #0 leaf word='cat'\n"
            "    -\n"
            "  ^0\n"
            "#3 type 7\n");
  EXPECT_EQ(Draw(graph, {.max_lines = 2}),
            "#2 type 1 label=4\n"
            "  #1 type 1 feature[3]\n"
            "... 2 more vertices\n");
}

constexpr int64_t kDepth = 200000;

TEST(Draw, StaysLinearInDepth) {
  InputGraphBuilder builder(MakeColumns({}));
  int32_t below = builder.AddVertex(0);
  for (int64_t i = 1; i < kDepth; ++i) below = builder.AddVertex(0, {below});
  const InputGraph graph = builder.Build();
  const std::string text = Draw(graph, {.max_lines = 0});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), kDepth);
  EXPECT_LT(std::ssize(text), 150 * kDepth);
  EXPECT_THAT(text, ::testing::EndsWith("(depth 199999) #0 type 0\n"));
}

}  // namespace
}  // namespace cavs
