// Which contexts there are, and what belongs together.
#include <algorithm>

#include "world.hpp"

namespace fake {

std::vector<const CUctx_st*> World::contexts() const {
  std::vector<const CUctx_st*> all;
  for (const auto* kind : {&primary, &green}) {
    for (const CUctx_st& one : *kind) all.push_back(&one);
  }
  return all;
}

bool World::knows(Context context) const { return std::ranges::count(contexts(), context) > 0; }

std::vector<Context> World::with_green(Context context) {
  if (context->is_green) return {context};
  CUctx_st& other = green[static_cast<std::size_t>(context->device)];
  return other.alive() ? std::vector<Context>{context, &other} : std::vector<Context>{context};
}

CUctx_st& World::green_context(Device device) {
  CUctx_st& made = green[static_cast<std::size_t>(device)];
  if (!made.alive()) {
    activate(made);
    made.references = 1;
    ++primary[static_cast<std::size_t>(device)].references;
  }
  return made;
}

bool World::may_share_events(Context one, Context other) const {
  return one == other || (settings.green_contexts_share_events && one->device == other->device);
}

}  // namespace fake
