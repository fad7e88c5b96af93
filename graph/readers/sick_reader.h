// Reads `sick:DIR`, the SICK data set (Marelli et al. 2014) as it is distributed, with parsed trees beside it.
//
// DIR holds the tables SICK_train.txt, SICK_trial.txt (the dev part) and SICK_test_annotated.txt, of which a score is
// read for each pair, and the folders train, dev and test with the trees of the same pairs in the form of treelstm:DIR
// (tree_pair_reader.h; their sim.txt is not read). Row n of a table is line n of its folder. In a table, tabs alone set
// columns apart: quotes are characters like any other. Safe to call from several threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/readers/text_file.h"
#include "graph/readers/tree.h"

namespace cavs {

enum class SickPart : uint8_t { kTrain, kDev, kTest };

// A row of a table.
struct SickRow {
  std::string id;
  std::string sentence_a;
  std::string sentence_b;
  double score = 0;  // relatedness, from 1 to 5
  std::string judgment;
  int64_t line = 0;  // in the file, from 1
};

// The rows behind the header, the first `max_rows` if that is above 0; lines of blanks are skipped. Throws ParseError
// for a header that is none, rows of other than five columns and scores that are none, and when there is no row.
std::vector<SickRow> ReadSickTable(const TextFile& file, int64_t max_rows = 0);

// The pairs of one part with their scores, the first `max_examples` if that is above 0. Throws ParseError for what is
// refused, also when table and trees are not of the same number, and std::invalid_argument when a file cannot be read.
TreeCorpus ReadSick(const std::string& folder, SickPart part, int64_t max_examples = 0);

}  // namespace cavs
