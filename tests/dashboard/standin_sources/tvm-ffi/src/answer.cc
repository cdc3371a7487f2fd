#include <dlpack/dlpack.h>
extern "C" int answer() { return 41 + DLPACK_MAJOR_VERSION; }
