#include "cavs/command/chrome_trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cavs {
namespace {

TEST(ChromeTrace, HoldsSpansAsNestedCompleteEvents) {
  TraceLog log(3);
  // In the order in which they end.
  log.Add({"matmul \"U\" \xff", TraceLevel::kStep, 1001500, 1003001, 64, 8192, 512});
  log.Add({"node", TraceLevel::kTask, 1001500, 1004000, 64});
  log.Add({"forward", TraceLevel::kPart, 1000000, 1004000});
  log.Add({"too much", TraceLevel::kPart, 1004000, 1005000});
  const std::string text = ToChromeTrace(log);
  EXPECT_TRUE(text.starts_with(kTraceBegin));
  const nlohmann::json trace = nlohmann::json::parse(text);
  EXPECT_EQ(trace.at("otherData").at("dropped_spans"), 1);
  std::vector<nlohmann::json> events;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") events.push_back(event);
  }
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].at("name"), "forward");
  EXPECT_EQ(events[0].at("ts"), 0);
  EXPECT_EQ(events[0].at("dur"), 4);
  EXPECT_EQ(events[1].at("cat"), "task") << "parents come first, also when both begin together";
  EXPECT_EQ(events[1].at("args"), nlohmann::json::parse(R"({"rows": 64})"));
  EXPECT_EQ(events[2].at("name"), "matmul \"U\" \xef\xbf\xbd");
  EXPECT_EQ(events[2].at("ts"), 1.5);
  EXPECT_EQ(events[2].at("dur"), 1.501);
  EXPECT_EQ(events[2].at("args"), nlohmann::json::parse(R"({"rows": 64, "flops": 8192, "bytes": 512})"));
  EXPECT_EQ(events[2].at("tid"), events[0].at("tid"));
}

TEST(ChromeTrace, MayBeEmpty) {
  const nlohmann::json trace = nlohmann::json::parse(ToChromeTrace(TraceLog(0)));
  for (const nlohmann::json& event : trace.at("traceEvents")) EXPECT_EQ(event.at("ph"), "M");
}

}  // namespace
}  // namespace cavs
