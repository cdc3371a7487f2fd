/* What is measured: the sum of `count` numbers. */
#include <stddef.h>

double example(const double *values, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; i++)
    sum += values[i];
  return sum;
}
