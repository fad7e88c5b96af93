#include "graph/fsm_learner.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cavs/base/random.h"
#include "cavs/base/stop_watch.h"
#include "graph/schedule.h"
#include "graph/scheduler.h"
#include "graph/task_simulation.h"

namespace cavs {
namespace {

constexpr int64_t kBootstrapSteps = 10;
constexpr double kLearningRate = 0.4;
constexpr double kFirstExploration = 0.5, kExplorationDecay = 0.9, kLeastExploration = 0.05;
constexpr int64_t kPlaysBetweenTrials = 50;
constexpr double kNearLowerBound = 1.01;

// Sets the draws apart from whatever else is drawn from the seed.
constexpr uint64_t kLearningStream = 0x66736D;  // "fsm"

enum class Encoding : uint8_t { kSet, kSize };

// Values of actions by state, and the plays that change them.
class QTable {
 public:
  QTable(Encoding encoding, uint64_t seed)
      : encoding_(encoding), random_(HashCounter(seed, kLearningStream), static_cast<uint64_t>(encoding)) {}

  void Play(TaskSimulation* game) {
    path_.clear();
    for (game->Restart(); !game->ready_types().empty();) {
      const State state = Observe(*game);
      const int64_t action = random_.Uniform() < exploration_ ? random_.Below(state.count) : Best(state);
      const int32_t type = state_[static_cast<size_t>(action)];
      const double reward =
          -1 + static_cast<double>(game->ready_count(type)) / static_cast<double>(game->open_count(type));
      path_.push_back({state, static_cast<size_t>(state.first + action), reward});
      game->Run(type);
    }
    Update();
    exploration_ = std::max(kLeastExploration, exploration_ * kExplorationDecay);
  }

  // The best action that has been tried, in every state with a choice.
  std::vector<FsmRule> Rules() const {
    std::vector<FsmRule> rules;
    for (const auto& [ready, first] : states_) {
      if (ready.size() < 2) continue;
      int32_t chosen = kNone;
      double best = 0;
      for (size_t i = 0; i < ready.size(); ++i) {
        const size_t at = static_cast<size_t>(first) + i;
        if (!tried_[at] || (chosen != kNone && values_[at] <= best)) continue;
        chosen = ready[i];
        best = values_[at];
      }
      rules.push_back({ready, chosen});
    }
    return rules;
  }

 private:
  // The values of a state's actions are values_[first .. first + count).
  struct State {
    int64_t first, count;
  };
  struct Step {
    State state;
    size_t action;
    double reward;
  };

  State Observe(const TaskSimulation& game) {
    state_.assign(game.ready_types().begin(), game.ready_types().end());
    if (encoding_ == Encoding::kSet) {
      std::sort(state_.begin(), state_.end());
    } else {
      OrderBySize(std::span(state_), [&](int32_t type) { return game.ready_count(type); });
    }
    const auto [place, is_new] = states_.try_emplace(state_, std::ssize(values_));
    if (is_new) {
      values_.resize(values_.size() + state_.size(), 0.0);
      tried_.resize(values_.size(), 0);
    }
    return {place->second, std::ssize(state_)};
  }

  // Rewards are never positive, so that an action which has not been tried looks best.
  int64_t Best(const State& state) const {
    const auto begin = values_.begin() + state.first;
    return std::max_element(begin, begin + state.count) - begin;
  }

  // From the last step to the first, so that one play carries its end to its beginning.
  void Update() {
    double rewards = 0;
    for (int64_t i = std::ssize(path_) - 1; i >= 0; --i) {
      const Step& step = path_[static_cast<size_t>(i)];
      rewards += step.reward;
      double target = rewards;
      if (i + kBootstrapSteps < std::ssize(path_)) {
        const Step& later = path_[static_cast<size_t>(i + kBootstrapSteps)];
        rewards -= later.reward;
        target = rewards + values_[static_cast<size_t>(later.state.first + Best(later.state))];
      }
      values_[step.action] += kLearningRate * (target - values_[step.action]);
      tried_[step.action] = 1;
    }
  }

  Encoding encoding_;
  CounterRandom random_;
  double exploration_ = kFirstExploration;
  std::map<std::vector<int32_t>, int64_t> states_;
  std::vector<double> values_;
  std::vector<char> tried_;
  std::vector<int32_t> state_;  // observed last
  std::vector<Step> path_;      // of a play
};

class Learner {
 public:
  Learner(std::span<const GraphBatch> sample, const FsmLearnOptions& options) : sample_(sample), options_(options) {}

  LearnedFsm Learn() {
    const StopWatch watch;
    Measure();
    if (!IsDone()) MakeGames();
    const int64_t work = options_.max_work / 2;
    if (!IsDone()) LearnRules(Encoding::kSet, work);
    if (!IsDone()) LearnRules(Encoding::kSize, work);
    result_.report.seconds = watch.Seconds();
    return std::move(result_);
  }

 private:
  // The plain policies, of which the better one is the fallback and the first candidate.
  void Measure() {
    FsmReport& report = result_.report;
    report.minibatches = std::ssize(sample_);
    const auto frontier = MakeScheduler(BatchingPolicy::kFrontier);
    for (const GraphBatch& batch : sample_) {
      frontier->Plan(batch, &schedule_);
      const ScheduleReport planned = Report(batch, schedule_);
      report.vertices += planned.vertices;
      report.frontier_tasks += planned.tasks;
      report.lower_bound += planned.task_lower_bound;
    }
    report.agenda_tasks = CountTasks(FsmPolicy(FsmFallback::kAgenda)).all;
    const bool agenda = report.agenda_tasks < report.frontier_tasks;
    result_.policy = FsmPolicy(agenda ? FsmFallback::kAgenda : FsmFallback::kFrontier);
    const Counts counts = CountTasks(result_.policy);
    report.tasks = counts.all;
    unplayed_tasks_ = counts.unplayed;
  }

  bool IsDone() const {
    const FsmReport& report = result_.report;
    return static_cast<double>(report.tasks) < kNearLowerBound * static_cast<double>(report.lower_bound) ||
           report.tasks == report.lower_bound;
  }

  // Tasks over the sample, and over its minibatches that are not played.
  struct Counts {
    int64_t all = 0, unplayed = 0;
  };
  static bool IsPlayed(size_t minibatch) { return minibatch % 2 == 0; }

  Counts CountTasks(const FsmPolicy& policy) {
    const auto scheduler = MakeScheduler(BatchingPolicy::kFsm, std::make_shared<const FsmPolicy>(policy));
    Counts counts;
    for (size_t i = 0; i < sample_.size(); ++i) {
      scheduler->Plan(sample_[i], &schedule_);
      counts.all += schedule_.task_count();
      if (!IsPlayed(i)) counts.unplayed += schedule_.task_count();
    }
    return counts;
  }

  void MakeGames() {
    for (size_t i = 0; i < sample_.size(); ++i) {
      if (!IsPlayed(i)) continue;
      const int64_t work = TaskSimulation::EpisodeWork(sample_[i]);
      // Half of the work is for each encoding.
      if (work > options_.max_work / (2 * kPlaysBetweenTrials)) continue;
      games_.push_back({TaskSimulation(sample_[i]), work});
    }
  }

  void LearnRules(Encoding encoding, int64_t work) {
    QTable table(encoding, options_.seed);
    const FsmPolicy base = result_.policy;
    for (int64_t play = 0; play < options_.max_plays && !games_.empty(); ++play) {
      Game& game = games_[static_cast<size_t>(play) % games_.size()];
      work -= game.work;
      if (work < 0) break;
      table.Play(&game.simulation);
      ++result_.report.plays;
      if ((play + 1) % kPlaysBetweenTrials != 0) continue;
      Try(encoding == Encoding::kSet ? FsmPolicy(base.fallback(), {}, table.Rules())
                                     : WithRulesBySize(base, table.Rules()));
      if (IsDone()) break;
    }
  }

  // Leaves out the rules that say what `base` says anyway.
  static FsmPolicy WithRulesBySize(const FsmPolicy& base, std::vector<FsmRule> rules) {
    std::erase_if(rules, [&](const FsmRule& rule) {
      std::vector<int32_t> set = rule.ready;
      std::sort(set.begin(), set.end());
      const int32_t known = base.FindBySet(set);
      const bool by_frontier = known == kNone && base.fallback() == FsmFallback::kFrontier;
      return rule.chosen == (by_frontier ? rule.ready.front() : known);
    });
    return FsmPolicy(base.fallback(), std::move(rules), {base.by_set().begin(), base.by_set().end()});
  }

  void Try(FsmPolicy candidate) {
    const Counts counts = CountTasks(candidate);
    if (counts.all >= result_.report.tasks || counts.unplayed > unplayed_tasks_) return;
    result_.report.tasks = counts.all;
    unplayed_tasks_ = counts.unplayed;
    result_.policy = std::move(candidate);
  }

  struct Game {
    TaskSimulation simulation;
    int64_t work;
  };

  std::span<const GraphBatch> sample_;
  const FsmLearnOptions& options_;
  std::vector<Game> games_;
  Schedule schedule_;
  LearnedFsm result_;           // the best so far
  int64_t unplayed_tasks_ = 0;  // of its policy
};

}  // namespace

LearnedFsm LearnFsmPolicy(std::span<const GraphBatch> sample, const FsmLearnOptions& options) {
  return Learner(sample, options).Learn();
}

}  // namespace cavs
