#pragma once
extern "C" void product_relu(const float* x, const float* weight, float* out, int rows, int inner, int columns);
