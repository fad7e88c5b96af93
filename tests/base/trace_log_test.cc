#include "cavs/base/trace_log.h"

#include <gtest/gtest.h>

namespace cavs {
namespace {

TEST(TraceLog, KeepsSpansUpToItsCapacity) {
  TraceLog log(2);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(log.full(), i >= 2);
    log.Add({"step", TraceLevel::kStep, i, i + 1, 10 + i});
  }
  ASSERT_EQ(log.spans().size(), 2u);
  EXPECT_EQ(log.spans()[1].rows, 11);
  EXPECT_EQ(log.dropped(), 3);
}

TEST(TraceLog, KeepsNames) {
  TraceLog log(1000);
  for (int i = 0; i < 1000; ++i) log.Add({log.Intern("name " + std::to_string(i)), TraceLevel::kTask, i, i});
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(log.spans()[static_cast<size_t>(i)].name, "name " + std::to_string(i));
}

TEST(TraceLog, ScopesNest) {
  TraceLog log(10);
  {
    TraceScope outer(&log, TraceLevel::kPart, "outer");
    outer.set_rows(7);
    const TraceScope inner(&log, TraceLevel::kPhase, "inner");
    const TraceScope nothing(nullptr, TraceLevel::kPhase, "nothing");
  }
  ASSERT_EQ(log.spans().size(), 2u);
  const TraceSpan& inner = log.spans()[0];
  const TraceSpan& outer = log.spans()[1];
  EXPECT_EQ(inner.name, "inner");
  EXPECT_EQ(outer.rows, 7);
  EXPECT_LE(outer.begin, inner.begin);
  EXPECT_LE(inner.begin, inner.end);
  EXPECT_LE(inner.end, outer.end);
}

}  // namespace
}  // namespace cavs
