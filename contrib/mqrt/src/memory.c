#include <stdlib.h>

#include "mq.h"

MQAPI void APIENTRY MQFreeMemory(void *pvMemory) { free(pvMemory); }
