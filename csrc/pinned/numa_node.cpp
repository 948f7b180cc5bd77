#include "pinned/numa_node.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <climits>
#include <fstream>

namespace ferry {
namespace {

// To bind strictly would have the process killed when the node is full.
constexpr int preferred = 1;  // MPOL_PREFERRED
constexpr std::size_t bits_of_word = CHAR_BIT * sizeof(unsigned long);
constexpr std::size_t most_nodes = 1024;

}  // namespace

std::optional<int> memory_node_of(const std::string& pci_address, const std::filesystem::path& root) {
  // The system's name has four digits before the first colon and small letters.
  const std::size_t domain_digits = pci_address.find(':');
  if (domain_digits == std::string::npos || domain_digits < 4) return std::nullopt;
  std::string name = pci_address.substr(domain_digits - 4);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  std::ifstream file(root / "sys/bus/pci/devices" / name / "numa_node");
  int node = -1;
  return file >> node && node >= 0 ? std::optional(node) : std::nullopt;
}

bool prefer_memory_node([[maybe_unused]] std::byte* data, [[maybe_unused]] std::size_t nbytes, int node) noexcept {
  if (node < 0 || static_cast<std::size_t>(node) >= most_nodes) return false;
#ifdef SYS_mbind
  const auto bit = static_cast<std::size_t>(node);
  std::array<unsigned long, most_nodes / bits_of_word> nodes{};
  nodes[bit / bits_of_word] = 1UL << (bit % bits_of_word);
  return ::syscall(SYS_mbind, data, nbytes, preferred, nodes.data(), most_nodes + 1, 0) == 0;
#else
  return false;
#endif
}

void prefer_memory_near(const cuda::ContextScope& scope, std::byte* data, std::size_t nbytes) {
  std::array<char, 32> address{};
  const cuda::Functions& functions = scope.driver().functions();
  if (functions.cuDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), scope.device()) !=
      cuda::success) {
    return;
  }
  if (const auto node = memory_node_of(address.data())) prefer_memory_node(data, nbytes, *node);
}

}  // namespace ferry
