#include "cavs/file_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "tests/cavs/scratch_folder.h"

namespace cavs {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(AtomicFile, ReplacesTheOldFileOnlyWhenCommitted) {
  const ScratchFolder folder;
  const std::string path = folder.File("model");
  WriteText(path, "old");
  {
    AtomicFile file(path);
    file.Write(Bytes("new "));
    file.Write(Bytes("text"));
    EXPECT_EQ(ReadText(path), "old");
    EXPECT_EQ(folder.Names().size(), 2u);
    file.Commit();
  }
  EXPECT_EQ(ReadText(path), "new text");
  EXPECT_THAT(folder.Names(), ElementsAre("model"));
}

TEST(AtomicFile, LeavesNothingBehindWithoutCommit) {
  const ScratchFolder folder;
  const std::string path = folder.File("model");
  WriteText(path, "old");
  AtomicFile(path).Write(Bytes("half"));
  EXPECT_EQ(ReadText(path), "old");
  EXPECT_THAT(folder.Names(), ElementsAre("model"));
}

TEST(AtomicFile, WritersOfOnePathDoNotMix) {
  const ScratchFolder folder;
  const std::string path = folder.File("model");
  AtomicFile first(path);
  AtomicFile second(path);
  first.Write(Bytes("first"));
  second.Write(Bytes("second"));
  second.Commit();
  EXPECT_EQ(ReadText(path), "second");
  first.Commit();
  EXPECT_EQ(ReadText(path), "first");
}

TEST(AtomicFile, RefusesPlacesWhereNoFileCanBe) {
  const ScratchFolder folder;
  EXPECT_THAT([&] { AtomicFile(folder.File("missing/model")); },
              ThrowsMessage<FileError>(AllOf(HasSubstr("missing/model] expected"), HasSubstr("No such file"))));
  EXPECT_THAT([&] { AtomicFile(folder.File("")); }, ThrowsMessage<FileError>(HasSubstr("got a folder")));
}

// A limit on the size of files stands for a full disk.
TEST(AtomicFile, ReportsThatThereIsNoRoom) {
  const ScratchFolder folder;
  const std::string path = folder.File("model");
  WriteText(path, "old");
  const auto write_beyond_the_limit = [&] {
    const rlimit limit = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_IGN);
    try {
      AtomicFile(path).Write(Bytes(std::string(2000, 'x')));
    } catch (const FileError& error) {
      std::fputs(error.what(), stderr);
      std::_Exit(ReadText(path) == "old" && folder.Names().size() == 1 ? 3 : 4);
    }
    std::_Exit(5);
  };
  EXPECT_EXIT(write_beyond_the_limit(), ::testing::ExitedWithCode(3), "expected room for the whole file, got: ");
}

TEST(WriteFile, ReplacesTheWholeFile) {
  const ScratchFolder folder;
  WriteText(folder.File("file"), "a longer text than the new one");
  WriteFile(folder.File("file"), "new");
  EXPECT_EQ(ReadText(folder.File("file")), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.File(".")), {}), 1) << "nothing is left beside it";
}

TEST(BeginsWith, TellsFilesThatMayGiveWay) {
  const ScratchFolder folder;
  const auto begins = [&](const std::string& text) {
    WriteText(folder.File("file"), text);
    return BeginsWith(folder.File("file"), "<svg");
  };
  EXPECT_TRUE(begins("<svg xmlns="));
  EXPECT_TRUE(begins("<sv")) << "cut off";
  EXPECT_TRUE(begins(""));
  EXPECT_FALSE(begins("<html"));
  EXPECT_FALSE(begins(" <svg"));
  EXPECT_FALSE(BeginsWith(folder.File("nothing"), "<svg"));
  EXPECT_FALSE(BeginsWith(folder.File("."), "<svg"));
}

TEST(EnsureWritableFolder, CreatesFoldersAndLeavesNoFile) {
  const ScratchFolder folder;
  const std::string path = folder.File("a/b");
  EnsureWritableFolder(path);
  EXPECT_TRUE(std::filesystem::is_directory(path));
  EXPECT_TRUE(std::filesystem::is_empty(path));
  EnsureWritableFolder(path + "/");
  EXPECT_TRUE(std::filesystem::is_empty(path));
}

TEST(EnsureWritableFolder, RefusesWhatIsNoFolder) {
  const ScratchFolder folder;
  const std::string file = folder.File("file");
  WriteText(file, "text");
  EXPECT_THAT([&] { EnsureWritableFolder(file); }, ThrowsMessage<FileError>(HasSubstr("got a file")));
  EXPECT_THAT([&] { EnsureWritableFolder(file + "/below"); },
              ThrowsMessage<FileError>(HasSubstr("file/below] expected a folder where files can be written, got: ")));
  EXPECT_THAT([&] { EnsureWritableFolder(""); }, ThrowsMessage<FileError>(HasSubstr("got an empty name")));
  EXPECT_EQ(ReadText(file), "text");
}

TEST(EnsureWritableFolder, RefusesAFolderThatTakesNoFiles) {
  // Holds for every user, root included.
  if (!std::filesystem::is_directory("/proc/self")) GTEST_SKIP() << "no /proc here";
  EXPECT_THAT([] { EnsureWritableFolder("/proc/self"); }, ThrowsMessage<FileError>(HasSubstr("[/proc/self] expected")));
}

}  // namespace
}  // namespace cavs
