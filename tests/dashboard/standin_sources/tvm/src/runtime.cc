// As checks in TVM do, it says where it stands.
extern "C" const char* runtime_source() { return __FILE__; }
