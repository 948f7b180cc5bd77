#include "faults.hpp"

namespace fake {

void Faults::add(const std::string& call, std::int64_t nth, Result code, bool after_acceptance) {
  faults_.push_back({call, nth, code, after_acceptance});
}

Result Faults::before(const std::string& call) {
  pending_after_ = success;
  Result now = gone_ ? deinitialized : success;
  for (Fault& fault : faults_) {
    if (fault.call != call && fault.call != "*") continue;
    ++fault.seen;
    if (fault.nth != 0 && fault.seen != fault.nth) continue;
    if (fault.code == deinitialized) gone_ = true;
    Result& when = fault.after ? pending_after_ : now;
    if (when == success) when = fault.code;
  }
  return now;
}

Result Faults::after() { return std::exchange(pending_after_, success); }

Result Faults::at_execution() {
  for (Fault& fault : faults_) {
    if (fault.call != "execution") continue;
    ++fault.seen;
    if (fault.nth == 0 || fault.seen == fault.nth) return fault.code;
  }
  return success;
}

}  // namespace fake
