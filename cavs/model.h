// Model: declarations of F, the head and its losses; the values of the parameters; and what is compiled from both.
//
// Declare first; the first use by a Session compiles F once, and a declaration after that throws std::logic_error.
// Thread-safety: a Model that is not written to may be shared by any number of forward-only Sessions in any number of
// threads. A training Session has its Model to itself. A Model must outlive its Sessions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/input_graph.h"
#include "graph/sharing.h"
#include "vertex/builder.h"
#include "vertex/executable.h"
#include "vertex/parameters.h"
#include "vertex/passes.h"

namespace cavs {

struct ModelOptions {
  uint64_t seed = 1;  // of the initial values
  PassOptions passes;
  // Of products with parameters and of their gradients, in every Session. In bf16 minibatches too small to pack
  // parameters for multiply in f32. The first use throws std::invalid_argument where the processor has no bf16.
  Precision precision = Precision::kFp32;
};

class Model {
 public:
  explicit Model(const ModelOptions& options = {});
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model();

  // Declarations; see vertex/builder.h for what each throws.
  Expression Parameter(std::string_view name, const Shape& shape, Initializer initializer = {});
  // A table that vertices pull rows from by id; its gradient is sparse.
  Expression Lookup(std::string_view name, int64_t entries, int64_t width,
                    Initializer initializer = Initializer::Uniform(0.05f));
  Expression Constant(std::vector<float> row);
  void Freeze(const Expression& parameter);
  cavs::State State(std::string_view name, const Shape& shape);
  cavs::VertexType VertexType(std::string_view name, int32_t children);
  // Head rows of what vertices pushed; labels in [0, classes), float targets of `width` columns.
  Expression Pushed(std::string_view name);
  cavs::Label Label(std::string_view name, int64_t classes);
  cavs::Label Target(std::string_view name, int64_t width);
  void Loss(const Expression& loss);
  void Output(std::string_view name, const Expression& value);

  // Columns that graphs of this model may fill: every id and row that F pulls, every label and target.
  std::shared_ptr<const ColumnSet> columns() const;

  // Values by name, [rows * columns], row-major, copied. Throws std::invalid_argument for an unknown name or a wrong
  // number of values.
  std::vector<float> Get(std::string_view name) const;
  void Set(std::string_view name, std::span<const float> values);
  ParameterStore& parameters();
  const ParameterStore& parameters() const;
  // Renews the packed forms of parameters that have changed. Sessions call it before a minibatch that reads them.
  void PackProducts() const;

  // Free text that is saved beside the values: configuration, vocabulary, names of the labels.
  std::map<std::string, std::string>& metadata() { return metadata_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Writes values and metadata in the safetensors format, whole or not at all. Throws std::runtime_error.
  void Save(const std::string& path) const;
  // Reads values and metadata of a model with the same parameters. Throws std::runtime_error or std::invalid_argument
  // naming what differs; nothing is changed then.
  void Load(const std::string& path);

  // F as written, F simplified, and dF of the latter. What needs dF throws std::invalid_argument where F cannot be
  // differentiated.
  const Program& program() const;
  const Program& simplified() const;
  const Program& gradient_program() const;
  // F, and dF for training. Unless kOff, what is hoisted runs over distinct inputs (vertex/input_sharing.h).
  std::shared_ptr<const Executable> executable(bool training, SharingPolicy sharing = SharingPolicy::kOff) const;
  const ModelOptions& options() const { return options_; }

 private:
  struct Variant;
  struct Compiled;
  const Compiled& compiled() const;
  const Variant& variant(bool training, SharingPolicy sharing) const;
  ProgramBuilder& Declare();

  ModelOptions options_;
  ProgramBuilder builder_;
  std::map<std::string, std::string> metadata_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Compiled> compiled_;
};

}  // namespace cavs
