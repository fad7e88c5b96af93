// The sub-commands of `cavs`. Each runs to its end or throws: the message is one sentence for people, and main turns it
// into exit code 1. Called once, by the main thread.
#pragma once

#include "cavs/command/flag_table.h"
#include "cavs/command/flag_values.h"
#include "cavs/command/interrupt.h"
#include "cavs/command/output.h"
#include "cavs/dataset.h"

namespace cavs {

// One call of the program.
struct Invocation {
  const SubCommandSpec& command;
  FlagValues flags;  // a model that --load reads changes defaults
  DataPart part;     // of --data, where that is drawn
  Interrupt& interrupt;
  Output& out;  // stdout
};

void RunTrain(Invocation& call);
void RunEval(Invocation& call);
void RunPredict(Invocation& call);
void RunCheck(Invocation& call);
// Throws as well when a difference is above --tolerance, behind its table.
void RunVerify(Invocation& call);
void RunExplain(Invocation& call);
void RunBench(Invocation& call);
// Throws as well when a loss differs from the base's by more than --tolerance, behind its table.
void RunAblate(Invocation& call);

// Throws when the user has asked the program to end; for commands that have nothing to save.
void EndIfInterrupted(const Interrupt& interrupt);

}  // namespace cavs
