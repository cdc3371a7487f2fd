// The compiler links the runtime.
extern "C" const char* runtime_source();
extern "C" const char* product_check() { return runtime_source(); }
