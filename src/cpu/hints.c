#include "hints.h"
