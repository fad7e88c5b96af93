// Horizontal bars with whiskers as a self-contained SVG picture, which follows the viewer's light or dark mode.
// Pure function of plain data; safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cavs {

// What a colour says.
enum class BarTone : uint8_t { kPlain, kBase, kBetter, kWorse, kAlarm };

struct Bar {
  std::string label;
  double value = 0, low = 0, high = 0;  // the bar's end and its whiskers: 0 <= low <= value <= high
  std::vector<std::string> columns;     // texts to the right of the bars
  BarTone tone = BarTone::kPlain;
  std::string remark;  // below the bar, or in its place where the value is 0
};

// Bars under a common title; the title may be empty.
struct BarGroup {
  std::string title;
  std::vector<Bar> bars;
};

struct BarChart {
  std::string title;
  std::vector<std::string> subtitles;
  std::vector<BarGroup> groups;
  std::string axis;                  // what the bars measure, and in which unit
  std::vector<std::string> columns;  // their headings
  double baseline = 0;               // a line through all bars; 0 for none
  std::string footnote;
};

// What the pictures begin with.
inline constexpr std::string_view kSvgBegin = "<svg xmlns=";

// Texts are escaped, and broken or cut where there is no room for them. A bar of more than three times the baseline is
// cut off and marked so.
std::string ToSvg(const BarChart& chart);

}  // namespace cavs
