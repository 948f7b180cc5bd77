#include "libraries.hpp"

namespace fake {

void Libraries::remove(Library library) {
  for (const Kernel kernel : library->kernels) {
    for (const auto& [context, function] : kernel->functions) functions.remove(function);
    kernel->functions.clear();
    kernels.remove(kernel);
  }
  libraries.remove(library);
}

void Libraries::remove_functions_of(u64 context_id) {
  for (const Kernel kernel : kernels.live()) {
    const auto found = kernel->functions.find(context_id);
    if (found == kernel->functions.end()) continue;
    functions.remove(found->second);
    kernel->functions.erase(found);
  }
}

void Libraries::clear() {
  libraries.clear();
  kernels.clear();
  functions.clear();
  last = launches = 0;
}

}  // namespace fake
