#include "core/mutation.hpp"

#ifdef FERRY_MUTATIONS
#include <atomic>

namespace ferry {
namespace {

std::atomic<Mutation> switched_on{Mutation::none};

}  // namespace

bool mutated(Mutation mutation) noexcept { return switched_on.load(std::memory_order_relaxed) == mutation; }

void switch_mutation(Mutation mutation) noexcept { switched_on.store(mutation, std::memory_order_relaxed); }

}  // namespace ferry
#endif
