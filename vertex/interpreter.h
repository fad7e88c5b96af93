// Interpreter: runs F and dF one vertex at a time, in double precision, straight from a GraphBatch.
// It is the oracle of the tests and of `cavs verify`: deliberately simple, without schedules, batching, phases or
// kernels, and independent of the Executor. Rows of a vertex are computed in the order in which F declares them.
// Values of the whole batch are kept, 8 bytes an element. No function recurses over the depth of a graph.
//
// Not thread-safe; several Interpreters may run at the same time.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph_batch.h"
#include "vertex/executor.h"
#include "vertex/parameters.h"
#include "vertex/program.h"

namespace cavs {

class Interpreter {
 public:
  // Copies the programs, and the parameters to double. `df` is the derivative of `f`; without it (null) Backward must
  // not be called. Phases, and whatever a pass did to an instruction's place, are ignored.
  Interpreter(const Program& f, const Program* df, const ParameterStore& parameters);
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // [rows * columns] of a parameter, row-major; may be changed between runs.
  std::vector<double>& parameter(int32_t parameter) { return parameters_[static_cast<size_t>(parameter)]; }

  // Runs F; `batch` must live until after Backward. Throws std::invalid_argument when the graphs do not fit F.
  void Forward(const GraphBatch& batch, const RunOptions& options);
  // Runs dF over the reverse order of the last Forward. Overwrites the gradients.
  void Backward();

  // As the functions of Executor that have the same names, in double.
  double loss() const;
  std::span<const int32_t> head_vertices() const { return head_vertices_; }
  std::span<const double> output(size_t output) const;
  std::span<const double> loss_rows(size_t loss) const;
  std::span<const double> state(int32_t channel, int32_t vertex) const;
  // Gradient of a parameter, [rows * columns], dense for lookup tables too; zero where nothing was added.
  const std::vector<double>& gradient(int32_t parameter) const { return gradients_[static_cast<size_t>(parameter)]; }

 private:
  // The instructions of one vertex type, or of the head.
  using Function = std::vector<const Instruction*>;
  struct Functions {
    std::vector<Function> types;
    Function head;
  };
  // One row at which an instruction runs.
  struct Site {
    int32_t vertex;  // of the batch: the vertex, the parent of the edge, or the vertex of the head row
    int64_t slot;    // of the edge; -1 otherwise
    int64_t row;     // inside of the instruction's space
  };
  // How the values of a graph's columns are found: a column of the Program -> a column of the graph or kNone.
  struct Columns {
    const ColumnSet* set;
    std::vector<int32_t> graph_column;
  };
  static Functions Group(const Program& program);

  void CheckGraphs() const;
  void CheckChildren(int32_t vertex) const;
  void BindColumns();
  void NumberRows();
  void Sort();
  void FindHeadRows(HeadRows rows);
  bool Pushes(int32_t type) const;
  bool Labelled(int32_t vertex) const;
  void AllocateRows(ValueId begin, ValueId end);
  int64_t RowCount(const RowSpace& space) const;

  void RunVertex(const Function& function, int32_t vertex);
  void RunHead(const Function& function);
  void Run(const Instruction& instruction, const Site& site);
  bool RunSource(const Instruction& instruction, const Site& site);
  bool RunSink(const Instruction& instruction, const Site& site);
  bool RunParameterGradient(const Instruction& instruction, const Site& site);
  bool RunChildren(const Instruction& instruction, const Site& site);
  void RunMaxChildrenGrad(const Instruction& instruction, int64_t slots, int64_t first_edge, int64_t vertex_row);
  void RunRow(const Instruction& instruction, const Site& site);

  std::span<const double> Operand(ValueId id, int64_t row) const;
  std::span<double> Result(const Instruction& instruction, int64_t row);
  // Row of a channel, or of its gradient, that belongs to a vertex.
  std::span<double> ChannelRow(std::vector<std::vector<double>>& channels, int32_t channel, int32_t vertex) const;
  int32_t Child(const Site& site, int64_t slot) const;
  int32_t Id(int32_t column, int32_t vertex) const;
  std::span<const float> FloatRow(int32_t column, int32_t vertex) const;
  uint64_t RowKey(const Site& site) const;

  Program f_;
  Program df_;
  Functions forward_;
  Functions backward_;
  const std::vector<Value>* value_table_;         // of dF, which extends that of F, or of F
  std::vector<std::vector<char>> type_scatters_;  // [types][channels]
  std::vector<std::vector<char>> type_pushes_;    // [types][channels]
  std::vector<std::vector<double>> parameters_;
  std::vector<std::vector<double>> gradients_;

  // Of the last Forward.
  const GraphBatch* batch_ = nullptr;
  RunOptions options_;
  std::vector<Columns> columns_;
  std::vector<size_t> columns_of_graph_;  // [graphs] -> columns_
  std::vector<int32_t> order_;            // children before parents
  std::vector<int64_t> row_of_vertex_;    // inside of its type
  std::vector<int64_t> first_edge_;       // of each vertex, inside of its type
  std::vector<int64_t> type_rows_;
  std::vector<int64_t> type_edges_;
  std::vector<int32_t> head_vertices_;
  std::vector<std::vector<double>> values_;             // [values][rows * width]
  std::vector<std::vector<double>> channels_;           // [channels][vertices * width]
  std::vector<std::vector<double>> channel_gradients_;  // the same
};

}  // namespace cavs
