#include <coil/version.h>

int coil_version(void)
{
    return COIL_VERSION;
}
