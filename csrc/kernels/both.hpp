// Marks functions that run on the host and on the device.
#pragma once

#if defined(__CUDACC__)
#define FERRY_BOTH __host__ __device__
#else
#define FERRY_BOTH
#endif
