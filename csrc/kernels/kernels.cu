// All kernels in one unit, for one image.
#include "kernels/gather.cu"
#include "kernels/image.cu"
#include "kernels/rows.cu"
#include "kernels/rows_cast.cu"
#include "kernels/strided.cu"
#include "kernels/transpose.cu"
