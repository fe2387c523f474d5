/* The emulator's process: found beside the library, started, asked, ended. */
#define _GNU_SOURCE
#include "libbhemu.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SERVER_FD = 3, BRANCH_FD, HIGH_FD = 10 };
static const char SCRIPT[] = "/run.sh";
static const char VARIABLE[] = "BHEMU_LIBRARY_FD=%d,%d";

struct shared *shared_by[CHIPS];
uint32_t chips, current;
static int line = -1;
static int branch = -1;  /* where a forked child asks the emulator for a copy of it */
static bool forked;      /* the chip is the parent's still */
static uint64_t *calls;  /* of this process for its chip; a forked child sees the parent's go on */
static uint64_t calls_then;
extern char **environ;

_Noreturn void fatal(int status, const char *format, ...) {
    char text[1024];
    int used = snprintf(text, sizeof text, "libbhemu: ");
    va_list values;
    va_start(values, format);
    int n = vsnprintf(text + used, sizeof text - used - 1, format, values);
    va_end(values);
    used += n < 0 ? 0 : n;
    if (used > (int)sizeof text - 2) used = sizeof text - 2;
    text[used++] = '\n';
    if (write(STDERR_FILENO, text, used) < 0) status = INTERNAL;
    _exit(status);
}

static void before_fork(void) {
    if (line >= 0 && calls != NULL) calls_then = *calls;
}

static void in_child(void) {
    if (line < 0) return;
    close(line); /* the emulator ends with the parent */
    line = -1;
    forked = true;
}

/* Whether FOLDER has a run.sh; its path. */
static bool script_in(const char *path, char *script) {
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    if (slash == NULL || slash - path + sizeof SCRIPT > PATH_MAX) return false;
    memcpy(script, path, slash - path);
    strcpy(script + (slash - path), SCRIPT);
    return access(script, X_OK) == 0;
}

/* Beside the library; beside what TT_METAL_SIMULATOR names, for hosts that load a copy. */
static void find_script(char *script) {
    Dl_info info;
    if (dladdr((void *)&find_script, &info) && script_in(info.dli_fname, script)) return;
    if (script_in(getenv("TT_METAL_SIMULATOR"), script)) return;
    fatal(INPUT, "no run.sh beside the library; `bhemu simulator FOLDER` writes both, leave them "
                 "together and set TT_METAL_SIMULATOR=FOLDER/libbhemu.so");
}

/* The environment with the numbers of the emulator's sockets. */
static char **environment(char *assignment) {
    size_t count = 0;
    while (environ[count] != NULL) count++;
    char **copy = malloc((count + 2) * sizeof *copy);
    if (copy == NULL) fatal(INTERNAL, "out of memory");
    memcpy(copy, environ, count * sizeof *copy);
    copy[count] = assignment;
    copy[count + 1] = NULL;
    return copy;
}

/* In the child: nothing of the host but its standard files and two sockets reaches the emulator. */
_Noreturn static void become_server(const char *script, const int fds[2], char **variables) {
    if (fork() != 0) _exit(0); /* the host has no child to wait for */
    setsid();                  /* Ctrl-C is for the host */
    int high[] = {fcntl(fds[0], F_DUPFD, HIGH_FD), fcntl(fds[1], F_DUPFD, HIGH_FD)};
    dup2(high[0], SERVER_FD);
    dup2(high[1], BRANCH_FD);
    syscall(SYS_close_range, BRANCH_FD + 1, ~0u, 0);
    char *const words[] = {(char *)script, NULL};
    execve(script, words, variables);
    _exit(127);
}

static void map_shared(int fd) {
    struct shared head;
    if (pread(fd, &head, sizeof head, 0) != sizeof head || head.magic != MAGIC)
        fatal(INTERNAL, "the emulator's memory is not what it must be");
    if (head.layout != LAYOUT)
        fatal(INPUT, "the library and the bhemu that its run.sh starts are of different versions; "
                     "write the folder again with `bhemu simulator`");
    int flags = MAP_SHARED | MAP_NORESERVE;
    chip = mmap(NULL, head.size, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (chip == MAP_FAILED)
        fatal(INPUT, "%llu GiB of address space for the chip's memory: %s; see ulimit -v",
              (unsigned long long)head.size >> 30, strerror(errno));
    madvise(chip, head.size, MADV_DONTFORK); /* a forked child must not change the chip */
}

/* The emulator's first message brings the files of its memory, one of each chip; or false. */
static bool receive_memory(void) {
    struct message hello;
    struct iovec part = {&hello, sizeof hello};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(CHIPS * sizeof(int))];
    } control;
    struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1,
                          .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n;
    do n = recvmsg(line, &head, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n == sizeof hello && hello.op == FAILED) _exit(hello.status); /* the emulator has said why */
    struct cmsghdr *sent = n == sizeof hello ? CMSG_FIRSTHDR(&head) : NULL;
    if (sent == NULL || sent->cmsg_type != SCM_RIGHTS) return false;
    int fds[CHIPS];
    chips = (sent->cmsg_len - CMSG_LEN(0)) / sizeof *fds;
    memcpy(fds, CMSG_DATA(sent), chips * sizeof *fds);
    for (current = 0; current < chips; current++) {
        map_shared(fds[current]);
        close(fds[current]);
    }
    current = 0;
    return true;
}

/* The two sockets to an emulator: ends of this process, and those of the emulator. */
static void make_sockets(int theirs[2]) {
    int pair[2], side[2], kind = SOCK_SEQPACKET | SOCK_CLOEXEC;
    if (socketpair(AF_UNIX, kind, 0, pair) || socketpair(AF_UNIX, kind, 0, side))
        fatal(INTERNAL, "no socket: %s", strerror(errno));
    line = pair[0];
    branch = side[0];
    theirs[0] = pair[1];
    theirs[1] = side[1];
}

static void count_calls(void) {
    int flags = MAP_SHARED | MAP_ANONYMOUS;
    calls = mmap(NULL, sizeof *calls, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (calls == MAP_FAILED) fatal(INTERNAL, "out of memory");
}

/* A forked child must not see what its parent does to the chip after the fork. */
static void check_parent(void) {
    if (*calls != calls_then)
        fatal(INPUT, "the parent has used its chip since this process was forked: a child may use the "
                     "chip while its parent waits for it, or call libttsim_exit and open its own");
}

/* In a forked child: let the parent's emulator make a copy of itself for this process. */
static void adopt(void) {
    check_parent();
    int asks = branch, fds[4] = {[2] = STDOUT_FILENO, STDERR_FILENO};
    make_sockets(fds);
    struct message message = {.op = COPY};
    struct iovec part = {&message, sizeof message};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof fds)];
    } control = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
                          .cmsg_len = CMSG_LEN(sizeof fds)}};
    memcpy(CMSG_DATA(&control.head), fds, sizeof fds);
    struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1,
                          .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n;
    do n = sendmsg(asks, &head, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    close(fds[0]);
    close(fds[1]);
    close(asks);
    memset(shared_by, 0, sizeof shared_by); /* of the parent, not mapped here */
    if (n < 0 || !receive_memory())
        fatal(INTERNAL, "there is no copy of the parent's emulator for this forked process: it has "
                        "ended, or the machine has no memory for one");
    check_parent();
    munmap(calls, sizeof *calls);
    count_calls();
    forked = false;
}

void server_find(void) {
    char script[PATH_MAX + sizeof SCRIPT];
    find_script(script);
}

/* As run.sh says, so that a host may ask without an emulator; one that is not bhemu's is asked. */
uint32_t server_count(void) {
    static const char SERVES[] = " -m bhemu serve", OPTION[] = " --chips ";
    char script[PATH_MAX + sizeof SCRIPT], text[1 << 14];
    if (shared_by[0] != NULL) return chips;
    find_script(script);
    FILE *file = fopen(script, "re");
    size_t n = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
    if (file != NULL) fclose(file);
    text[n] = 0;
    const char *serves = strstr(text, SERVES);
    if (serves == NULL) server_need();
    if (serves == NULL) return chips;
    const char *option = strstr(serves, OPTION);
    unsigned long count = option == NULL ? 1 : strtoul(option + strlen(OPTION), NULL, 10);
    return count < CHIPS ? count : CHIPS;
}

static void start(void) {
    static bool told;
    char script[PATH_MAX + sizeof SCRIPT], assignment[32];
    find_script(script);
    int fds[2];
    make_sockets(fds);
    snprintf(assignment, sizeof assignment, VARIABLE, SERVER_FD, BRANCH_FD);
    char **variables = environment(assignment);
    pid_t child = fork();
    if (child < 0) fatal(INTERNAL, "no process for the emulator: %s", strerror(errno));
    if (child == 0) become_server(script, fds, variables);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
    close(fds[0]);
    close(fds[1]);
    free(variables);
    if (!receive_memory())
        fatal(INPUT, "the emulator did not start: %s names a bhemu that is gone or too old; "
                     "write the folder again with `bhemu simulator`", script);
    count_calls();
    if (!told) pthread_atfork(before_fork, NULL, in_child);
    told = true;
}

void server_need(void) {
    if (forked) adopt();
    if (shared_by[0] == NULL) start();
    ++*calls;
}

void *server_data(void) { return (char *)chip + chip->data; }

static void send_message(const struct message *message) {
    ssize_t n;
    do n = send(line, message, sizeof *message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
}

static void receive_message(struct message *message) {
    ssize_t n;
    do n = recv(line, message, sizeof *message, 0);
    while (n < 0 && errno == EINTR);
    if (n != sizeof *message)
        fatal(INTERNAL, "the emulator has ended; it may have run out of memory");
    if (message->op == FAILED) _exit(message->status); /* the emulator has said why */
}

void server_ask(struct message *message) {
    send_message(message);
    for (;;) {
        receive_message(message);
        if (message->op == DONE) return;
        if (message->op != DMA_READ && message->op != DMA_WRITE)
            fatal(INTERNAL, "the emulator sent message %u", message->op);
        uint32_t asked = current;
        current = message->place >> CHIP_SHIFT;
        dma(message->op == DMA_WRITE, message->address, server_data(), message->size);
        current = asked;
        struct message answer = {.op = DONE};
        send_message(&answer);
    }
}

static void forget(void) {
    if (calls != NULL) munmap(calls, sizeof *calls);
    if (branch >= 0) close(branch);
    branch = line = -1;
    calls = NULL;
    chips = current = 0;
}

void server_end(void) {
    if (forked) {
        memset(shared_by, 0, sizeof shared_by); /* of the parent, not mapped here */
        forget();
    }
    forked = false;
    if (shared_by[0] == NULL) return;
    ++*calls; /* a child that was forked from here has no chip to copy */
    struct message message = {.op = LEAVE};
    send_message(&message);
    ssize_t n;
    do n = recv(line, &message, sizeof message, 0);
    while (n > 0 || (n < 0 && errno == EINTR));
    close(line);
    for (current = 0; current < chips; current++) {
        munmap(chip, chip->size);
        chip = NULL;
    }
    forget();
}
