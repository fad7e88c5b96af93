#include "cavs/command/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "cavs/file_output.h"
#include "tests/cavs/scratch_folder.h"

namespace cavs {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(MetricsWriter, WritesEachLineAtOnce) {
  const ScratchFolder folder;
  const std::string path = folder.File("m.jsonl");
  MetricsWriter metrics(path, /*append=*/false);
  metrics.Write("epoch", {{"epoch", 1}, {"train_loss", 0.5}});
  EXPECT_EQ(ReadText(path), "{\"event\":\"epoch\",\"epoch\":1,\"train_loss\":0.5}\n");
  metrics.Write("final", nlohmann::ordered_json::object());
  EXPECT_THAT(ReadText(path), HasSubstr("}\n{\"event\":\"final\"}\n"));
}

TEST(MetricsWriter, WritesNullForWhatIsNotFinite) {
  const ScratchFolder folder;
  const std::string path = folder.File("m.jsonl");
  MetricsWriter(path, false).Write("epoch", {{"a", std::nan("")}, {"b", std::numeric_limits<double>::infinity()}});
  EXPECT_EQ(ReadText(path), "{\"event\":\"epoch\",\"a\":null,\"b\":null}\n");
}

TEST(MetricsWriter, StaysJsonWhateverTheBytes) {
  const ScratchFolder folder;
  const std::string path = folder.File("m.jsonl");
  MetricsWriter(path, false).Write("config", {{"save", "a\xFF\nb"}});
  EXPECT_TRUE(nlohmann::json::accept(ReadText(path)));
  EXPECT_EQ(ReadText(path).find('\n'), ReadText(path).size() - 1);
}

TEST(MetricsWriter, AppendsOrStartsAnew) {
  const ScratchFolder folder;
  const std::string path = folder.File("m.jsonl");
  WriteText(path, "{}\n");
  MetricsWriter(path, true).Write("a", nlohmann::ordered_json::object());
  EXPECT_EQ(ReadText(path), "{}\n{\"event\":\"a\"}\n");
  WriteText(path, "{}\n{\"half");
  MetricsWriter(path, true).Write("b", nlohmann::ordered_json::object());
  EXPECT_EQ(ReadText(path), "{}\n{\"half\n{\"event\":\"b\"}\n");
  MetricsWriter(path, false).Write("c", nlohmann::ordered_json::object());
  EXPECT_EQ(ReadText(path), "{\"event\":\"c\"}\n");
}

TEST(MetricsWriter, KnowsWhichFilesMayHoldMetrics) {
  const ScratchFolder folder;
  const std::string path = folder.File("m.jsonl");
  EXPECT_TRUE(MayHoldMetrics(path)) << "a new file";
  const auto holds = [&](const std::string& text) {
    WriteText(path, text);
    return MayHoldMetrics(path);
  };
  EXPECT_TRUE(holds(""));
  EXPECT_TRUE(holds("{\"event\":\"config\"}\n"));
  EXPECT_TRUE(holds("{\"ev")) << "of a run that was killed";
  EXPECT_FALSE(holds("(3 (2 a) (4 b))\n"));
  EXPECT_FALSE(holds("\n{\"event\":\"config\"}\n"));
  EXPECT_FALSE(holds("{\"a\":1}\n"));
  MetricsWriter(path, false).Write("config", {{"seed", 1}});
  EXPECT_TRUE(MayHoldMetrics(path)) << "what a writer writes";
}

TEST(MetricsWriter, RefusesBadPathsAtOnce) {
  const ScratchFolder folder;
  const std::string expected = "expected a file for metrics that can be written, got: ";
  EXPECT_THAT([&] { MetricsWriter(folder.File("missing/m"), false); }, ThrowsMessage<FileError>(HasSubstr(expected)));
  EXPECT_THAT([&] { MetricsWriter(folder.File(""), true); }, ThrowsMessage<FileError>(HasSubstr(expected)));
}

TEST(MetricsWriter, ReportsAFullDisk) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  MetricsWriter metrics("/dev/full", false);
  EXPECT_THAT([&] { metrics.Write("a", nlohmann::ordered_json::object()); },
              ThrowsMessage<FileError>(HasSubstr("[/dev/full] expected")));
}

TEST(MetricsWriter, WritesNothingWithoutAPath) {
  MetricsWriter metrics("", false);
  EXPECT_FALSE(metrics.enabled());
  metrics.Write("a", nlohmann::ordered_json::object());
}

}  // namespace
}  // namespace cavs
