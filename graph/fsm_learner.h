// Learns an FsmPolicy from sample minibatches, as ED-Batch does (Chen et al., ICML 2023, section 3): tabular
// Q-learning.
//
// A play schedules a minibatch, one task an action. The reward of a task of type t is -1 + ready(t) / open(t), where
// open(t) counts the vertices of t that wait for no other vertex of t (graph/task_simulation.h): 0 when nothing is
// lost. Values are bootstrapped over 10 steps, with rate 0.4 and no discount; exploration falls from 0.5 to 0.05 by a
// factor of 0.9 a play. Every 50 plays the table is tried out, and learning ends when its tasks are less than 1.01
// times their lower bound. Equal samples and seeds give equal policies. Safe to call from any thread.
#pragma once

#include <cstdint>
#include <span>

#include "graph/fsm_policy.h"
#include "graph/graph_batch.h"

namespace cavs {

struct FsmLearnOptions {
  uint64_t seed = 1;
  int64_t max_plays = 1000;  // of each encoding of states
  // Array elements that all plays may touch (TaskSimulation::EpisodeWork), which bounds the time to about a second,
  // whatever the sample. Nothing is learnt from minibatches that are too large for one try-out.
  int64_t max_work = int64_t{1} << 28;
};

// Tasks are summed over the minibatches of the sample.
struct FsmReport {
  int64_t minibatches = 0, vertices = 0;
  int64_t plays = 0;
  int64_t tasks = 0;  // of the policy
  int64_t frontier_tasks = 0, agenda_tasks = 0;
  int64_t lower_bound = 0;
  double seconds = 0;
};

struct LearnedFsm {
  FsmPolicy policy;
  FsmReport report;
};

// Plays every other minibatch of the sample and keeps what needs the fewest tasks over all of them, be that the plain
// frontier or agenda policy: on the sample the result is never worse than these two. What needs more tasks than before
// on the minibatches that are not played is not kept. Rules by size are kept where they do better than rules by set
// alone. An empty sample gives the frontier policy.
LearnedFsm LearnFsmPolicy(std::span<const GraphBatch> sample, const FsmLearnOptions& options = {});

}  // namespace cavs
