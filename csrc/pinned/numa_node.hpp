// Host memory close to a device: on machines with several memory nodes, copies from the far one are slower.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "cuda/context.hpp"

namespace ferry {

// The memory node of the device at a PCI address as the driver writes it ("00000000:3B:00.0"); nothing where the system
// does not say. `root` is where sys/ is found.
[[nodiscard]] std::optional<int> memory_node_of(const std::string& pci_address,
                                                const std::filesystem::path& root = "/");

// Pages not yet touched will rather come from this node than from another. A wish: false where it is refused.
bool prefer_memory_node(std::byte* data, std::size_t nbytes, int node) noexcept;

// Both for the scope's device. Never fails.
void prefer_memory_near(const cuda::ContextScope& scope, std::byte* data, std::size_t nbytes);

}  // namespace ferry
