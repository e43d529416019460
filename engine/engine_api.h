/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What lies between fio_engine.c, the one file that includes fio.h, and the rest of the engine,
 * which is C++ and knows no fio. Plain C on both sides.
 *
 * Threads: fio sets up its jobs one after the other in its first process; a job then lives in a
 * process or thread of its own, which makes all calls with its nfsrdma_job. Offsets, lengths in
 * bytes. Functions that return int return 0 or an errno value, after they have logged a line.
 */
#ifndef NFSRDMA_ENGINE_API_H
#define NFSRDMA_ENGINE_API_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

enum nfsrdma_transport { NFSRDMA_TCP = 0, NFSRDMA_RDMA = 1 };
enum nfsrdma_fabric { NFSRDMA_FABRIC_AUTO = 0, NFSRDMA_FABRIC_VERBS, NFSRDMA_FABRIC_IWARP };
enum nfsrdma_stable {
  NFSRDMA_STABLE_AUTO = 0,
  NFSRDMA_STABLE_UNSTABLE,
  NFSRDMA_STABLE_DATA_SYNC,
  NFSRDMA_STABLE_FILE_SYNC
};
enum nfsrdma_poll { NFSRDMA_POLL_EVENT = 0, NFSRDMA_POLL_BUSY, NFSRDMA_POLL_HYBRID };
enum nfsrdma_port { NFSRDMA_PORT_AUTO = 0, NFSRDMA_PORT_YES, NFSRDMA_PORT_NO };
enum nfsrdma_marker { NFSRDMA_MARKER_JOINED = 0, NFSRDMA_MARKER_SPLIT };

/* The values of the engine's options. fio parses into it; unsigned int is what fio stores. */
struct nfsrdma_options {
  void* pad; /* fio takes offset 0 for "no place" */
  char* nfs_url;
  char* nfs_dir;
  char* local_address;
  char* stats_json;
  char* auth_uid; /* text, since fio has no number that can be absent */
  char* auth_gid;
  unsigned long long commit_bytes;
  unsigned long long uncommitted_max;
  unsigned int transport;
  unsigned int fabric;
  unsigned int rdma_port;
  unsigned int inline_size;
  unsigned int credits;
  unsigned int iwarp_crc;
  unsigned int key_per_call;
  unsigned int nconnect;
  unsigned int soft;
  unsigned int timeo;
  unsigned int retrans;
  unsigned int stable;
  unsigned int commit_ms;
  unsigned int nfs_poll;
  unsigned int reserved_port;
  unsigned int send_marker;
};

/* What of fio's own options matters here. */
struct nfsrdma_settings {
  const char* job_name;
  unsigned int number; /* of the job, from 1 */
  unsigned int depth;
  unsigned long long block_max;
  bool direct;
  bool sync;  /* sync=1 or sync=sync */
  bool dsync; /* sync=dsync */
  bool reads;
  bool writes;
  bool trims;
  bool overwrite;
  bool append;
  bool fill_device;
  bool create_on_open;
  bool pre_read;
  bool offload;
  bool verify_only;
  unsigned long long fill_seed;
  const volatile bool* stop; /* turns true when the job is told to end */
};

/* Option table, as fio_engine.c turns it into fio's. */
enum nfsrdma_option_type {
  NFSRDMA_OPTION_TEXT,   /* char * */
  NFSRDMA_OPTION_NUMBER, /* unsigned int */
  NFSRDMA_OPTION_SIZE,   /* unsigned long long */
  NFSRDMA_OPTION_CHOICE, /* unsigned int */
  NFSRDMA_OPTION_SWITCH  /* unsigned int, 0 or 1 */
};

#define NFSRDMA_CHOICES_MAX 4

struct nfsrdma_choice {
  const char* name;
  unsigned int value;
  const char* help;
};

struct nfsrdma_option {
  const char* name;
  enum nfsrdma_option_type type;
  unsigned int offset; /* in struct nfsrdma_options */
  const char* initial; /* as text; NULL: empty */
  unsigned long long least;
  unsigned long long most; /* 0: no bound */
  const char* help;
  struct nfsrdma_choice choices[NFSRDMA_CHOICES_MAX];
};

const struct nfsrdma_option* nfsrdma_option_table(unsigned int* count);

/* Logging, by fio_engine.c. A line without its end. */
void nfsrdma_log_error(const char* line);
void nfsrdma_log_info(const char* line);
/* The summary: fio's normal output, or stderr when that must stay parseable. */
void nfsrdma_log_summary(const char* text);

/* Options and settings that contradict each other, or ask for what cannot be. */
int nfsrdma_check(const struct nfsrdma_options* options, const struct nfsrdma_settings* settings);

/* Files, over a short TCP connection that is closed by nfsrdma_files_close(). */
struct nfsrdma_files;
struct nfsrdma_files* nfsrdma_files_open(const struct nfsrdma_options* options,
                                         const struct nfsrdma_settings* settings, int* error);
/* *size is UINT64_MAX when the file does not exist. */
int nfsrdma_files_size(struct nfsrdma_files* files, const char* name, uint64_t* size);
/*
 * Makes a file of at least `wanted` bytes where the job needs one, filled where it will be read;
 * leaves a file alone that is large enough.
 */
int nfsrdma_files_lay_out(struct nfsrdma_files* files, const char* name, uint64_t wanted);
int nfsrdma_files_unlink(struct nfsrdma_files* files, const char* name);
void nfsrdma_files_close(struct nfsrdma_files* files);

/* A running job. */
struct nfsrdma_job;
struct nfsrdma_file;

struct nfsrdma_event {
  void* user;
  int error;
  uint32_t bytes;
};

/* Told of each I/O when it is really sent. */
typedef void (*nfsrdma_issued_fn)(void* context, void* user);

/*
 * Connects; `buffer` is all the memory that I/O will use. NULL after a logged error, with *error
 * set.
 */
struct nfsrdma_job* nfsrdma_job_open(const struct nfsrdma_options* options,
                                     const struct nfsrdma_settings* settings, void* buffer,
                                     uint64_t buffer_length, nfsrdma_issued_fn issued,
                                     void* context, int* error);
struct nfsrdma_file* nfsrdma_job_open_file(struct nfsrdma_job* job, const char* name, int* error);
int nfsrdma_job_close_file(struct nfsrdma_job* job, struct nfsrdma_file* file);
int nfsrdma_job_file_size(struct nfsrdma_job* job, const char* name, uint64_t* size);
int nfsrdma_job_unlink(struct nfsrdma_job* job, const char* name);

/* False: as many are outstanding as the job's depth. */
bool nfsrdma_job_read(struct nfsrdma_job* job, struct nfsrdma_file* file, void* user,
                      uint64_t offset, void* to, uint32_t length);
bool nfsrdma_job_write(struct nfsrdma_job* job, struct nfsrdma_file* file, void* user,
                       uint64_t offset, const void* from, uint32_t length);
bool nfsrdma_job_sync(struct nfsrdma_job* job, struct nfsrdma_file* file, void* user);
void nfsrdma_job_commit(struct nfsrdma_job* job);
/*
 * Waits for `min` events, at most for `timeout` if that is given; returns how many are ready.
 * `*stop` turning true bounds the wait for a server that does not answer.
 */
unsigned int nfsrdma_job_wait(struct nfsrdma_job* job, unsigned int min,
                              const struct timespec* timeout, const volatile bool* stop);
struct nfsrdma_event nfsrdma_job_take(struct nfsrdma_job* job);
void nfsrdma_job_close(struct nfsrdma_job* job);

/*
 * Statistics of all jobs live in memory shared by all processes of a run. The job that ends last
 * calls nfsrdma_run_ended(), which prints the summary and writes stats_json, once.
 */
void nfsrdma_job_ended(unsigned int number);
bool nfsrdma_job_has_ended(unsigned int number);
void nfsrdma_run_ended(void);

#ifdef __cplusplus
}
#endif

#endif
