// MergeProducts on small vertex functions: what becomes one product, and what must not. That answers stay the same is
// tested on random models (property_test.cc) and on whole ones (tests/cavs/merging_model_test.cc).
#include "vertex/merging.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backprop/differentiate.h"
#include "tests/vertex/random_model.h"
#include "vertex/builder.h"
#include "vertex/parameter_layout.h"
#include "vertex/parameters.h"

namespace cavs {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr int64_t kEmbed = 3, kHidden = 4;

// Weights [rows, kHidden] or a bias [kHidden] by name.
class Parts {
 public:
  Expression W(const char* name, int64_t rows = kHidden) { return b.Parameter(name, Shape::Matrix(rows, kHidden)); }
  Expression B(const char* name) { return b.Parameter(name, Shape::Vector(kHidden)); }

  ProgramBuilder b;
  Expression words = b.Lookup("words", 10, kEmbed, Initializer::Uniform(1.0f));
  State h = b.DeclareState("h", Shape::Vector(kHidden));
};

// F of one type with two children, whose function gives what it scatters and pushes.
Program Cell(const std::function<Expression(Parts& p, Vertex& v)>& function) {
  Parts p;
  p.b.DeclareType("node", 2).Define([&](Vertex& v) {
    const Expression out = Tanh(function(p, v));
    v.Scatter(p.h, out);
    v.Push("h", out);
  });
  p.b.AddLoss(Sum(p.b.Pushed("h")));
  return p.b.Build();
}

// What products of a type multiply by, each with its bias: "[W U] + b".
std::vector<std::string> Products(const Program& f, int32_t type = 0) {
  std::vector<std::string> products;
  for (const Instruction& instruction : f.instructions) {
    if (instruction.op != Op::kMatMul || instruction.space.type != type) continue;
    const auto name = [&](size_t input) {
      return f.signature->parameters[static_cast<size_t>(f.value(instruction.inputs[input]).parameter)].name;
    };
    products.push_back(instruction.inputs.size() < 3 ? name(1) : name(1) + " + " + name(2));
  }
  return products;
}

int64_t Count(const Program& f, Op op) {
  return std::count_if(f.instructions.begin(), f.instructions.end(), [op](const Instruction& i) { return i.op == op; });
}

Program Merged(const Program& f, PassOptions options = {}) { return Simplify(f, options); }

TEST(MergeGates, ProductsOfTheSameRowsBecomeOne) {
  const Program f = Cell([](Parts& p, Vertex& v) {
    const Expression x = v.Gather(0, p.h);
    const Expression i = Affine(x, p.W("Wi"), p.B("bi")), o = Affine(x, p.W("Wo"), p.B("bo"));
    return Sigmoid(i) * Sigmoid(o) * Tanh(Affine(x, p.W("Wu"), p.B("bu")));
  });
  const Program merged = Merged(f);
  EXPECT_THAT(Products(merged), ElementsAre("[Wi Wo Wu] + [bi bo bu]"));
  EXPECT_EQ(Count(merged, Op::kSlice), 3);
  const ParameterDeclaration& weights =
      merged.signature->parameters[static_cast<size_t>(ParameterLayout(merged.signature).declared())];
  EXPECT_EQ(weights.shape, Shape::Matrix(kHidden, 3 * kHidden));
  EXPECT_EQ(weights.parts.at(2).column, 2 * kHidden);
  // The derivative has one product for x and one for the weights.
  const Program gradient = Simplify(Differentiate(merged), {});
  EXPECT_THAT(Products(gradient), ElementsAre("[Wi Wo Wu]"));
  EXPECT_EQ(Count(gradient, Op::kMatMulGrad), 1);
  EXPECT_EQ(Count(gradient, Op::kColumnSumGrad), 1);
  EXPECT_THAT(Products(Merged(f, {.merging = false})), ElementsAre("Wi + bi", "Wo + bo", "Wu + bu"));
}

TEST(MergeGates, AMissingBiasLeavesTheOthersToBeAdded) {
  const Program f = Merged(Cell([](Parts& p, Vertex& v) {
    const Expression x = v.Gather(0, p.h);
    const Expression i = Affine(x, p.W("Wi"), p.B("bi")), u = MatMul(x, p.W("Wu"));
    return Sigmoid(i) * Tanh(u);
  }));
  EXPECT_THAT(Products(f), ElementsAre("[Wi Wu]"));
  EXPECT_EQ(Count(f, Op::kAdd), 1);
}

TEST(MergeGates, ABiasOfTwoGatesStaysWhole) {
  const Program f = Merged(Cell([](Parts& p, Vertex& v) {
    const Expression x = v.Gather(0, p.h), bias = p.B("b");
    const Expression i = Affine(x, p.W("Wi"), bias), u = Affine(x, p.W("Wu"), bias);
    return Sigmoid(i) * Tanh(u);
  }));
  EXPECT_THAT(Products(f), ElementsAre("[Wi Wu]"));
  EXPECT_EQ(Count(f, Op::kAdd), 2);
}

TEST(MergeGates, FrozenOnesStayApart) {
  const auto cell = [](bool all) {
    return Cell([all](Parts& p, Vertex& v) {
      const Expression x = v.Gather(0, p.h);
      const Expression frozen = p.W("Wi"), other = p.W("Wo");
      p.b.Freeze(frozen);
      if (all) p.b.Freeze(other);
      const Expression i = MatMul(x, frozen), o = MatMul(x, other);
      return Sigmoid(i) * Tanh(o);
    });
  };
  EXPECT_THAT(Products(Merged(cell(false))), ElementsAre("Wi", "Wo"));
  const Program f = Merged(cell(true));
  EXPECT_THAT(Products(f), ElementsAre("[Wi Wo]"));
  EXPECT_TRUE(f.signature->parameters.back().frozen);
  EXPECT_EQ(Count(Differentiate(f), Op::kMatMulGrad), 0);
}

TEST(MergeGates, WhatCanWaitDoesNotJoinTheRecursion) {
  Parts p;
  p.b.DeclareType("node", 1).Define([&](Vertex& v) {
    const Expression x = v.Gather(0, p.h);
    v.Scatter(p.h, Tanh(MatMul(x, p.W("U"))));
    v.Push("h", Tanh(MatMul(x, p.W("V"))));
  });
  p.b.AddLoss(Sum(p.b.Pushed("h")));
  const Program f = p.b.Build();
  EXPECT_THAT(Products(Merged(f)), ElementsAre("U", "V"));
  EXPECT_THAT(Products(Merged(f, {.lazy_batching = false})), ElementsAre("[U V]"));
}

TEST(MergeGates, ReadersThatWouldCopyKeepTheirProducts) {
  const auto products = [](const std::function<Expression(Parts&, const Expression&, const Expression&)>& combine) {
    return Products(Merged(Cell([&](Parts& p, Vertex& v) {
      const Expression x = v.Gather(0, p.h);
      const Expression w = MatMul(x, p.W("W")), u = MatMul(x, p.W("U"));
      return combine(p, w, u);
    })));
  };
  EXPECT_THAT(products([](Parts&, auto& a, auto& b) { return a * b; }), ElementsAre("[W U]"));
  EXPECT_THAT(products([](Parts& p, auto& a, auto& b) { return MatMul(a, p.W("V")) * b; }), ElementsAre("W", "U", "V"));
  EXPECT_THAT(products([](Parts& p, auto& a, auto& b) { return MatMul(Concat(a, b), p.W("V", 2 * kHidden)); }),
              ElementsAre("W", "U", "V"));
}

// Two types with the same gates, and one gate that only the second has.
TEST(MergeGates, TiedParametersMergeWithTheirCompany) {
  Parts p;
  const Expression i = p.W("Wi", kEmbed), u = p.W("Wu", kEmbed), f = p.W("Wf", kEmbed), o = p.W("Wo", kEmbed);
  const auto define = [&](VertexType type, bool inner) {
    type.Define([&](Vertex& v) {
      const Expression x = v.Pull(p.words, "word");
      Expression out = Sigmoid(MatMul(x, u)) * Tanh(MatMul(x, i));
      if (inner) out = Tanh(out * MatMul(x, f) + Sigmoid(MatMul(x, o)) * v.Gather(0, p.h));
      v.Scatter(p.h, out);
      v.Push("h", out);
    });
  };
  define(p.b.DeclareType("leaf", 0), false);
  define(p.b.DeclareType("node", 1), true);
  p.b.AddLoss(Sum(p.b.Pushed("h")));
  const Program merged = Merged(p.b.Build());
  EXPECT_THAT(Products(merged, 0), ElementsAre("[Wi Wu]"));
  EXPECT_THAT(Products(merged, 1), ElementsAre("[Wi Wu]", "[Wf Wo]"));
}

TEST(MergeGates, ParametersWithOtherUsesAreLeftAlone) {
  const Program f = Merged(Cell([](Parts& p, Vertex& v) {
    const Expression x = v.Gather(0, p.h), y = v.Gather(1, p.h);
    const Expression w = p.W("W"), u = p.W("U"), tied = p.W("tied");
    return Sigmoid(MatMul(x, w)) * Sigmoid(MatMul(x, u)) * Sigmoid(MatMul(x, tied)) * Sigmoid(MatMul(y, tied));
  }));
  EXPECT_THAT(Products(f), UnorderedElementsAre("[W U]", "tied", "tied"));
}

TEST(MergeSums, InputsSideBySide) {
  const Program f = Merged(Cell([](Parts& p, Vertex& v) {
    const Expression left = MatMul(v.Gather(0, p.h), p.W("Ul")), right = MatMul(v.Gather(1, p.h), p.W("Ur"));
    return left + right + p.B("b");
  }));
  EXPECT_THAT(Products(f), ElementsAre("[Ul; Ur] + b"));
  EXPECT_EQ(Count(f, Op::kConcat), 1);
  EXPECT_EQ(Count(f, Op::kAdd), 0);
}

TEST(MergeSums, WhatIsHoistedStaysHoisted) {
  const Program f = Cell([](Parts& p, Vertex& v) {
    const Expression x = MatMul(v.Pull(p.words, "word"), p.W("W", kEmbed)), y = MatMul(v.Gather(0, p.h), p.W("U"));
    return y + x + p.B("b");
  });
  const Program merged = Merged(f);
  EXPECT_THAT(Products(merged), UnorderedElementsAre("U", "W + b")) << "the bias is hoisted with the input's product";
  EXPECT_EQ(Count(merged, Op::kAdd), 1);
  EXPECT_THAT(Products(Merged(f, {.hoisting = false})), ElementsAre("[W; U] + b"));
}

TEST(MergeSums, ACostlyConcatenationIsNotMade) {
  const auto products = [](int64_t columns) {
    return Products(Merged(Cell([columns](Parts& p, Vertex& v) {
                             const Expression x = MatMul(v.PullRow("features", columns), p.W("W", columns));
                             const Expression y = MatMul(v.Gather(0, p.h), p.W("U"));
                             return x + y;
                           }),
                           {.hoisting = false}));
  };
  EXPECT_THAT(products(kHidden), ElementsAre("[W; U]")) << "floats copied: as many as those of a result";
  EXPECT_THAT(products(kHidden + 1), ElementsAre("W", "U")) << "one more than is saved";
}

TEST(MergeSums, AConcatenationServesAllGates) {
  // Two results of kHidden are saved; the input that must be copied is twice as wide as one.
  const Program f = Merged(Cell([](Parts& p, Vertex& v) {
                             const Expression x = v.PullRow("features", 2 * kHidden), y = v.Gather(0, p.h);
                             const Expression wi = p.W("Wi", 2 * kHidden), ui = p.W("Ui");
                             const Expression wo = p.W("Wo", 2 * kHidden), uo = p.W("Uo");
                             const Expression i = MatMul(x, wi) + MatMul(y, ui), o = MatMul(x, wo) + MatMul(y, uo);
                             return Sigmoid(i) * Tanh(o);
                           }),
                           {.hoisting = false});
  EXPECT_THAT(Products(f), ElementsAre("[Wi Wo; Ui Uo]"));
  EXPECT_EQ(Count(f, Op::kConcat), 1);
  const ParameterLayout layout(f.signature);
  EXPECT_EQ(layout.total(), layout.declared() + 1) << "the two sums are no parameters of their own";
  const std::vector<ParameterPart>& parts = f.signature->parameters.back().parts;
  EXPECT_TRUE(std::find(parts.begin(), parts.end(), ParameterPart{4, 2 * kHidden, kHidden}) != parts.end());
}

TEST(MergeSums, AConcatenationThatIsThereIsRead) {
  const Program f = Merged(Cell([](Parts& p, Vertex& v) {
    const Expression x = v.Gather(0, p.h), y = v.Gather(1, p.h);
    const Expression i = Affine(Concat(x, y), p.W("W", 2 * kHidden), p.B("b"));
    const Expression left = MatMul(x, p.W("Ul")), right = MatMul(y, p.W("Ur"));
    return Sigmoid(i) * Tanh(left + right);
  }));
  EXPECT_EQ(Count(f, Op::kConcat), 1);
  EXPECT_THAT(Products(f), ElementsAre("[W Ul; Ur]"));
}

TEST(MergeSums, SharedWeightsAndSharedInputsAreNoSum) {
  const auto shared = [](Parts& p, Vertex& v) {
    const Expression u = p.W("U");
    return MatMul(v.Gather(0, p.h), u) + MatMul(v.Gather(1, p.h), u);
  };
  EXPECT_THAT(Products(Merged(Cell(shared))), ElementsAre("U", "U"));
  // Gates, as they read the same rows; then they are added.
  const auto same_input = [](Parts& p, Vertex& v) {
    const Expression x = v.Gather(0, p.h);
    const Expression w = MatMul(x, p.W("W")), u = MatMul(x, p.W("U"));
    return w + u;
  };
  EXPECT_THAT(Products(Merged(Cell(same_input))), ElementsAre("[W U]"));
}

TEST(MergeSums, InnerSumsThatOthersReadStay) {
  const Program f = Merged(Cell([](Parts& p, Vertex& v) {
    const Expression left = MatMul(v.Gather(0, p.h), p.W("Ul")), right = MatMul(v.Gather(1, p.h), p.W("Ur"));
    const Expression sum = left + right;
    return Sigmoid(sum + p.B("b")) * Tanh(sum);
  }));
  EXPECT_THAT(Products(f), ElementsAre("[Ul; Ur]"));
  EXPECT_EQ(Count(f, Op::kAdd), 1);
}

TEST(MergeProducts, NothingToMergeChangesNothing) {
  const Program f = Cell([](Parts& p, Vertex& v) { return Affine(v.Gather(0, p.h), p.W("U"), p.B("b")); });
  const Program merged = MergeProducts(f, {});
  EXPECT_EQ(merged.signature, f.signature);
  EXPECT_EQ(ToString(merged), ToString(f));
}

TEST(MergeProducts, ReadersOfTheProgramKeepTheirValues) {
  Parts p;
  p.b.DeclareType("node", 1).Define([&](Vertex& v) {
    v.Scatter(p.h, Tanh(v.Gather(0, p.h)));
    v.Push("h", v.Gather(0, p.h));
  });
  const Expression pushed = p.b.Pushed("h");
  const Expression first = MatMul(pushed, p.W("V1")), second = MatMul(pushed, p.W("V2"));
  p.b.AddOutput("first", first);
  p.b.AddLoss(Sum(second));
  const Program f = p.b.Build(), merged = Merged(f);
  EXPECT_THAT(Products(merged, -1), ElementsAre("[V1 V2]"));
  EXPECT_EQ(merged.outputs.front().value, first.id());
  const auto made = std::find_if(merged.instructions.begin(), merged.instructions.end(),
                                 [&](const Instruction& i) { return i.output == first.id(); });
  ASSERT_NE(made, merged.instructions.end());
  EXPECT_EQ(made->op, Op::kSlice);
}

// The models of the property tests are of use here only if they hold something to merge.
TEST(MergeProducts, RandomModelsHoldAllKinds) {
  constexpr uint64_t kModels = 400;
  int64_t models = 0, gates = 0, sums = 0, both = 0, tied = 0;
  for (uint64_t seed = 1; seed <= kModels; ++seed) {
    const Program f = Merged(ModelMaker(seed, seed % 2 == 0).Make());
    const auto is_merged = [](const ParameterDeclaration& p) { return p.shape.rank() == 2 && !p.parts.empty(); };
    const auto& parameters = f.signature->parameters;
    models += std::any_of(parameters.begin(), parameters.end(), is_merged) ? 1 : 0;
    for (const ParameterDeclaration& parameter : parameters) {
      if (!is_merged(parameter)) continue;
      const auto below = [](const ParameterPart& part) { return part.row > 0; };
      const auto beside = [](const ParameterPart& part) { return part.column > 0; };
      const bool down = std::any_of(parameter.parts.begin(), parameter.parts.end(), below);
      const bool right = std::any_of(parameter.parts.begin(), parameter.parts.end(), beside);
      gates += right && !down ? 1 : 0;
      sums += down && !right ? 1 : 0;
      both += down && right ? 1 : 0;
    }
    std::vector<std::string> names;
    for (int32_t type = -1; type < std::ssize(f.signature->types); ++type) {
      for (const std::string& name : Products(f, type)) names.push_back(name.substr(0, name.find(']')));
    }
    std::sort(names.begin(), names.end());
    for (size_t i = 1; i < names.size(); ++i) tied += names[i] == names[i - 1] && names[i][0] == '[' ? 1 : 0;
  }
  std::printf("[ measured ] %lld models: %lld gates, %lld sums, %lld of both, %lld tied\n",
              static_cast<long long>(models), static_cast<long long>(gates), static_cast<long long>(sums),
              static_cast<long long>(both), static_cast<long long>(tied));
  EXPECT_GT(models, 100);
  EXPECT_GT(gates, 100);
  EXPECT_GT(sums, 0);
  EXPECT_GT(both, 10);
  EXPECT_GT(tied, 0);
}

// [a b; c d] of one row and two columns each, and a bias [e f].
std::shared_ptr<const Signature> BlockSignature() {
  auto signature = std::make_shared<Signature>();
  for (const char* name : {"a", "b", "c", "d"}) {
    signature->parameters.push_back({.name = name, .shape = Shape::Matrix(1, 2), .initializer = {}});
  }
  signature->parameters.push_back({.name = "alone", .shape = Shape::Vector(3), .initializer = {}});
  signature->parameters.push_back({.name = "[a b; c d]",
                                   .shape = Shape::Matrix(2, 4),
                                   .initializer = {},
                                   .parts = {{0, 0, 0}, {1, 0, 2}, {2, 1, 0}, {3, 1, 2}}});
  return signature;
}

TEST(ParameterLayout, PartsLieInTheirOwner) {
  const ParameterLayout layout(BlockSignature());
  EXPECT_EQ(layout.declared(), 5);
  EXPECT_EQ(layout.total(), 6);
  EXPECT_EQ(layout.owner(3), 5);
  EXPECT_TRUE(layout.owns(4));
  std::vector<float> whole = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_THAT(layout.Read(2, whole), ElementsAre(5, 6));
  EXPECT_THAT(layout.Read(5, whole), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  layout.Write(1, std::vector<float>{30, 40}, whole);
  EXPECT_THAT(whole, ElementsAre(1, 2, 30, 40, 5, 6, 7, 8));
}

TEST(ParameterStore, NamesAndNumbersOfPartsAreAsDeclared) {
  ParameterStore store(BlockSignature(), 7);
  Signature apart = *BlockSignature();
  apart.parameters.pop_back();
  const ParameterStore plain(std::make_shared<Signature>(std::move(apart)), 7);
  EXPECT_EQ(store.count(), 5);
  EXPECT_EQ(store.total_elements(), 11);
  EXPECT_EQ(store.Find("[a b; c d]"), -1);
  for (int32_t p = 0; p < plain.count(); ++p) EXPECT_EQ(store.Get(p), plain.Get(p)) << "one seed, one start";
  store.Set(3, std::vector<float>{8, 9});
  EXPECT_EQ(store.Get(3), (std::vector<float>{8, 9}));
  EXPECT_EQ(store.values(5)[7], 9.0f);
  EXPECT_THROW(store.Set(3, std::vector<float>{8}), std::invalid_argument);
  EXPECT_THROW(store.values(3), std::logic_error) << "the rows of a part have gaps";
  store.RequestPacked(5);
  store.Pack();
  EXPECT_NE(store.packed(5), nullptr);
  store.Changed(0);
  EXPECT_EQ(store.packed(5), nullptr) << "a part has changed";
}

}  // namespace
}  // namespace cavs
