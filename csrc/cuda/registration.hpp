// Registering host memory with the driver: its pages stay where they are, and devices copy from and to them directly.
#pragma once

#include <cstddef>
#include <optional>

#include "cuda/context.hpp"

namespace ferry::cuda {

enum class HostAccess : unsigned char { read_write, read_only };

// Refusals that have another way (smaller pieces, memory of the driver's own, ordinary memory); others are errors.
enum class RegistrationOutcome : unsigned char {
  registered,
  invalid_range,       // 1
  out_of_memory,       // 2: also where locked memory is limited
  already_registered,  // 712: a page of it is registered
  not_permitted,       // 800
  not_supported,       // 801: and read-only memory where the device cannot
};

// Whole pages, registered until it dies.
class Registration {
 public:
  Registration(Registration&& other) noexcept;
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  Registration& operator=(Registration&&) = delete;
  ~Registration();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }
  // Where a device finds data(); it need not be the same address. Throws Error.
  [[nodiscard]] CUdeviceptr device_pointer() const;

  // Unregisters now, once; returns the driver's answer. Call it before the memory is unmapped, and when no work that
  // touches it is pending: it waits for none.
  CUresult release() noexcept;

 private:
  friend struct RegistrationAttempt register_host(const ContextScope& scope, void* data, std::size_t nbytes,
                                                  HostAccess access);
  Registration(const ContextScope& scope, std::byte* data, std::size_t nbytes) noexcept
      : driver_(scope.driver()), context_(scope.context()), data_(data), nbytes_(nbytes) {}

  const Driver& driver_;
  ContextIdentity context_;
  std::byte* data_;
  std::size_t nbytes_;
};

struct RegistrationAttempt {
  RegistrationOutcome outcome;
  CUresult code;                             // the driver's answer
  std::optional<Registration> registration;  // set where the outcome is `registered`
};

// Registers the pages that hold these bytes, for all contexts and mapped. Blocks while pages are locked. Throws Error.
[[nodiscard]] RegistrationAttempt register_host(const ContextScope& scope, void* data, std::size_t nbytes,
                                                HostAccess access = HostAccess::read_write);

}  // namespace ferry::cuda
