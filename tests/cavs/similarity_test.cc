#include "cavs/similarity.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cavs {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

TEST(ScoreDistribution, LiesBetweenTheTwoNearestNumbers) {
  EXPECT_THAT(ScoreDistribution(3.4, 5), ElementsAre(0, 0, FloatEq(0.6f), FloatEq(0.4f), 0));
  EXPECT_THAT(ScoreDistribution(1, 5), ElementsAre(1, 0, 0, 0, 0));
  EXPECT_THAT(ScoreDistribution(5, 5), ElementsAre(0, 0, 0, 0, 1));
  for (double score = 1; score <= 5; score += 0.125) {
    const std::vector<float> distribution = ScoreDistribution(score, 5);
    EXPECT_EQ(ExpectedScore(std::vector<double>(distribution.begin(), distribution.end())), score);
  }
  EXPECT_THROW(ScoreDistribution(5.1, 5), std::logic_error);
}

TEST(Similarity, FiguresByHand) {
  const std::vector<double> x = {1, 2, 3, 4}, y = {2, 1, 4, 3};
  EXPECT_DOUBLE_EQ(Pearson(x, y), 0.6);
  EXPECT_DOUBLE_EQ(Spearman(x, y), 0.6);
  EXPECT_DOUBLE_EQ(MeanSquaredError(x, y), 1);
  const std::vector<double> cubes = {1, 8, 27, 64};
  EXPECT_DOUBLE_EQ(Spearman(x, cubes), 1);
  EXPECT_LT(Pearson(x, cubes), 0.96);
  EXPECT_DOUBLE_EQ(Pearson(x, std::vector<double>{-1, -2, -3, -4}), -1);
}

TEST(Similarity, EqualScoresShareTheirRank) {
  // Ranks 0, 1.5, 1.5, 3 and 0, 1, 2, 3.
  EXPECT_DOUBLE_EQ(Spearman(std::vector<double>{1, 2, 2, 5}, std::vector<double>{1, 2, 3, 4}),
                   4.5 / std::sqrt(4.5 * 5));
}

TEST(Similarity, WhatDoesNotExistIsNan) {
  const std::vector<double> none, one = {1}, equal = {2, 2}, rising = {1, 2};
  const std::vector<double> bad = {1, std::numeric_limits<double>::quiet_NaN()};
  EXPECT_TRUE(std::isnan(Pearson(none, none)));
  EXPECT_TRUE(std::isnan(Pearson(one, one)));
  EXPECT_TRUE(std::isnan(Pearson(equal, rising)));
  EXPECT_TRUE(std::isnan(Spearman(rising, equal)));
  EXPECT_TRUE(std::isnan(Pearson(bad, rising)));
  EXPECT_TRUE(std::isnan(Spearman(bad, rising)));
  EXPECT_TRUE(std::isnan(MeanSquaredError(none, none)));
  EXPECT_THROW(Pearson(one, rising), std::logic_error);
}

}  // namespace
}  // namespace cavs
