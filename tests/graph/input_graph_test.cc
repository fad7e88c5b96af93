#include "graph/input_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace cavs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

// The message for a graph of type-0 vertices with these children, in id order.
std::string RefusalOf(const std::vector<std::vector<int32_t>>& children) {
  InputGraphBuilder builder(MakeColumns({}));
  for (const auto& of_vertex : children) builder.AddVertex(0, of_vertex);
  return Refusal([&] { builder.Build(); });
}

TEST(InputGraph, KeepsWhatItIsGiven) {
  const auto columns = MakeColumns({{.name = "word", .id_limit = 10},
                                    {.name = "feature", .kind = ColumnKind::kRows, .width = 2},
                                    {.name = "label"},
                                    {.name = "target", .kind = ColumnKind::kRows, .width = 1}});
  InputGraphBuilder builder(columns);
  EXPECT_EQ(builder.AddVertex(3, {1, kNone, 2, 1}), 0);
  EXPECT_EQ(builder.AddVertex(0), 1);
  EXPECT_EQ(builder.AddVertex(1, {1}), 2);
  EXPECT_EQ(builder.AddVertex(0), 3);
  builder.SetId(0, 1, 9);
  builder.SetId(2, 0, 4);
  builder.SetRow(1, 2, std::vector{1.0f, 2.0f});
  builder.SetRow(1, 0, std::vector{3.0f, 4.0f});
  builder.SetRow(1, 2, std::vector{5.0f, 6.0f});
  builder.SetRow(3, 3, std::vector{7.0f});
  const InputGraph graph = builder.Build();

  EXPECT_EQ(graph.vertex_count(), 4);
  EXPECT_EQ(graph.edge_count(), 5);
  EXPECT_THAT(graph.types(), ElementsAre(3, 0, 1, 0));
  EXPECT_EQ(graph.type(2), 1);
  EXPECT_THAT(graph.children(0), ElementsAre(1, kNone, 2, 1));
  EXPECT_THAT(graph.children(1), IsEmpty());
  EXPECT_THAT(graph.children(2), ElementsAre(1));
  EXPECT_THAT(graph.child_begin(), ElementsAre(0, 4, 4, 5, 5));
  EXPECT_THAT(graph.children(), ElementsAre(1, kNone, 2, 1, 1));
  EXPECT_THAT(graph.roots(), ElementsAre(0, 3));
  EXPECT_FALSE(graph.children_first());

  EXPECT_EQ(&graph.columns(), columns.get());
  EXPECT_THAT(graph.ids(0), ElementsAre(kNone, 9, kNone, kNone));
  EXPECT_THAT(graph.ids(1), ElementsAre(1, kNone, 0, kNone));
  EXPECT_THAT(graph.ids(2), ElementsAre(4, kNone, kNone, kNone));
  EXPECT_THAT(graph.row(1, 0), ElementsAre(3.0f, 4.0f));
  EXPECT_THAT(graph.row(1, 1), IsEmpty());
  EXPECT_THAT(graph.row(1, 2), ElementsAre(5.0f, 6.0f));
  EXPECT_THAT(graph.row(3, 3), ElementsAre(7.0f));
  EXPECT_THAT(graph.row(0, 1), IsEmpty());
  EXPECT_THAT(graph.row_values(1), ElementsAre(5.0f, 6.0f, 3.0f, 4.0f));
  EXPECT_THAT(graph.row_values(2), IsEmpty());
}

TEST(InputGraph, ColumnsWithoutAnyRow) {
  InputGraphBuilder builder(MakeColumns({{.name = "feature", .kind = ColumnKind::kRows, .width = 2}}));
  builder.AddVertex(0);
  const InputGraph graph = builder.Build();
  EXPECT_THAT(graph.row(0, 0), IsEmpty());
  EXPECT_THAT(graph.row_values(0), IsEmpty());
  EXPECT_THAT(graph.ids(0), ElementsAre(kNone));
}

TEST(InputGraph, BuilderStartsAfresh) {
  InputGraphBuilder builder(MakeColumns({{.name = "word"}}));
  builder.AddVertex(0);
  builder.AddVertex(1, {0});
  builder.SetId(0, 0, 5);
  EXPECT_TRUE(builder.Build().children_first());
  EXPECT_EQ(builder.vertex_count(), 0);
  EXPECT_EQ(builder.AddVertex(2), 0);
  const InputGraph second = builder.Build();
  EXPECT_EQ(second.vertex_count(), 1);
  EXPECT_THAT(second.ids(0), ElementsAre(kNone));

  builder.AddVertex(0, {0});
  EXPECT_THROW(builder.Build(), std::invalid_argument);
  EXPECT_EQ(builder.vertex_count(), 0) << "a refused graph must not leak into the next";
}

TEST(InputGraph, RefusesAnEmptyGraph) {
  EXPECT_EQ(RefusalOf({}), "[graph] expected at least one vertex, got an empty graph");
}

TEST(InputGraph, NamesTheCycleInOrder) {
  EXPECT_EQ(RefusalOf({{}, {2}, {1}}), "[graph] expected an acyclic graph, got cycle 1 -> 2 -> 1");
  EXPECT_EQ(RefusalOf({{3}, {0}, {1, kNone}, {4, 2}, {}}),
            "[graph] expected an acyclic graph, got cycle 0 -> 3 -> 2 -> 1 -> 0");
  // The way into the cycle is not part of it.
  EXPECT_EQ(RefusalOf({{1}, {4}, {3}, {4}, {2}}), "[graph] expected an acyclic graph, got cycle 2 -> 3 -> 4 -> 2");
}

constexpr int32_t kLength = 200000;

TEST(InputGraph, ShortensALongCycle) {
  std::vector<std::vector<int32_t>> children(kLength);
  for (int32_t v = 0; v < kLength; ++v) children[static_cast<size_t>(v)] = {(v + 1) % kLength};
  const std::string message = RefusalOf(children);
  EXPECT_THAT(message, HasSubstr("got cycle 0 -> 1 -> 2 -> "));
  EXPECT_THAT(message, HasSubstr("19 -> (199980 more) -> 0"));
}

TEST(InputGraph, AcceptsSharedChildrenInAnyOrder) { EXPECT_EQ(RefusalOf({{1, 2}, {3, 3}, {3, 1}, {}}), "accepted"); }

TEST(InputGraph, RefusesASelfLoop) {
  EXPECT_EQ(RefusalOf({{}, {0, 1}}), "[graph] expected no self loop, got vertex 1 as child 1 of itself");
}

TEST(InputGraph, RefusesDanglingChildren) {
  EXPECT_EQ(RefusalOf({{}, {0, 2}}), "[graph] expected child 1 of vertex 1 in [0, 2) or -1 for none, got 2");
  EXPECT_EQ(RefusalOf({{-2}}), "[graph] expected child 0 of vertex 0 in [0, 1) or -1 for none, got -2");
}

TEST(InputGraph, RefusesTypesOutOfRange) {
  InputGraphBuilder builder(MakeColumns({}));
  builder.AddVertex(0);
  builder.AddVertex(-1);
  EXPECT_EQ(Refusal([&] { builder.Build(); }), "[graph] expected the type of vertex 1 in [0, 65536), got -1");
  builder.AddVertex(kMaxVertexTypes);
  EXPECT_EQ(Refusal([&] { builder.Build(); }), "[graph] expected the type of vertex 0 in [0, 65536), got 65536");
}

TEST(InputGraph, RefusesIdsOutOfRange) {
  InputGraphBuilder builder(MakeColumns({{.name = "word", .id_limit = 10}, {.name = "label"}}));
  const auto refusal = [&](int column, int32_t value) {
    builder.AddVertex(0);
    builder.SetId(column, 0, value);
    return Refusal([&] { builder.Build(); });
  };
  EXPECT_EQ(refusal(0, 10), "[graph] expected the id of vertex 0 in column 'word' in [0, 10) or -1 for none, got 10");
  EXPECT_EQ(refusal(0, -2), "[graph] expected the id of vertex 0 in column 'word' in [0, 10) or -1 for none, got -2");
  EXPECT_EQ(refusal(0, 9), "accepted");
  EXPECT_EQ(refusal(0, kNone), "accepted");
  EXPECT_EQ(refusal(1, 2147483647), "accepted");
  EXPECT_THAT(refusal(1, -7), HasSubstr("column 'label'"));
}

TEST(InputGraph, RefusesBrokenParts) {
  const auto columns = MakeColumns({{.name = "word"}, {.name = "feature", .kind = ColumnKind::kRows, .width = 2}});
  const GraphParts good = {.types = {0, 0},
                           .child_begin = {0, 0, 1},
                           .children = {0},
                           .columns = {{.ids = {1, 2}, .rows = {}}, {.ids = {0, kNone}, .rows = {1, 2}}}};
  const auto refusal = [&](const std::function<void(GraphParts&)>& spoil) {
    GraphParts parts = good;
    spoil(parts);
    return Refusal([&] { InputGraph(columns, parts); });
  };
  EXPECT_EQ(refusal([](GraphParts&) {}), "accepted");
  EXPECT_EQ(refusal([](GraphParts& p) { p.columns[0].ids.pop_back(); }),
            "[graph] expected 2 values in column 'word', one per vertex, got 1");
  EXPECT_EQ(refusal([](GraphParts& p) { p.columns.pop_back(); }), "[graph] expected values for 2 columns, got 1");
  EXPECT_EQ(refusal([](GraphParts& p) { p.columns[0].rows = {1}; }),
            "[graph] expected no rows in id column 'word', got 1 floats");
  EXPECT_EQ(refusal([](GraphParts& p) {
              p.columns[1].rows = {1, 2, 3};
            }),
            "[graph] expected rows of 2 floats in column 'feature', got 3 floats");
  EXPECT_EQ(refusal([](GraphParts& p) { p.columns[1].ids[1] = 1; }),
            "[graph] expected the row of vertex 1 in column 'feature' in [0, 1) or -1 for none, got 1");
  EXPECT_EQ(refusal([](GraphParts& p) { p.child_begin.pop_back(); }),
            "[graph] expected 3 child offsets for 2 vertices, got 2");
  EXPECT_EQ(refusal([](GraphParts& p) {
              p.child_begin = {0, 0, 2};
            }),
            "[graph] expected child offsets that ascend from 0 to 1, got 0 to 2");
  EXPECT_EQ(refusal([](GraphParts& p) {
              p.child_begin = {0, 2, 1};
            }),
            "[graph] expected child offsets that ascend from 0 to 1, got 0 to 1, not ascending");
  EXPECT_THAT(Refusal([&] { InputGraph(nullptr, good); }), HasSubstr("got null"));
}

TEST(InputGraphBuilder, RefusesWrongColumns) {
  InputGraphBuilder builder(
      MakeColumns({{.name = "word"}, {.name = "feature", .kind = ColumnKind::kRows, .width = 2}}));
  builder.AddVertex(0);
  const std::vector<float> row = {1, 2, 3};
  EXPECT_EQ(Refusal([&] { builder.SetId(2, 0, 1); }), "[graph] expected a column in [0, 2), got 2");
  EXPECT_EQ(Refusal([&] { builder.SetId(kNone, 0, 1); }), "[graph] expected a column in [0, 2), got -1");
  EXPECT_EQ(Refusal([&] { builder.SetId(1, 0, 1); }), "[graph] expected a column of ids, got 'feature' of rows");
  EXPECT_EQ(Refusal([&] { builder.SetRow(0, 0, row); }), "[graph] expected a column of rows, got 'word' of ids");
  EXPECT_EQ(Refusal([&] { builder.SetId(0, 1, 1); }), "[graph] expected a vertex in [0, 1) for column 'word', got 1");
  EXPECT_EQ(Refusal([&] { builder.SetRow(1, 0, row); }),
            "[graph] expected a row of 2 floats for vertex 0 in column 'feature', got 3");
}

TEST(ColumnSet, FindsByNameAndRefusesNonsense) {
  const auto columns = MakeColumns({{.name = "a"}, {.name = "b"}});
  EXPECT_EQ(columns->Find("b"), 1);
  EXPECT_EQ(columns->Find("c"), kNone);
  EXPECT_EQ(Refusal([] {
              MakeColumns({{.name = "a"}, {.name = "a"}});
            }),
            "[columns] expected distinct names, got 'a' twice");
  EXPECT_EQ(Refusal([] { MakeColumns({{.name = ""}}); }), "[columns] expected a name for column 0, got none");
  EXPECT_EQ(Refusal([] { MakeColumns({{.name = "a", .width = 2}}); }),
            "[columns] expected width 1 for column 'a', got 2");
  EXPECT_EQ(Refusal([] { MakeColumns({{.name = "a", .kind = ColumnKind::kRows, .width = 0}}); }),
            "[columns] expected width 1 or more for column 'a', got 0");
  EXPECT_EQ(Refusal([] { MakeColumns({{.name = "a", .id_limit = -1}}); }),
            "[columns] expected an id limit of 0 or more for column 'a', got -1");
}

}  // namespace
}  // namespace cavs
