#include "tvm/product.h"

#include <dlpack/dlpack.h>

static_assert(DLPACK_MAJOR_VERSION >= 1, "the submodule's header");

extern "C" void product_relu(const float* x, const float* weight, float* out, int rows, int inner, int columns) {
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      float sum = 0.0f;
      for (int index = 0; index < inner; ++index) sum += x[row * inner + index] * weight[index * columns + column];
      out[row * columns + column] = sum > 0.0f ? sum : 0.0f;
    }
  }
}
