// What the kernel says about host memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake {

inline constexpr std::size_t host_page = 4096;

inline std::uintptr_t page_down(std::uintptr_t address) { return address / host_page * host_page; }
inline std::uintptr_t page_up(std::uintptr_t address) { return page_down(address + host_page - 1); }

/// Every page of the range is mapped.
bool is_mapped(std::uintptr_t address, std::size_t nbytes);
/// Every page of the range is mapped and may be written.
bool is_writable(std::uintptr_t address, std::size_t nbytes);
/// A forked child would inherit the page: it was not marked by MADV_DONTFORK and is not a shared mapping.
bool is_copied_at_fork(std::uintptr_t address);

}  // namespace fake
