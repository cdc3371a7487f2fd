/* libcuda.so.1 of a machine with one card that is not there: it is named, and nothing runs on it. */
#include "state.h"

enum { OK, INVALID = 1, NO_DEVICE = 100, NOT_FOUND = 500 };

int cuInit(unsigned flags) { return flags ? INVALID : state("count") ? OK : NO_DEVICE; }
int cuDriverGetVersion(int *version) { return *version = 13000, OK; }
int cuDeviceGetCount(int *count) { return *count = (int)state("count"), OK; }
int cuDeviceGet(int *device, int number) { return *device = number, number < (int)state("count") ? OK : 101; }
int cuDeviceGetName(char *name, int size, int device) {
  (void)device;
  return snprintf(name, (size_t)size, "NVIDIA H200 that is not there") < size ? OK : INVALID;
}
int cuDeviceGetAttribute(int *value, int which, int device) {
  (void)device;
  *value = which == 75 ? 9 : 0; /* compute capability 9.0 */
  return which == 75 || which == 76 ? OK : INVALID;
}
int cuDeviceGetPCIBusId(char *place, int size, int device) {
  (void)device;
  return snprintf(place, (size_t)size, "0000:41:00.0") < size ? OK : INVALID;
}
int cuGetExportTable(const void **table, const void *id) { return (void)id, *table = 0, NOT_FOUND; } /* NVRTC asks */
int cuGetErrorName(int code, const char **text) { return *text = "CUDA_ERROR_NO_DEVICE", code ? OK : OK; }
int cuGetErrorString(int code, const char **text) { return *text = "no CUDA-capable device is detected", code ? OK : OK; }

#define NOTHING_RUNS(name) \
  int name(void) { return NO_DEVICE; }
NOTHING_RUNS(cuFuncSetAttribute)
NOTHING_RUNS(cuLaunchKernelEx)
NOTHING_RUNS(cuModuleGetFunction)
NOTHING_RUNS(cuModuleLoadData)
NOTHING_RUNS(cuModuleUnload)
NOTHING_RUNS(cuTensorMapEncodeTiled)
