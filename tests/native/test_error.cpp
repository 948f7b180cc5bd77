#include <gtest/gtest.h>

#include "core/error.hpp"

namespace ferry {
namespace {

TEST(Error, SaysWhatWasGivenWhyNotAndWhatInstead) {
  const Error error(ErrorKind::dtype, "a tensor", "it cannot be", "do this");
  EXPECT_STREQ(error.what(), "a tensor: it cannot be; do this");
  EXPECT_EQ(error.given(), "a tensor");
  EXPECT_EQ(error.why(), "it cannot be");
  EXPECT_EQ(error.instead(), "do this");
  EXPECT_EQ(error.kind(), ErrorKind::dtype);
}

TEST(Error, IsAboutNoElementUnlessTold) {
  Error error(ErrorKind::precision_loss, "a", "b", "c");
  EXPECT_TRUE(error.index().empty());
  EXPECT_EQ(error.at({2, 0}).index(), (Extents{2, 0}));
}

TEST(Error, KeepsItsPartsWhenThrownAndCaught) {
  try {
    throw Error(ErrorKind::precision_loss, "given", "why", "instead").at({1, 2, 3});
  } catch (const std::exception& caught) {
    const auto& error = dynamic_cast<const Error&>(caught);
    EXPECT_STREQ(caught.what(), "given: why; instead");
    EXPECT_EQ(error.kind(), ErrorKind::precision_loss);
    EXPECT_EQ(error.index(), (Extents{1, 2, 3}));
  }
}

}  // namespace
}  // namespace ferry
