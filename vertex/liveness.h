// Liveness: when, in the order of a run, each buffer of an Executable has to be there. Computed once per model, for
// runs of F alone and for those of F and dF.
//
// Times are positions 0, 1, ...: each run of steps of a straight part (head, hoisted, deferred) has one of its own, in
// order of execution; the recurrent steps of all types have one together, as tasks interleave them; the last one is the
// end, when results are read. Results are losses, outputs, states, and the rows of lookup tables' gradients.
// A value type; const use from any number of threads.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace cavs {

class Executable;

// Positions, both included. Not used: nothing reads or writes the buffer, or it is not a run's own, or its rows are
// those of a table (Nest).
struct Lifetime {
  int32_t first = -1, last = -1;
  bool used() const { return first >= 0; }
};

struct Liveness {
  std::vector<Lifetime> lifetimes;                           // by buffer
  std::vector<int32_t> births, deaths;                       // used buffers, by first and by last position
  std::vector<std::pair<int32_t, std::string_view>> phases;  // first position and name, ascending
  int32_t backward_begin = 0;                                // position of the first step of dF
  int32_t end = 0;

  // The part of a run that a position lies in: "recurrent", "d head", "end".
  std::string_view PhaseOf(int32_t position) const;
};

// `backward`: of runs of F and dF.
Liveness FindLifetimes(const Executable& executable, bool backward);

}  // namespace cavs
