#include "vertex/merging.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "vertex/merging_draft.h"

namespace cavs {
namespace {

// Products that read the same rows in the same phase, with weights that are equally frozen.
struct Gates {
  std::vector<int32_t> products;
  std::vector<int32_t> weights;  // of each
};

class GateMerger {
 public:
  explicit GateMerger(MergingDraft* draft) : draft_(*draft) {}

  void Run() {
    FindGates();
    std::vector<std::vector<int32_t>> places;
    places.reserve(gates_.size());
    for (const Gates& gates : gates_) places.push_back(gates.weights);
    for (const ParameterGroup& group : draft_.GroupParameters(places)) Merge(group);
    draft_.Apply(std::move(edits_));
  }

 private:
  void FindGates() {
    std::map<std::tuple<ValueId, Phase, bool>, Gates> found;
    for (int32_t i = 0; i < draft_.instruction_count(); ++i) {
      if (!draft_.IsProduct(i) || !MayBeSliced(draft_.instruction(i).output)) continue;
      const int32_t weights = draft_.WeightsOf(i);
      Gates& gates = found[{draft_.instruction(i).inputs[0], draft_.phase(i), draft_.parameter(weights).frozen}];
      gates.products.push_back(i);
      gates.weights.push_back(weights);
    }
    for (auto& entry : found) gates_.push_back(std::move(entry.second));
  }

  // Whether every reader of a result takes rows with gaps between them as they are.
  bool MayBeSliced(ValueId result) const {
    const auto uses = draft_.uses(result);
    return std::none_of(uses.begin(), uses.end(), [&](int32_t use) {
      const Op op = draft_.instruction(use).op;
      return op == Op::kMatMul || op == Op::kConcat || op == Op::kScatter || op == Op::kPush;
    });
  }

  // The products of a place by the parameters of a group, in their order.
  std::vector<int32_t> ProductsOf(const ParameterGroup& group, int32_t place) const {
    const Gates& gates = gates_[static_cast<size_t>(place)];
    std::vector<int32_t> products;
    products.reserve(group.parameters.size());
    for (const int32_t id : group.parameters) {
      const auto found = std::find(gates.weights.begin(), gates.weights.end(), id);
      products.push_back(gates.products[static_cast<size_t>(found - gates.weights.begin())]);
    }
    return products;
  }

  void Merge(const ParameterGroup& group) {
    const ValueId weights = SideBySide(group.parameters);
    const std::vector<int32_t> biases = BiasesOf(group);
    const ValueId bias = biases.empty() ? kNoValue : SideBySide(biases);
    for (const int32_t place : group.places) Rewrite(ProductsOf(group, place), weights, bias);
  }

  ValueId SideBySide(const std::vector<int32_t>& parameters) {
    const Shape& first = draft_.parameter(parameters.front()).shape;
    std::vector<ParameterPart> parts;
    parts.reserve(parameters.size());
    int64_t columns = 0;
    for (const int32_t id : parameters) {
      parts.push_back({id, 0, columns});
      columns += draft_.parameter(id).shape.columns();
    }
    return draft_.NewParameter(first.rank() == 1 ? Shape::Vector(columns) : Shape::Matrix(first.rows(), columns),
                               parts);
  }

  // The biases of the products of a group, in their order; none when they cannot be merged as the weights are.
  std::vector<int32_t> BiasesOf(const ParameterGroup& group) const {
    std::vector<int32_t> common;
    for (const int32_t place : group.places) {
      std::vector<int32_t> biases;
      for (const int32_t product : ProductsOf(group, place)) {
        const std::vector<ValueId>& inputs = draft_.instruction(product).inputs;
        if (inputs.size() == 3) biases.push_back(draft_.program().value(inputs[2]).parameter);
      }
      if (biases.size() != group.parameters.size() || (!common.empty() && biases != common)) return {};
      common = std::move(biases);
    }
    const bool distinct = std::set<int32_t>(common.begin(), common.end()).size() == common.size();
    const bool alike = std::all_of(common.begin(), common.end(), [&](int32_t id) {
      return draft_.use_count(id) == std::ssize(group.places) &&
             draft_.parameter(id).frozen == draft_.parameter(common.front()).frozen;
    });
    return distinct && alike ? common : std::vector<int32_t>();
  }

  // One product where the first of them stands, and slices of it where each of them does.
  void Rewrite(const std::vector<int32_t>& products, ValueId weights, ValueId bias) {
    const Instruction& first = draft_.instruction(*std::min_element(products.begin(), products.end()));
    const RowSpace space = first.space;
    const ValueId x = first.inputs[0];
    const int64_t columns = draft_.program().value(weights).shape.columns();
    Instruction whole{.op = Op::kMatMul, .space = space, .inputs = {x, weights}, .attributes = {}};
    whole.output = draft_.NewValue(space, Shape::Vector(columns));
    if (bias != kNoValue) whole.inputs.push_back(bias);
    int64_t begin = 0;
    for (const int32_t product : products) {
      const Instruction& gate = draft_.instruction(product);
      std::vector<Instruction>& edit = edits_[product];
      Instruction slice{
          .op = Op::kSlice, .space = space, .output = gate.output, .inputs = {whole.output}, .attributes = {}};
      slice.attributes.begin = begin;
      const Shape shape = draft_.program().value(gate.output).shape;
      begin += shape.width();
      if (bias != kNoValue || gate.inputs.size() < 3) {
        edit = {std::move(slice)};
        continue;
      }
      slice.output = draft_.NewValue(space, shape);
      Instruction add{.op = Op::kAdd,
                      .space = space,
                      .output = gate.output,
                      .inputs = {slice.output, gate.inputs[2]},
                      .attributes = {}};
      edit = {std::move(slice), std::move(add)};
    }
    std::vector<Instruction>& place = edits_[*std::min_element(products.begin(), products.end())];
    place.insert(place.begin(), std::move(whole));
  }

  MergingDraft& draft_;
  std::vector<Gates> gates_;
  MergingDraft::Edits edits_;
};

}  // namespace

void MergeGates(MergingDraft* draft) { GateMerger(draft).Run(); }

Program MergeProducts(Program program, const PassOptions& options) {
  MergingDraft draft(std::move(program), options);
  MergeSums(&draft);
  MergeGates(&draft);
  return draft.Finish();
}

}  // namespace cavs
