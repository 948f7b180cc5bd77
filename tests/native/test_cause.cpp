#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "transfer/cause.hpp"

namespace ferry {
namespace {

struct Named {
  Cause cause;
  const char* word;  // that its clause must contain
};

constexpr std::array<Named, 16> all{{
    {Cause::requested, "private copy"},
    {Cause::destination, "destination"},
    {Cause::no_memory, "no memory"},
    {Cause::conjugated, "conjugate bit"},
    {Cause::negated, "negative bit"},
    {Cause::byte_order, "other order"},
    {Cause::cast, "dtype changes"},
    {Cause::unpack, "unpacked"},
    {Cause::pack, "packs two"},
    {Cause::widen, "complex64"},
    {Cause::order, "memory order"},
    {Cause::read_only, "read-only"},
    {Cause::negative_stride, "negative strides"},
    {Cause::misaligned, "multiples"},
    {Cause::overlapping, "overlap"},
    {Cause::held, "copy-on-write"},
}};

TEST(Causes, AreNoneAtFirst) {
  const Causes none;
  EXPECT_FALSE(none.any());
  EXPECT_TRUE(none.explain().empty());
  for (const Named& named : all) EXPECT_FALSE(none.has(named.cause)) << named.word;
}

TEST(Causes, AreExplainedInOneClauseEach) {
  for (const Named& added : all) {
    Causes causes;
    causes.add(added.cause);
    EXPECT_TRUE(causes.any());
    for (const Named& asked : all) EXPECT_EQ(causes.has(asked.cause), asked.cause == added.cause) << added.word;
    const auto clauses = causes.explain();
    ASSERT_EQ(clauses.size(), 1U) << added.word;
    EXPECT_NE(clauses[0].find(added.word), std::string::npos) << clauses[0];
  }
}

TEST(Causes, AreAddedOnlyUnderTheirCondition) {
  Causes causes;
  causes.add(Cause::cast, false);
  EXPECT_FALSE(causes.any());
  causes.add(Cause::cast, true);
  causes.add(Cause::cast, false);
  EXPECT_TRUE(causes.has(Cause::cast));
}

TEST(Causes, AreExplainedInTheOrderOfDeclarationHoweverTheyWereAdded) {
  Causes causes;
  for (auto named = all.rbegin(); named != all.rend(); ++named) causes.add(named->cause);
  const auto clauses = causes.explain();
  ASSERT_EQ(clauses.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_NE(clauses[i].find(all[i].word), std::string::npos) << clauses[i];
}

}  // namespace
}  // namespace ferry
