// A seeded generator of models: two to four vertex types of arity 0 to 5 or any, several states of different widths,
// shared and frozen parameters, child-sum parts, cells that are written gate by gate, states and pushes that only pass
// a value on, labels, targets and dropout. Values stay bounded, so that errors of f32 do not grow along deep graphs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cavs/base/random.h"
#include "vertex/builder.h"

namespace cavs {

class ModelMaker {
 public:
  ModelMaker(uint64_t seed, bool dropout) : random_(seed, 77), dropout_(dropout) {}
  // Equal seeds give equal programs. To be called once.
  Program Make();

 private:
  int64_t Below(int64_t n) { return random_.Below(n); }
  bool Chance(double probability) { return random_.Uniform() < probability; }
  template <typename T>
  const T& Pick(const std::vector<T>& items) {
    return items[static_cast<size_t>(Below(std::ssize(items)))];
  }

  // A parameter of this shape, with probability `fresh` a new one.
  Expression Weights(int64_t rows, int64_t columns, double fresh = 0.4);
  Expression Bias(int64_t width, double fresh = 0.4);
  // `x` in `width` columns: itself, a slice or a product.
  Expression Fit(const Expression& x, int64_t width);
  void DefineType(const VertexType& type, int32_t children);
  void AddInputs(Vertex& v);
  Expression ChildrenSideBySide(Vertex& v, int32_t children);
  void AddGates();
  Expression Gate(const Expression& x, const Expression& y, int64_t width);
  void AddChildSum(Vertex& v);
  void AddStep();
  Expression Unary(const Expression& x);
  Expression Combine(const Expression& x, const Expression& y);
  void Publish(Vertex& v);
  void AddHead();

  CounterRandom random_;
  bool dropout_;
  ProgramBuilder b_;
  std::vector<Expression> tables_;
  std::vector<State> states_;
  std::map<std::pair<int64_t, int64_t>, std::vector<Expression>> weights_;
  std::map<int64_t, std::vector<Expression>> biases_;
  int64_t out_width_ = 0;
  int64_t extra_width_ = 0;  // of the second push channel; 0: there is none
  // Of the type that is being defined.
  std::vector<Expression> sources_;  // pulled and gathered rows
  std::vector<Expression> values_;   // all bounded values so far
};

}  // namespace cavs
