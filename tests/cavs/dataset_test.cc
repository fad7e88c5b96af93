#include "cavs/dataset.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cavs/base/error.h"
#include "cavs/models/tree_models.h"
#include "graph/readers/listops.h"
#include "tests/cavs/training_testing.h"

namespace cavs {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DataSource, IsReadAndWrittenBack) {
  for (const std::string text : {"sst:train.txt", "tree:a:b", "listops:x.tsv", "listops:generate"}) {
    const DataSource source = ParseDataSource(text);
    EXPECT_EQ(source.ToString(), text);
    EXPECT_EQ(source.generated, text == "listops:generate");
  }
  EXPECT_EQ(ParseDataSource("tree:a:b").path, "a:b");
  EXPECT_FALSE(ParseDataSource("sst:generate").generated) << "only ListOps can be drawn";
}

TEST(DataSource, RefusesWhatIsNone) {
  EXPECT_THAT(MessageOf([] { ParseDataSource("sts:train.txt"); }),
              AllOf(HasSubstr("sst:FILE, tree:FILE, listops:FILE or listops:generate"), HasSubstr("'sts'")));
  EXPECT_THAT(MessageOf([] { ParseDataSource("train.txt"); }), HasSubstr("got 'train.txt'"));
  EXPECT_THAT(MessageOf([] { ParseDataSource("sst:"); }), HasSubstr("without a file"));
}

TEST(Dataset, TurnsTreesIntoGraphs) {
  const ScratchFolder folder;
  const Fixture task = FileTask(folder, "sst", "(3 (2 a) (4 (1 b) (2 a)))\n\n(0 c)\n");
  const Dataset& data = task.train;
  ASSERT_EQ(data.size(), 2);
  const InputGraph& tree = data.graphs[0];
  const std::shared_ptr<const ColumnSet> columns = task.model().columns();
  const int word = columns->Find(kWordColumn), label = columns->Find(kLabelColumn);
  EXPECT_THAT(tree.types(), ElementsAre(kLeafType, kLeafType, kLeafType, kNodeType, kNodeType));
  EXPECT_THAT(tree.children(3), ElementsAre(1, 2));
  EXPECT_THAT(tree.children(4), ElementsAre(0, 3));
  EXPECT_THAT(tree.roots(), ElementsAre(4));
  EXPECT_THAT(tree.ids(word), ElementsAre(1, 2, 1, kNone, kNone)) << "row 0 is <unk>";
  EXPECT_THAT(tree.ids(label), ElementsAre(2, 1, 2, 4, 3));
  EXPECT_EQ(data.graphs[1].vertex_count(), 1);
  EXPECT_EQ(data.Describe(1), folder.File("trees.txt") + ":3");
  EXPECT_EQ(data.Describe(7), "example 7");
  EXPECT_EQ(data.majority.total, 2);
  EXPECT_EQ(data.statistics.blank_lines, 1);
  EXPECT_EQ(data.coverage.unknown_tokens, 0);
}

TEST(Dataset, UnknownWordsOfOtherDataAreCountedAndNeverAdded) {
  const ScratchFolder folder;
  const Fixture task = FileTask(folder, "sst", "(3 (2 the) (4 (1 cat) (2 sat)))");
  WriteText(folder.File("dev.txt"), "(3 (2 the) (4 (1 dog) (2 sat)))\n");
  const Corpus corpus = ReadCorpus(ParseDataSource("sst:" + folder.File("dev.txt")));
  const Dataset dev = MakeDataset(corpus, task.trained->vocabulary, task.model());
  EXPECT_EQ(DescribeCoverage(dev.coverage, "dev"), "1 of 3 dev words unknown (1 of 3 distinct)");
  EXPECT_THAT(dev.graphs[0].ids(task.model().columns()->Find(kWordColumn)).subspan(0, 3), ElementsAre(1, 0, 3));
  EXPECT_EQ(task.trained->vocabulary.size(), 4);
  EXPECT_FALSE(task.trained->vocabulary.unknown_trained());
}

TEST(Dataset, DrawnPartsShareNoExpression) {
  CorpusOptions options;
  options.max_examples = 3000;
  const DataSource source = ParseDataSource("listops:generate");
  const auto texts = [](const Corpus& corpus) {
    std::set<std::string> result;
    for (const Tree& tree : corpus.trees.trees) result.insert(FormatListOps(tree));
    return result;
  };
  const Corpus train = ReadCorpus(source, options), dev = ReadCorpus(source, options, DataPart::kDev),
               test = ReadCorpus(source, options, DataPart::kTest);
  EXPECT_EQ(train.trees.trees.size(), 3000u);
  EXPECT_EQ(dev.trees.trees.size(), 1000u);
  EXPECT_EQ(test.trees.trees.size(), 1000u);
  EXPECT_EQ(test.trees.statistics.trees, 1000);
  EXPECT_GT(test.trees.statistics.brackets, 0);
  const std::set<std::string> trained = texts(train);
  for (const Corpus* corpus : {&dev, &test}) {
    for (const std::string& text : texts(*corpus)) EXPECT_FALSE(trained.contains(text)) << text;
  }
  EXPECT_NE(dev.digest, test.digest);
  EXPECT_EQ(dev.digest, ReadCorpus(source, options, DataPart::kDev).digest);
  options.max_examples = 20;
  options.generated_training = 3000;
  const Corpus some = ReadCorpus(source, options, DataPart::kDev);
  EXPECT_EQ(some.trees.trees.size(), 20u);
  for (const std::string& text : texts(some)) EXPECT_FALSE(trained.contains(text)) << text;
}

TEST(Dataset, GroupsExpressionsByDepth) {
  const Fixture task = ListOpsTask(200);
  ASSERT_EQ(std::ssize(task.dev.groups), task.dev.size());
  EXPECT_EQ(task.dev.group_name, "depth");
  const auto [least, most] = std::minmax_element(task.dev.groups.begin(), task.dev.groups.end());
  EXPECT_EQ(*least, 1);
  EXPECT_GE(*most, 3);
  EXPECT_LE(*most, 4);
}

TEST(Dataset, RefusesClassesOfAnotherModel) {
  const ScratchFolder folder;
  const Fixture task = FileTask(folder, "sst", "(3 (2 a) (2 b))");
  const Corpus listops = ReadCorpus(ParseDataSource("listops:generate"), {.max_examples = 5});
  EXPECT_THAT(MessageOf([&] { MakeDataset(listops, task.trained->vocabulary, task.model()); }),
              AllOf(HasSubstr("expected data of 5 classes"), HasSubstr("got 10")));
}

TEST(Dataset, ReadingRefusesBadLabelsAndFilesWithTheirPlace) {
  const ScratchFolder folder;
  const std::string path = folder.File("f");
  const auto read = [&](const std::string& format, const std::string& text) {
    WriteText(path, text);
    return MessageOf([&] { ReadCorpus(ParseDataSource(format + ":" + path)); });
  };
  EXPECT_THAT(read("sst", "(1 a)\n(5 b)\n"), HasSubstr(path + ":2:2: expected a class label 0 to 4, got '5'"));
  EXPECT_THAT(read("sst", "(x a)\n"), HasSubstr(path + ":1:2: "));
  EXPECT_THAT(read("tree", "(1 a)\n(X (7 b)\n(2 c))\n"), HasSubstr(path + ":2: expected class labels 0 to 4, got '7'"));
  EXPECT_EQ(read("tree", "(7 a)\n(X (NN b) (2X c))\n"), "") << "without classes, any label is a tag";
  EXPECT_THAT(read("sst", ""), HasSubstr("no examples in " + path));
  EXPECT_THAT(read("listops", "\n\n"), HasSubstr("no examples in " + path));
  EXPECT_THAT(MessageOf([&] { ReadCorpus(ParseDataSource("sst:" + folder.File(""))); }), HasSubstr("folder"));
  EXPECT_THAT(MessageOf([&] { ReadCorpus(ParseDataSource("sst:" + folder.File("none"))); }), HasSubstr("none"));
}

}  // namespace
}  // namespace cavs
