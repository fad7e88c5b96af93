#include "cavs/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/cavs/scratch_folder.h"

namespace cavs {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

class ModelFileTest : public ::testing::Test {
 protected:
  ModelFileTest() {
    tensors_ = {{"W", {2, 3}, ElementType::kF32, floats_.data()},
                {"step", {}, ElementType::kI64, &step_},
                {"empty", {0, 7}, ElementType::kF32, nullptr},
                {"ids", {3}, ElementType::kI32, ids_.data()},
                {"\xC3\xA9 \"b\"", {2}, ElementType::kF64, doubles_.data()}};
    metadata_ = {{"hidden", "150"}, {"vocabulary", "[\"the\", \"caf\xC3\xA9\"]"}};
  }

  void Write(FileKind kind = FileKind::kModel) { WriteModelFile(path_, tensors_, metadata_, kind); }

  // The parts of a written file.
  std::string Header() const {
    const std::string text = ReadText(path_);
    uint64_t length = 0;
    std::memcpy(&length, text.data(), sizeof(length));
    return text.substr(8, length);
  }
  std::string Data() const { return ReadText(path_).substr(8 + Header().size()); }
  void Rewrite(const std::string& header, const std::string& data) {
    const uint64_t length = header.size();
    std::string text(sizeof(length), '\0');
    std::memcpy(text.data(), &length, sizeof(length));
    WriteText(path_, text + header + data);
  }

  // One sentence that names the file and holds `text`.
  auto Refuses(const std::string& text) {
    return ThrowsMessage<FileError>(
        AllOf(StartsWith("[" + path_ + "] expected a cavs model file, got "), HasSubstr(text), Not(HasSubstr("\n"))));
  }

  const std::vector<float> floats_ = {
      1.5f, -0.0f, std::numeric_limits<float>::infinity(), 1e-45f, std::numeric_limits<float>::quiet_NaN(), -7};
  const int64_t step_ = int64_t{1} << 60;
  const std::vector<int32_t> ids_ = {-1, 0, 2147483647};
  const std::vector<double> doubles_ = {0.1, -1e300};
  std::vector<NamedTensor> tensors_;
  Metadata metadata_;
  const ScratchFolder folder_;
  const std::string path_ = folder_.File("m.safetensors");
};

TEST_F(ModelFileTest, GivesBackWhatWasWrittenBitForBit) {
  Write();
  const ModelFile file = ReadModelFile(path_);
  EXPECT_EQ(file.metadata, metadata_);
  ASSERT_EQ(file.tensors.size(), tensors_.size());
  for (const NamedTensor& tensor : tensors_) {
    const StoredTensor* stored = file.Find(tensor.name);
    ASSERT_NE(stored, nullptr) << tensor.name;
    EXPECT_EQ(stored->shape, tensor.shape);
    EXPECT_EQ(stored->type, tensor.type);
    if (!stored->bytes.empty()) {
      EXPECT_EQ(std::memcmp(stored->bytes.data(), tensor.data, stored->bytes.size()), 0);
    }
  }
  EXPECT_EQ(file.tensors[0].name, "W");
  EXPECT_EQ(file.Find("W")->Values<float>()[5], -7);
  EXPECT_THAT(file.Find("step")->Values<int64_t>(), ElementsAre(step_));
  EXPECT_THAT(file.Find("ids")->Values<int32_t>(), ElementsAre(-1, 0, 2147483647));
  EXPECT_THAT(file.Find("empty")->Values<float>(), IsEmpty());
  EXPECT_THROW(file.Find("ids")->Values<float>(), std::logic_error);
  EXPECT_EQ(file.Find("w"), nullptr);
  EXPECT_THAT(folder_.Names(), ElementsAre("m.safetensors"));
}

TEST_F(ModelFileTest, IsSafetensors) {
  Write();
  const std::string text = ReadText(path_);
  const nlohmann::json header = nlohmann::json::parse(Header());
  EXPECT_EQ((8 + Header().size()) % 64, 0u);
  EXPECT_EQ(header.at("W"), nlohmann::json::parse(R"({"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]})"));
  EXPECT_EQ(header.at("step").at("shape"), nlohmann::json::array());
  EXPECT_EQ(header.at("__metadata__").at("hidden"), "150");
  EXPECT_EQ(header.at("__metadata__").at("format"), "cavs-model");
  EXPECT_THAT(header.at("__metadata__").at("digest").get<std::string>(), StartsWith("xxh64:"));
  EXPECT_EQ(Data().size(), 24u + 8 + 0 + 12 + 16);
}

TEST_F(ModelFileTest, HoldsNothingAtAllToo) {
  WriteModelFile(path_, {}, {});
  const ModelFile file = ReadModelFile(path_);
  EXPECT_THAT(file.tensors, IsEmpty());
  EXPECT_THAT(file.metadata, IsEmpty());
}

TEST_F(ModelFileTest, IsTheSameFileForTheSameContents) {
  Write();
  const std::string first = ReadText(path_);
  Write();
  EXPECT_EQ(ReadText(path_), first);
}

TEST_F(ModelFileTest, ReadsARewriteWithOtherSpelling) {
  Write();
  Rewrite(nlohmann::json::parse(Header()).dump(2, ' ', /*ensure_ascii=*/true), Data());
  EXPECT_EQ(ReadModelFile(path_).metadata, metadata_);
}

TEST_F(ModelFileTest, RefusesEveryFlippedBit) {
  Write();
  const std::string whole = ReadText(path_);
  const size_t padding_begin = whole.find_last_of('}', 8 + Header().size()) + 1;
  const size_t padding_end = 8 + Header().size();
  std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](size_t at, char byte) { file.seekp(static_cast<std::streamoff>(at)).put(byte).flush(); };
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    const size_t at = bit / 8;
    const char flipped = static_cast<char>(whole[at] ^ (1 << bit % 8));
    // Blanks after the JSON carry nothing.
    const bool is_padding = at >= padding_begin && at < padding_end;
    if (is_padding && std::string_view(" \t\r\n").find(flipped) != std::string_view::npos) continue;
    put(at, flipped);
    ASSERT_THROW(ReadModelFile(path_), FileError) << "bit " << bit % 8 << " of byte " << at;
    put(at, whole[at]);
  }
  EXPECT_EQ(ReadText(path_), whole);
}

TEST_F(ModelFileTest, RefusesEveryCut) {
  Write();
  const std::string whole = ReadText(path_);
  for (size_t length = whole.size(); length-- > 0;) {
    std::filesystem::resize_file(path_, length);
    ASSERT_THROW(ReadModelFile(path_), FileError) << length;
  }
  WriteText(path_, whole.substr(0, whole.size() - 1));
  EXPECT_THAT([&] { ReadModelFile(path_); }, Refuses("a damaged one: it is cut short, with"));
  WriteText(path_, whole.substr(0, 100));
  EXPECT_THAT([&] { ReadModelFile(path_); }, Refuses("cut short within its header"));
  WriteText(path_, whole + "x");
  EXPECT_THAT([&] { ReadModelFile(path_); }, Refuses("1 bytes follow its end"));
}

TEST_F(ModelFileTest, SaysWhatIsWrongWithTheData) {
  Write();
  std::string data = Data();
  data[5] = static_cast<char>(data[5] ^ 1);
  Rewrite(Header(), data);
  EXPECT_THAT([&] { ReadModelFile(path_); }, Refuses("a damaged one: its contents do not match its digest"));
}

TEST_F(ModelFileTest, RefusesForeignFiles) {
  EXPECT_THAT([&] { ReadModelFile(path_); }, Refuses("nothing: there is no such file"));
  WriteText(path_, "");
  EXPECT_THAT([&] { ReadModelFile(path_); }, Refuses("a file of 0 bytes"));
  WriteText(path_, "(3 (2 It) (4 (2 's) (3 good)))\n");
  EXPECT_THAT([&] { ReadModelFile(path_); }, Refuses("a file of another format"));
  WriteText(path_, std::string(8, '\xFF') + "{}");
  EXPECT_THAT([&] { ReadModelFile(path_); }, Refuses("a file of another format"));
  Rewrite(R"({"W":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "abcd");
  EXPECT_THAT([&] { ReadModelFile(path_); }, Refuses("a safetensors file of another program"));
  Rewrite(R"({"__metadata__":{"format":"pt"}})", "");
  EXPECT_THAT([&] { ReadModelFile(path_); }, Refuses("a safetensors file of another program"));
  EXPECT_THAT([&] { ReadModelFile(folder_.File("")); }, ThrowsMessage<FileError>(HasSubstr("got a folder")));
}

TEST_F(ModelFileTest, RefusesANewerVersion) {
  Rewrite(R"({"__metadata__":{"format":"cavs-model","format_version":"7"}})", "");
  EXPECT_THAT([&] { ReadModelFile(path_); }, Refuses("one of a newer version (format 7, this program reads up to 1)"));
}

TEST_F(ModelFileTest, TellsModelsFromTrainingState) {
  Write(FileKind::kState);
  EXPECT_THAT([&] { ReadModelFile(path_); }, Refuses("a cavs training-state file"));
  EXPECT_EQ(ReadModelFile(path_, FileKind::kState).metadata, metadata_);
}

TEST_F(ModelFileTest, RefusesMalformedHeaders) {
  const std::string metadata = R"("__metadata__":{"format":"cavs-model","format_version":"1","digest":"x"})";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{" + metadata + "]", "its header is not JSON"},
      {R"({"__metadata__":{"format":"cavs-model","format_version":1}})", "its metadata are not text"},
      {R"({"__metadata__":{"format":"cavs-model"}})", "it has no version"},
      {"{" + metadata + R"(,"W":3})", "the entry of tensor 'W' is malformed"},
      {"{" + metadata + R"(,"W":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", "tensor 'W' is malformed"},
      {"{" + metadata + R"(,"W":{"dtype":"F8","shape":[4],"data_offsets":[0,4]}})", "tensor 'W' is malformed"},
      {"{" + metadata + R"(,"W":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "tensor 'W' is malformed"},
      {"{" + metadata + R"(,"W":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "tensor 'W' is malformed"},
      {"{" + metadata + R"(,"W":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", "malformed"},
      {"{" + metadata + R"(,"W":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "tensor 'W' are misplaced"},
  };
  for (const auto& [header, text] : cases) {
    Rewrite(header, "abcd");
    EXPECT_THAT([&] { ReadModelFile(path_); }, Refuses(text)) << header;
  }
}

TEST_F(ModelFileTest, RefusesToWriteWhatItCouldNotRead) {
  const auto writes = [&](const std::vector<NamedTensor>& tensors, const Metadata& metadata) {
    return [=, this] { WriteModelFile(path_, tensors, metadata); };
  };
  const float value = 1;
  const NamedTensor good = {"W", {1}, ElementType::kF32, &value};
  EXPECT_THAT(writes({good, good}, {}), ThrowsMessage<std::invalid_argument>(HasSubstr("got 'W' twice")));
  EXPECT_THAT(writes({{"__metadata__", {1}, ElementType::kF32, &value}}, {}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("got __metadata__")));
  EXPECT_THAT(writes({{"W", {-1}, ElementType::kF32, &value}}, {}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("got [-1] for tensor 'W'")));
  EXPECT_THAT(writes({{"\xFF", {1}, ElementType::kF32, &value}}, {}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("UTF-8")));
  EXPECT_THAT(writes({good}, {{"key", "\xC3"}}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("value of 'key' in UTF-8")));
  EXPECT_THAT(writes({good}, {{"digest", "x"}}), ThrowsMessage<std::invalid_argument>(HasSubstr("got 'digest'")));
  EXPECT_THAT(writes({good}, {{"format", "x"}}), ThrowsMessage<std::invalid_argument>(HasSubstr("got 'format'")));
  EXPECT_THAT(folder_.Names(), IsEmpty());
}

TEST_F(ModelFileTest, KeepsTheOldFileWhenTheNewOneCannotBeWritten) {
  Write();
  const std::string old = ReadText(path_);
  metadata_["digest"] = "reserved";
  EXPECT_THROW(Write(), std::invalid_argument);
  EXPECT_EQ(ReadText(path_), old);
  EXPECT_THAT([&] { WriteModelFile(path_ + "/below", {}, {}); },
              ThrowsMessage<FileError>(HasSubstr("/below] expected")));
  EXPECT_THAT(folder_.Names(), ElementsAre("m.safetensors"));
}

}  // namespace
}  // namespace cavs
