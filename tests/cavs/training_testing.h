// Helpers of the tests of data sets and training: small models, drawn data, and all parameters as one vector.
#pragma once

#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cavs/dataset.h"
#include "cavs/trained_model.h"
#include "cavs/trainer.h"
#include "tests/cavs/scratch_folder.h"

namespace cavs {

// The message of what `run` throws; empty if it throws nothing.
template <typename Run>
std::string MessageOf(Run run) {
  try {
    run();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

inline std::vector<float> AllValues(const Model& model) {
  std::vector<float> values;
  for (int32_t p = 0; p < model.parameters().count(); ++p) {
    const std::vector<float> part = model.parameters().Get(p);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

struct Sizes {
  std::string model = "tree_lstm";
  int64_t hidden = 12;
  int64_t embed = 7;
  double dropout = 0;
};

// A model for the training data, and both data sets in its terms.
struct Fixture {
  Fixture(const Corpus& train_corpus, const Corpus* dev_corpus, const Sizes& sizes) {
    ModelConfig config = ConfigFor(train_corpus);
    config.model = sizes.model;
    config.hidden = sizes.hidden;
    config.embed = sizes.embed;
    config.dropout = sizes.dropout;
    trained = std::make_unique<TrainedModel>(TrainedModel::Create(config, MakeVocabulary(train_corpus)));
    train = MakeDataset(train_corpus, trained->vocabulary, model());
    if (dev_corpus != nullptr) dev = MakeDataset(*dev_corpus, trained->vocabulary, model());
  }

  Model& model() const { return *trained->model; }

  std::unique_ptr<TrainedModel> trained;
  Dataset train;
  Dataset dev;
};

inline Fixture ListOpsTask(int64_t examples, const Sizes& sizes = {}) {
  CorpusOptions options;
  options.max_examples = examples;
  const DataSource source = ParseDataSource("listops:generate");
  const Corpus train = ReadCorpus(source, options);
  const Corpus dev = ReadCorpus(source, options, DataPart::kDev);
  return Fixture(train, &dev, sizes);
}

// A task over the text of one file of the format "sst" or "tree".
inline Fixture FileTask(const ScratchFolder& folder, const std::string& format, const std::string& text,
                        const Sizes& sizes = {}, const CorpusOptions& options = {}) {
  const std::string path = folder.File("trees.txt");
  WriteText(path, text);
  return Fixture(ReadCorpus(ParseDataSource(format + ":" + path), options), nullptr, sizes);
}

inline std::vector<Example> Examples(const Dataset& data, int64_t begin, int64_t count) {
  std::vector<Example> examples;
  for (int64_t i = begin; i < begin + count; ++i) examples.push_back({&data.graphs[static_cast<size_t>(i)], i});
  return examples;
}

}  // namespace cavs
