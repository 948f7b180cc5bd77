// Functions that questions need and the product never calls: X(name, version, parameters), as in driver_functions.hpp.
#pragma once

#include "cuda/driver_types.hpp"

struct CUgraphExec_st;

namespace ferry::cuda {
using CUgraphExec = CUgraphExec_st*;
}

#define LITMUS_EXTRA(X)                                                                           \
  X(cuMemAlloc, 3020, (CUdeviceptr * pointer, std::size_t nbytes))                                \
  X(cuMemFree, 3020, (CUdeviceptr pointer))                                                       \
  X(cuCtxSynchronize, 2000, ())                                                                   \
  X(cuStreamSynchronize, 2000, (CUstream stream))                                                 \
  X(cuCtxSetCurrent, 4000, (CUcontext context))                                                   \
  X(cuCtxCreate, 3020, (CUcontext * context, unsigned flags, CUdevice device))                    \
  X(cuCtxDestroy, 4000, (CUcontext context))                                                      \
  X(cuDevicePrimaryCtxReset, 11000, (CUdevice device))                                            \
  X(cuStreamBeginCapture, 10010, (CUstream stream, int mode))                                     \
  X(cuStreamEndCapture, 10000, (CUstream stream, CUgraph * graph))                                \
  X(cuGraphInstantiateWithFlags, 11040, (CUgraphExec * exec, CUgraph graph, std::uint64_t flags)) \
  X(cuGraphLaunch, 10000, (CUgraphExec exec, CUstream stream))                                    \
  X(cuGraphExecDestroy, 10000, (CUgraphExec exec))                                                \
  X(cuGraphDestroy, 10000, (CUgraph graph))
