// What a device may still touch although no event can tell when it is done: kept for good, and counted.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace ferry {

using Holds = std::vector<std::shared_ptr<void>>;

// Never throws; what cannot even be noted down is leaked.
void abandon(Holds holds) noexcept;

// How many holds were abandoned since the process began.
[[nodiscard]] std::uint64_t abandoned_holds() noexcept;

}  // namespace ferry
