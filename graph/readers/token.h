// The look-up form of a token: one rule for training data, held-out data, word-vector files and prediction.
// Pure functions, safe from any thread.
#pragma once

#include <string>
#include <string_view>

namespace cavs {

// Undoes the escapes of the Penn Treebank: `\/` is `/`, `\*` is `*`, and a token that is as a whole -LRB-, -RRB-,
// -LSB-, -RSB-, -LCB- or -RCB- is `(`, `)`, `[`, `]`, `{` or `}`. Everything else, letter case included, stays.
std::string NormalizeToken(std::string_view token);

}  // namespace cavs
