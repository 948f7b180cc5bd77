// A launch as it is decided on the host: which kernel, how many blocks, and its arguments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/kernel_list.hpp"

namespace ferry::gpu {

struct Grid {
  std::uint32_t blocks;
  std::uint32_t threads;

  friend constexpr bool operator==(const Grid& a, const Grid& b) noexcept {
    return a.blocks == b.blocks && a.threads == b.threads;
  }
};

class Launch {
 public:
  template <class Args>
  Launch(Kernel kernel, Grid grid, const Args& args) noexcept : kernel_(kernel), grid_(grid), nbytes_(sizeof(Args)) {
    static_assert(is_argument<Args>);
    std::memcpy(args_.data(), &args, sizeof(Args));
  }

  [[nodiscard]] Kernel kernel() const noexcept { return kernel_; }
  [[nodiscard]] Grid grid() const noexcept { return grid_; }
  [[nodiscard]] const void* args() const noexcept { return args_.data(); }
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }

 private:
  Kernel kernel_;
  Grid grid_;
  std::size_t nbytes_;
  alignas(16) std::array<std::byte, max_argument_nbytes> args_;
};

}  // namespace ferry::gpu
