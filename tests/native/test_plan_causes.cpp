// Every cause to copy, alone and with every other, and the shortcut for the plan without any.
#include <string>
#include <vector>

#include "plan_support.hpp"

namespace ferry {
namespace {

using test::bits_of;
using test::packed_source;
using test::source_of;

struct Case {
  TensorRef source;
  Request request;
};

// Makes one cause hold, and no other.
struct Switch {
  Cause cause;
  void (*apply)(Case&);
};

void expect_causes_of_every_subset(const Case& base, const std::vector<Switch>& switches) {
  for (unsigned subset = 0; subset < 1U << switches.size(); ++subset) {
    Case subject = base;
    Causes expected;
    std::string names;
    for (std::size_t i = 0; i < switches.size(); ++i) {
      if ((subset >> i & 1U) == 0) continue;
      switches[i].apply(subject);
      expected.add(switches[i].cause);
    }
    for (const auto& clause : expected.explain()) names += clause + "; ";
    const Decision plan = decide(subject.source, subject.request);
    EXPECT_EQ(bits_of(plan.causes), bits_of(expected)) << names;
    EXPECT_EQ(plan.path, subset == 0 ? Path::view : Path::copy) << names;
    const auto itemsize = std::int64_t{info(plan.value_dtype).itemsize};
    EXPECT_EQ(plan.nbytes_moved, subset == 0 ? 0 : 6 * itemsize) << names;
  }
}

const std::vector<Switch> common{
    {Cause::requested, [](Case& c) { c.request.copy = CopyPolicy::always; }},
    {Cause::destination, [](Case& c) { c.request.into_destination = true; }},
    {Cause::no_memory, [](Case& c) { c.request.no_memory = true; }},
    {Cause::conjugated, [](Case& c) { c.source.conjugated = true; }},
    {Cause::negated, [](Case& c) { c.source.negated = true; }},
    {Cause::byte_order, [](Case& c) { c.source.byte_swapped = true; }},
    {Cause::order, [](Case& c) { c.request.order = Order::fortran; }},
};

std::vector<Switch> common_and(std::initializer_list<Switch> more) {
  std::vector<Switch> all = common;
  all.insert(all.end(), more);
  return all;
}

void name_complex128(Case& c) {
  c.request.dtype_choice = DTypeChoice::named;
  c.request.dtype = DType::complex128;
}

TEST(PlanCauses, AddUpTowardsNumPy) {
  expect_causes_of_every_subset({packed_source(DType::complex64, {2, 3}), {}},
                                common_and({{Cause::cast, name_complex128}}));
}

TEST(PlanCauses, AddUpTowardsTorch) {
  expect_causes_of_every_subset({packed_source(DType::complex64, {2, 3}), test::towards_torch()},
                                common_and({{Cause::cast, name_complex128},
                                            {Cause::read_only, [](Case& c) { c.source.read_only = true; }},
                                            {Cause::negative_stride, [](Case& c) { c.source.layout.strides[0] *= -1; }},
                                            {Cause::misaligned, [](Case& c) { c.source.data += 1; }},
                                            {Cause::overlapping, [](Case& c) { c.source.layout.strides[1] = 0; }}}));
}

TEST(PlanCauses, OfAWideningAddUp) {
  const TensorRef source = packed_source(DType::complex32, {2, 3});
  EXPECT_EQ(bits_of(decide(source, {}).causes), bits_of({Cause::widen}));
  Request request;
  request.copy = CopyPolicy::always;
  request.order = Order::fortran;
  EXPECT_EQ(bits_of(decide(source, request).causes), bits_of({Cause::requested, Cause::widen, Cause::order}));
}

TEST(PlanCauses, DoNotIncludeTheByteOrderOfSingleBytes) {
  TensorRef source = packed_source(DType::float8_e5m2, {3});
  source.byte_swapped = true;
  EXPECT_EQ(decide(source, {}).path, Path::view);
  EXPECT_EQ(decide(source, test::towards_torch()).path, Path::view);
}

std::vector<TensorRef> various_sources() {
  std::vector<TensorRef> sources;
  for (std::size_t i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    const std::int64_t itemsize = info(dtype).itemsize;
    const std::pair<Extents, Extents> layouts[] = {{{2}, {itemsize}},
                                                   {{0, 2}, {itemsize, itemsize}},
                                                   {{2, 2}, {itemsize, 2 * itemsize}},
                                                   {{3, 1, 2}, {-4 * itemsize, 7, 2 * itemsize}},
                                                   {{4, 2}, {0, itemsize}}};
    for (const auto& [shape, strides] : layouts) {
      for (unsigned marks = 0; marks < 16; ++marks) {
        TensorRef source = source_of(dtype, shape, strides);
        source.read_only = (marks & 1U) != 0;
        source.conjugated = (marks & 2U) != 0;
        source.negated = (marks & 4U) != 0;
        source.byte_swapped = (marks & 8U) != 0;
        sources.push_back(source);
      }
    }
  }
  return sources;
}

std::vector<Request> various_requests() {
  std::vector<Request> requests;
  for (const CopyPolicy copy : {CopyPolicy::if_needed, CopyPolicy::always, CopyPolicy::lazy}) {
    for (const DTypeChoice choice : {DTypeChoice::keep, DTypeChoice::native, DTypeChoice::named}) {
      for (const Order order : {Order::keep, Order::c, Order::fortran, Order::any}) {
        for (unsigned marks = 0; marks < 16; ++marks) {
          Request request;
          request.copy = copy;
          request.dtype_choice = choice;
          request.dtype = DType::float32;
          request.casting = Casting::unsafe;
          request.order = order;
          request.into_destination = (marks & 1U) != 0;
          request.no_memory = (marks & 2U) != 0;
          request.lazy_possible = (marks & 4U) != 0;
          request.private_memory = (marks & 8U) != 0;
          requests.push_back(request);
        }
      }
    }
  }
  return requests;
}

bool is_plain(const TensorRef& source, const Request& request) {
  return is_plain_view(source.dtype, source.conjugated || source.negated || source.byte_swapped, request);
}

TEST(IsPlainView, PromisesTheViewThatDecideChooses) {
  const auto requests = various_requests();
  std::int64_t plain = 0;
  for (const TensorRef& source : various_sources()) {
    for (const Request& request : requests) {
      if (!is_plain(source, request)) continue;
      ++plain;
      const Decision plan = decide(source, request);
      ASSERT_EQ(plan.path, Path::view) << summary(source);
      ASSERT_FALSE(plan.causes.any() || plan.writable || plan.checks_values) << summary(source);
      ASSERT_EQ(plan.result_dtype, source.dtype);
      ASSERT_EQ(plan.shape, source.layout.shape);
      ASSERT_EQ(plan.strides, source.layout.strides);
      ASSERT_EQ(plan.nbytes_moved, 0);
    }
  }
  // 32 dtypes, 5 layouts, read-only or not; lazy_possible and private_memory or not.
  EXPECT_EQ(plain, 32 * 5 * 2 * 4);
}

TEST(IsPlainView, MissesNoViewWhereNothingIsAsked) {
  for (const TensorRef& source : various_sources()) {
    if (source.byte_swapped && source.layout.itemsize == 1) continue;
    EXPECT_EQ(is_plain(source, {}), decide(source, {}).path == Path::view) << summary(source);
  }
}

TEST(IsPlainView, IsNotAboutRequestsForACopyOrARefusal) {
  const TensorRef source = packed_source(DType::float32, {3});
  EXPECT_TRUE(is_plain(source, {}));
  for (const CopyPolicy copy : {CopyPolicy::always, CopyPolicy::never, CopyPolicy::lazy}) {
    Request request;
    request.copy = copy;
    EXPECT_FALSE(is_plain(source, request));
  }
}

}  // namespace
}  // namespace ferry
