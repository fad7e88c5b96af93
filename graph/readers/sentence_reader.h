// Reads `lm:` text: one sentence a line, tokens between ASCII blanks, in any number, before the first token too.
//
// A sentence becomes a chain (tree.h): its first token is the only leaf, its last one the root. Words are taken in
// their look-up form (NormalizeToken). Lines of blanks are no sentences; they are counted. Safe to call from several
// threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "graph/readers/text_file.h"
#include "graph/readers/tree.h"

namespace cavs {

// What a model of sentences reads before the first token and predicts behind the last one. It is word 0 of every corpus
// of sentences, but in none of its chains (unless the text spells it), so that counts are those of the text's tokens.
inline constexpr std::string_view kEndOfSentence = "<eos>";

// The sentences of a text, the first `max_examples` if that is above 0. Throws ParseError when there is none.
TreeCorpus ReadSentences(const TextFile& file, int64_t max_examples = 0);

// The same for the file at `path`. Throws std::invalid_argument when it cannot be read.
TreeCorpus ReadSentenceFile(const std::string& path, int64_t max_examples = 0);

}  // namespace cavs
