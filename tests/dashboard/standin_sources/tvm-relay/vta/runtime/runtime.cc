extern "C" int vta_block() { return 1 << VTA_LOG_BLOCK; }
