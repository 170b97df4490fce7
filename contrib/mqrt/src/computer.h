/* Names of this computer. */
#ifndef MQRT_COMPUTER_H
#define MQRT_COMPUTER_H

#include <stdbool.h>

#include "link.h"

/* Whether a name means the computer of the queue manager: NULL, empty, ".", "localhost", or its name. */
bool is_this_computer(LPCWSTR name, const struct hello *hello);

#endif
