#include "transfer/interruption.hpp"

#include <utility>

namespace ferry {
namespace {

thread_local InterruptibleWaits::Ask asked_in_this_thread = nullptr;

}  // namespace

InterruptibleWaits::InterruptibleWaits(Ask ask) noexcept : before_(std::exchange(asked_in_this_thread, ask)) {}

InterruptibleWaits::~InterruptibleWaits() { asked_in_this_thread = before_; }

InterruptibleWaits::Ask InterruptibleWaits::current() noexcept { return asked_in_this_thread; }

}  // namespace ferry
