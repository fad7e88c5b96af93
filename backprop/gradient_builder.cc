#include "backprop/gradient_builder.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "cavs/base/error.h"

namespace cavs {

GradientBuilder::GradientBuilder(const Program& f) : paths_(f), contributions_(f.values.size()) {
  program_.signature = f.signature;
  program_.values = f.values;
  program_.head_columns = f.head_columns;
  program_.first_own_value = static_cast<ValueId>(f.values.size());
}

ValueId GradientBuilder::Emit(Op op, RowSpace rows, const Shape& shape, std::vector<ValueId> inputs,
                              Attributes attributes) {
  const auto id = static_cast<ValueId>(program_.values.size());
  program_.values.push_back({.space = rows, .shape = shape, .parameter = -1, .constant = {}});
  program_.instructions.push_back({.op = op,
                                   .space = rows,
                                   .output = id,
                                   .inputs = std::move(inputs),
                                   .attributes = std::move(attributes),
                                   .phase = Phase::kRecurrent});
  return id;
}

void GradientBuilder::EmitSink(Op op, RowSpace rows, std::vector<ValueId> inputs, Attributes attributes) {
  program_.instructions.push_back({.op = op,
                                   .space = rows,
                                   .output = kNoValue,
                                   .inputs = std::move(inputs),
                                   .attributes = std::move(attributes),
                                   .phase = Phase::kRecurrent});
}

void GradientBuilder::EmitParameterSink(Op op, RowSpace rows, std::vector<ValueId> inputs, Attributes attributes) {
  const ParameterDeclaration& parameter = program_.signature->parameters[static_cast<size_t>(attributes.parameter)];
  if (parameter.is_lookup != (op == Op::kLookupGrad)) {
    ThrowInvalid("differentiate", fmt::format("expected {} '{}' to be used {}, got {}",
                                              parameter.is_lookup ? "lookup table" : "parameter", parameter.name,
                                              parameter.is_lookup ? "by id only" : "as a matrix only", OpName(op)));
  }
  EmitSink(op, rows, std::move(inputs), std::move(attributes));
}

void GradientBuilder::Contribute(ValueId value, ValueId gradient, int64_t begin) {
  if (!paths_.flows(value)) return;
  const RowSpace rows = program_.value(gradient).space;
  const int64_t end = begin + program_.value(gradient).shape.width();
  const Value& target = program_.value(value);
  const int64_t width = target.shape.width();
  CAVS_CHECK(0 <= begin && end <= width, "columns [{}, {}) of %{} {}", begin, end, value, target.shape.ToString());
  if (target.space.kind == Space::kParameter) {
    Attributes attributes;
    attributes.parameter = target.parameter;
    const Contribution stretch{gradient, begin, end};
    const ValueId full = end - begin == width ? gradient : Join(value, {&stretch, 1});
    EmitParameterSink(Op::kColumnSumGrad, rows, {full}, std::move(attributes));
    return;
  }
  CAVS_CHECK(target.space == rows, "gradient of %{} lies over other rows", value);
  contributions_[static_cast<size_t>(value)].push_back({gradient, begin, end});
}

ValueId GradientBuilder::TakeGradient(ValueId value) {
  std::vector<Contribution> all = std::exchange(contributions_[static_cast<size_t>(value)], {});
  const int64_t width = program_.value(value).shape.width();
  ValueId sum = kNoValue;
  const auto stretches = std::stable_partition(
      all.begin(), all.end(), [width](const Contribution& c) { return c.begin == 0 && c.end == width; });
  for (auto full = all.begin(); full != stretches; ++full) sum = Add(sum, full->gradient);

  std::stable_sort(stretches, all.end(), [](const Contribution& a, const Contribution& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  std::vector<std::vector<Contribution>> layers;  // first fit: the stretches of a layer are disjoint
  for (const Contribution& stretch : MergeEqual({stretches, all.end()})) {
    auto layer = std::find_if(layers.begin(), layers.end(),
                              [&](const std::vector<Contribution>& laid) { return laid.back().end <= stretch.begin; });
    if (layer == layers.end()) layer = layers.insert(layer, std::vector<Contribution>());
    layer->push_back(stretch);
  }
  for (const std::vector<Contribution>& layer : layers) sum = Add(sum, Join(value, layer));
  return sum;
}

std::vector<GradientBuilder::Contribution> GradientBuilder::MergeEqual(std::span<const Contribution> sorted) {
  std::vector<Contribution> merged;
  for (const Contribution& stretch : sorted) {
    if (!merged.empty() && merged.back().begin == stretch.begin && merged.back().end == stretch.end) {
      merged.back().gradient = Add(merged.back().gradient, stretch.gradient);
    } else {
      merged.push_back(stretch);
    }
  }
  return merged;
}

Program GradientBuilder::Finish() { return std::move(program_); }

ValueId GradientBuilder::Add(ValueId left, ValueId right) {
  if (left == kNoValue) return right;
  const Value& like = program_.value(left);
  const RowSpace rows = like.space;
  const Shape shape = like.shape;
  return Emit(Op::kAdd, rows, shape, {left, right});
}

ValueId GradientBuilder::Join(ValueId value, std::span<const Contribution> stretches) {
  const RowSpace rows = program_.value(stretches.front().gradient).space;
  const Shape shape = program_.value(value).shape;
  std::vector<ValueId> parts;
  int64_t column = 0;
  for (const Contribution& stretch : stretches) {
    if (stretch.begin > column) parts.push_back(Zeros(stretch.begin - column));
    parts.push_back(stretch.gradient);
    column = stretch.end;
  }
  if (column < shape.width()) parts.push_back(Zeros(shape.width() - column));
  return Emit(Op::kConcat, rows, shape, std::move(parts));
}

ValueId GradientBuilder::Zeros(int64_t width) {
  const auto [entry, is_new] = zeros_.try_emplace(width, static_cast<ValueId>(program_.values.size()));
  if (is_new) {
    program_.values.push_back({.space = {.kind = Space::kConstant, .type = -1},
                               .shape = Shape::Vector(width),
                               .parameter = -1,
                               .constant = std::vector<float>(static_cast<size_t>(width))});
  }
  return entry->second;
}

}  // namespace cavs
