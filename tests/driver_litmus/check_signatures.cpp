// Compiles only if the functions that questions need beyond the product's table take what the toolkit's header says.
#include <cuda.h>
#include <cudaTypedefs.h>

#include <array>
#include <type_traits>

#include "extra_functions.hpp"

namespace {

struct Parameter {
  std::size_t nbytes;
  bool is_pointer;
  bool operator==(const Parameter&) const = default;
};

template <class... Arguments>
constexpr auto parameters(CUresult (*)(Arguments...)) {
  return std::array<Parameter, sizeof...(Arguments)>{Parameter{sizeof(Arguments), std::is_pointer_v<Arguments>}...};
}
template <class... Arguments>
constexpr auto parameters(ferry::cuda::CUresult (*)(Arguments...)) {
  return std::array<Parameter, sizeof...(Arguments)>{Parameter{sizeof(Arguments), std::is_pointer_v<Arguments>}...};
}

template <class Ours, class Toolkits>
constexpr bool same() {
  constexpr auto ours = parameters(Ours{});
  constexpr auto theirs = parameters(Toolkits{});
  if constexpr (ours.size() != theirs.size()) {
    return false;
  } else {
    return ours == theirs;
  }
}

namespace declared {
using namespace ferry::cuda;
#define LITMUS_DECLARE(name, version, given) using name = ferry::cuda::CUresult(*) given;
LITMUS_EXTRA(LITMUS_DECLARE)
}  // namespace declared

#define LITMUS_COMPARE(name, version, given) \
  static_assert(same<declared::name, PFN_##name##_v##version>(), #name " differs from the toolkit's");
LITMUS_EXTRA(LITMUS_COMPARE)

static_assert(!same<ferry::cuda::CUresult (*)(int), CUresult (*)(void*)>());
static_assert(!same<ferry::cuda::CUresult (*)(int), CUresult (*)(int, int)>());

}  // namespace
