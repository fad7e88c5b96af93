// What a property is tested on: a random model with its parameters and its oracle, and random batches that fit it.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "backprop/differentiate.h"
#include "tests/vertex/random_graphs.h"
#include "tests/vertex/random_model.h"
#include "tests/vertex/snapshot.h"

namespace cavs {

// Largest difference from double precision over the largest value of a tensor; honest f32 gives about 3e-7.
inline constexpr double kTolerance = 1e-5;

struct Subject {
  Subject(uint64_t seed, bool dropout)
      : f(ModelMaker(seed, dropout).Make()),
        df(Differentiate(f)),
        parameters(f.signature, seed),
        interpreter(f, &df, parameters) {}

  std::unique_ptr<RandomBatch> MakeBatch(int64_t graphs, int64_t vertices, uint64_t seed) const {
    GraphOptions options;
    options.vertices = vertices;
    CounterRandom random(seed, 78);
    return GraphMaker(f).MakeBatch(graphs, false, options, random);
  }

  Program f, df;
  ParameterStore parameters;
  Interpreter interpreter;
};

// Options that differ from seed to seed, in the rows of the head and in packed and plain products too.
inline RunOptions OptionsFor(uint64_t seed) {
  constexpr HeadRows kHeads[] = {HeadRows::kLabelled, HeadRows::kAll, HeadRows::kRoots};
  return {.training = true,
          .head = kHeads[seed % 3],
          .seed = seed,
          .step = seed + 1,
          .packed = seed % 2 == 0,
          .loss_scale = 0.25f};
}

}  // namespace cavs
