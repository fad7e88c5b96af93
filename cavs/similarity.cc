#include "cavs/similarity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "cavs/base/error.h"

namespace cavs {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double Mean(std::span<const double> x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

bool AllFinite(std::span<const double> x) {
  return std::all_of(x.begin(), x.end(), [](double value) { return std::isfinite(value); });
}

std::vector<double> Ranks(std::span<const double> x) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] < x[b]; });
  std::vector<double> ranks(x.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && x[order[end]] == x[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + end - 1) / 2;
  }
  return ranks;
}

}  // namespace

std::vector<float> ScoreDistribution(double score, int64_t classes) {
  CAVS_CHECK(score >= 1 && score <= static_cast<double>(classes), "score {} of {} classes", score, classes);
  std::vector<float> distribution(static_cast<size_t>(classes), 0.0f);
  const double whole = std::floor(score);
  const auto lower = static_cast<size_t>(whole) - 1;
  distribution[lower] = static_cast<float>(whole + 1 - score);
  if (score > whole) distribution[lower + 1] = static_cast<float>(score - whole);
  return distribution;
}

double ExpectedScore(std::span<const double> probabilities) {
  double score = 0;
  for (size_t j = 0; j < probabilities.size(); ++j) score += static_cast<double>(j + 1) * probabilities[j];
  return score;
}

double Pearson(std::span<const double> x, std::span<const double> y) {
  CAVS_CHECK(x.size() == y.size(), "{} and {} scores", x.size(), y.size());
  if (x.size() < 2 || !AllFinite(x) || !AllFinite(y)) return kNan;
  const double x_mean = Mean(x), y_mean = Mean(y);
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - x_mean, dy = y[i] - y_mean;
    xx += dx * dx;
    yy += dy * dy;
    xy += dx * dy;
  }
  return xx > 0 && yy > 0 ? xy / (std::sqrt(xx) * std::sqrt(yy)) : kNan;
}

double Spearman(std::span<const double> x, std::span<const double> y) {
  if (!AllFinite(x) || !AllFinite(y)) return kNan;
  return Pearson(Ranks(x), Ranks(y));
}

double MeanSquaredError(std::span<const double> x, std::span<const double> y) {
  CAVS_CHECK(x.size() == y.size(), "{} and {} scores", x.size(), y.size());
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return x.empty() ? kNan : sum / static_cast<double>(x.size());
}

}  // namespace cavs
