#include "cavs/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "cavs/base/error.h"
#include "cavs/base/random.h"
#include "cavs/base/stop_watch.h"
#include "cavs/file_output.h"
#include "cavs/minibatches.h"
#include "cavs/models/model_sizes.h"
#include "cavs/xxh64.h"

namespace cavs {
namespace {

// Sets the draws of the order of examples apart from whatever else is drawn from the seed.
constexpr uint64_t kOrderStream = 0x6F72646572;  // "order"
// Longer texts take part in an agreement as their digest.
constexpr size_t kLongText = 64;

TrainerOptions Checked(const TrainerOptions& options) {
  const auto require = [](bool inside, std::string_view what, int64_t least, int64_t value) {
    if (!inside) ThrowInvalid("train", fmt::format("expected {} of at least {}, got {}", what, least, value));
  };
  require(options.epochs >= 1, "epochs", 1, options.epochs);
  require(options.batch_size >= 1, "a batch size", 1, options.batch_size);
  require(options.save_every >= 0, "save_every", 0, options.save_every);
  if (options.resume && options.save_folder.empty()) {
    ThrowInvalid("train", "expected a save folder with a state to resume from, got none");
  }
  // Before any work is done that could be lost.
  if (!options.save_folder.empty()) EnsureWritableFolder(options.save_folder);
  TrainerOptions result = options;
  result.session.seed = options.seed;
  return result;
}

// The order of the examples of an epoch.
std::vector<int32_t> OrderOf(int64_t epoch, int64_t examples, const TrainerOptions& options) {
  std::vector<int32_t> order(static_cast<size_t>(examples));
  std::iota(order.begin(), order.end(), 0);
  if (!options.shuffle) return order;
  CounterRandom random(HashCounter(options.seed, kOrderStream), static_cast<uint64_t>(epoch));
  Shuffle(std::span(order), random);
  return order;
}

// Whether some vertex has an id, or a row, in the column called `name`.
bool HasAny(const Dataset& data, std::string_view name) {
  const int column = data.graphs.front().columns().Find(name);
  if (column == kNone) return false;
  return std::any_of(data.graphs.begin(), data.graphs.end(), [&](const InputGraph& graph) {
    const std::span<const int32_t> ids = graph.ids(column);
    return std::any_of(ids.begin(), ids.end(), [](int32_t id) { return id != kNone; });
  });
}

// Models of other columns are their makers' business.
void RequireLabels(const Dataset& data) {
  if (data.size() == 0) ThrowInvalid(data.name, "expected at least one example, got none");
  const ColumnSet& columns = data.graphs.front().columns();
  const bool ready = columns.Find(kLabelColumn) != kNone || columns.Find(kTargetColumn) != kNone;
  if (!ready || HasAny(data, kLabelColumn) || HasAny(data, kTargetColumn)) return;
  ThrowInvalid(data.name, data.task == LearningTask::kSimilarity ? "expected pairs with a score, got none"
                                                                 : "expected vertices with a class as label, got none");
}

bool AllFinite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

// The name of the first parameter whose gradient holds a number that is not finite; empty when there is none.
std::string FirstBadGradient(const Gradients& gradients) {
  for (int32_t p = 0; p < gradients.layout().declared(); ++p) {
    if (gradients.touched(p) && !AllFinite(gradients.Get(p))) return gradients.layout().declaration(p).name;
  }
  return {};
}

std::string DigestText(uint64_t digest) { return fmt::format("xxh64:{:016x}", digest); }

std::string Shortened(std::string_view text) {
  if (text.size() <= kLongText) return fmt::format("'{}'", text);
  Xxh64 digest;
  digest.Update(std::as_bytes(std::span(text)));
  return DigestText(digest.Digest());
}

std::string DescribeData(const Dataset* data) {
  if (data == nullptr) return "none";
  return fmt::format("{} examples {}", data->size(), DigestText(data->digest));
}

}  // namespace

std::string BestModelPath(const std::string& folder) { return folder + "/best.safetensors"; }
std::string LastModelPath(const std::string& folder) { return folder + "/last.safetensors"; }
std::string StatePath(const std::string& folder) { return folder + "/state"; }

Trainer::Trainer(Model& model, const TrainerOptions& options)
    : model_(&model),
      options_(Checked(options)),
      session_(model, options_.session),
      optimizer_(session_.MakeOptimizer(options_.optimizer)) {
  state_.current.epoch = 1;
}

TrainingResult Trainer::Run(const Dataset& train, const Dataset* dev, const TrainerCallbacks& callbacks) {
  CAVS_CHECK(agreement_.empty(), "a Trainer runs once");
  RequireLabels(train);
  if (dev != nullptr) RequireLabels(*dev);
  agreement_ = Agree(train, dev);
  if (options_.resume) Resume(train, callbacks);
  PrepareBatching(train, callbacks);
  if (dev != nullptr) evaluator_ = std::make_unique<Evaluator>(*model_, options_.session);
  Prefetcher prefetcher(session_, /*training=*/true);
  bool interrupted = false;
  while (!interrupted && state_.current.epoch <= options_.epochs) {
    interrupted = RunEpoch(train, prefetcher, callbacks);
    if (!interrupted) EndEpoch(dev, callbacks);
    SaveLast();
  }
  return {interrupted, state_.best, state_.step, skipped_};
}

void Trainer::Resume(const Dataset& train, const TrainerCallbacks& callbacks) {
  const std::string path = StatePath(options_.save_folder);
  state_ = LoadCheckpoint(path, agreement_, *model_, optimizer_);
  session_.set_step(state_.step);
  if (callbacks.log) {
    callbacks.log(LogLevel::kInfo, fmt::format("resumed from {} in epoch {} behind {} of {} examples", path,
                                               state_.current.epoch, state_.position, train.size()));
  }
}

void Trainer::PrepareBatching(const Dataset& train, const TrainerCallbacks& callbacks) {
  if (options_.session.batching != BatchingPolicy::kFsm) return;
  if (!model_->metadata().contains(std::string(kFsmPolicyKey))) {
    const BatchingSample sample = {.batch_size = options_.batch_size,
                                   .sharing = options_.session.sharing,
                                   .training = true,
                                   .seed = options_.seed};
    const FsmReport report = LearnBatching(train.graphs, sample, model_);
    if (callbacks.on_batching) callbacks.on_batching(report);
  }
  session_.RenewBatching();
}

void Trainer::RequireSomeStep() const {
  const EpochReport& report = state_.current;
  if (report.skipped == 0 || report.skipped < report.steps) return;
  throw NonFiniteError(fmt::format("[train] expected a minibatch with finite numbers in epoch {}, got {}, all skipped",
                                   report.epoch, report.steps));
}

bool Trainer::RunEpoch(const Dataset& train, Prefetcher& prefetcher, const TrainerCallbacks& callbacks) {
  const std::vector<int32_t> order = OrderOf(state_.current.epoch, train.size(), options_);
  const Minibatches minibatches(train.graphs, options_.batch_size,
                                std::span(order).subspan(static_cast<size_t>(state_.position)));
  Prefetcher::Pass pass(&prefetcher, minibatches.size(), minibatches);
  while (state_.position < train.size()) {
    RunStep(train, pass, callbacks);
    if (callbacks.on_step) {
      const double loss = state_.loss_sum / static_cast<double>(std::max<int64_t>(1, state_.current.predictions));
      callbacks.on_step({state_.current.epoch, state_.step, state_.position, train.size(), loss});
    }
    if (callbacks.should_stop && callbacks.should_stop()) return true;
    const bool save = options_.save_every > 0 && state_.step % options_.save_every == 0;
    if (save && state_.position < train.size()) SaveLast();
  }
  return false;
}

void Trainer::RunStep(const Dataset& train, Prefetcher::Pass& pass, const TrainerCallbacks& callbacks) {
  const StopWatch watch;
  const PlannedBatch& minibatch = *pass.Next();
  const BatchReport& report = session_.Accumulate(minibatch);
  const bool finite = std::isfinite(report.loss) && session_.Step(optimizer_).applied;
  if (!finite) HandleNonFinite(train, minibatch.examples(), report.loss, callbacks);
  EpochReport& current = state_.current;
  state_.position += std::ssize(minibatch.examples());
  session_.set_step(++state_.step);
  ++current.steps;
  current.seconds += watch.Seconds();
  current.peak_bytes = std::max(current.peak_bytes, session_.memory().peak);
  if (!finite) return;
  state_.loss_sum += report.loss;
  current.examples += report.graphs;
  current.vertices += report.vertices;
  current.predictions += report.predictions;
  current.tasks += report.tasks;
  current.launches += report.counters.launches;
  current.schedule_s += report.schedule_seconds;
  current.wait_s += report.wait_seconds;
}

void Trainer::HandleNonFinite(const Dataset& train, std::span<const Example> examples, double loss,
                              const TrainerCallbacks& callbacks) {
  const std::string message = std::isfinite(loss) ? DescribeBadGradient(train, examples) : DescribeBadLoss(train, loss);
  session_.DropGradients();
  if (options_.on_nan == OnNan::kStop) throw NonFiniteError(message);
  ++state_.current.skipped;
  ++skipped_;
  if (callbacks.log) callbacks.log(LogLevel::kWarning, message + "; this minibatch was skipped");
}

std::string Trainer::DescribeBadLoss(const Dataset& train, double loss) {
  const std::string what = fmt::format("[train] the loss of step {} is {}", state_.step + 1, loss);
  const NonFinite place = session_.FindNonFinite();
  if (!place.found) return fmt::format("{}: its sum over the minibatch is too large", what);
  return fmt::format("{}: the first number that is not finite comes from {} at vertex {} of {}", what, place.operation,
                     place.vertex, train.Describe(place.example));
}

std::string Trainer::DescribeBadGradient(const Dataset& train, std::span<const Example> examples) {
  const std::string what =
      fmt::format("[train] the loss of step {} is finite, but its gradient is not", state_.step + 1);
  // The gradient is a sum over the minibatch: example by example it shows where the number comes from. Dropout draws
  // from the step, which Step has counted already.
  session_.set_step(state_.step);
  for (const Example& example : examples) {
    session_.DropGradients();
    session_.Accumulate(std::span(&example, 1), std::ssize(examples));
    const std::string parameter = FirstBadGradient(session_.gradients());
    if (parameter.empty()) continue;
    return fmt::format("{}: that of parameter \"{}\" overflows or has no value at {}", what, parameter,
                       train.Describe(example.number));
  }
  return fmt::format("{}: its norm over the minibatch is too large", what);
}

bool Trainer::IsBest(const EpochReport& report, const Dataset* dev) const {
  const EpochReport& best = state_.best;
  if (!std::isfinite(dev != nullptr ? report.dev_loss : report.train_loss)) return false;
  if (best.epoch == 0) return true;
  if (dev == nullptr) return report.train_loss < best.train_loss;
  const bool higher = MetricsOf(dev->task).front().higher_is_better;
  const auto rank = [&](double figure) {
    return std::isfinite(figure) ? (higher ? figure : -figure) : -std::numeric_limits<double>::infinity();
  };
  const double now = rank(report.dev_metric), before = rank(best.dev_metric);
  return now != before ? now > before : report.dev_loss < best.dev_loss;
}

void Trainer::EndEpoch(const Dataset* dev, const TrainerCallbacks& callbacks) {
  RequireSomeStep();
  EpochReport& report = state_.current;
  if (report.predictions > 0) report.train_loss = state_.loss_sum / static_cast<double>(report.predictions);
  Evaluation evaluation;
  if (dev != nullptr) {
    evaluation = evaluator_->Evaluate(*dev, options_.batch_size);
    report.dev_loss = evaluation.loss;
    report.dev_metric = evaluation.*MetricsOf(dev->task).front().value;
    report.dev_accuracy = evaluation.root_accuracy;
    report.vertex_accuracy = evaluation.vertex_accuracy;
  }
  const bool is_best = IsBest(report, dev);
  if (is_best) {
    state_.best = report;
    if (!options_.save_folder.empty()) model_->Save(BestModelPath(options_.save_folder));
  }
  if (callbacks.on_epoch) callbacks.on_epoch(report, dev != nullptr ? &evaluation : nullptr, is_best);
  state_.current = {.epoch = report.epoch + 1};
  state_.position = 0;
  state_.loss_sum = 0;
}

void Trainer::SaveLast() const {
  if (options_.save_folder.empty()) return;
  model_->Save(LastModelPath(options_.save_folder));
  SaveCheckpoint(StatePath(options_.save_folder), state_, agreement_, *model_, optimizer_);
}

Agreement Trainer::Agree(const Dataset& train, const Dataset* dev) const {
  const OptimizerOptions& optimizer = options_.optimizer;
  Agreement agreement = {{"training data", DescribeData(&train)},
                         {"dev data", DescribeData(dev)},
                         {"batch_size", std::to_string(options_.batch_size)},
                         {"shuffle", options_.shuffle ? "true" : "false"},
                         {"seed", std::to_string(options_.seed)},
                         {"on_nan", options_.on_nan == OnNan::kStop ? "stop" : "skip"},
                         {"loss", options_.session.loss == LossReduction::kMean ? "mean" : "sum"},
                         {"optimizer", std::string(OptimizerName(optimizer.kind))},
                         {"lookup_updates", optimizer.sparse_updates ? "sparse" : "dense"}};
  const auto number = [&](const char* name, double value) { agreement[name] = fmt::format("{}", value); };
  number("lr", optimizer.lr);
  number("momentum", optimizer.momentum);
  number("beta1", optimizer.beta1);
  number("beta2", optimizer.beta2);
  number("epsilon", optimizer.epsilon);
  number("weight_decay", optimizer.weight_decay);
  number("clip", optimizer.clip);
  for (const auto& [name, value] : model_->metadata()) {
    if (name != "cavs_version" && name != kFsmPolicyKey)
      agreement[fmt::format("the model's {}", name)] = Shortened(value);
  }
  return agreement;
}

}  // namespace cavs
