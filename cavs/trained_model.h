// TrainedModel: a ready-made model with all that a later use needs: sizes, vocabulary, names of the labels, and how the
// training data were read. Saved, it is one self-contained file in the safetensors format.
//
// Thread-safety: as Model.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cavs/dataset.h"
#include "cavs/model.h"
#include "graph/readers/vocabulary.h"

namespace cavs {

struct ModelConfig {
  std::string model = "tree_lstm";  // a name of ReadyModels()
  int64_t hidden = 150;
  int64_t embed = 300;
  int64_t layers = 1;
  double dropout = 0;
  // Of the training data.
  CorpusFormat format = CorpusFormat::kSst;
  std::vector<std::string> label_names;  // [classes]; filled in by Create where they are the words of the vocabulary
  Binarize binarize = Binarize::kLeft;
  Unary unary = Unary::kCollapse;
  uint64_t seed = 1;         // of the initial values, and of drawn data
  int64_t examples = 0;      // in the training data
  uint64_t data_digest = 0;  // Corpus::digest

  int32_t classes() const { return static_cast<int32_t>(label_names.size()); }
};

// A configuration for training on `corpus`: what the data say is filled in, the default model of their task with it;
// the rest is as by default.
ModelConfig ConfigFor(const Corpus& corpus);

// How data must be read that a model of this configuration is used on. Drawn data then never contain what the model was
// trained on.
CorpusOptions ReadingOptions(const ModelConfig& config);

struct TrainedModel {
  ModelConfig config;
  Vocabulary vocabulary;
  std::unique_ptr<Model> model;  // its metadata are config and vocabulary

  // A model with initial values. Throws std::invalid_argument for a model name or sizes that do not exist, and for a
  // model of another task than the data's.
  static TrainedModel Create(const ModelConfig& config, Vocabulary vocabulary, const PassOptions& passes = {},
                             Precision precision = Precision::kFp32);
  // A saved one. Throws FileError or std::invalid_argument, one sentence, when the file is damaged, foreign, or lacks
  // any of what Save wrote.
  static TrainedModel Load(const std::string& path, const PassOptions& passes = {},
                           Precision precision = Precision::kFp32);

  // The same declarations and metadata with initial values, compiled in another way.
  std::unique_ptr<Model> Recompiled(const PassOptions& passes, Precision precision) const;

  // Writes the file, whole or not at all. Throws FileError.
  void Save(const std::string& path) const { model->Save(path); }
};

}  // namespace cavs
