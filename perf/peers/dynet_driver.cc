// DyNet through its C++ library, as a worker of perf/compare: the requests and answers are those of worker.py.
//
// DyNet's autobatching finds what can run together in the graph of a minibatch. Settings: the autobatching mode (0 to
// 3), and for Tree-LSTMs whether a vertex has one affine transform for all gates or one for each. setup compiles it
// against an installed DyNet.
#include <dynet/dynet.h>
#include <dynet/init.h>
#include <dynet/training.h>

#ifdef PEER_WITH_MKL
#include <mkl_service.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "perf/peers/dynet_models.h"
#include "perf/peers/tensor_file.h"

namespace peers {
namespace {

using dynet::ComputationGraph;
using dynet::Expression;
using nlohmann::json;

constexpr float kLearningRate = 0.01f;
constexpr int kModes = 4;
constexpr int kAttempts = 1000;

// VmRSS or VmHWM of this process, in bytes.
int64_t Memory(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field, 0) == 0) return std::stoll(line.substr(field.size() + 1)) * 1024;
  }
  return 0;
}

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Setting {
  int mode;
  std::string style;
};

class Worker {
 public:
  json Answer(const json& request) {
    const std::string what = request.at("do");
    if (what == "load") return Load(request);
    if (what == "run") return Run(request);
    if (what == "losses") return Losses(request);
    throw std::invalid_argument("no request " + what);
  }

 private:
  json Load(const json& request) {
    if (request.at("precision") != "fp32") throw std::invalid_argument("DyNet computes in fp32 alone");
    TensorFile data(request.at("data"));
    examples_ = ReadExamples(&data);
    training_ = request.at("mode") == "train";
    const auto size = [&](const char* key) { return static_cast<unsigned>(data.Number(key)); };
    base_bytes_ = Memory("VmRSS");
    collection_ = std::make_unique<dynet::ParameterCollection>();
    const json& path = request.at("parameters");
    Parameters parameters(path.is_null() ? "" : path.get<std::string>(), collection_.get());
    model_ = MakeModel(data.Text("model"), {size("hidden"), size("embed"), size("vocabulary"), size("classes")},
                       &parameters);
    trainer_ = std::make_unique<dynet::SimpleSGDTrainer>(*collection_, kLearningRate);
    trainer_->clipping_enabled = false;
    warm_.clear();
    settings_.clear();
    for (const std::string& style : model_->Styles()) {
      for (int mode = 0; mode < kModes; ++mode) {
        settings_["autobatch " + std::to_string(mode) + (style.empty() ? "" : ", " + style)] = {mode, style};
      }
    }
    json names = json::array();
    for (const auto& setting : settings_) names.push_back(setting.first);
    return {{"settings", names}, {"versions", {{"DyNet", PEER_VERSION}}}};
  }

  json Run(const json& request) {
#ifdef PEER_WITH_MKL
    mkl_set_num_threads(request.at("threads"));
#endif
    const Setting& setting = settings_.at(request.at("setting"));
    const size_t batch_size = request.at("batch_size"), minibatches = request.at("minibatches");
    const auto pass = [&] {
      for (size_t k = 0; k < minibatches; ++k) Step(setting.style, k * batch_size, (k + 1) * batch_size);
    };
    dynet::autobatch_flag = setting.mode;
    if (warm_.insert(std::tuple(request.at("setting").get<std::string>(), batch_size)).second) pass();
    const double begin = Now(), seconds = request.at("seconds");
    int64_t passes = 0;
    for (; passes == 0 || Now() - begin < seconds; ++passes) pass();
    const double spent = Now() - begin;
    int64_t examples = 0, vertices = 0;
    for (size_t e = 0; e < std::min(examples_.size(), batch_size * minibatches); ++e) {
      ++examples;
      vertices += static_cast<int64_t>(examples_[e].vertices.size());
    }
    return {{"examples", passes * examples},
            {"vertices", passes * vertices},
            {"seconds", spent},
            {"peak_bytes", std::max<int64_t>(0, Memory("VmHWM") - base_bytes_)}};
  }

  json Losses(const json& request) {
    const Setting& setting = settings_.at(request.at("setting"));
    const size_t batch_size = std::min(request.at("batch_size").get<size_t>(), examples_.size());
    dynet::autobatch_flag = setting.mode;
    json losses = json::array();
    for (int step = 0; step < request.at("steps").get<int>(); ++step)
      losses.push_back(Step(setting.style, 0, batch_size));
    return {{"losses", losses}};
  }

  // Over examples [begin, end); the mean loss of a training step. DyNet refuses to go on where its pool of gradients
  // grows under autobatching, but the larger pool is there when the step is run again.
  double Step(const std::string& style, size_t begin, size_t end) {
    end = std::min(end, examples_.size());
    if (begin >= end) return 0;
    for (int attempt = 1;; ++attempt) {
      try {
        return TryStep(style, begin, end);
      } catch (const std::invalid_argument&) {
        if (attempt == kAttempts) throw;
        collection_->reset_gradient();
      }
    }
  }

  double TryStep(const std::string& style, size_t begin, size_t end) {
    ComputationGraph graph;
    model_->Begin(&graph, style);
    results_.clear();
    for (size_t e = begin; e < end; ++e) model_->Add(examples_[e], training_, &results_);
    if (!training_) {
      graph.incremental_forward(results_.front().dim().size() == 1 ? sum(results_) : concatenate_cols(results_));
      return 0;
    }
    const Expression loss = sum(results_) / static_cast<float>(end - begin);
    const double value = dynet::as_scalar(graph.forward(loss));
    graph.backward(loss);
    trainer_->update();
    return value;
  }

  std::vector<Example> examples_;
  bool training_ = true;
  int64_t base_bytes_ = 0;
  std::unique_ptr<dynet::ParameterCollection> collection_;
  std::unique_ptr<dynet::SimpleSGDTrainer> trainer_;
  std::unique_ptr<Model> model_;
  std::map<std::string, Setting> settings_;
  std::set<std::tuple<std::string, size_t>> warm_;
  std::vector<Expression> results_;
};

}  // namespace
}  // namespace peers

int main() {
  dynet::DynetParams options;
  options.random_seed = 1;
  options.mem_descriptor = "16,16,16,16";  // pools to begin with, in MiB; they grow
  dynet::initialize(options);
  peers::Worker worker;
  for (std::string line; std::getline(std::cin, line);) {
    nlohmann::json answer;
    try {
      answer = worker.Answer(nlohmann::json::parse(line));
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    std::cout << answer.dump() << std::endl;
  }
  return 0;
}
