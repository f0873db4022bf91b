/* A disk that stands still: while the file that STALL_FILE names is there, whoever waits for the disk waits on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void stall (void)
{
  const char *file = getenv("STALL_FILE");
  while (file != NULL && access(file, F_OK) == 0) usleep(5000);
}

#define STALLED(name, parameters, arguments) \
  int name parameters \
  { \
    int (*real) parameters = (int (*) parameters) dlsym(RTLD_NEXT, #name); \
    stall(); \
    return real arguments; \
  }

STALLED(fdatasync, (int fd), (fd))
STALLED(fsync, (int fd), (fd))
STALLED(msync, (void *from, size_t length, int flags), (from, length, flags))
