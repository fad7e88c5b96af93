// Uses the installed library as a stranger would: trains a small model, with command-line flags of its own that bear
// the same names as those of the `cavs` command. Exits 0 if it works.
#include <cavs/cavs.h>
#include <gflags/gflags.h>

#include <cstdio>
#include <vector>

DEFINE_int32(batch_size, 2, "copies of the one example");
DEFINE_double(lr, 0.5, "learning rate");

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  cavs::Model model;
  const auto h = model.State("h", {4});
  const auto words = model.Lookup("words", 3, 4), u = model.Parameter("U", {8, 4});
  auto leaf = model.VertexType("leaf", 0), node = model.VertexType("node", 2);
  leaf.Define([&](cavs::Vertex& v) { v.Scatter(h, v.Pull(words, "word")); });
  node.Define([&](cavs::Vertex& v) {
    const auto out = Tanh(MatMul(Concat(v.Gather(0, h), v.Gather(1, h)), u));
    v.Scatter(h, out);
    v.Push("h", out);
  });
  model.Loss(CrossEntropy(MatMul(model.Pushed("h"), model.Parameter("W", {4, 2})), model.Label("label", 2)));

  cavs::GraphBuilder builder(model);
  std::vector<cavs::InputGraph> graphs;
  for (int i = 0; i < FLAGS_batch_size; ++i) {
    const int32_t a = builder.Add(leaf, {{"word", 1}}), b = builder.Add(leaf, {{"word", 2}});
    builder.Add(node, {{"label", 1}}, {a, b});
    graphs.push_back(builder.Build());
  }
  cavs::Session session(model);
  auto optimizer = session.MakeOptimizer({.kind = cavs::OptimizerKind::kSgd, .lr = FLAGS_lr});
  const double first = session.Train(graphs, optimizer);
  double last = first;
  for (int step = 0; step < 50; ++step) last = session.Train(graphs, optimizer);
  std::printf("consumer: loss %.4f, then %.4f\n", first, last);
  return last < 0.1 * first ? 0 : 1;
}
