// Libraries and their kernels.
#include <cstring>
#include <iterator>
#include <string_view>

#include "api.hpp"
#include "call.hpp"

namespace fake {
namespace {

constexpr unsigned char fat_binary[] = {0x50, 0xED, 0x55, 0xBA}, pretended[] = {'F', 'A', 'K', 'E'};

bool is_image(const void* image) {
  return std::memcmp(image, fat_binary, sizeof(fat_binary)) == 0 ||
         std::memcmp(image, pretended, sizeof(pretended)) == 0;
}

const KernelCode* find_code(const char* name) {
  for (const KernelCode& code : kernel_codes()) {
    if (std::string_view(code.name) == name) return &code;
  }
  return nullptr;
}

std::string name_of(const World& w, Library library) {
  return w.programs.libraries.knows(library) || w.programs.libraries.was(library) ? library->name() : "unknown";
}

}  // namespace

Result cuLibraryLoadData(Library* library, const void* image, int*, void**, unsigned jit_count, int*, void**,
                         unsigned option_count) {
  return unsafe_call("cuLibraryLoadData", Needs::init, no_arguments, [&](World& w, Lock&) {
    if (library == nullptr || image == nullptr || jit_count + option_count != 0) return invalid_value;
    if (!is_image(image)) return invalid_image;
    if (w.settings.image_answer != success) return w.settings.image_answer;
    *library = w.programs.libraries.add(false);
    (*library)->number = ++w.programs.last;
    return success;
  });
}

Result cuLibraryUnload(Library library) {
  const auto arguments = [&](World& w) { return text(" ", name_of(w, library)); };
  return unsafe_call("cuLibraryUnload", Needs::init, arguments, [&](World& w, Lock&) {
    if (!w.programs.libraries.knows(library)) return invalid_handle;
    for (const auto& name :
         w.engine.pending_on([&](const Access& access) { return access.library == library->number; })) {
      w.report.violation(text(library->name(), " was unloaded with pending work: ", name));
    }
    w.programs.remove(library);
    return success;
  });
}

Result cuLibraryGetKernel(Kernel* kernel, Library library, const char* name) {
  const auto arguments = [&](World& w) { return text(" ", name_of(w, library), " ", name == nullptr ? "NULL" : name); };
  return call("cuLibraryGetKernel", Needs::init, arguments, [&](World& w, Lock&) {
    if (kernel == nullptr || name == nullptr) return invalid_value;
    if (!w.programs.libraries.knows(library)) return invalid_handle;
    const KernelCode* code = find_code(name);
    if (code == nullptr) return not_found;
    for (const Kernel known : library->kernels) {
      if (known->code == code) {
        *kernel = known;
        return success;
      }
    }
    *kernel = w.programs.kernels.add(false);
    (*kernel)->library = library;
    (*kernel)->code = code;
    library->kernels.push_back(*kernel);
    return success;
  });
}

Result cuKernelGetFunction(Function* function, Kernel kernel) {
  const auto arguments = [&](World& w) {
    return text(" ", w.programs.kernels.knows(kernel) ? kernel->code->name : "unknown");
  };
  return unsafe_call("cuKernelGetFunction", Needs::context, arguments, [&](World& w, Lock&) {
    if (function == nullptr) return invalid_value;
    if (!w.programs.kernels.knows(kernel)) return invalid_handle;
    const Context context = w.current();
    Function& made = kernel->functions[context->id];
    if (made == nullptr) {
      made = w.programs.functions.add(false);
      made->kernel = kernel;
      made->context_id = context->id;
      made->device = context->device;
      made->loaded = !w.settings.lazy_loading;
    }
    *function = made;
    return success;
  });
}

Result cuFuncGetAttribute(int* value, int attribute, Function function) {
  const auto arguments = [&](World& w) {
    return text(" ", w.programs.functions.knows(function) ? function->code().name : "unknown", " ", attribute);
  };
  return unsafe_call("cuFuncGetAttribute", Needs::context, arguments, [&](World& w, Lock&) {
    if (value == nullptr) return invalid_value;
    if (!w.programs.functions.knows(function)) return invalid_handle;
    // Threads in a block, bytes of shared, constant and local memory, registers, versions of PTX and machine code.
    constexpr int values[] = {1024, 0, 0, 0, 32, 90, 90};
    if (attribute < 0 || attribute >= static_cast<int>(std::size(values))) return invalid_value;
    function->loaded = true;
    *value = values[attribute];
    return success;
  });
}

}  // namespace fake
