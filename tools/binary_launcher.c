/* The program `momus` of the binary: it starts the Python beside it, wherever the folder is. tools/binary.py compiles it.
 *
 * PYTHON             the name of the interpreter, such as "python3.11"
 * CXX_GLIBC_MINOR    which glibc, 2.N, the libraries of the C++ compiler that are here need; an older system has its own
 */
#include <errno.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *what) {
    fprintf(stderr, "momus: %s: %s\n", what, strerror(errno));
    return 127;
}

int main(int count, char **words) {
    char own[PATH_MAX], python[PATH_MAX], script[PATH_MAX], cxx[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length > 0)
        own[length] = 0;
    else if (!realpath(words[0], own)) /* no /proc: by its path, if it was started by one */
        return fail("it cannot be found where it is");
    char *end = strrchr(own, '/');
    if (!end)
        return fail(own);
    *end = 0;
    if (snprintf(python, sizeof python, "%s/python/bin/" PYTHON, own) >= (int)sizeof python
        || snprintf(script, sizeof script, "%s/python/main.py", own) >= (int)sizeof script
        || snprintf(cxx, sizeof cxx, "%s/python/lib/c++", own) >= (int)sizeof cxx) {
        errno = ENAMETOOLONG;
        return fail(own);
    }
    int major = 0, minor = 0;
    sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor);
    if (major > 2 || minor >= CXX_GLIBC_MINOR)
        setenv("LD_LIBRARY_PATH", cxx, 1);
    else
        unsetenv("LD_LIBRARY_PATH"); /* what is set for other programs is not for this one */
    char **all = calloc((size_t)count + 4, sizeof *all);
    if (!all)
        return fail(own);
    int at = 0;
    all[at++] = python;
    all[at++] = "-I"; /* whatever Python of the machine is set up to do is of no concern here */
    all[at++] = "-B"; /* its folder may be anyone's: nothing is written there */
    all[at++] = script;
    for (int i = 1; i < count; i++)
        all[at++] = words[i];
    execv(python, all);
    return fail(python);
}
