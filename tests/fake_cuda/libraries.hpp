// Libraries of kernels: loaded once for all contexts, and a function for each kernel and context.
#pragma once

#include <map>
#include <vector>

#include "handles.hpp"
#include "kernel_table.hpp"

struct CUlib_st {
  fake::u64 number = 0;
  std::vector<fake::Kernel> kernels;  ///< that were asked for

  std::string name() const { return "library#" + std::to_string(number); }
};

struct CUkern_st {
  fake::Library library = nullptr;
  const fake::KernelCode* code = nullptr;
  std::map<fake::u64, fake::Function> functions;  ///< by context
};

struct CUfunc_st {
  fake::Kernel kernel = nullptr;
  fake::u64 context_id = 0;
  fake::Device device = 0;
  bool loaded = true;

  const fake::KernelCode& code() const { return *kernel->code; }
};

namespace fake {

struct World;
class Lock;

struct Libraries {
  Handles<CUlib_st> libraries;
  Handles<CUkern_st> kernels;
  Handles<CUfunc_st> functions;
  u64 last = 0, launches = 0;

  void remove(Library library);
  void remove_functions_of(u64 context_id);
  void clear();
};

}  // namespace fake
