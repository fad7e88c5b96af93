#include "cavs/command/bar_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "cavs/base/utf8.h"
#include "cavs/text.h"

namespace cavs {
namespace {

// Pixels.
constexpr double kWidth = 960, kMargin = 28, kRow = 26, kBarHeight = 14, kGroupGap = 10, kLine = 19;
constexpr double kColumnWidth = 82, kLetter = 7.4, kLongestLabel = 400, kRemarkHeight = 16;
constexpr double kLongestBar = 3;  // in baselines

constexpr std::string_view kStyle = R"(<style>
text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-size:13px;fill:#1f2933}
.title{font-size:20px;font-weight:600}.group{font-weight:600}.muted{fill:#66727f}.small{font-size:12px}
.number{font-variant-numeric:tabular-nums;text-anchor:end}.end{text-anchor:end}.middle{text-anchor:middle}
.card{fill:#ffffff;stroke:#e1e6eb}.grid{stroke:#e9edf1}.base-line{stroke:#52606d;stroke-dasharray:4 3}
.whisker{stroke:#1f2933;stroke-width:1.3;opacity:.75}.cut{stroke:#ffffff;stroke-width:2.5}
.plain{fill:#a3aeba}.base{fill:#52606d}.better{fill:#2a9d8f}.worse{fill:#e08e45}.alarm,.remark-alarm{fill:#d64545}
@media (prefers-color-scheme:dark){
text{fill:#e6eaee}.muted{fill:#95a1ae}.card{fill:#14181d;stroke:#2a323c}.grid{stroke:#262e37}
.base-line{stroke:#9fb0c0}.whisker{stroke:#e6eaee}.cut{stroke:#14181d}
.plain{fill:#66727f}.base{fill:#9fb0c0}.better{fill:#3fbfae}.worse{fill:#e39a5a}.alarm,.remark-alarm{fill:#f06a6a}
}
</style>
)";

struct ToneInfo {
  std::string_view style;
  std::string_view meaning;
};

// By tone.
constexpr std::array<ToneInfo, 5> kTones = {{{"plain", "within the spread"},
                                             {"base", "the base"},
                                             {"better", "faster"},
                                             {"worse", "slower"},
                                             {"alarm", "other answers"}}};

const ToneInfo& Info(BarTone tone) { return kTones[static_cast<size_t>(tone)]; }

// Text between tags: XML allows neither control characters nor bytes that are not UTF-8.
std::string Escaped(std::string_view text) {
  const bool valid = FindInvalidUtf8(text) < 0;
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += ' ';
    } else {
      result += byte < 0x80 || valid ? c : '?';
    }
  }
  return result;
}

bool ContinuesCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

size_t CountCharacters(std::string_view text) {
  return text.size() - static_cast<size_t>(std::count_if(text.begin(), text.end(), ContinuesCharacter));
}

// At most `width` pixels of the text, by the width of an average letter.
std::string Fitted(std::string_view text, double width) {
  const auto most = static_cast<size_t>(std::max(1.0, width / kLetter));
  if (CountCharacters(text) <= most) return std::string(text);
  size_t end = 0;
  for (size_t characters = 0; characters + 1 < most; ++characters) {
    do {
      ++end;
    } while (end < text.size() && ContinuesCharacter(text[end]));
  }
  return std::string(text.substr(0, end)) + "\u2026";
}

// Lines of at most `width` pixels, broken between words.
std::vector<std::string> Wrapped(std::string_view text, double width) {
  std::vector<std::string> lines;
  for (const std::string_view word : SplitText(text, ' ')) {
    const bool fits = !lines.empty() &&
                      kLetter * static_cast<double>(CountCharacters(lines.back()) + CountCharacters(word) + 1) <= width;
    if (fits) {
      lines.back() += fmt::format(" {}", word);
    } else {
      lines.push_back(Fitted(word, width));
    }
  }
  return lines;
}

// The step of about five ticks up to `limit`: 1, 2 or 5 times a power of ten.
double TickStep(double limit) {
  const double power = std::pow(10, std::floor(std::log10(limit / 5)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (limit / (factor * power) <= 6) return factor * power;
  }
  return 10 * power;
}

class Painter {
 public:
  explicit Painter(const BarChart& chart) : chart_(chart) {
    double labels = 0, titles = 0, largest = 0;
    for (const BarGroup& group : chart.groups) {
      titles = std::max(titles, kLetter * static_cast<double>(CountCharacters(group.title)) * 1.1);
      for (const Bar& bar : group.bars) {
        labels = std::max(labels, kLetter * static_cast<double>(CountCharacters(bar.label)));
        largest = std::max(largest, bar.high);
      }
    }
    label_width_ = std::min(labels, kLongestLabel);
    label_end_ = kMargin + (titles > 0 ? std::min(titles, 140.0) + 18 : 0) + label_width_;
    left_ = label_end_ + 12;
    right_ = kWidth - kMargin - kColumnWidth * static_cast<double>(chart.columns.size()) - 8;
    limit_ = LimitFor(largest);
  }

  std::string Paint() {
    Header();
    const double top = y_;
    for (const BarGroup& group : chart_.groups) Rows(group);
    const double bottom = y_;
    Axis(top, bottom);
    Legend();
    const double height = y_ + 14;
    const std::string name = Escaped(chart_.title);
    return fmt::format(
        "{}\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" viewBox=\"0 0 {:.0f} {:.0f}\" "
        "role=\"img\">\n<title>{}</title>\n{}<rect class=\"card\" x=\".5\" y=\".5\" width=\"{:.0f}\" "
        "height=\"{:.0f}\" rx=\"10\"/>\n{}{}</svg>\n",
        kSvgBegin, kWidth, height, kWidth, height, name, kStyle, kWidth - 1, height - 1, back_, front_);
  }

 private:
  // The value at the right end of the axis. One bar that is many times as long as the others would hide what they say.
  double LimitFor(double largest) const {
    if (largest <= 0) return 1;
    const double most = kLongestBar * chart_.baseline;
    if (chart_.baseline <= 0 || largest <= most) return largest * 1.02;
    double limit = chart_.baseline * 1.3;
    for (const BarGroup& group : chart_.groups) {
      for (const Bar& bar : group.bars) {
        if (bar.high <= most) limit = std::max(limit, bar.high * 1.1);
      }
    }
    return limit;
  }

  double X(double value) const { return left_ + (right_ - left_) * std::min(1.0, value / limit_); }

  void Text(double x, double y, std::string_view style, std::string_view text) {
    fmt::format_to(std::back_inserter(front_), "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, style,
                   Escaped(text));
  }

  void Line(std::string* layer, std::string_view style, double x1, double y1, double x2, double y2) {
    fmt::format_to(std::back_inserter(*layer),
                   "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", style, x1, y1, x2,
                   y2);
  }

  double ColumnEnd(size_t column) const { return right_ + 8 + kColumnWidth * static_cast<double>(column + 1); }

  void Header() {
    y_ = 44;
    Text(kMargin, y_, "title", Fitted(chart_.title, (kWidth - 2 * kMargin) / 1.5));
    y_ += 6;
    for (const std::string& subtitle : chart_.subtitles) {
      for (const std::string& line : Wrapped(subtitle, kWidth - 2 * kMargin)) {
        y_ += kLine;
        Text(kMargin, y_, "muted", line);
      }
    }
    y_ += 30;
    for (size_t i = 0; i < chart_.columns.size(); ++i) Text(ColumnEnd(i), y_, "muted small end", chart_.columns[i]);
    y_ += 8;
  }

  void Rows(const BarGroup& group) {
    if (!group.title.empty()) {
      y_ += kGroupGap;
      Text(kMargin, y_ + kRow / 2 + 4.5, "group", Fitted(group.title, 140));
    }
    for (const Bar& bar : group.bars) Row(bar);
  }

  void Row(const Bar& bar) {
    const double middle = y_ + kRow / 2;
    Text(label_end_, middle + 4.5, bar.tone == BarTone::kBase ? "group end" : "end",
         Fitted(bar.label, label_width_ + 1));
    y_ += kRow;
    const std::string remark = Fitted(bar.remark, kWidth - kMargin - left_);
    if (bar.value <= 0) return Text(left_ + 2, middle + 4.5, "muted small", remark);
    BarShape(bar, middle);
    for (size_t i = 0; i < std::min(bar.columns.size(), chart_.columns.size()); ++i) {
      Text(ColumnEnd(i), middle + 4.5, "number", bar.columns[i]);
    }
    if (remark.empty()) return;
    Text(left_ + 2, y_ + 8, bar.tone == BarTone::kAlarm ? "remark-alarm small" : "muted small", remark);
    y_ += kRemarkHeight;
  }

  void BarShape(const Bar& bar, double middle) {
    const double end = X(bar.value), top = middle - kBarHeight / 2;
    fmt::format_to(std::back_inserter(back_),
                   "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" rx=\"2.5\"/>\n",
                   Info(bar.tone).style, left_, top, std::max(1.0, end - left_), kBarHeight);
    if (bar.value > limit_) {
      for (const double shift : {26.0, 20.0})
        Line(&front_, "cut", end - shift, middle + 10, end - shift + 6, middle - 10);
      return;
    }
    const double low = X(bar.low), high = X(bar.high);
    Line(&front_, "whisker", low, middle, high, middle);
    for (const double x : {low, high}) Line(&front_, "whisker", x, middle - 3.5, x, middle + 3.5);
  }

  void Axis(double top, double bottom) {
    std::string grid;
    const double step = TickStep(limit_);
    y_ = bottom + 20;
    for (int64_t tick = 0; static_cast<double>(tick) * step <= limit_; ++tick) {
      const double value = static_cast<double>(tick) * step;
      Line(&grid, "grid", X(value), top, X(value), bottom + 4);
      Text(X(value), y_, "muted small middle", fmt::format("{:g}", value));
    }
    back_ = grid + back_;
    if (chart_.baseline > 0) Line(&front_, "base-line", X(chart_.baseline), top - 2, X(chart_.baseline), bottom + 4);
    y_ += 20;
    Text((left_ + right_) / 2, y_, "muted small middle", chart_.axis);
  }

  // What the colours say that appear.
  void Legend() {
    y_ += 28;
    double x = kMargin;
    for (size_t tone = 0; tone < kTones.size(); ++tone) {
      if (!Appears(static_cast<BarTone>(tone))) continue;
      fmt::format_to(std::back_inserter(front_),
                     "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"11\" height=\"11\" rx=\"2.5\"/>\n",
                     kTones[tone].style, x, y_ - 10);
      Text(x + 17, y_, "muted small", kTones[tone].meaning);
      x += 17 + kLetter * static_cast<double>(kTones[tone].meaning.size()) + 16;
    }
    Text(kWidth - kMargin, y_, "muted small end", Fitted(chart_.footnote, kWidth - kMargin - x));
  }

  bool Appears(BarTone tone) const {
    return std::any_of(chart_.groups.begin(), chart_.groups.end(), [tone](const BarGroup& group) {
      return std::any_of(group.bars.begin(), group.bars.end(),
                         [tone](const Bar& bar) { return bar.tone == tone && bar.value > 0; });
    });
  }

  const BarChart& chart_;
  double label_width_ = 0, label_end_ = 0, left_ = 0, right_ = 0, limit_ = 1;
  double y_ = 0;      // what is painted so far ends here
  std::string back_;  // below the texts, lines and whiskers
  std::string front_;
};

}  // namespace

std::string ToSvg(const BarChart& chart) { return Painter(chart).Paint(); }

}  // namespace cavs
