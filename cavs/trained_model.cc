#include "cavs/trained_model.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cavs/base/error.h"
#include "cavs/model_file.h"
#include "cavs/models/ready_models.h"
#include "cavs/text.h"
#include "cavs/version.h"

namespace cavs {
namespace {

using nlohmann::json;

// By value of the enum.
constexpr std::array<std::string_view, 3> kBinarizeNames = {"none", "left", "right"};
constexpr std::array<std::string_view, 2> kUnaryNames = {"collapse", "keep"};
constexpr std::array<std::string_view, 2> kBoolNames = {"false", "true"};

Metadata ToMetadata(const ModelConfig& config, const Vocabulary& vocabulary) {
  const bool own_labels = !Describe(TaskOf(config.format)).words_are_classes;
  return {{"cavs_version", std::string(Version())},
          {"model", config.model},
          {"hidden", std::to_string(config.hidden)},
          {"embed", std::to_string(config.embed)},
          {"layers", std::to_string(config.layers)},
          {"dropout", fmt::format("{}", config.dropout)},
          {"data_format", std::string(CorpusFormatName(config.format))},
          {"labels", json(own_labels ? config.label_names : std::vector<std::string>()).dump()},
          {"binarize", std::string(kBinarizeNames[static_cast<size_t>(config.binarize)])},
          {"unary", std::string(kUnaryNames[static_cast<size_t>(config.unary)])},
          {"seed", std::to_string(config.seed)},
          {"examples", std::to_string(config.examples)},
          {"data_digest", fmt::format("{:016x}", config.data_digest)},
          {"vocabulary", json(vocabulary.words()).dump()},
          {"unknown_word_trained", std::string(kBoolNames[vocabulary.unknown_trained() ? 1 : 0])}};
}

// The entries of a saved model, each refused in one sentence where it is missing or no such value.
class MetadataReader {
 public:
  MetadataReader(const std::string& path, const Metadata& entries) : path_(path), entries_(entries) {}

  const std::string& Text(const std::string& key) const {
    const auto found = entries_.find(key);
    if (found == entries_.end()) {
      throw FileError(path_, fmt::format("expected a model with \"{}\" in its metadata, got none", key));
    }
    return found->second;
  }

  int64_t Int(const std::string& key, int64_t least) const {
    const std::optional<int64_t> value = ParseInt(Text(key));
    if (!value || *value < least) Fail(key, fmt::format("a whole number from {} up", least));
    return *value;
  }

  uint64_t Unsigned(const std::string& key, int base) const {
    const std::string& text = Text(key);
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size()) Fail(key, "a whole number from 0 up");
    return value;
  }

  double Rate(const std::string& key) const {
    const std::optional<double> value = ParseDouble(Text(key));
    if (!value || !(*value >= 0 && *value < 1)) Fail(key, "a number in [0, 1)");
    return *value;
  }

  std::vector<std::string> List(const std::string& key, bool may_be_empty = false) const {
    const json list = json::parse(Text(key), nullptr, /*allow_exceptions=*/false);
    const bool texts =
        list.is_array() && std::all_of(list.begin(), list.end(), [](const json& item) { return item.is_string(); });
    if (!texts || (list.empty() && !may_be_empty)) Fail(key, "a JSON list of texts");
    return list.get<std::vector<std::string>>();
  }

  // The number of the choice.
  size_t Choice(const std::string& key, std::span<const std::string_view> choices) const {
    const auto found = std::find(choices.begin(), choices.end(), Text(key));
    if (found == choices.end()) Fail(key, fmt::format("one of {}", fmt::join(choices, ", ")));
    return static_cast<size_t>(found - choices.begin());
  }

  [[noreturn]] void Fail(const std::string& key, std::string_view expected) const {
    throw FileError(path_, fmt::format("expected {} as \"{}\" in the metadata, got '{}'", expected, key,
                                       std::string_view(Text(key)).substr(0, 80)));
  }

 private:
  const std::string& path_;
  const Metadata& entries_;
};

ModelConfig ToConfig(const MetadataReader& reader) {
  ModelConfig config;
  config.model = reader.Text("model");
  config.hidden = reader.Int("hidden", 1);
  config.embed = reader.Int("embed", 1);
  config.layers = reader.Int("layers", 1);
  config.dropout = reader.Rate("dropout");
  const std::optional<CorpusFormat> format = FindCorpusFormat(reader.Text("data_format"));
  if (!format) reader.Fail("data_format", "a data format of this version");
  config.format = *format;
  const bool words_are_classes = Describe(TaskOf(config.format)).words_are_classes;
  config.label_names = reader.List("labels", /*may_be_empty=*/words_are_classes);
  config.binarize = static_cast<Binarize>(reader.Choice("binarize", kBinarizeNames));
  config.unary = static_cast<Unary>(reader.Choice("unary", kUnaryNames));
  config.seed = reader.Unsigned("seed", 10);
  config.examples = reader.Int("examples", 0);
  config.data_digest = reader.Unsigned("data_digest", 16);
  return config;
}

// The model of a configuration. Throws when it has another task than the data, or no layers to stack.
const ReadyModel& FindFor(const ModelConfig& config) {
  const ReadyModel& model = FindReadyModel(config.model);
  const LearningTask task = TaskOf(config.format);
  if (model.task != task) {
    ThrowInvalid("model",
                 fmt::format("expected one of {} for {} data, got \"{}\"", fmt::join(ModelNamesFor(task), ", "),
                             CorpusFormatName(config.format), model.name));
  }
  if (config.layers != 1 && !model.has_layers) {
    ThrowInvalid("model", fmt::format("expected one layer for \"{}\", got {}", model.name, config.layers));
  }
  return model;
}

}  // namespace

ModelConfig ConfigFor(const Corpus& corpus) {
  ModelConfig config;
  config.model = Describe(TaskOf(corpus.format)).default_model;
  config.format = corpus.format;
  config.label_names = corpus.label_names;
  config.examples = std::ssize(corpus.trees.trees);
  config.data_digest = corpus.digest;
  return config;
}

CorpusOptions ReadingOptions(const ModelConfig& config) {
  CorpusOptions options;
  options.classes = config.classes();
  options.binarize = config.binarize;
  options.unary = config.unary;
  options.seed = config.seed;
  options.generated_training = config.examples;
  return options;
}

TrainedModel TrainedModel::Create(const ModelConfig& config, Vocabulary vocabulary, const PassOptions& passes,
                                  Precision precision) {
  TrainedModel result{config, std::move(vocabulary), nullptr};
  const bool words_are_classes = Describe(FindFor(config).task).words_are_classes;
  if (words_are_classes) result.config.label_names = result.vocabulary.words();
  result.model = result.Recompiled(passes, precision);
  result.model->metadata() = ToMetadata(result.config, result.vocabulary);
  return result;
}

std::unique_ptr<Model> TrainedModel::Recompiled(const PassOptions& passes, Precision precision) const {
  auto result = std::make_unique<Model>(ModelOptions{config.seed, passes, precision});
  ModelSizes sizes;
  sizes.vocabulary = vocabulary.size();
  sizes.classes = config.classes();
  sizes.embed = config.embed;
  sizes.hidden = config.hidden;
  sizes.layers = config.layers;
  sizes.dropout = config.dropout;
  FindFor(config).declare(*result, sizes);
  if (model != nullptr) result->metadata() = model->metadata();
  return result;
}

TrainedModel TrainedModel::Load(const std::string& path, const PassOptions& passes, Precision precision) {
  const Metadata metadata = ReadModelFile(path).metadata;
  const MetadataReader reader(path, metadata);
  const ModelConfig config = ToConfig(reader);
  const bool unknown_trained = reader.Choice("unknown_word_trained", kBoolNames) == 1;
  TrainedModel result =
      Create(config, Vocabulary::FromWords(reader.List("vocabulary"), unknown_trained), passes, precision);
  result.model->Load(path);
  return result;
}

}  // namespace cavs
