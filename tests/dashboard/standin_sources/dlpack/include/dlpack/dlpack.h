#pragma once
#define DLPACK_MAJOR_VERSION 1
