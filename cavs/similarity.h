// Scores of similarity: as distributions, which models learn, and how well two lists of scores agree.
//
// Pure functions, safe from any thread. Lists are of equal length; a figure that does not exist (of fewer than two
// scores, of scores that are all equal, or with one that is not finite) is NaN.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cavs {

// The distribution over 1, 2, ..., classes whose expectation is `score` and which is zero but for the two numbers
// nearest to it (Tai et al. 2015, section 4.2); [classes]. `score` is in [1, classes].
std::vector<float> ScoreDistribution(double score, int64_t classes);

// sum_j j p_j, for j from 1.
double ExpectedScore(std::span<const double> probabilities);

// Pearson's correlation r.
double Pearson(std::span<const double> x, std::span<const double> y);

// Spearman's correlation rho: r of the ranks, equal scores sharing the mean of theirs.
double Spearman(std::span<const double> x, std::span<const double> y);

// The mean of (x - y)^2; NaN of no score.
double MeanSquaredError(std::span<const double> x, std::span<const double> y);

}  // namespace cavs
