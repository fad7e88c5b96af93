#include "cavs/model.h"

#include <algorithm>

#include <fmt/format.h>

#include "backprop/differentiate.h"
#include "cavs/base/error.h"
#include "cavs/model_file.h"
#include "vertex/input_sharing.h"

namespace cavs {

// F and dF, with or without shared inputs. Inference needs no dF and keeps less memory, so it has steps of its own. dF
// is derived on first use: a model that is only served may hold operators without a gradient.
struct Model::Variant {
  Program simplified, gradient;
  std::shared_ptr<const Executable> training, inference;
};

struct Model::Compiled {
  Program written;
  Variant plain, sharing;
  bool shares_inputs = false;  // whether the two differ
  std::shared_ptr<const ColumnSet> columns;
  std::unique_ptr<ParameterStore> parameters;
};

Model::Model(const ModelOptions& options) : options_(options) {}
Model::~Model() = default;

ProgramBuilder& Model::Declare() {
  CAVS_CHECK(compiled_ == nullptr, "declarations come before the first use of a Model");
  return builder_;
}

Expression Model::Parameter(std::string_view name, const Shape& shape, Initializer initializer) {
  return Declare().Parameter(name, shape, std::move(initializer));
}
Expression Model::Lookup(std::string_view name, int64_t entries, int64_t width, Initializer initializer) {
  return Declare().Lookup(name, entries, width, std::move(initializer));
}
Expression Model::Constant(std::vector<float> row) { return Declare().Constant(std::move(row)); }
void Model::Freeze(const Expression& parameter) { Declare().Freeze(parameter); }
State Model::State(std::string_view name, const Shape& shape) { return Declare().DeclareState(name, shape); }
VertexType Model::VertexType(std::string_view name, int32_t children) { return Declare().DeclareType(name, children); }
Expression Model::Pushed(std::string_view name) { return Declare().Pushed(name); }
Label Model::Label(std::string_view name, int64_t classes) { return Declare().DeclareLabel(name, classes); }
Label Model::Target(std::string_view name, int64_t width) { return Declare().DeclareTarget(name, width); }
void Model::Loss(const Expression& loss) { Declare().AddLoss(loss); }
void Model::Output(std::string_view name, const Expression& value) { Declare().AddOutput(name, value); }

const Model::Compiled& Model::compiled() const {
  const std::scoped_lock lock(mutex_);
  if (compiled_ != nullptr) return *compiled_;
  auto result = std::make_unique<Compiled>();
  result->written = builder_.Build();
  const Program& simplified = result->plain.simplified = Simplify(result->written, options_.passes);
  result->plain.inference = Executable::Compile(simplified, nullptr, options_.passes);
  result->sharing.simplified = ShareInputs(simplified, options_.passes);
  const std::vector<Instruction>& instructions = result->sharing.simplified.instructions;
  result->shares_inputs = std::any_of(instructions.begin(), instructions.end(), [](const Instruction& instruction) {
    return instruction.space.kind == Space::kInput;
  });
  std::vector<Column> columns;
  for (const ColumnDeclaration& column : result->written.signature->columns) {
    const bool ids = column.use == ColumnUse::kIds;
    columns.push_back({column.name, ids ? ColumnKind::kIds : ColumnKind::kRows, ids ? 1 : column.limit,
                       ids ? static_cast<int32_t>(column.limit) : 0});
  }
  result->columns = MakeColumns(std::move(columns));
  result->parameters = std::make_unique<ParameterStore>(simplified.signature, options_.seed, options_.precision);
  for (const int32_t parameter : result->plain.inference->multiplied()) result->parameters->RequestPacked(parameter);
  compiled_ = std::move(result);
  return *compiled_;
}

std::shared_ptr<const ColumnSet> Model::columns() const { return compiled().columns; }
ParameterStore& Model::parameters() {
  compiled();
  return *compiled_->parameters;
}
const ParameterStore& Model::parameters() const { return *compiled().parameters; }
void Model::PackProducts() const {
  const Compiled& ready = compiled();
  const std::scoped_lock lock(mutex_);
  ready.parameters->Pack();
}

const Program& Model::program() const { return compiled().written; }
const Program& Model::simplified() const { return compiled().plain.simplified; }

const Model::Variant& Model::variant(bool training, SharingPolicy sharing) const {
  compiled();
  const std::scoped_lock lock(mutex_);
  const bool shares = sharing != SharingPolicy::kOff && compiled_->shares_inputs;
  Variant& v = shares ? compiled_->sharing : compiled_->plain;
  if (training && v.training == nullptr) {
    v.gradient = Simplify(Differentiate(v.simplified), options_.passes);
    v.training = Executable::Compile(v.simplified, &v.gradient, options_.passes);
  } else if (!training && v.inference == nullptr) {
    v.inference = Executable::Compile(v.simplified, nullptr, options_.passes);
  }
  return v;
}

const Program& Model::gradient_program() const { return variant(true, SharingPolicy::kOff).gradient; }
std::shared_ptr<const Executable> Model::executable(bool training, SharingPolicy sharing) const {
  const Variant& v = variant(training, sharing);
  return training ? v.training : v.inference;
}

namespace {

int32_t FindParameter(const ParameterStore& parameters, std::string_view name) {
  const int32_t index = parameters.Find(name);
  if (index < 0) ThrowInvalid("parameter", fmt::format("expected a parameter of the model, got \"{}\"", name));
  return index;
}

std::vector<int64_t> Dimensions(const Shape& shape) {
  if (shape.rank() == 1) return {shape.columns()};
  return {shape.rows(), shape.columns()};
}

}  // namespace

std::vector<float> Model::Get(std::string_view name) const {
  return parameters().Get(FindParameter(parameters(), name));
}

void Model::Set(std::string_view name, std::span<const float> values) {
  ParameterStore& store = parameters();
  store.Set(FindParameter(store, name), values);
}

void Model::Save(const std::string& path) const {
  const ParameterStore& store = parameters();
  std::vector<std::vector<float>> values;
  std::vector<NamedTensor> tensors;
  for (int32_t i = 0; i < store.count(); ++i) {
    const ParameterDeclaration& declaration = store.declaration(i);
    values.push_back(store.Get(i));
    tensors.push_back({declaration.name, Dimensions(declaration.shape), ElementType::kF32, values.back().data()});
  }
  WriteModelFile(path, tensors, metadata_);
}

void Model::Load(const std::string& path) {
  const ModelFile file = ReadModelFile(path);
  ParameterStore& store = parameters();
  const auto refuse = [&](std::string_view message) { ThrowInvalid(path, message); };
  for (int32_t i = 0; i < store.count(); ++i) {
    const ParameterDeclaration& declaration = store.declaration(i);
    const StoredTensor* tensor = file.Find(declaration.name);
    if (tensor == nullptr) refuse(fmt::format("expected parameter \"{}\", got a file without it", declaration.name));
    if (tensor->type != ElementType::kF32 || tensor->shape != Dimensions(declaration.shape)) {
      refuse(fmt::format("expected {} f32 for \"{}\", got [{}]", declaration.shape.ToString(), declaration.name,
                         fmt::join(tensor->shape, ", ")));
    }
  }
  if (std::ssize(file.tensors) != store.count()) {
    refuse(fmt::format("expected {} parameters, got {}", store.count(), file.tensors.size()));
  }
  for (const StoredTensor& tensor : file.tensors) store.Set(store.Find(tensor.name), tensor.Values<float>());
  metadata_ = file.metadata;
}

}  // namespace cavs
