// What a model declares before any vertex function is written: parameters, vertex types, channels, columns.
// A channel carries rows from vertex functions to readers: a *state* is scattered and gathered along edges, a
// *push* is read by the head. A column is an external input or label of a vertex, found in the graphs by name.
// A pass may merge declared parameters into new ones (vertex/merging.h), which stand behind all declared ones.
// Plain data; immutable once a Program is built from it, then safe to share between threads.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "memory/shape.h"

namespace cavs {

// How the values of a parameter begin: a matrix by Glorot's rule and a vector at zero unless said otherwise. Draws come
// from a counter of (seed, name), so that adding a parameter never changes the others.
struct Initializer {
  enum class Kind : uint8_t { kGlorotUniform, kUniform, kNormal, kConstant, kValues };
  Kind kind = Kind::kGlorotUniform;
  float scale = 1.0f;         // factor on Glorot's range, half range, standard deviation, or the constant itself
  std::vector<float> values;  // kValues: one for each element

  static Initializer Glorot(float factor = 1.0f) { return {Kind::kGlorotUniform, factor, {}}; }
  static Initializer Uniform(float half_range) { return {Kind::kUniform, half_range, {}}; }
  static Initializer Normal(float deviation) { return {Kind::kNormal, deviation, {}}; }
  static Initializer Values(std::vector<float> values) { return {Kind::kValues, 0.0f, std::move(values)}; }
  static Initializer Constant(float value) { return {Kind::kConstant, value, {}}; }
};

// A declared parameter as a block of a merged one.
struct ParameterPart {
  int32_t parameter = -1;
  int64_t row = 0, column = 0;  // where the block begins
  friend bool operator==(const ParameterPart&, const ParameterPart&) = default;
};

struct ParameterDeclaration {
  std::string name;
  Shape shape;             // [n] or [rows, columns]; a lookup table is [entries, width]
  bool is_lookup = false;  // read by id; its gradient is sparse
  bool frozen = false;     // no gradient is computed
  Initializer initializer;
  // Of a merged parameter: declared ones that tile it, by rows and columns. A declared one is a part of at most one.
  std::vector<ParameterPart> parts = {};
};

enum class ChannelKind : uint8_t { kState, kPush };

struct ChannelDeclaration {
  std::string name;
  Shape shape;
  ChannelKind kind = ChannelKind::kState;
};

// Any number of children; edge functions and segment reductions only.
inline constexpr int32_t kAnyArity = -1;

struct TypeDeclaration {
  std::string name;
  int32_t children = 0;  // exact number of child slots, or kAnyArity
};

enum class ColumnUse : uint8_t { kIds, kRows };

struct ColumnDeclaration {
  std::string name;
  ColumnUse use = ColumnUse::kIds;
  int64_t limit = 0;  // kIds: ids lie in [0, limit), or are -1 for none; kRows: floats in a row
};

struct Signature {
  std::vector<ParameterDeclaration> parameters;
  std::vector<TypeDeclaration> types;
  std::vector<ChannelDeclaration> channels;
  std::vector<ColumnDeclaration> columns;
};

}  // namespace cavs
