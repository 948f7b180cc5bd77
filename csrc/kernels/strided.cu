// Copies and converts elements between any strides.
#include "kernels/signal.cuh"
#include "kernels/strided.cuh"

namespace ferry::gpu {

FERRY_KERNEL(512) ferry_strided_1(const StridedArgs args) { copy_strided<SameBits::Of<std::uint8_t>>(args); }
FERRY_KERNEL(512) ferry_strided_2(const StridedArgs args) { copy_strided<SameBits::Of<std::uint16_t>>(args); }
FERRY_KERNEL(512) ferry_strided_4(const StridedArgs args) { copy_strided<SameBits::Of<std::uint32_t>>(args); }
FERRY_KERNEL(512) ferry_strided_8(const StridedArgs args) { copy_strided<SameBits::Of<std::uint64_t>>(args); }
FERRY_KERNEL(512) ferry_strided_16(const StridedArgs args) { copy_strided<SameBits::Of<Bits128>>(args); }

FERRY_KERNEL(512) ferry_strided_bfloat16_from_float32(const StridedArgs args) {
  copy_strided<BFloat16FromFloat32>(args);
}
FERRY_KERNEL(512) ferry_strided_float16_from_float32(const StridedArgs args) { copy_strided<Float16FromFloat32>(args); }
FERRY_KERNEL(512) ferry_strided_float32_from_bfloat16(const StridedArgs args) {
  copy_strided<Float32FromBFloat16>(args);
}
FERRY_KERNEL(512) ferry_strided_float32_from_float16(const StridedArgs args) { copy_strided<Float32FromFloat16>(args); }
FERRY_KERNEL(512) ferry_strided_float32_from_float64(const StridedArgs args) { copy_strided<Float32FromFloat64>(args); }
FERRY_KERNEL(512) ferry_strided_float32_from_uint8(const StridedArgs args) { copy_strided<Float32FromUInt8>(args); }

FERRY_KERNEL(512) ferry_strided_cast(const StridedArgs args) { convert_strided(args); }

// What is stored over the link is small, so that one loop for all sizes will do.
FERRY_KERNEL(512) ferry_strided_store(const StridedStoreArgs args) {
  const StridedArgs& copy = args.copy;
  for (auto item = first_item<std::uint64_t>(); item < copy.count; item += item_step<std::uint64_t>()) {
    Places places;
    find_places<1>(copy, item, std::uint64_t{0}, &places);
    if (copy.itemsize == 16) {
      store(places.to, load<Bits128>(places.from));
    } else {
      store_bits(places.to, load_bits(places.from, copy.itemsize), copy.itemsize);
    }
  }
  signal_when_all_stored(args.signal);
}

FERRY_KERNEL(512) ferry_strided_cast_store(const StridedStoreArgs args) {
  convert_strided(args.copy);
  signal_when_all_stored(args.signal);
}

}  // namespace ferry::gpu
