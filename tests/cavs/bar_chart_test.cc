#include "cavs/command/bar_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

namespace cavs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

BarChart Example() {
  BarChart chart;
  chart.title = "Training a < b & \"c\" > d";
  chart.subtitles = {"one", "two \x01 \xff"};
  chart.axis = "milliseconds";
  chart.columns = {"median"};
  chart.baseline = 2;
  chart.groups = {{"", {{"base", 2, 1.9, 2.2, {"2.00"}, BarTone::kBase, ""}}},
                  {"batching",
                   {{"depth", 3, 2.5, 3.5, {"3.00"}, BarTone::kWorse, ""},
                    {"serial", 200, 190, 210, {"200"}, BarTone::kWorse, ""},
                    {"none", 0, 0, 0, {}, BarTone::kPlain, "skipped: it is <not> here"}}}};
  return chart;
}

// Every tag is closed in order, and no text holds a bare < or &.
void ExpectWellFormed(const std::string& svg) {
  static const std::regex kToken("<(/?)([a-z]+)[^<>]*?(/?)>|[^<]+");
  static const std::regex kEntity("&(amp|lt|gt);");
  std::vector<std::string> open;
  size_t end = 0;
  for (auto token = std::sregex_iterator(svg.begin(), svg.end(), kToken); token != std::sregex_iterator(); ++token) {
    ASSERT_EQ(static_cast<size_t>(token->position()), end) << "a character that begins no tag";
    end += static_cast<size_t>(token->length());
    const std::string tag = (*token)[2];
    if (tag.empty()) {
      EXPECT_THAT(std::regex_replace(token->str(), kEntity, ""), Not(HasSubstr("&")));
    } else if ((*token)[1].length() > 0) {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), tag);
      open.pop_back();
    } else if ((*token)[3].length() == 0) {
      open.push_back(tag);
    }
  }
  EXPECT_EQ(end, svg.size());
  EXPECT_TRUE(open.empty());
}

// The widths of the bars of a tone, in order.
std::vector<double> Widths(const std::string& svg, const std::string& tone) {
  const std::regex bar("<rect class=\"" + tone + "\"[^>]* width=\"([0-9.]+)\" height=\"14\"");
  std::vector<double> widths;
  for (auto match = std::sregex_iterator(svg.begin(), svg.end(), bar); match != std::sregex_iterator(); ++match) {
    widths.push_back(std::stod((*match)[1]));
  }
  return widths;
}

TEST(BarChart, IsWellFormedWhateverTheTexts) {
  const std::string svg = ToSvg(Example());
  EXPECT_TRUE(svg.starts_with(kSvgBegin));
  ExpectWellFormed(svg);
  EXPECT_THAT(svg, HasSubstr("Training a &lt; b &amp; \"c\" &gt; d"));
  EXPECT_THAT(svg, HasSubstr("two   ?"));
  EXPECT_THAT(svg, HasSubstr("skipped: it is &lt;not&gt; here"));
  ExpectWellFormed(ToSvg({}));
}

TEST(BarChart, DrawsBarsToScaleAndCutsTheLongest) {
  const std::string svg = ToSvg(Example());
  const std::vector<double> base = Widths(svg, "base"), worse = Widths(svg, "worse");
  ASSERT_EQ(base.size(), 1u);
  ASSERT_EQ(worse.size(), 2u) << "a skipped setting has no bar";
  EXPECT_NEAR(worse[0] / base[0], 1.5, 0.01);
  EXPECT_GT(worse[1], worse[0]);
  EXPECT_LT(worse[1] / base[0], 4) << "a hundredfold bar would leave nothing of the others";
  EXPECT_THAT(svg, HasSubstr("class=\"cut\""));
  BarChart alike = Example();
  alike.groups[1].bars.erase(alike.groups[1].bars.begin() + 1);
  EXPECT_THAT(ToSvg(alike), Not(HasSubstr("class=\"cut\"")));
}

TEST(BarChart, CutsLongTextsBetweenCharacters) {
  BarChart chart = Example();
  std::string label;
  for (int i = 0; i < 100; ++i) label += "\u00e4";
  chart.groups[0].bars[0].label = label;
  chart.title = label + label;
  const std::string svg = ToSvg(chart);
  EXPECT_THAT(svg, Not(HasSubstr(">" + label + "</text>")));
  EXPECT_THAT(svg, HasSubstr("\u00e4\u2026<"));
}

TEST(BarChart, ExplainsTheColoursThatAppear) {
  const std::string svg = ToSvg(Example());
  EXPECT_THAT(svg, HasSubstr(">slower<"));
  EXPECT_THAT(svg, Not(HasSubstr(">faster<")));
  EXPECT_THAT(svg, Not(HasSubstr(">other answers<")));
}

}  // namespace
}  // namespace cavs
