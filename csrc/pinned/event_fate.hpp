// What became of the work that an event stands for.
#pragma once

#include <cstdint>

#include "cuda/event.hpp"

namespace ferry {

enum class EventFate : std::uint8_t {
  pending,
  done,
  captured,  // it was recorded into somebody's graph instead, and stands for nothing
  unknown,   // the driver gave no answer that says anything about the work
  lost,      // the device or its context is gone: nobody will ever know
};

// How often in a row an answer may say nothing before the work counts as lost.
constexpr int most_unknown_answers = 3;

// Asks once, and relaxes captures meanwhile. Never waits.
[[nodiscard]] EventFate fate_of(const cuda::Event& event) noexcept;

}  // namespace ferry
