// What becomes of the values of one channel of an image.
#pragma once

namespace ferry {

// value * scale + shift, computed in double and rounded once.
struct PixelMap {
  double scale = 1.0;
  double shift = 0.0;

  // For bytes that become float32, scale and shift as sums of two floats each. The high parts are multiples of one
  // power of two and so short that byte * scale_high + shift_high is exact; the low parts add what is missing.
  bool in_parts = false;
  float scale_high = 0.0F;
  float scale_low = 0.0F;
  float shift_high = 0.0F;
  float shift_low = 0.0F;
};

// Finds the parts, where there are any.
[[nodiscard]] PixelMap pixel_map(double scale, double shift) noexcept;

}  // namespace ferry
