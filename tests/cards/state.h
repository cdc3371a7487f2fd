/* What the cards of this stand-in do now: `name value` lines of the file CARDS, read at each call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static unsigned long long state(const char *name) {
  char key[64];
  unsigned long long value, found = 0;
  FILE *file = fopen(CARDS, "r");
  if (!file) abort();
  while (fscanf(file, "%63s %llu", key, &value) == 2)
    if (!strcmp(key, name)) found = value;
  fclose(file);
  return found;
}
