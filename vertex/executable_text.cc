#include <fmt/format.h>

#include "vertex/executable.h"

namespace cavs {
namespace {

// A state and what is pushed may share a name.
std::string ChannelText(const ChannelDeclaration& channel) {
  return channel.kind == ChannelKind::kPush ? "pushed " + channel.name : channel.name;
}

std::string LocationText(const Executable& executable, const Location& location, int64_t width) {
  const Buffer& buffer = executable.buffers()[static_cast<size_t>(location.buffer)];
  std::string text = BufferName(executable, buffer);
  if (width != buffer.width && buffer.kind != BufferKind::kParameter) {
    text += fmt::format("[{}:{}]", location.column, location.column + width);
  }
  if (location.index < 0) return text;
  const IndexSpec& index = executable.indices()[static_cast<size_t>(location.index)];
  switch (index.kind) {
    case IndexKind::kSlot:
      return text + fmt::format(" of child {}", index.slot);
    case IndexKind::kEdge:
      return text + " of each child";
    case IndexKind::kEdgeParent:
      return text + " of the parent";
    case IndexKind::kHead:
      return text + " of the head row";
    case IndexKind::kInput:
      return text + " of the input";
    case IndexKind::kEdgeInput:
      return text + " of the parent's input";
    case IndexKind::kIds:
    case IndexKind::kInputIds:
      return text + fmt::format(" at \"{}\"", executable.signature().columns[static_cast<size_t>(index.column)].name);
  }
  return text;
}

void AppendSection(const Executable& executable, std::string_view title, const StepList& list, std::string* text) {
  if (list.empty()) return;
  *text += fmt::format("  {}\n", title);
  for (const Step& step : list.steps) *text += fmt::format("    {}\n", ToString(executable, step));
}

}  // namespace

std::string BufferName(const Executable& executable, const Buffer& buffer) {
  const Signature& signature = executable.signature();
  switch (buffer.kind) {
    case BufferKind::kRows:
      return fmt::format("%{}", buffer.id);
    case BufferKind::kChannel:
      return ChannelText(signature.channels[static_cast<size_t>(buffer.id)]);
    case BufferKind::kChannelGradient:
      return "d " + ChannelText(signature.channels[static_cast<size_t>(buffer.id)]);
    case BufferKind::kParameter:
      return signature.parameters[static_cast<size_t>(buffer.id)].name;
    case BufferKind::kConstant:
      return "constant";
    case BufferKind::kLossScale:
      return "loss scale";
    case BufferKind::kColumn:
      return fmt::format("\"{}\"", signature.columns[static_cast<size_t>(buffer.id)].name);
  }
  return "";
}

std::string_view OperationName(const Executable& executable, const Step& step) {
  if (step.kind == StepKind::kGroup) return "fused";
  if (step.kind == StepKind::kCopy) return "copy";
  if (step.kind == StepKind::kCollect) return "collect";
  const Program& program = step.backward ? executable.backward() : executable.forward();
  return OpName(program.instructions[static_cast<size_t>(step.instruction)].op);
}

std::string ToString(const Executable& executable, const Step& step) {
  std::string text(OperationName(executable, step));
  if (step.kind == StepKind::kGroup) text += fmt::format(" x{}", step.group.steps.size());
  std::string operands[2];
  for (size_t i = 0; i < step.operands.size(); ++i) {
    std::string& side = operands[i < static_cast<size_t>(step.inputs) ? 0 : 1];
    side += fmt::format("{}{}", side.empty() ? "" : ", ", LocationText(executable, step.operands[i], step.widths[i]));
  }
  const std::string_view place = step.nest >= 0 ? ", in place but for shared and missing children" : "";
  return fmt::format("{:<16} {}{}{}{}", text, operands[0], operands[1].empty() ? "" : "  ->  ", operands[1], place);
}

std::string ToString(const Executable& executable) {
  std::string text;
  for (const bool backward : {false, true}) {
    if (backward && !executable.has_backward()) continue;
    const std::string_view prefix = backward ? "d " : "";
    if (backward) AppendSection(executable, "d head", executable.head(true), &text);
    for (size_t type = 0; type < executable.signature().types.size(); ++type) {
      const FunctionSteps& function = executable.function(backward, static_cast<int32_t>(type));
      const std::string& name = executable.signature().types[type].name;
      const auto append_inputs = [&] {
        AppendSection(executable, fmt::format("{}{}, distinct inputs, once", prefix, name), function.inputs, &text);
      };
      if (!backward) append_inputs();
      AppendSection(executable, fmt::format("{}{}, hoisted: all rows, once", prefix, name),
                    function.phase(Phase::kHoisted), &text);
      AppendSection(executable, fmt::format("{}{}, recurrent: each task", prefix, name),
                    function.phase(Phase::kRecurrent), &text);
      AppendSection(executable, fmt::format("{}{}, deferred: all rows, once", prefix, name),
                    function.phase(Phase::kDeferred), &text);
      if (backward) append_inputs();
    }
    if (!backward) AppendSection(executable, "head", executable.head(false), &text);
  }
  return text;
}

}  // namespace cavs
