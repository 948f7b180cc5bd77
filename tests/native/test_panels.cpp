// The panels of a copy against the elements of both layouts: each is visited once, in the rectangle that the plan says.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "host/panels.hpp"
#include "support.hpp"

namespace ferry {
namespace {

using test::Random;

// Pairs of byte offsets, of the destination and of the source.
using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

struct Layouts {
  Extents shape;
  Extents to_strides;
  Extents from_strides;
  std::int64_t to_itemsize;
  std::int64_t from_itemsize;
};

// Nothing is read or written: offsets from two addresses that are never used.
std::byte* const to_base = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);
std::byte* const from_base = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 41);

PanelPlan plan_for(const Layouts& l, bool bits_move, std::int64_t scratch_nbytes = 65536) {
  const Walk<2> walk(l.shape, {&l.to_strides, &l.from_strides}, {to_base, from_base}, WalkOrder::fastest);
  return plan_panels(walk, l.to_itemsize, l.from_itemsize, bits_move, scratch_nbytes);
}

// Byte by byte when bits move, since then items may be joined.
Pairs expected_pairs(const Layouts& l, bool bits_move) {
  Pairs pairs;
  const std::int64_t count = element_count(l.shape).value();
  const std::int64_t bytes = bits_move ? l.to_itemsize : 1;
  for (std::int64_t flat = 0; flat < count; ++flat) {
    const std::int64_t to = test::offset_of({l.shape, l.to_strides, l.to_itemsize}, flat);
    const std::int64_t from = test::offset_of({l.shape, l.from_strides, l.from_itemsize}, flat);
    for (std::int64_t byte = 0; byte < bytes; ++byte) pairs.emplace_back(to + byte, from + byte);
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

void add_rectangle(Pairs& pairs, const PanelPlan& plan, const Panel& panel, std::int64_t deep, bool bits_move) {
  for (std::int64_t o = 0; o < panel.outer; ++o) {
    for (std::int64_t i = 0; i < panel.inner; ++i) {
      const std::int64_t to =
          panel.to - to_base + o * plan.outer.to_step + i * plan.inner.to_step + deep * plan.deep.to_step;
      const std::int64_t from =
          panel.from - from_base + o * plan.outer.from_step + i * plan.inner.from_step + deep * plan.deep.from_step;
      for (std::int64_t g = 0; g < plan.group.extent; ++g) {
        for (std::int64_t byte = 0; byte < (bits_move ? plan.to_itemsize : 1); ++byte) {
          pairs.emplace_back(to + g * plan.group.to_step + byte, from + g * plan.group.from_step + byte);
        }
      }
    }
  }
}

void add_panel(Pairs& pairs, const PanelPlan& plan, const Panel& panel, bool bits_move) {
  for (std::int64_t deep = 0; deep < panel.deep; ++deep) add_rectangle(pairs, plan, panel, deep, bits_move);
}

// In pieces of `per_piece` panels, as threads would take them.
Pairs visited_pairs(const PanelPlan& plan, bool bits_move, std::int64_t per_piece) {
  Pairs pairs;
  std::int64_t visits = 0;
  for (std::int64_t first = 0; first < plan.panels; first += per_piece) {
    plan.for_each_panel(first, std::min(first + per_piece, plan.panels), [&](const Panel& panel) {
      ++visits;
      EXPECT_GE(panel.inner, 1);
      EXPECT_GE(panel.outer, 1);
      EXPECT_LE(panel.inner, plan.inner_chunk);
      EXPECT_LE(panel.outer, plan.outer_chunk);
      EXPECT_LE(panel.deep, plan.deep_chunk);
      add_panel(pairs, plan, panel, bits_move);
    });
  }
  EXPECT_EQ(visits, plan.panels);
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

void expect_kept_promises(const PanelPlan& plan, std::int64_t scratch_nbytes) {
  if (plan.path == CopyPath::transpose) {
    const std::int64_t group = plan.group.extent;
    EXPECT_TRUE(group == 1 || plan.group.to_step == plan.to_itemsize);
    EXPECT_EQ(plan.inner.to_step, group * plan.to_itemsize);
    EXPECT_EQ(plan.outer.from_step, plan.from_itemsize);
    const std::int64_t row = plan.inner_chunk * group * plan.from_itemsize;
    EXPECT_LE(row * plan.outer_chunk, std::max<std::int64_t>(scratch_nbytes, 65536));
    // Padded to an odd number of cache lines, rows fit into the scratch that carry.cpp has for 64 KiB.
    EXPECT_LE(((row + 63) / 64 | 1) * 64 * plan.outer_chunk, std::max<std::int64_t>(scratch_nbytes, 65536) * 3 / 2);
  } else {
    EXPECT_EQ(plan.group.extent, 1);
  }
  if (plan.path == CopyPath::columns) {
    EXPECT_EQ(plan.inner.to_step, plan.to_itemsize);
    EXPECT_EQ(plan.outer.from_step, plan.from_itemsize);
    EXPECT_EQ(plan.inner_chunk, plan.inner.extent);
    const std::int64_t column = plan.outer_chunk * plan.to_itemsize;
    EXPECT_LE(((column + 63) / 64 | 1) * 64 * plan.inner_chunk, 65536 * 3 / 2);
  }
  if (plan.path == CopyPath::block || plan.path == CopyPath::rows) {
    EXPECT_EQ(plan.inner.to_step, plan.to_itemsize);
    EXPECT_EQ(plan.inner.from_step, plan.from_itemsize);
  }
  EXPECT_TRUE(plan.path != CopyPath::block || plan.outer.extent == 1);
  EXPECT_TRUE(plan.path == CopyPath::steps || plan.deep.extent == 1);
}

// Permuted, with gaps and reversed axes; a source may also stand still along an axis.
Extents random_strides(Random& random, const Extents& shape, std::int64_t itemsize, bool may_stand) {
  std::vector<int> axes;
  for (int axis = 0; axis < shape.size(); ++axis) axes.insert(axes.begin() + random.between(0, axis), axis);
  Extents strides(shape.size());
  std::int64_t step = itemsize;
  for (const int axis : axes) {
    if (random.between(0, 3) == 0) step += itemsize * random.between(1, 3);
    strides[axis] = random.between(0, 3) == 0 ? -step : step;
    if (may_stand && random.between(0, 7) == 0) {
      strides[axis] = 0;
    } else {
      step *= shape[axis];
    }
  }
  return strides;
}

TEST(PlanPanels, VisitsEveryElementOnceWhateverTheLayouts) {
  Random random(61);
  std::map<CopyPath, int> paths;
  int deep = 0;
  for (int round = 0; round < 3000; ++round) {
    const bool bits_move = random.between(0, 1) == 0;
    const int ndim = static_cast<int>(random.between(0, 5));
    Layouts l{Extents(ndim), Extents(ndim), Extents(ndim), std::int64_t{1} << random.between(0, 4), 0};
    l.from_itemsize = bits_move ? l.to_itemsize : std::int64_t{1} << random.between(0, 4);
    const std::int64_t long_axis = random.between(0, 4);
    for (int axis = 0; axis < ndim; ++axis) l.shape[axis] = random.between(1, ndim < 3 || axis == long_axis ? 40 : 6);
    l.to_strides = random_strides(random, l.shape, l.to_itemsize, false);
    l.from_strides = random_strides(random, l.shape, l.from_itemsize, true);
    if (round % 3 == 0) {  // the destination in C order
      std::int64_t step = l.to_itemsize;
      for (int axis = ndim - 1; axis >= 0; --axis) {
        l.to_strides[axis] = step;
        step *= l.shape[axis];
      }
    }
    const std::int64_t scratch_nbytes = std::int64_t{1} << random.between(10, 16);
    const PanelPlan plan = plan_for(l, bits_move, scratch_nbytes);
    ++paths[plan.path];
    deep += plan.deep_chunk > 1 ? 1 : 0;
    expect_kept_promises(plan, scratch_nbytes);
    EXPECT_EQ(plan.to_nbytes, element_count(l.shape).value() * l.to_itemsize);
    ASSERT_EQ(visited_pairs(plan, bits_move, random.between(1, 5)), expected_pairs(l, bits_move)) << "round " << round;
  }
  EXPECT_GT(paths[CopyPath::block], 100);
  EXPECT_GT(paths[CopyPath::rows], 100);
  EXPECT_GT(paths[CopyPath::transpose], 100);
  EXPECT_GT(paths[CopyPath::columns], 100);
  EXPECT_GT(paths[CopyPath::steps], 100);
  EXPECT_GT(deep, 10);
}

TEST(PlanPanels, GathersAShortAxisWithTheOneThatContinuesIt) {
  // (16, 8, 64) with its axes reversed: the destination moves 16 items at a time, the source 64.
  const PanelPlan plan = plan_for({{64, 8, 16}, {8 * 16 * 4, 16 * 4, 4}, {4, 64 * 4, 8 * 64 * 4}, 4, 4}, true);
  EXPECT_EQ(plan.path, CopyPath::transpose);
  EXPECT_EQ(plan.group.extent, 16);
  EXPECT_EQ(plan.inner.extent, 8);
  EXPECT_EQ(plan.outer.extent, 64);
  EXPECT_EQ(plan.rest_size, 0U);
}

TEST(PlanPanels, TakesABlockAsOneRow) {
  const PanelPlan plan = plan_for({{6, 7}, {28, 4}, {28, 4}, 4, 4}, true);
  EXPECT_EQ(plan.path, CopyPath::block);
  EXPECT_EQ(plan.inner.extent * plan.to_itemsize, 6 * 7 * 4);
  EXPECT_EQ(plan.panels, 1);
}

TEST(PlanPanels, CutsALongBlockIntoPiecesForThreads) {
  const std::int64_t count = 10'000'000;
  const PanelPlan plan = plan_for({{count}, {4}, {4}, 4, 4}, true);
  EXPECT_EQ(plan.path, CopyPath::block);
  EXPECT_GE(plan.panels, 16);
  std::int64_t covered = 0;
  plan.for_each_panel(0, plan.panels, [&](const Panel& panel) {
    EXPECT_EQ(panel.to - to_base, covered * 4);
    covered += panel.inner;
  });
  EXPECT_EQ(covered, count);
}

TEST(PlanPanels, TakesPitchedRowsRowByRow) {
  const PanelPlan plan = plan_for({{30, 100}, {400, 4}, {512, 4}, 4, 4}, true);
  EXPECT_EQ(plan.path, CopyPath::rows);
  EXPECT_EQ(plan.inner.extent, 100);
  EXPECT_EQ(plan.outer.extent, 30);
}

TEST(PlanPanels, TransposesWhereTheSourceWalksTheOtherAxisItemByItem) {
  const PanelPlan plan = plan_for({{300, 200}, {800, 4}, {4, 1200}, 4, 4}, true);
  EXPECT_EQ(plan.path, CopyPath::transpose);
  EXPECT_EQ(plan.inner.extent, 200);
  EXPECT_EQ(plan.outer.extent, 300);
}

TEST(PlanPanels, MakesColumnsWhereRowsOfNewValuesWouldBeShort) {
  const auto path = [](std::int64_t channels, std::int64_t from_itemsize, bool bits_move) {
    return plan_for({{300, channels}, {channels * 4, 4}, {from_itemsize, 300 * from_itemsize}, 4, from_itemsize},
                    bits_move)
        .path;
  };
  EXPECT_EQ(path(3, 2, false), CopyPath::columns);
  EXPECT_EQ(path(63, 8, false), CopyPath::columns);
  EXPECT_EQ(path(64, 8, false), CopyPath::transpose);
  EXPECT_EQ(path(3, 4, true), CopyPath::transpose);
  // Two short axes that continue each other: columns of the last one.
  const PanelPlan plan = plan_for({{64, 2, 3}, {24, 12, 4}, {2, 128, 256}, 4, 2}, false);
  EXPECT_EQ(plan.path, CopyPath::columns);
  EXPECT_EQ(plan.inner.extent, 3);
  EXPECT_EQ(plan.rest_size, 1U);
}

TEST(PlanPanels, StepsWhereNoAxisIsWalkedItemByItemByBoth) {
  EXPECT_EQ(plan_for({{50, 60}, {240, 4}, {960, 8}, 4, 4}, true).path, CopyPath::steps);
  EXPECT_EQ(plan_for({{5000}, {4}, {0}, 4, 4}, true).path, CopyPath::steps);
  EXPECT_EQ(plan_for({{5000}, {4}, {-4}, 4, 4}, true).path, CopyPath::steps);
}

TEST(PlanPanels, TakesAThirdAxisWhereARectangleOfTwoHasFewItems) {
  // Six planes become the last axes, of which two cross: a rectangle of them has 15 items.
  const Layouts l{{5, 3000, 2, 3}, {4 * 24000, 4 * 8, 4 * 3, 4}, {4, 4 * 5, 4 * 50000, 4 * 15000}, 4, 4};
  const PanelPlan plan = plan_for(l, true);
  EXPECT_EQ(plan.path, CopyPath::steps);
  EXPECT_EQ(plan.inner.extent, 3);
  EXPECT_EQ(plan.outer.extent, 5);
  EXPECT_EQ(plan.deep.extent, 3000);
  EXPECT_EQ(plan.deep_chunk, 4096 / 15);
  EXPECT_EQ(plan.rest[0].extent, 2);  // both planes of a chunk before the next chunk
  EXPECT_EQ(plan.deep_at, 1U);
  EXPECT_EQ(visited_pairs(plan, true, 7), expected_pairs(l, true));
}

TEST(PlanPanels, JoinsShortRowsToLargerItemsWhereBitsMove) {
  const Layouts pairs{{300, 200, 2}, {1600, 8, 4}, {8, 2400, 4}, 4, 4};  // complex numbers seen as pairs, transposed
  const PanelPlan joined = plan_for(pairs, true);
  EXPECT_EQ(joined.to_itemsize, 8);
  EXPECT_EQ(joined.from_itemsize, 8);
  EXPECT_EQ(joined.path, CopyPath::transpose);
  const PanelPlan apart = plan_for(pairs, false);
  EXPECT_EQ(apart.to_itemsize, 4);
}

TEST(PlanPanels, TurnsReversedAxesRound) {
  // A transposed source read from its far corner: the axis the source walks item by item goes upwards in the plan.
  const PanelPlan plan = plan_for({{300, 200}, {800, 4}, {-4, -1200}, 4, 4}, true);
  EXPECT_EQ(plan.path, CopyPath::transpose);
  EXPECT_EQ(plan.outer.from_step, 4);
  EXPECT_EQ(plan.outer.to_step, -800);
}

}  // namespace
}  // namespace ferry
