// Products that are added up: [x h] [W; U] for x W + h U.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "vertex/merging_draft.h"

namespace cavs {
namespace {

// A tree of additions whose inner sums nothing else reads.
struct Sum {
  int32_t root = -1;               // the last addition
  std::vector<int32_t> additions;  // all of them
  std::vector<ValueId> products;   // terms that are products, and that nothing else reads
  std::vector<ValueId> biases;     // terms that are vectors of parameters
  std::vector<ValueId> constants;  // terms that are constants
  std::vector<ValueId> others;     // with rows of their own
};

// Products of a sum that could become one: those of a phase, with different inputs and equally frozen weights.
struct Candidates {
  size_t sum = 0;
  std::vector<int32_t> products;
  std::vector<int32_t> weights;  // of each
};

// Products of a sum that become one.
struct Join {
  size_t sum = 0;
  size_t group = 0;
  std::vector<int32_t> products;
  std::vector<ValueId> inputs;  // of each
};

// A term of a rewritten sum.
struct Term {
  ValueId value = kNoValue;
  Phase phase = Phase::kHoisted;
  int32_t place = -1;   // of the instruction below: where it stands now, or -1 for a new one
  Instruction product;  // where the term is a product
};

class SumMerger {
 public:
  explicit SumMerger(MergingDraft* draft) : draft_(*draft) {}

  void Run() {
    for (int32_t i = 0; i < draft_.instruction_count(); ++i) {
      if (draft_.instruction(i).op == Op::kAdd && !IsInner(draft_.instruction(i).output)) sums_.push_back(Collect(i));
    }
    FindJoins();
    while (DropCostlyJoins()) continue;
    Rewrite();
    draft_.Apply(std::move(edits_));
  }

 private:
  Phase PhaseOf(ValueId value) const { return draft_.phase(draft_.producer(value)); }

  bool IsInner(ValueId sum) const {
    const int32_t producer = draft_.producer(sum);
    if (producer < 0 || draft_.instruction(producer).op != Op::kAdd || !draft_.IsReadOnce(sum)) return false;
    const Instruction& reader = draft_.instruction(draft_.uses(sum).front());
    return reader.op == Op::kAdd && reader.space == draft_.instruction(producer).space;
  }

  Sum Collect(int32_t root) const {
    Sum sum;
    sum.root = root;
    std::vector<ValueId> waiting = {draft_.instruction(root).output};
    while (!waiting.empty()) {
      const ValueId value = waiting.back();
      waiting.pop_back();
      const int32_t producer = draft_.producer(value);
      if (producer == root || IsInner(value)) {
        const Instruction& addition = draft_.instruction(producer);
        sum.additions.push_back(producer);
        waiting.insert(waiting.end(), addition.inputs.rbegin(), addition.inputs.rend());
      } else if (draft_.IsProduct(producer) && draft_.IsReadOnce(value)) {
        sum.products.push_back(value);
      } else {
        const Space kind = draft_.program().value(value).space.kind;
        std::vector<ValueId>& terms = kind == Space::kParameter  ? sum.biases
                                      : kind == Space::kConstant ? sum.constants
                                                                 : sum.others;
        terms.push_back(value);
      }
    }
    return sum;
  }

  void FindJoins() {
    std::vector<Candidates> candidates;
    for (size_t s = 0; s < sums_.size(); ++s) {
      std::map<std::pair<Phase, bool>, Candidates> found;
      std::set<ValueId> inputs;
      for (const ValueId term : sums_[s].products) {
        const int32_t product = draft_.producer(term), weights = draft_.WeightsOf(product);
        if (!inputs.insert(draft_.instruction(product).inputs[0]).second) continue;
        Candidates& same = found[{draft_.phase(product), draft_.parameter(weights).frozen}];
        same.sum = s;
        same.products.push_back(product);
        same.weights.push_back(weights);
      }
      for (auto& entry : found) candidates.push_back(std::move(entry.second));
    }
    std::vector<std::vector<int32_t>> places;
    places.reserve(candidates.size());
    for (const Candidates& c : candidates) places.push_back(c.weights);
    groups_ = draft_.GroupParameters(places);
    for (size_t g = 0; g < groups_.size(); ++g) MakeJoins(candidates, g);
  }

  // The joins of a group; its parameters lie in the order in which F computes the inputs of the first.
  void MakeJoins(const std::vector<Candidates>& candidates, size_t group) {
    std::vector<int32_t>& parameters = groups_[group].parameters;
    const auto product_of = [&](int32_t place, int32_t id) {
      const Candidates& c = candidates[static_cast<size_t>(place)];
      return c.products[static_cast<size_t>(std::find(c.weights.begin(), c.weights.end(), id) - c.weights.begin())];
    };
    const auto input_of = [&](int32_t place, int32_t id) {
      return draft_.instruction(product_of(place, id)).inputs[0];
    };
    const int32_t first = groups_[group].places.front();
    std::sort(parameters.begin(), parameters.end(),
              [&](int32_t a, int32_t b) { return input_of(first, a) < input_of(first, b); });
    for (const int32_t place : groups_[group].places) {
      Join join{candidates[static_cast<size_t>(place)].sum, group, {}, {}};
      for (const int32_t id : parameters) {
        join.products.push_back(product_of(place, id));
        join.inputs.push_back(input_of(place, id));
      }
      joins_.push_back(std::move(join));
    }
  }

  // Takes back the groups with a join that copies more than it saves. What is concatenated alike is so once.
  bool DropCostlyJoins() {
    std::map<std::vector<ValueId>, std::set<int32_t>> readers;
    std::map<std::vector<ValueId>, int64_t> saved;
    for (const Join& join : joins_) {
      readers[join.inputs].insert(join.products.begin(), join.products.end());
      const int64_t width = draft_.program().value(draft_.instruction(join.products.front()).output).shape.width();
      saved[join.inputs] += width * (std::ssize(join.products) - 1);
    }
    std::set<size_t> costly;
    for (const Join& join : joins_) {
      int64_t copied = 0;
      for (const ValueId input : join.inputs) copied += CopiedFloats(input, join.inputs, readers[join.inputs]);
      if (copied > saved[join.inputs]) costly.insert(join.group);
    }
    std::erase_if(joins_, [&](const Join& join) { return costly.contains(join.group); });
    return !costly.empty();
  }

  // Floats of a row that must be moved for `x` to lie in the concatenation `inputs`, which `readers` multiply.
  int64_t CopiedFloats(ValueId x, const std::vector<ValueId>& inputs, const std::set<int32_t>& readers) const {
    const int64_t width = draft_.program().value(x).shape.width();
    const Op op = draft_.instruction(draft_.producer(x)).op;
    if (op == Op::kSlice || op == Op::kPullRows) return width;
    const auto uses = draft_.uses(x);
    const bool free = std::all_of(uses.begin(), uses.end(), [&](int32_t use) {
      const Instruction& reader = draft_.instruction(use);
      const bool claims =
          reader.op == Op::kMatMul || reader.op == Op::kConcat || reader.op == Op::kScatter || reader.op == Op::kPush;
      return !claims || readers.contains(use) || reader.inputs == inputs;
    });
    return free ? 0 : width;
  }

  void Rewrite() {
    std::vector<ValueId> weights(groups_.size(), kNoValue);
    std::vector<std::vector<const Join*>> joins(sums_.size());
    for (const Join& join : joins_) {
      joins[join.sum].push_back(&join);
      if (weights[join.group] == kNoValue) weights[join.group] = OneBelowTheOther(groups_[join.group].parameters);
    }
    for (size_t s = 0; s < sums_.size(); ++s) RewriteSum(sums_[s], joins[s], weights);
  }

  ValueId OneBelowTheOther(const std::vector<int32_t>& parameters) {
    std::vector<ParameterPart> parts;
    parts.reserve(parameters.size());
    int64_t rows = 0;
    for (const int32_t id : parameters) {
      parts.push_back({id, rows, 0});
      rows += draft_.parameter(id).shape.rows();
    }
    return draft_.NewParameter(Shape::Matrix(rows, draft_.parameter(parameters.front()).shape.columns()), parts);
  }

  void RewriteSum(const Sum& sum, const std::vector<const Join*>& joins, const std::vector<ValueId>& weights) {
    std::vector<Instruction> written;
    std::vector<ValueId> biases = sum.biases;
    std::vector<Term> terms;
    std::set<int32_t> joined;
    for (const Join* join : joins) {
      joined.insert(join->products.begin(), join->products.end());
      terms.push_back(JoinedTerm(sum, *join, weights[join->group], &written));
      for (const int32_t product : join->products) {
        const std::vector<ValueId>& inputs = draft_.instruction(product).inputs;
        biases.insert(biases.end(), inputs.begin() + 2, inputs.end());
      }
    }
    for (const ValueId product : sum.products) {
      const int32_t place = draft_.producer(product);
      if (!joined.contains(place)) terms.push_back({product, PhaseOf(product), place, draft_.instruction(place)});
    }
    const auto by_phase = [](const Term& a, const Term& b) { return a.phase < b.phase; };
    std::stable_sort(terms.begin(), terms.end(), by_phase);
    const bool placed = PlaceBiases(&terms, &biases);
    if (joins.empty() && !placed) return;
    for (const ValueId other : sum.others) terms.push_back({other, PhaseOf(other), -1, {}});
    std::stable_sort(terms.begin(), terms.end(), by_phase);
    // What has no rows comes last, so that every addition has an operand with rows.
    biases.insert(biases.end(), sum.constants.begin(), sum.constants.end());
    for (const ValueId bias : biases) terms.push_back({bias, Phase::kDeferred, -1, {}});

    for (const int32_t addition : sum.additions) edits_[addition] = {};
    for (const int32_t product : joined) edits_[product] = {};
    WriteTerms(sum, &terms, &written);
    edits_[sum.root] = std::move(written);
  }

  // The product that a join becomes, behind the concatenation that it reads.
  Term JoinedTerm(const Sum& sum, const Join& join, ValueId weights, std::vector<Instruction>* written) {
    const Instruction& root = draft_.instruction(sum.root);
    Term term;
    term.phase = draft_.phase(join.products.front());
    term.value = draft_.NewValue(root.space, Shape::Vector(draft_.program().value(weights).shape.columns()));
    term.product = {.op = Op::kMatMul,
                    .space = root.space,
                    .output = term.value,
                    .inputs = {Concatenation(sum, join, written), weights},
                    .attributes = {}};
    return term;
  }

  ValueId Concatenation(const Sum& sum, const Join& join, std::vector<Instruction>* written) {
    for (const int32_t use : draft_.uses(join.inputs.front())) {
      const Instruction& reader = draft_.instruction(use);
      if (reader.op == Op::kConcat && reader.inputs == join.inputs && use < sum.root) return reader.output;
    }
    const auto [entry, is_new] = concatenations_.try_emplace(join.inputs, kNoValue);
    if (!is_new) return entry->second;
    int64_t width = 0;
    for (const ValueId input : join.inputs) width += draft_.program().value(input).shape.width();
    const RowSpace space = draft_.instruction(sum.root).space;
    entry->second = draft_.NewValue(space, Shape::Vector(width));
    written->push_back(
        {.op = Op::kConcat, .space = space, .output = entry->second, .inputs = join.inputs, .attributes = {}});
    return entry->second;
  }

  // Gives biases to the products that have none, and takes them off the list.
  static bool PlaceBiases(std::vector<Term>* terms, std::vector<ValueId>* biases) {
    bool placed = false;
    for (Term& term : *terms) {
      if (biases->empty()) break;
      if (term.product.inputs.size() != 2) continue;
      term.product.inputs.push_back(biases->front());
      biases->erase(biases->begin());
      placed = true;
    }
    return placed;
  }

  // The products, and the additions that make the value of the sum of all terms.
  void WriteTerms(const Sum& sum, std::vector<Term>* terms, std::vector<Instruction>* written) {
    const Instruction& root = draft_.instruction(sum.root);
    if (terms->size() == 1) terms->front().product.output = root.output;
    for (Term& term : *terms) {
      if (term.product.inputs.empty()) continue;
      if (term.place < 0) {
        written->push_back(std::move(term.product));
      } else {
        edits_[term.place] = {std::move(term.product)};
      }
    }
    ValueId total = terms->front().value;
    for (size_t t = 1; t < terms->size(); ++t) {
      const bool last = t + 1 == terms->size();
      const ValueId output =
          last ? root.output : draft_.NewValue(root.space, draft_.program().value(root.output).shape);
      written->push_back({.op = Op::kAdd,
                          .space = root.space,
                          .output = output,
                          .inputs = {total, (*terms)[t].value},
                          .attributes = {}});
      total = output;
    }
  }

  MergingDraft& draft_;
  std::vector<Sum> sums_;
  std::vector<ParameterGroup> groups_;
  std::vector<Join> joins_;
  std::map<std::vector<ValueId>, ValueId> concatenations_;
  MergingDraft::Edits edits_;
};

}  // namespace

void MergeSums(MergingDraft* draft) { SumMerger(draft).Run(); }

}  // namespace cavs
