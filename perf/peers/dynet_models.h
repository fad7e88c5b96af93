// The models of perf/compare in DyNet, written vertex by vertex into one computation graph for a minibatch. The
// formulas are those of cavs/models; so are the names of parameters, and their values where a file gives them.
#pragma once

#include <dynet/dynet.h>
#include <dynet/expr.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "perf/peers/tensor_file.h"

namespace peers {

using dynet::affine_transform;
using dynet::cmult;
using dynet::ComputationGraph;
using dynet::concatenate;
using dynet::Expression;
using dynet::logistic;
using dynet::sum;
using dynet::tanh;

// Vertices come children first.
struct Vertex {
  std::vector<int> children;  // -1 for a missing one
  int word = -1, label = -1;
};

struct Example {
  std::vector<Vertex> vertices;
  std::vector<float> target;
};

inline std::vector<Example> ReadExamples(TensorFile* file) {
  const auto examples = file->Values<int32_t>("example_begin"), begins = file->Values<int32_t>("child_begin");
  const auto child = file->Values<int32_t>("child"), word = file->Values<int32_t>("word");
  const auto label = file->Values<int32_t>("label");
  const std::vector<float> targets = file->Has("target") ? file->Values<float>("target") : std::vector<float>();
  const size_t width = targets.size() / (examples.size() - 1);
  std::vector<Example> result(examples.size() - 1);
  for (size_t e = 0; e < result.size(); ++e) {
    for (int v = examples[e]; v < examples[e + 1]; ++v) {
      result[e].vertices.push_back({{child.begin() + begins[v], child.begin() + begins[v + 1]}, word[v], label[v]});
    }
    result[e].target.assign(targets.begin() + e * width, targets.begin() + (e + 1) * width);
  }
  return result;
}

struct Sizes {
  unsigned hidden, embed, vocabulary, classes;
};

// Initial values: of the file at `path`, or drawn where that is empty. Our row-major [in, out] is DyNet's column-major
// {out, in}.
class Parameters {
 public:
  Parameters(const std::string& path, dynet::ParameterCollection* collection) : collection_(*collection) {
    if (!path.empty()) file_ = std::make_unique<TensorFile>(path);
  }

  std::vector<float> Values(const std::string& name, size_t count, bool bias) {
    if (file_) return file_->Values<float>(name);
    std::vector<float> values(count, 0.0f);
    std::uniform_real_distribution<float> uniform(-0.05f, 0.05f);
    if (!bias) std::generate(values.begin(), values.end(), [&] { return uniform(random_); });
    return values;
  }

  dynet::Parameter Matrix(const std::string& name, unsigned in, unsigned out) {
    return Make({out, in}, Values(name, size_t{in} * out, false));
  }
  dynet::Parameter Bias(const std::string& name, unsigned width) { return Make({width}, Values(name, width, true)); }

  // Rows [begin, end) of values [rows, width].
  dynet::Parameter Rows(const std::vector<float>& values, unsigned width, unsigned begin, unsigned end) {
    const auto first = values.begin() + size_t{begin} * width;
    return Make({width, end - begin}, {first, first + size_t{end - begin} * width});
  }
  // Columns of values [rows, width]: `count` from each of `begins`, side by side.
  std::vector<float> Columns(const std::vector<float>& values, unsigned width, const std::vector<unsigned>& begins,
                             unsigned count) {
    std::vector<float> result;
    for (size_t row = 0; row < values.size(); row += width) {
      for (const unsigned begin : begins) {
        result.insert(result.end(), values.begin() + row + begin, values.begin() + row + begin + count);
      }
    }
    return result;
  }
  dynet::Parameter Make(const dynet::Dim& dim, const std::vector<float>& values) {
    dynet::Parameter parameter = collection_.add_parameters(dim);
    parameter.set_value(values);
    return parameter;
  }

  dynet::LookupParameter Table(const std::string& name, unsigned rows, unsigned width) {
    dynet::LookupParameter table = collection_.add_lookup_parameters(rows, {width});
    dynet::TensorTools::set_elements(table.get_storage().all_values, Values(name, size_t{rows} * width, false));
    return table;
  }

 private:
  dynet::ParameterCollection& collection_;
  std::unique_ptr<TensorFile> file_;
  std::mt19937 random_{1};
};

// A model writes an example into the graph: training appends the losses, inference what is to be computed.
class Model {
 public:
  virtual ~Model() = default;
  virtual std::vector<std::string> Styles() const { return {""}; }
  // Parameters enter each graph once.
  virtual void Begin(ComputationGraph* graph, const std::string& style) = 0;
  virtual void Add(const Example& example, bool training, std::vector<Expression>* results) = 0;
};

struct Affine {
  Affine(dynet::Parameter weights, dynet::Parameter bias) : weights(weights), bias(bias) {}
  void Begin(ComputationGraph& graph) { w = parameter(graph, weights), b = parameter(graph, bias); }
  Expression operator()(const Expression& x) const { return affine_transform({b, w, x}); }

  dynet::Parameter weights, bias;
  Expression w, b;
};

// Trees of words with a classifier at their vertices; children's states in, this vertex's states out.
class TreeModel : public Model {
 public:
  TreeModel(const Sizes& sizes, Parameters* parameters)
      : words_(parameters->Table("words", sizes.vocabulary, sizes.embed)),
        head_(parameters->Matrix("head.W", sizes.hidden, sizes.classes), parameters->Bias("head.b", sizes.classes)) {}

  void Begin(ComputationGraph* graph, const std::string& style) override {
    graph_ = graph;
    head_.Begin(*graph);
    BeginCells(graph, style);
  }

  void Add(const Example& example, bool training, std::vector<Expression>* results) override {
    const size_t count = example.vertices.size();
    states_.resize(count);
    for (size_t v = 0; v < count; ++v) {
      const Vertex& vertex = example.vertices[v];
      states_[v] = vertex.children.empty() ? Leaf(lookup(*graph_, words_, static_cast<unsigned>(vertex.word)))
                                           : Node(states_[vertex.children[0]], states_[vertex.children[1]]);
      if (training && vertex.label >= 0) {
        results->push_back(pickneglogsoftmax(head_(states_[v].h), static_cast<unsigned>(vertex.label)));
      }
    }
    if (!training) results->push_back(head_(states_.back().h));
  }

 protected:
  struct State {
    Expression h, c;
  };
  virtual void BeginCells(ComputationGraph* graph, const std::string& style) = 0;
  virtual State Leaf(const Expression& word) = 0;
  virtual State Node(const State& left, const State& right) = 0;

 private:
  ComputationGraph* graph_ = nullptr;
  dynet::LookupParameter words_;
  Affine head_;
  std::vector<State> states_;
};

// The gates of one vertex, in the order i, o, f_l, f_r, u: ours is i, o, u, f_l, f_r.
class TreeLstm : public TreeModel {
 public:
  TreeLstm(const Sizes& sizes, Parameters* parameters) : TreeModel(sizes, parameters), hidden_(sizes.hidden) {
    const unsigned h = hidden_;
    const auto leaf = parameters->Values("leaf.W", size_t{sizes.embed} * 3 * h, false);
    const auto leaf_bias = parameters->Values("leaf.b", 3 * h, true);
    const auto node = parameters->Values("node.U", size_t{10} * h * h, false);
    const auto node_bias = parameters->Values("node.b", 5 * h, true);
    const auto add = [&](Style* style, std::vector<unsigned> columns, std::vector<unsigned> leaf_columns) {
      for (unsigned& column : columns) column *= h;
      for (unsigned& column : leaf_columns) column *= h;
      const auto width = static_cast<unsigned>(columns.size()) * h;
      const auto values = parameters->Columns(node, 5 * h, columns, h);
      style->left.push_back(parameters->Rows(values, width, 0, h));
      style->right.push_back(parameters->Rows(values, width, h, 2 * h));
      style->bias.push_back(parameters->Make({width}, parameters->Columns(node_bias, 5 * h, columns, h)));
      const auto leaf_width = static_cast<unsigned>(leaf_columns.size()) * h;
      if (leaf_width == 0) return;
      style->leaf.emplace_back(
          parameters->Rows(parameters->Columns(leaf, 3 * h, leaf_columns, h), leaf_width, 0, sizes.embed),
          parameters->Make({leaf_width}, parameters->Columns(leaf_bias, 3 * h, leaf_columns, h)));
    };
    add(&styles_["one product"], {0, 1, 3, 4, 2}, {0, 1, 2});
    for (const unsigned column : {0, 1, 3, 4, 2}) {
      add(&styles_["a product a gate"], {column}, column < 3 ? std::vector<unsigned>{column} : std::vector<unsigned>());
    }
  }

  std::vector<std::string> Styles() const override { return {"one product", "a product a gate"}; }

 protected:
  void BeginCells(ComputationGraph* graph, const std::string& style) override {
    style_ = &styles_.at(style);
    left_.clear(), right_.clear(), bias_.clear();
    for (Affine& leaf : style_->leaf) leaf.Begin(*graph);
    for (const auto& weights : style_->left) left_.push_back(parameter(*graph, weights));
    for (const auto& weights : style_->right) right_.push_back(parameter(*graph, weights));
    for (const auto& bias : style_->bias) bias_.push_back(parameter(*graph, bias));
  }

  State Leaf(const Expression& word) override {
    const unsigned h = hidden_;
    if (style_->leaf.size() > 1) {
      const Expression c = cmult(logistic(style_->leaf[0](word)), tanh(style_->leaf[2](word)));
      return {cmult(logistic(style_->leaf[1](word)), tanh(c)), c};
    }
    const Expression gates = style_->leaf[0](word), io = logistic(pick_range(gates, 0, 2 * h));
    const Expression c = cmult(pick_range(io, 0, h), tanh(pick_range(gates, 2 * h, 3 * h)));
    return {cmult(pick_range(io, h, 2 * h), tanh(c)), c};
  }

  State Node(const State& l, const State& r) override {
    const unsigned h = hidden_;
    const auto affine = [&](size_t k) { return affine_transform({bias_[k], left_[k], l.h, right_[k], r.h}); };
    if (left_.size() > 1) {
      const Expression c = cmult(logistic(affine(0)), tanh(affine(4))) + cmult(logistic(affine(2)), l.c) +
                           cmult(logistic(affine(3)), r.c);
      return {cmult(logistic(affine(1)), tanh(c)), c};
    }
    const Expression gates = affine(0), open = logistic(pick_range(gates, 0, 4 * h));
    const auto gate = [&](unsigned k) { return pick_range(open, k * h, (k + 1) * h); };
    const Expression u = tanh(pick_range(gates, 4 * h, 5 * h));
    const Expression c = sum({cmult(gate(0), u), cmult(gate(2), l.c), cmult(gate(3), r.c)});
    return {cmult(gate(1), tanh(c)), c};
  }

 private:
  struct Style {
    std::vector<Affine> leaf;
    std::vector<dynet::Parameter> left, right, bias;
  };

  unsigned hidden_;
  std::map<std::string, Style> styles_;
  Style* style_ = nullptr;
  std::vector<Expression> left_, right_, bias_;
};

class TreeFc : public TreeModel {
 public:
  TreeFc(const Sizes& sizes, Parameters* parameters)
      : TreeModel(sizes, parameters),
        leaf_(parameters->Matrix("leaf.W", sizes.embed, sizes.hidden)),
        bias_(parameters->Bias("node.b", sizes.hidden)) {
    const auto values = parameters->Values("node.U", size_t{2} * sizes.hidden * sizes.hidden, false);
    left_ = parameters->Rows(values, sizes.hidden, 0, sizes.hidden);
    right_ = parameters->Rows(values, sizes.hidden, sizes.hidden, 2 * sizes.hidden);
  }

 protected:
  void BeginCells(ComputationGraph* graph, const std::string&) override {
    leaf_w_ = parameter(*graph, leaf_), left_w_ = parameter(*graph, left_), right_w_ = parameter(*graph, right_);
    b_ = parameter(*graph, bias_);
  }
  State Leaf(const Expression& word) override { return {leaf_w_ * word, {}}; }
  State Node(const State& l, const State& r) override {
    return {rectify(affine_transform({b_, left_w_, l.h, right_w_, r.h})), {}};
  }

 private:
  dynet::Parameter leaf_, bias_, left_, right_;
  Expression leaf_w_, left_w_, right_w_, b_;
};

// DyNet's own LSTM operators. Gates lie i, f, o, u in both; its operator adds 1 to f, which the bias takes back.
class LstmLm : public Model {
 public:
  LstmLm(const Sizes& sizes, Parameters* parameters)
      : hidden_(sizes.hidden),
        words_(parameters->Table("words", sizes.vocabulary, sizes.embed)),
        input_(parameters->Matrix("layer1.W", sizes.embed, 4 * sizes.hidden)),
        recurrent_(parameters->Matrix("layer1.U", sizes.hidden, 4 * sizes.hidden)),
        head_(parameters->Matrix("head.W", sizes.hidden, sizes.classes), parameters->Bias("head.b", sizes.classes)) {
    auto bias = parameters->Values("layer1.b", 4 * sizes.hidden, true);
    for (unsigned k = hidden_; k < 2 * hidden_; ++k) bias[k] -= 1;
    bias_ = parameters->Make({4 * hidden_}, bias);
  }

  void Begin(ComputationGraph* graph, const std::string&) override {
    graph_ = graph;
    head_.Begin(*graph);
    wx_ = parameter(*graph, input_), wh_ = parameter(*graph, recurrent_), b_ = parameter(*graph, bias_);
    zero_ = zeros(*graph, {hidden_});
  }

  void Add(const Example& example, bool, std::vector<Expression>* results) override {
    Expression h = zero_, c = zero_;
    for (const Vertex& vertex : example.vertices) {
      const Expression word = lookup(*graph_, words_, static_cast<unsigned>(vertex.word));
      const Expression gates = vanilla_lstm_gates(word, h, wx_, wh_, b_);
      c = vanilla_lstm_c(c, gates);
      h = vanilla_lstm_h(c, gates);
      results->push_back(pickneglogsoftmax(head_(h), static_cast<unsigned>(vertex.label)));
    }
  }

 private:
  unsigned hidden_;
  ComputationGraph* graph_ = nullptr;
  dynet::LookupParameter words_;
  dynet::Parameter input_, recurrent_, bias_;
  Affine head_;
  Expression wx_, wh_, b_, zero_;
};

class ChildSumTreeLstm : public Model {
 public:
  static constexpr unsigned kWidth = 50;  // of the similarity

  ChildSumTreeLstm(const Sizes& sizes, Parameters* parameters)
      : hidden_(sizes.hidden),
        words_(parameters->Table("words", sizes.vocabulary, sizes.embed)),
        input_(parameters->Matrix("node.W", sizes.embed, 4 * hidden_), parameters->Bias("node.b", 4 * hidden_)),
        recurrent_(parameters->Matrix("node.U", hidden_, 3 * hidden_)),
        forget_(parameters->Matrix("node.U_f", hidden_, hidden_)),
        pair_(parameters->Matrix("pair.W", 2 * hidden_, kWidth), parameters->Bias("pair.b", kWidth)),
        head_(parameters->Matrix("head.W", kWidth, sizes.classes), parameters->Bias("head.b", sizes.classes)) {}

  void Begin(ComputationGraph* graph, const std::string&) override {
    graph_ = graph;
    input_.Begin(*graph), pair_.Begin(*graph), head_.Begin(*graph);
    u_ = parameter(*graph, recurrent_), u_f_ = parameter(*graph, forget_);
  }

  void Add(const Example& example, bool training, std::vector<Expression>* results) override {
    h_.clear(), c_.clear();
    for (size_t v = 0; v + 1 < example.vertices.size(); ++v) AddWord(example.vertices[v]);
    const std::vector<int>& roots = example.vertices.back().children;
    const Expression l = h_[roots[0]], r = h_[roots[1]];
    const Expression similarity = logistic(pair_(concatenate({cmult(l, r), abs(l - r)})));
    const Expression logarithms = log_softmax(head_(similarity));
    if (!training) return results->push_back(logarithms);
    float entropy = 0;
    for (const float t : example.target) entropy += t > 0 ? t * std::log(t) : 0;
    const auto width = static_cast<unsigned>(example.target.size());
    results->push_back(entropy - dot_product(input(*graph_, {width}, example.target), logarithms));
  }

 private:
  void AddWord(const Vertex& vertex) {
    const unsigned h = hidden_;
    const Expression x = input_(lookup(*graph_, words_, static_cast<unsigned>(vertex.word)));
    Expression iou = pick_range(x, 0, 3 * h);
    std::vector<Expression> kept, below;
    if (!vertex.children.empty()) {
      const Expression x_f = pick_range(x, 3 * h, 4 * h);
      for (const int child : vertex.children) {
        below.push_back(h_[child]);
        kept.push_back(cmult(logistic(x_f + u_f_ * h_[child]), c_[child]));
      }
      iou = iou + u_ * sum(below);
    }
    const Expression io = logistic(pick_range(iou, 0, 2 * h)), u = tanh(pick_range(iou, 2 * h, 3 * h));
    kept.push_back(cmult(pick_range(io, 0, h), u));
    c_.push_back(sum(kept));
    h_.push_back(cmult(pick_range(io, h, 2 * h), tanh(c_.back())));
  }

  unsigned hidden_;
  ComputationGraph* graph_ = nullptr;
  dynet::LookupParameter words_;
  Affine input_;
  dynet::Parameter recurrent_, forget_;
  Affine pair_, head_;
  Expression u_, u_f_;
  std::vector<Expression> h_, c_;
};

inline std::unique_ptr<Model> MakeModel(const std::string& name, const Sizes& sizes, Parameters* parameters) {
  if (name == "tree_lstm") return std::make_unique<TreeLstm>(sizes, parameters);
  if (name == "tree_fc") return std::make_unique<TreeFc>(sizes, parameters);
  if (name == "lstm_lm") return std::make_unique<LstmLm>(sizes, parameters);
  if (name == "child_sum_tree_lstm") return std::make_unique<ChildSumTreeLstm>(sizes, parameters);
  throw std::invalid_argument("no model " + name);
}

}  // namespace peers
