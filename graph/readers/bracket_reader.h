// Reads bracketed trees: `sst:` (one strictly binary tree a line, a class at every vertex) and `tree:` (any arity, any
// label or none, over several lines). A leaf is `(LABEL word)`, an inner vertex `(LABEL child child ...)`.
//
// Words are taken in their look-up form (NormalizeToken), tags as they stand. In `tree:` a bracket without a label
// around a whole tree, `( (S ...))`, is dropped; with two or more children it stays, as a vertex without label. Time is
// linear in the text and depth is bounded by memory alone: nothing recurses. Whatever is refused is a ParseError at
// line and column; inside a tree it names the line on which the tree began. Safe to call from several threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "graph/readers/text_file.h"
#include "graph/readers/tree.h"

namespace cavs {

// What becomes of a vertex of more than two children: kept, `((a b) c)`, or `(a (b c))`. The vertices that are added
// have no class, and the tag `@` before the tag of the vertex that is split.
enum class Binarize : uint8_t { kKeep, kLeft, kRight };

// What becomes of a vertex of one child. A chain that is collapsed is one vertex: it keeps the class of its highest
// bracket that has one, so that no root loses its label, and word, children and tag of its lowest one (the tag of the
// next one above where that has none).
enum class Unary : uint8_t { kCollapse, kKeep };

// What the labels of `tree:` are. With kAuto a label is a class if it is a whole number from 0 to classes - 1, without
// sign and leading zeros, and else a tag; with kClasses any label that is no class is refused; with kTags none is a
// class.
enum class Labels : uint8_t { kAuto, kClasses, kTags };

struct BracketOptions {
  bool sst = false;     // the rules of `sst:`; labels, binarize and unary then play no part
  int32_t classes = 5;  // classes are 0 .. classes - 1
  Labels labels = Labels::kAuto;
  Binarize binarize = Binarize::kKeep;
  Unary unary = Unary::kCollapse;
  int32_t max_children = 0;   // more (after binarisation) are refused; 0: any number
  bool keep_escapes = false;  // words as they stand instead of in their look-up form
  int64_t max_examples = 0;   // stop after so many trees; 0: read all
};

// "none", "left", "right" and "collapse", "keep". Throw std::invalid_argument naming the choices.
Binarize ParseBinarize(std::string_view name);
Unary ParseUnary(std::string_view name);

// The trees of a text, in its order. Throws ParseError, also when there is no tree at all.
TreeCorpus ReadBrackets(const TextFile& file, const BracketOptions& options);

// The same for the file at `path`. Throws std::invalid_argument when it cannot be read.
TreeCorpus ReadBracketFile(const std::string& path, const BracketOptions& options);

}  // namespace cavs
