#include "tests/vertex/random_graphs.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

namespace cavs {
namespace {

// The same graph with vertex v renamed to name[v].
GraphParts Rename(const GraphParts& parts, std::span<const int32_t> name) {
  const size_t vertices = parts.types.size();
  std::vector<size_t> old(vertices);
  for (size_t v = 0; v < vertices; ++v) old[static_cast<size_t>(name[v])] = v;
  GraphParts result;
  result.child_begin.push_back(0);
  for (const size_t v : old) {
    result.types.push_back(parts.types[v]);
    for (int64_t edge = parts.child_begin[v]; edge < parts.child_begin[v + 1]; ++edge) {
      const int32_t child = parts.children[static_cast<size_t>(edge)];
      result.children.push_back(child == kNone ? kNone : name[static_cast<size_t>(child)]);
    }
    result.child_begin.push_back(std::ssize(result.children));
  }
  for (const GraphParts::ColumnValues& column : parts.columns) {
    GraphParts::ColumnValues values;
    values.rows = column.rows;
    for (const size_t v : old) values.ids.push_back(column.ids[v]);
    result.columns.push_back(std::move(values));
  }
  return result;
}

}  // namespace

GraphMaker::GraphMaker(const Program& f) : signature_(f.signature) {
  std::vector<Column> columns;
  for (const ColumnDeclaration& column : signature_->columns) {
    const bool ids = column.use == ColumnUse::kIds;
    columns.push_back({column.name, ids ? ColumnKind::kIds : ColumnKind::kRows, ids ? 1 : column.limit,
                       ids ? static_cast<int32_t>(column.limit) : 0});
  }
  columns_ = MakeColumns(std::move(columns));
  scatters_.assign(signature_->types.size(), std::vector<char>(signature_->channels.size(), 0));
  for (const TypeDeclaration& type : signature_->types) {
    gathers_.emplace_back(type.children == kAnyArity ? size_t{1} : static_cast<size_t>(type.children));
  }
  for (const Instruction& instruction : f.instructions) {
    const auto type = static_cast<size_t>(instruction.space.type);
    const int32_t channel = instruction.attributes.channel;
    if (instruction.op == Op::kScatter) scatters_[type][static_cast<size_t>(channel)] = 1;
    if (instruction.op == Op::kGather) {
      gathers_[type][static_cast<size_t>(instruction.attributes.slot)].push_back(channel);
    }
    if (instruction.op == Op::kGatherAll) {
      for (std::vector<int32_t>& slot : gathers_[type]) slot.push_back(channel);
    }
  }
}

bool GraphMaker::Accepts(int32_t type, int64_t slot, int32_t child_type) const {
  const auto& slots = gathers_[static_cast<size_t>(type)];
  const bool any_arity = signature_->types[static_cast<size_t>(type)].children == kAnyArity;
  const std::vector<int32_t>& channels = slots[any_arity ? 0 : static_cast<size_t>(slot)];
  return std::all_of(channels.begin(), channels.end(), [&](int32_t channel) {
    return scatters_[static_cast<size_t>(child_type)][static_cast<size_t>(channel)] != 0;
  });
}

void GraphMaker::AddChildren(const GraphOptions& options, CounterRandom& random, std::vector<char>* taken,
                             Parts* parts) const {
  const int32_t type = parts->types.back();
  const auto vertex = static_cast<int32_t>(parts->types.size() - 1);
  const int32_t declared = signature_->types[static_cast<size_t>(type)].children;
  const int64_t slots = declared == kAnyArity ? random.Below(options.most_children + 1) : declared;
  for (int64_t slot = 0; slot < slots; ++slot) {
    std::vector<int32_t> all, fresh;
    for (int32_t child = 0; child < vertex; ++child) {
      if (!Accepts(type, slot, parts->types[static_cast<size_t>(child)])) continue;
      all.push_back(child);
      if ((*taken)[static_cast<size_t>(child)] == 0) fresh.push_back(child);
    }
    const std::vector<int32_t>& choice = fresh.empty() || random.Uniform() < options.second_parent ? all : fresh;
    int32_t child = kNone;
    if (!choice.empty() && random.Uniform() >= options.missing_child) {
      child = choice[static_cast<size_t>(random.Below(std::ssize(choice)))];
      (*taken)[static_cast<size_t>(child)] = 1;
    }
    parts->children.push_back(child);
  }
  parts->child_begin.push_back(std::ssize(parts->children));
}

void GraphMaker::AddInputs(const GraphOptions& options, CounterRandom& random, Parts* parts) const {
  for (const ColumnDeclaration& declaration : signature_->columns) {
    GraphParts::ColumnValues values;
    int32_t rows = 0;
    for (size_t vertex = 0; vertex < parts->types.size(); ++vertex) {
      if (random.Uniform() < options.missing_input) {
        values.ids.push_back(kNone);
      } else if (declaration.use == ColumnUse::kIds) {
        values.ids.push_back(static_cast<int32_t>(random.Below(declaration.limit)));
      } else {
        values.ids.push_back(rows++);
        for (int64_t i = 0; i < declaration.limit; ++i) {
          values.rows.push_back(static_cast<float>(2 * random.Uniform() - 1));
        }
      }
    }
    parts->columns.push_back(std::move(values));
  }
}

InputGraph GraphMaker::Make(const GraphOptions& options, CounterRandom& random) const {
  const auto types = static_cast<int64_t>(signature_->types.size());
  GraphParts parts;
  parts.child_begin.push_back(0);
  std::vector<char> taken(static_cast<size_t>(options.vertices), 0);
  for (int64_t vertex = 0; vertex < options.vertices; ++vertex) {
    const bool last = vertex + 1 == options.vertices;
    const auto any = static_cast<int32_t>(random.Below(types));
    parts.types.push_back(last && options.root_type >= 0 ? options.root_type : any);
    AddChildren(options, random, &taken, &parts);
  }
  AddInputs(options, random, &parts);
  std::vector<int32_t> names(parts.types.size());
  std::iota(names.begin(), names.end(), 0);
  Shuffle(std::span(names), random);
  return InputGraph(columns_, Rename(parts, names));
}

std::unique_ptr<RandomBatch> GraphMaker::MakeBatch(int64_t graphs, bool exact, GraphOptions options,
                                                   CounterRandom& random) const {
  auto result = std::make_unique<RandomBatch>();
  const int64_t most = options.vertices;
  int64_t example = random.Below(1000);
  for (int64_t i = 0; i < graphs; ++i) {
    options.vertices = exact ? most : 1 + random.Below(most);
    result->graphs.push_back(std::make_unique<InputGraph>(Make(options, random)));
    result->batch.Add(*result->graphs.back(), example);
    example += 1 + random.Below(5);
  }
  return result;
}

}  // namespace cavs
