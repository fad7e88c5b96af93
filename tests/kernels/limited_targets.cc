// Linked into a test, makes Highway leave out the instruction sets in CAVS_TEST_DISABLED_TARGETS, so that the kernels
// for lesser CPUs are tested on any machine.
#include "hwy/targets.h"

namespace {

[[maybe_unused]] const bool kLimited = [] {
  hwy::DisableTargets(CAVS_TEST_DISABLED_TARGETS);
  return true;
}();

}  // namespace
