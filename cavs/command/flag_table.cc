#include "cavs/command/flag_table.h"

#include <algorithm>
#include <array>

#include "cavs/base/error.h"
#include "cavs/text.h"

namespace cavs {
namespace {

constexpr std::array kSubCommands = std::to_array<SubCommandSpec>({
    {SubCommand::kTrain,
     "train",
     "trains a model; prints the effective configuration first, saves the best and the last model under --save",
     "cavs train --train=listops:generate --dev=listops:generate --epochs=5 --save=run",
     {"train"}},
    {SubCommand::kEval,
     "eval",
     "metrics of a saved model on data",
     "cavs eval --load=run/best.safetensors --data=sst:test.txt",
     {"load", "data"}},
    {SubCommand::kPredict,
     "predict",
     "one JSON line per example on stdout, in input order",
     "cavs predict --load=run/best.safetensors --data=sst:test.txt",
     {"load", "data"}},
    {SubCommand::kCheck,
     "check",
     "reads data only: counts, depth, arity, vocabulary coverage, what was skipped; draws the first graph as text",
     "cavs check --train=sst:train.txt --dev=sst:dev.txt",
     {"data|train|dev|test"}},
    {SubCommand::kVerify,
     "verify",
     "runs examples under the chosen policies against a double-precision interpreter and prints the largest "
     "differences; fails above --tolerance",
     "cavs verify --data=listops:generate --max_examples=100 --batching=agenda",
     {"data"}},
    {SubCommand::kExplain,
     "explain",
     "the vertex function before and after each pass, the schedule of the first minibatch, memory by tensor",
     "cavs explain --data=listops:generate --dot",
     {"data"}},
    {SubCommand::kBench,
     "bench",
     "the time of a training step by its parts, in file order, and its share of this machine's matrix-product rate",
     "cavs bench --data=sst:train.txt --hidden=256 --batch_size=64 --threads=1",
     {"data"}},
    {SubCommand::kAblate,
     "ablate",
     "the same training steps under many policies, in turns in one process: times, memory, and whether the losses "
     "agree; every policy takes a list, --threads=1,2, and without any list each is tried against the default",
     "cavs ablate --data=sst:train.txt --batching=frontier,depth --threads=1,2 --svg=a.svg",
     {"data"}},
});

constexpr std::array kDataFormats = std::to_array<DataFormat>({
    {"listops", "listops:generate makes expressions from --seed, listops:FILE reads them, one a line"},
    {"sst", "one binary tree a line, a label from 0 to 4 at every vertex: (3 (2 not) (1 bad))"},
    {"tree", "bracketed trees with any label or none, over several lines if need be: (S (NP you) (VP run))"},
    {"lm", "one sentence a line, words between blanks; at each word the model predicts the next one"},
    {"treelstm", "a folder of pairs of dependency trees: a.toks, a.parents, b.toks, b.parents, and scores in sim.txt"},
    {"sick",
     "the folder of the SICK data: SICK_train.txt, SICK_trial.txt (dev), SICK_test_annotated.txt, and the trees of "
     "each part in the form of treelstm in train, dev and test"},
});

template <typename Spec>
const Spec* FindByName(std::span<const Spec> specs, std::string_view name) {
  const auto found = std::find_if(specs.begin(), specs.end(), [&](const Spec& spec) { return spec.name == name; });
  return found == specs.end() ? nullptr : &*found;
}

}  // namespace

std::span<const SubCommandSpec> SubCommands() { return kSubCommands; }
std::span<const DataFormat> DataFormats() { return kDataFormats; }

const SubCommandSpec& Describe(SubCommand command) {
  for (const SubCommandSpec& spec : kSubCommands) {
    if (spec.command == command) return spec;
  }
  ThrowInvalid("Describe", "expected a sub-command of the table, got another value");
}

const SubCommandSpec* FindSubCommand(std::string_view name) { return FindByName(SubCommands(), name); }

const FlagSpec* FindFlag(std::string_view name) { return FindByName(Flags(), name); }

std::vector<std::string_view> ValuesToTry(const FlagSpec& flag) {
  if (flag.type == FlagType::kSwitch) return {"true", "false"};
  return SplitText(flag.choices.empty() ? flag.tried : flag.choices, '|');
}

std::vector<std::string_view> UsersOf(const FlagSpec& flag) {
  std::vector<std::string_view> users;
  for (const SubCommandSpec& spec : kSubCommands) {
    if (IsUsedBy(flag, spec.command)) users.push_back(spec.name);
  }
  return users;
}

}  // namespace cavs
