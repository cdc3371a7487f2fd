/* libnvidia-ml.so.1 of a machine with cards that are not there: NVML's entry points and structs, as nvml.h has them. */
#include "state.h"

enum { OK, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, NO_DRIVER = 9, LOST = 15 };
typedef struct { unsigned number; } *Card;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute_instance; } Process;

static struct { unsigned number; } cards[8];
static int initialised;

static int ask(Card card) {
  if (!initialised) return 1;
  if (state("driver_gone")) return NO_DRIVER;
  return state("lost") >> card->number & 1 ? LOST : OK;
}

#define ANSWER(card, place, value)       \
  do {                                   \
    int code = ask(card);                \
    if (code == OK) *(place) = (value);  \
    return code;                         \
  } while (0)

int nvmlInitWithFlags(unsigned flags) {
  if (flags || state("driver_gone")) return NO_DRIVER;
  initialised++;
  return OK;
}
int nvmlShutdown(void) { return initialised-- > 0 ? OK : 1; }
const char *nvmlErrorString(int code) { return code == LOST ? "GPU is lost" : "an error of NVML"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) {
  if (state("driver_gone")) return NO_DRIVER;
  return snprintf(text, size, "580.126.09") < (int)size ? OK : TOO_SMALL;
}
int nvmlDeviceGetCount_v2(unsigned *count) {
  *count = (unsigned)state("count");
  return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned number, Card *card) {
  *card = (Card)&cards[number];
  (*card)->number = number;
  return ask(*card);
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *place, Card *card) {
  return strcmp(place, "0000:41:00.0") ? NOT_FOUND : nvmlDeviceGetHandleByIndex_v2(0, card);
}
int nvmlDeviceGetTemperature(Card card, int sensor, unsigned *value) {
  if (sensor) return 2;
  ANSWER(card, value, 60 + card->number);
}
int nvmlDeviceGetClockInfo(Card card, int kind, unsigned *value) {
  ANSWER(card, value, kind == 1 ? 1980 : kind == 2 ? 3201 : 345);
}
int nvmlDeviceGetUtilizationRates(Card card, Utilization *value) {
  if (card->number) return NOT_SUPPORTED;
  ANSWER(card, value, ((Utilization){97, 3}));
}
int nvmlDeviceGetMemoryInfo(Card card, Memory *value) {
  ANSWER(card, value, ((Memory){80ull << 30, 78ull << 30, 2ull << 30}));
}
int nvmlDeviceGetPowerUsage(Card card, unsigned *milliwatts) { ANSWER(card, milliwatts, (unsigned)state("milliwatts")); }
int nvmlDeviceGetTotalEnergyConsumption(Card card, unsigned long long *millijoules) {
  unsigned long long step_ms = state("energy_step_ms"), ms;
  struct timespec now;
  if (!step_ms) return NOT_SUPPORTED;
  clock_gettime(CLOCK_MONOTONIC, &now);
  ms = (unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000;
  ANSWER(card, millijoules, ms / step_ms * step_ms * state("milliwatts") / 1000);
}
int nvmlDeviceGetCurrentClocksEventReasons(Card card, unsigned long long *bits) { ANSWER(card, bits, state("throttle")); }
int nvmlDeviceGetMigMode(Card card, unsigned *now, unsigned *later) {
  *later = (unsigned)state("divided");
  ANSWER(card, now, (unsigned)state("divided"));
}
int nvmlDeviceGetComputeRunningProcesses_v3(Card card, unsigned *count, Process *processes) {
  unsigned room = *count, pid = (unsigned)state("pid");
  if (!pid) return *count = 0, ask(card);
  *count = 1;
  if (!room) return TOO_SMALL;
  ANSWER(card, processes, ((Process){pid, 1ull << 30, ~0u, ~0u}));
}
