// Compiler: the steps of Executable::Compile, in order: group, place, emit, nest, cut into runs, narrow. Internal to
// vertex/.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "vertex/executable.h"
#include "vertex/grouping.h"

namespace cavs {

class Compiler {
 public:
  Compiler(const Program& forward, const Program* backward, const PassOptions& options);
  std::shared_ptr<const Executable> Run();

 private:
  // An instruction of F or of dF.
  struct Site {
    bool backward = false;
    int32_t instruction = -1;
    bool valid() const { return instruction >= 0; }
  };
  class GroupEmitter;
  struct Section {
    std::vector<Group> groups;
    std::vector<Step>* steps = nullptr;
    bool backward = false;
  };

  const Program& ProgramOf(bool backward) const { return backward ? e_->backward_ : e_->forward_; }
  const Instruction& At(Site site) const {
    return ProgramOf(site.backward).instructions[static_cast<size_t>(site.instruction)];
  }
  const Value& ValueOf(ValueId id) const {
    return id < e_->forward_.value_count() ? e_->forward_.value(id) : e_->backward_.value(id);
  }
  int64_t WidthOf(ValueId id) const { return ValueOf(id).shape.width(); }

  // Grouping (compiler.cc).
  size_t ValueTotal() const;
  void ClassifyChannels();
  void FindInputColumns();
  void AliasPushes();
  void MakeSections(bool backward);
  void FindUses(bool backward);
  int32_t GroupOf(Site site) const { return group_of_[site.backward ? 1 : 0][static_cast<size_t>(site.instruction)]; }

  // Placement of values (compiler_placement.cc).
  void PlaceValues();
  void PlaceScattered();
  void PlaceConcatenated(bool backward);
  void PlaceRest(bool backward);
  bool Computes(ValueId id) const;
  bool IsIndexedView(ValueId id) const;
  bool NeedsRows(ValueId id) const;
  bool IsOfInput(const Location& location) const;
  bool NeedsMemory(ValueId id) const;
  Location ViewOf(const Instruction& instruction);
  Location NewRows(ValueId id);
  int32_t BufferFor(BufferKind kind, RowSpace space, int64_t width, int32_t id);
  int32_t ChannelBuffer(BufferKind kind, int32_t channel);
  int32_t IndexFor(const IndexSpec& spec);
  IndexSpec IndexOf(const Instruction& instruction) const;

  // Steps (compiler_steps.cc, and compiler_group.cc for fused groups).
  void EmitSteps();
  void EmitPlain(const Section& section, Site site);
  void EmitConcat(const Section& section, Site site);
  void EmitCopy(const Section& section, Site site, const Location& from, const Location& to, int64_t width);
  void EmitKernel(const Section& section, Site site);
  void EmitCollection(const Section& section, Site site);
  void EmitSumOfVertices(const Section& section, Site site);
  int32_t CollectionFor(Collection collection);
  void EmitGroup(const Section& section, const Group& group);
  Location SinkTarget(const Instruction& instruction);

  // Gathers that need no copy (compiler_nests.cc).
  void FindNests();
  std::optional<Nest> NestOf(int32_t buffer);
  bool AddSlot(const Step& step, int64_t column, Nest* nest);
  bool IsMovable(int32_t channel_class);

  // Runs of steps, and values that last for one block of a run (compiler_runs.cc).
  void CutIntoRuns();
  void NarrowToBlocks();
  // Calls visit(list) for every list of steps.
  template <typename Visit>
  void ForEachList(const Visit& visit);

  PassOptions options_;
  std::shared_ptr<Executable> e_;
  std::vector<Section> sections_;
  int32_t groups_ = 0;
  std::vector<int32_t> group_of_[2];     // by instruction of F, of dF; -1 for plain instructions
  std::vector<Site> producer_;           // by value
  std::vector<std::vector<Site>> uses_;  // by value
  std::vector<char> kept_;               // by value: a loss, an output
  std::vector<char> materialized_;       // by value: an indexed view that is copied into rows of its own
  std::map<std::tuple<BufferKind, int, int32_t, int32_t, int64_t>, int32_t> buffer_ids_;
};

template <typename Visit>
void Compiler::ForEachList(const Visit& visit) {
  for (auto* types : {&e_->forward_types_, &e_->backward_types_}) {
    for (FunctionSteps& function : *types) {
      visit(function.inputs);
      for (StepList& list : function.phases) visit(list);
    }
  }
  visit(e_->forward_head_);
  visit(e_->backward_head_);
}

}  // namespace cavs
