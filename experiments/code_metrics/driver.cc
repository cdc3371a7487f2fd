// Calls `main` of an exported Relax module once: `driver LIBRARY INPUTS`. Prints what the processor counted, or -1
// and why it counted nothing.
//
// Only TVM's runtime is loaded, so that valgrind has little to look at. INPUTS has for each input its DLPack type code,
// bits, number of dimensions and dimensions as int64, then its data.
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

namespace ffi = tvm::ffi;

constexpr size_t kAlignment = 64;
constexpr int kPooledAllocator = 2;

struct Allocator {
  void AllocData(DLTensor* tensor) {
    size_t size = (ffi::GetDataSize(*tensor) / kAlignment + 1) * kAlignment;
    tensor->data = std::aligned_alloc(kAlignment, size);
  }
  void FreeData(DLTensor* tensor) { std::free(tensor->data); }
};

std::vector<ffi::Tensor> read_inputs(const char* path) {
  std::vector<ffi::Tensor> inputs;
  std::ifstream file(path, std::ios::binary);
  int64_t head[3];
  while (file.read(reinterpret_cast<char*>(head), sizeof head)) {
    std::vector<int64_t> shape(head[2]);
    file.read(reinterpret_cast<char*>(shape.data()), sizeof(int64_t) * shape.size());
    DLDataType type{static_cast<uint8_t>(head[0]), static_cast<uint8_t>(head[1]), 1};
    inputs.push_back(ffi::Tensor::FromNDAlloc(Allocator(), ffi::ShapeView(shape.data(), shape.size()), type,
                                              DLDevice{kDLCPU, 0}));
    file.read(static_cast<char*>(inputs.back().data_ptr()), ffi::GetDataSize(*inputs.back().GetDLTensorPtr()));
  }
  return inputs;
}

int open_counter() {
  perf_event_attr wanted{};
  wanted.size = sizeof wanted;
  wanted.type = PERF_TYPE_HARDWARE;
  wanted.config = PERF_COUNT_HW_INSTRUCTIONS;
  wanted.disabled = wanted.exclude_kernel = wanted.exclude_hv = 1;
  return static_cast<int>(syscall(SYS_perf_event_open, &wanted, 0, -1, -1, 0));
}

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: driver LIBRARY INPUTS\n");
    return 2;
  }
  ffi::Module library = ffi::Module::LoadFromFile(arguments[1]);
  ffi::Module machine = library->GetFunction("vm_load_executable").value()().cast<ffi::Module>();
  machine->GetFunction("vm_initialization").value()(static_cast<int>(kDLCPU), 0, kPooledAllocator);
  std::vector<ffi::Tensor> inputs = read_inputs(arguments[2]);
  std::vector<ffi::AnyView> packed(inputs.begin(), inputs.end());
  ffi::Function call = machine->GetFunction("main").value();
  ffi::Any result;
  int counter = open_counter();
  const char* fault = counter < 0 ? std::strerror(errno) : "";
  if (counter >= 0) ioctl(counter, PERF_EVENT_IOC_ENABLE, 0);
  call.CallPacked(packed.data(), static_cast<int>(packed.size()), &result);
  if (counter >= 0) ioctl(counter, PERF_EVENT_IOC_DISABLE, 0);
  int64_t counted = -1;
  if (counter >= 0 && read(counter, &counted, sizeof counted) != sizeof counted) {
    counted = -1;
    fault = "its value cannot be read";
  }
  std::printf("%lld %s\n", static_cast<long long>(counted), fault);
  return 0;
}
