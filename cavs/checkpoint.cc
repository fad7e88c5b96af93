#include "cavs/checkpoint.h"

#include <array>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cavs/base/error.h"
#include "cavs/learned_batching.h"
#include "cavs/model_file.h"

namespace cavs {
namespace {

using nlohmann::json;

constexpr const char* kAgreementKey = "agreement";
constexpr std::string_view kParameter = "parameter/";
constexpr std::string_view kOptimizer = "optimizer/";

// The numbers of a report and of a state, by name.
template <typename Owner, typename T>
struct Field {
  std::string_view name;
  T Owner::*member;
};
constexpr std::array<Field<EpochReport, int64_t>, 9> kCounts = {{{"epoch", &EpochReport::epoch},
                                                                 {"examples", &EpochReport::examples},
                                                                 {"vertices", &EpochReport::vertices},
                                                                 {"predictions", &EpochReport::predictions},
                                                                 {"steps", &EpochReport::steps},
                                                                 {"skipped", &EpochReport::skipped},
                                                                 {"tasks", &EpochReport::tasks},
                                                                 {"launches", &EpochReport::launches},
                                                                 {"peak_bytes", &EpochReport::peak_bytes}}};
constexpr std::array<Field<EpochReport, double>, 8> kNumbers = {{{"train_loss", &EpochReport::train_loss},
                                                                 {"dev_loss", &EpochReport::dev_loss},
                                                                 {"dev_metric", &EpochReport::dev_metric},
                                                                 {"dev_accuracy", &EpochReport::dev_accuracy},
                                                                 {"vertex_accuracy", &EpochReport::vertex_accuracy},
                                                                 {"seconds", &EpochReport::seconds},
                                                                 {"schedule_s", &EpochReport::schedule_s},
                                                                 {"wait_s", &EpochReport::wait_s}}};

// A figure that states of earlier versions lack; it counts as 0.
constexpr std::string_view kLaterFigure = "wait_s";

// Calls visit(name, number) for every number of a state; `State` is TrainingState or const TrainingState.
template <typename State, typename Visit>
void VisitNumbers(State& state, Visit visit) {
  visit("position", state.position);
  visit("step", state.step);
  visit("loss_sum", state.loss_sum);
  const auto report = [&](std::string_view name, auto& numbers) {
    for (const auto& field : kCounts) visit(fmt::format("{}.{}", name, field.name), numbers.*field.member);
    for (const auto& field : kNumbers) visit(fmt::format("{}.{}", name, field.name), numbers.*field.member);
  };
  report("current", state.current);
  report("best", state.best);
}

constexpr ElementType TypeOf(const int64_t&) { return ElementType::kI64; }
constexpr ElementType TypeOf(const double&) { return ElementType::kF64; }

std::vector<int64_t> Dimensions(const Shape& shape) {
  if (shape.rank() == 1) return {shape.columns()};
  return {shape.rows(), shape.columns()};
}

// Refuses the first entry that differs, with both values.
void Compare(const std::string& path, const Agreement& stored, const Agreement& wanted) {
  std::set<std::string> names;
  for (const auto& entry : stored) names.insert(entry.first);
  for (const auto& entry : wanted) names.insert(entry.first);
  for (const std::string& name : names) {
    const auto value = [&](const Agreement& values) {
      const auto found = values.find(name);
      return found == values.end() ? std::string("nothing") : found->second;
    };
    if (value(stored) == value(wanted)) continue;
    ThrowInvalid(
        path, fmt::format("expected {} {} as in the run that is resumed, got {}", name, value(stored), value(wanted)));
  }
}

// Reads one file; nothing outside is changed before all of it has been checked.
class CheckpointReader {
 public:
  explicit CheckpointReader(const std::string& path) : path_(path), file_(ReadModelFile(path, FileKind::kState)) {}

  Agreement ReadAgreement() const {
    const auto entry = file_.metadata.find(kAgreementKey);
    const json values =
        entry == file_.metadata.end() ? json() : json::parse(entry->second, nullptr, /*allow_exceptions=*/false);
    if (!values.is_object()) Fail("its options");
    Agreement result;
    for (const auto& [name, value] : values.items()) {
      if (!value.is_string()) Fail("its options");
      result[name] = value.get<std::string>();
    }
    return result;
  }

  // Null when the run had none.
  const std::string* FindBatching() const {
    const auto entry = file_.metadata.find(std::string(kFsmPolicyKey));
    return entry == file_.metadata.end() ? nullptr : &entry->second;
  }

  TrainingState ReadState() const {
    TrainingState state;
    VisitNumbers(state, [&](std::string_view name, auto& number) {
      using Number = std::remove_reference_t<decltype(number)>;
      if (name.ends_with(kLaterFigure) && file_.Find(name) == nullptr) return;
      const StoredTensor& tensor = Find(std::string(name), TypeOf(number), {1});
      number = tensor.Values<Number>().front();
    });
    if (state.position < 0 || state.step < 0 || state.current.epoch < 1) Fail("sensible counts");
    return state;
  }

  // The values of each parameter of `store`.
  std::vector<std::span<const float>> ReadParameters(const ParameterStore& store) const {
    std::vector<std::span<const float>> values;
    for (int32_t i = 0; i < store.count(); ++i) {
      const ParameterDeclaration& declaration = store.declaration(i);
      const std::string name = fmt::format("{}{}", kParameter, declaration.name);
      values.push_back(Find(name, ElementType::kF32, Dimensions(declaration.shape)).Values<float>());
    }
    return values;
  }

  std::vector<OptimizerTensor> ReadOptimizer() const {
    std::vector<OptimizerTensor> state;
    for (const StoredTensor& tensor : file_.tensors) {
      if (!tensor.name.starts_with(kOptimizer)) continue;
      const bool vector = tensor.shape.size() == 1;
      if (tensor.type != ElementType::kF32 || (!vector && tensor.shape.size() != 2)) Fail("its optimizer");
      const std::span<const float> values = tensor.Values<float>();
      state.push_back({tensor.name.substr(kOptimizer.size()),
                       vector ? Shape::Vector(tensor.shape[0]) : Shape::Matrix(tensor.shape[0], tensor.shape[1]),
                       {values.begin(), values.end()}});
    }
    return state;
  }

 private:
  [[noreturn]] void Fail(std::string_view what) const {
    throw FileError(path_, fmt::format("expected the state of a training run with {}, got one without", what));
  }

  const StoredTensor& Find(const std::string& name, ElementType type, const std::vector<int64_t>& shape) const {
    const StoredTensor* tensor = file_.Find(name);
    if (tensor == nullptr) Fail(fmt::format("\"{}\"", name));
    if (tensor->type != type || tensor->shape != shape) {
      throw FileError(path_, fmt::format("expected \"{}\" of shape [{}], got [{}]", name, fmt::join(shape, ", "),
                                         fmt::join(tensor->shape, ", ")));
    }
    return *tensor;
  }

  const std::string& path_;
  ModelFile file_;
};

}  // namespace

void SaveCheckpoint(const std::string& path, const TrainingState& state, const Agreement& agreement, const Model& model,
                    const Optimizer& optimizer) {
  std::vector<NamedTensor> tensors;
  VisitNumbers(state, [&](std::string_view name, const auto& number) {
    tensors.push_back({std::string(name), {1}, TypeOf(number), &number});
  });
  const ParameterStore& store = model.parameters();
  std::vector<std::vector<float>> values;
  for (int32_t i = 0; i < store.count(); ++i) {
    const ParameterDeclaration& declaration = store.declaration(i);
    values.push_back(store.Get(i));
    tensors.push_back({fmt::format("{}{}", kParameter, declaration.name), Dimensions(declaration.shape),
                       ElementType::kF32, values.back().data()});
  }
  const std::vector<OptimizerTensor> moments = optimizer.SaveState();
  for (const OptimizerTensor& tensor : moments) {
    tensors.push_back({fmt::format("{}{}", kOptimizer, tensor.name), Dimensions(tensor.shape), ElementType::kF32,
                       tensor.values.data()});
  }
  Metadata metadata = {{kAgreementKey, json(agreement).dump()}};
  const auto batching = model.metadata().find(std::string(kFsmPolicyKey));
  if (batching != model.metadata().end()) metadata.insert(*batching);
  WriteModelFile(path, tensors, metadata, FileKind::kState);
}

TrainingState LoadCheckpoint(const std::string& path, const Agreement& agreement, Model& model, Optimizer& optimizer) {
  const CheckpointReader reader(path);
  Compare(path, reader.ReadAgreement(), agreement);
  TrainingState state = reader.ReadState();
  ParameterStore& store = model.parameters();
  const std::vector<std::span<const float>> values = reader.ReadParameters(store);
  optimizer.LoadState(reader.ReadOptimizer());
  for (int32_t i = 0; i < store.count(); ++i) store.Set(i, values[static_cast<size_t>(i)]);
  store.Pack();
  if (const std::string* batching = reader.FindBatching()) model.metadata()[std::string(kFsmPolicyKey)] = *batching;
  return state;
}

}  // namespace cavs
