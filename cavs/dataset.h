// Data sets: a Corpus with a Vocabulary becomes the InputGraphs of a Model.
//
// A Dataset has the columns of one Model (see cavs/models/) and can be used by any number of threads that only read it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cavs/corpus.h"
#include "cavs/learning_task.h"
#include "cavs/model.h"
#include "graph/input_graph.h"

namespace cavs {

// Graphs of a Model, and what is known about them.
struct Dataset {
  std::string name;  // "sst:train.txt"
  std::string file;  // "train.txt", or empty
  LearningTask task = LearningTask::kTreeClasses;
  std::vector<InputGraph> graphs;
  std::vector<int64_t> lines;   // [graphs]: where each begins in its file, from 1; 0 for none
  std::string group_name;       // what `groups` are, "depth"; empty where there are none
  std::vector<int32_t> groups;  // [graphs]: of ListOps, how deep operators are nested; else empty
  ReaderStatistics statistics;  // `vertices` are those of the graphs
  Coverage coverage;
  Majority majority;  // of the classes at the roots
  uint64_t digest = 0;

  int64_t size() const { return std::ssize(graphs); }
  // "train.txt:12" for a graph that came from a file, else "example 12"; for messages.
  std::string Describe(int64_t example) const;
};

// Turns each tree into a graph of `model`, a ready-made one for the task of the corpus (cavs/models/):
// - trees with classes: leaves pull their word's row, vertices of one child have a missing second one, labels are those
//   of the trees;
// - sentences of n words: n + 1 vertices that read `<eos>` and the words, each the child of the next; the label of a
//   vertex is the word that comes next, of the last one `<eos>`;
// - pairs: every word is a vertex, above both trees stands the pair, whose target is the distribution of its score.
// Throws std::invalid_argument, naming both numbers, when the classes or the words of corpus and model differ.
Dataset MakeDataset(const Corpus& corpus, const Vocabulary& vocabulary, const Model& model);

}  // namespace cavs
