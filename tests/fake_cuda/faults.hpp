// Failures on demand: at the n-th call of a function, before it does anything or after it was accepted.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "types.hpp"

namespace fake {

/// An error that ends its context: every later call that works in the context returns it.
inline bool is_sticky(Result code) {
  return code == 214 || code == 220 || code == 226 || code == 700 || code == 702 ||
         (code >= 710 && code <= 721 && code != 711 && code != already_registered && code != not_registered &&
          code != 720);
}

class Faults {
 public:
  /// `call` may be "*" (any call) or "execution" (an operation, when it runs). The first call is number 1; 0 means
  /// every call. Deinitialised is for good from that call on.
  void add(const std::string& call, std::int64_t nth, Result code, bool after_acceptance);
  /// To be asked once for each call; later `after` answers for the same call.
  Result before(const std::string& call);
  Result after();
  Result at_execution();
  void clear() { *this = {}; }

 private:
  struct Fault {
    std::string call;
    std::int64_t nth;
    Result code;
    bool after;
    std::int64_t seen = 0;
  };
  std::vector<Fault> faults_;
  Result pending_after_ = success;
  bool gone_ = false;
};

}  // namespace fake
