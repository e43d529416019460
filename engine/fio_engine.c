/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fio's side of the engine: the option table, the life of a job, queue, commit and getevents.
 * The one file that includes fio.h; what fio asks for is done behind engine_api.h.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "fio.h"
#include "optgroup.h"

#include "engine_api.h"
#include "fio_compat.h"

struct job_data {
  struct nfsrdma_job* job;
  struct io_u** events; /* what the last getevents() reaped */
};

void nfsrdma_log_error(const char* line) {
  log_err("nfsrdma: %s\n", line);
}

void nfsrdma_log_info(const char* line) {
  /* Beside JSON or terse output only what a program can parse goes to stdout. */
  if (output_format & FIO_OUTPUT_NORMAL)
    log_info("nfsrdma: %s\n", line);
  else
    fprintf(stderr, "nfsrdma: %s\n", line);
}

void nfsrdma_log_summary(const char* text) {
  if (is_backend)
    log_info("%s", text);
  else if (output_format == FIO_OUTPUT_NORMAL)
    /* Not through the stream: a forked job holds a copy of what its parent has not yet written. */
    dprintf(fileno(f_out), "%s", text);
  else
    fprintf(stderr, "%s", text);
}

static void settings_of(const struct thread_data* td, struct nfsrdma_settings* settings) {
  const struct thread_options* o = &td->o;
  *settings = (struct nfsrdma_settings){
      .job_name = o->name,
      .number = td->thread_number,
      .depth = o->iodepth,
      .block_max = td_max_bs((struct thread_data*)td),
      .direct = o->odirect,
      .sync = (o->sync_io & O_SYNC) == O_SYNC,
      .dsync = (o->sync_io & O_DSYNC) != 0,
      .reads = td_read(td) || o->verify_only,
      .writes = td_write(td),
      .trims = td_trim(td),
      .overwrite = o->overwrite,
      .append = o->file_append,
      .fill_device = o->fill_device,
      .create_on_open = o->create_on_open,
      .pre_read = o->pre_read,
      .offload = o->io_submit_mode == IO_MODE_OFFLOAD,
      .verify_only = o->verify_only,
      .fill_seed = td->rand_seeds[FIO_RAND_BUF_OFF],
      .stop = &td->terminate,
  };
}

/* Runs in fio's first process with create_serialize=1, else in the job. */
static int nfs_setup(struct thread_data* td) {
  struct nfsrdma_settings settings;
  struct nfsrdma_files* files;
  struct fio_file* f;
  unsigned int i;
  int error;

  settings_of(td, &settings);
  error = nfsrdma_check(td->eo, &settings);
  if (error) goto failed;
  files = nfsrdma_files_open(td->eo, &settings, &error);
  if (!files) goto failed;
  for_each_file(td, f, i) {
    uint64_t size;
    /* fio has looked for a local file of that name to guess the type. */
    f->filetype = FIO_TYPE_FILE;
    error = nfsrdma_files_size(files, f->file_name, &size);
    if (error) break;
    f->real_file_size = size == UINT64_MAX ? 0 : size;
    fio_file_set_size_known(f);
  }
  nfsrdma_files_close(files);
  if (!error) return 0;
failed:
  td_verror(td, error, "nfsrdma setup");
  return 1;
}

/* Called once a file; the first call does them all, over one connection. */
static int nfs_prepopulate_file(struct thread_data* td, struct fio_file* file) {
  struct nfsrdma_settings settings;
  struct nfsrdma_files* files;
  struct fio_file* f;
  unsigned int i;
  int error = 0;

  if (file != td->files[0]) return 0;
  settings_of(td, &settings);
  files = nfsrdma_files_open(td->eo, &settings, &error);
  if (!files) {
    td_verror(td, error, "nfsrdma layout");
    return 1;
  }
  for_each_file(td, f, i) {
    /* fill_device=1 without size=: until the server is full. */
    const uint64_t room = UINT64_MAX - f->file_offset;
    uint64_t wanted = (f->io_size < room ? f->io_size : room) + f->file_offset;
    error = nfsrdma_files_lay_out(files, f->file_name, wanted);
    if (!error && settings.fill_device && settings.reads)
      error = nfsrdma_files_size(files, f->file_name, &wanted);
    if (error) break;
    if (f->real_file_size < wanted) f->real_file_size = wanted;
  }
  nfsrdma_files_close(files);
  if (!error) return 0;
  td_verror(td, error, "nfsrdma layout");
  return 1;
}

static int nfs_init(struct thread_data* td) {
  struct job_data* data = calloc(1, sizeof *data);
  if (data) data->events = calloc(td->o.iodepth, sizeof *data->events);
  if (!data || !data->events) {
    free(data);
    td_verror(td, ENOMEM, "nfsrdma init");
    return 1;
  }
  td->io_ops_data = data;
  return 0;
}

static void issued(void* context, void* user) {
  struct thread_data* td = context;
  struct io_u* io_u = user;

  if (!fio_fill_issue_time(td)) return;
  fio_gettime(&io_u->issue_time, NULL);
  if (td->o.read_iolog_file) memcpy(&td->last_issue, &io_u->issue_time, sizeof td->last_issue);
  io_u_queued(td, io_u);
}

/* In the job's own process or thread, with its I/O memory made. */
static int nfs_post_init(struct thread_data* td) {
  struct job_data* data = td->io_ops_data;
  struct nfsrdma_settings settings;
  int error = 0;

  settings_of(td, &settings);
  data->job = nfsrdma_job_open(td->eo, &settings, td->orig_buffer, td->orig_buffer_size, issued, td,
                               &error);
  if (data->job) return 0;
  td_verror(td, error, "nfsrdma connect");
  return 1;
}

static unsigned int others_running(const struct thread_data* me) {
  const struct thread_data* td;
  unsigned int count = 0;
  int i;

  NFSRDMA_EACH_JOB(td, i) {
    /*
     * Other jobs are looked at from outside: what their pointers name may lie in another process.
     * io_ops is compared, not followed; the library has one address in all of them.
     */
    if (td == me || td->io_ops != me->io_ops) continue;
    if (nfsrdma_job_has_ended(td->thread_number) || td->runstate >= TD_EXITED) continue;
    /* Told to end before it began: it never will. */
    if (td->runstate < TD_INITIALIZED && td->terminate) continue;
    count++;
  }
  return count;
}

static void nfs_cleanup(struct thread_data* td) {
  struct job_data* data = td->io_ops_data;

  if (data) {
    if (data->job) nfsrdma_job_close(data->job);
    free(data->events);
    free(data);
    td->io_ops_data = NULL;
  }
  nfsrdma_job_ended(td->thread_number);
  if (others_running(td) == 0) nfsrdma_run_ended();
}

static enum fio_q_status refuse(struct io_u* io_u, int error) {
  io_u->error = error;
  return FIO_Q_COMPLETED;
}

static enum fio_q_status nfs_queue(struct thread_data* td, struct io_u* io_u) {
  struct job_data* data = td->io_ops_data;
  struct nfsrdma_file* file = FILE_ENG_DATA(io_u->file);
  bool taken;

  fio_ro_check(td, io_u);
  if (io_u->xfer_buflen > UINT32_MAX) return refuse(io_u, EINVAL);
  switch (io_u->ddir) {
    case DDIR_READ:
      taken = nfsrdma_job_read(data->job, file, io_u, io_u->offset, io_u->xfer_buf,
                               (uint32_t)io_u->xfer_buflen);
      break;
    case DDIR_WRITE:
      taken = nfsrdma_job_write(data->job, file, io_u, io_u->offset, io_u->xfer_buf,
                                (uint32_t)io_u->xfer_buflen);
      break;
    case DDIR_SYNC:
    case DDIR_DATASYNC:
    case DDIR_SYNC_FILE_RANGE:
      taken = nfsrdma_job_sync(data->job, file, io_u);
      break;
    default:
      return refuse(io_u, EOPNOTSUPP);
  }
  return taken ? FIO_Q_QUEUED : FIO_Q_BUSY;
}

static int nfs_commit(struct thread_data* td) {
  struct job_data* data = td->io_ops_data;
  nfsrdma_job_commit(data->job);
  return 0;
}

static int nfs_getevents(struct thread_data* td, unsigned int min, unsigned int max,
                         const struct timespec* timeout) {
  struct job_data* data = td->io_ops_data;
  unsigned int ready = nfsrdma_job_wait(data->job, min, timeout, (const bool*)&td->terminate);
  unsigned int i;

  if (ready > max) ready = max;
  for (i = 0; i < ready; i++) {
    const struct nfsrdma_event event = nfsrdma_job_take(data->job);
    struct io_u* io_u = event.user;
    io_u->error = event.error;
    if (event.error)
      io_u->resid = io_u->xfer_buflen;
    else if (ddir_rw(io_u->ddir))
      io_u->resid = io_u->xfer_buflen - event.bytes;
    /* fio looks at no error of a sync that was queued; lost data must fail the job all the same. */
    if (event.error && ddir_sync(io_u->ddir) && !td->error)
      td_verror(td, event.error, "nfsrdma fsync");
    data->events[i] = io_u;
  }
  return (int)ready;
}

static struct io_u* nfs_event(struct thread_data* td, int event) {
  struct job_data* data = td->io_ops_data;
  return data->events[event];
}

static int nfs_open_file(struct thread_data* td, struct fio_file* f) {
  struct job_data* data = td->io_ops_data;
  int error = 0;
  struct nfsrdma_file* file = nfsrdma_job_open_file(data->job, f->file_name, &error);
  if (!file) {
    td_verror(td, error, "nfsrdma open");
    return 1;
  }
  FILE_SET_ENG_DATA(f, file);
  return 0;
}

static int nfs_close_file(struct thread_data* td, struct fio_file* f) {
  struct job_data* data = td->io_ops_data;
  int error = nfsrdma_job_close_file(data->job, FILE_ENG_DATA(f));
  FILE_SET_ENG_DATA(f, NULL);
  /* fio drops what close says; lost data must fail the job all the same. */
  if (error && !td->error) td_verror(td, error, "nfsrdma close");
  return error;
}

static int nfs_get_file_size(struct thread_data* td, struct fio_file* f) {
  struct job_data* data = td->io_ops_data;
  struct nfsrdma_settings settings;
  struct nfsrdma_files* files;
  uint64_t size = 0;
  int error;

  if (data && data->job) {
    error = nfsrdma_job_file_size(data->job, f->file_name, &size);
  } else {
    settings_of(td, &settings);
    files = nfsrdma_files_open(td->eo, &settings, &error);
    if (!files) return 1;
    error = nfsrdma_files_size(files, f->file_name, &size);
    nfsrdma_files_close(files);
  }
  if (error) return 1;
  f->real_file_size = size == UINT64_MAX ? 0 : size;
  fio_file_set_size_known(f);
  return 0;
}

static int nfs_unlink_file(struct thread_data* td, struct fio_file* f) {
  struct job_data* data = td->io_ops_data;
  struct nfsrdma_settings settings;
  struct nfsrdma_files* files;
  int error;

  if (data && data->job) return nfsrdma_job_unlink(data->job, f->file_name);
  settings_of(td, &settings);
  settings.stop = NULL; /* a job that has ended was told to */
  files = nfsrdma_files_open(td->eo, &settings, &error);
  if (!files) return error;
  error = nfsrdma_files_unlink(files, f->file_name);
  nfsrdma_files_close(files);
  return error;
}

static int nfs_invalidate(struct thread_data* td, struct fio_file* f) {
  (void)td;
  (void)f;
  return 0; /* there is no cache on this side */
}

#define OPTIONS_MAX 48
static struct fio_option engine_options[OPTIONS_MAX];

static void fill_options(void) {
  unsigned int count, i, j;
  const struct nfsrdma_option* table = nfsrdma_option_table(&count);

  for (i = 0; i < count && i + 1 < OPTIONS_MAX; i++) {
    const struct nfsrdma_option* from = &table[i];
    struct fio_option* to = &engine_options[i];
    to->name = to->lname = from->name;
    to->help = from->help;
    to->off1 = from->offset;
    to->def = from->initial;
    to->category = FIO_OPT_C_ENGINE;
    to->group = NFSRDMA_OPTION_GROUP;
    switch (from->type) {
      case NFSRDMA_OPTION_TEXT:
        to->type = FIO_OPT_STR_STORE;
        break;
      case NFSRDMA_OPTION_NUMBER:
        to->type = FIO_OPT_INT;
        break;
      case NFSRDMA_OPTION_SIZE:
        to->type = FIO_OPT_ULL;
        break;
      case NFSRDMA_OPTION_CHOICE:
        to->type = FIO_OPT_STR;
        break;
      case NFSRDMA_OPTION_SWITCH:
        to->type = FIO_OPT_BOOL;
        break;
    }
    to->minval = (int)from->least;
    to->maxval = from->most;
    for (j = 0; j < NFSRDMA_CHOICES_MAX && from->choices[j].name; j++) {
      to->posval[j].ival = from->choices[j].name;
      to->posval[j].oval = from->choices[j].value;
      to->posval[j].help = from->choices[j].help;
    }
  }
}

static struct ioengine_ops engine = {
    .name = "nfsrdma",
    .version = FIO_IOOPS_VERSION,
    .flags = FIO_DISKLESSIO | FIO_NODISKUTIL | FIO_MEMALIGN | FIO_ASYNCIO_SETS_ISSUE_TIME,
    .setup = nfs_setup,
    .init = nfs_init,
    .post_init = nfs_post_init,
    .queue = nfs_queue,
    .commit = nfs_commit,
    .getevents = nfs_getevents,
    .event = nfs_event,
    .cleanup = nfs_cleanup,
    .open_file = nfs_open_file,
    .close_file = nfs_close_file,
    .invalidate = nfs_invalidate,
    .unlink_file = nfs_unlink_file,
    .get_file_size = nfs_get_file_size,
    .prepopulate_file = nfs_prepopulate_file,
    .option_struct_size = sizeof(struct nfsrdma_options),
    .options = engine_options,
};

/*
 * The one exported symbol. struct thread_data and struct io_u differ between versions of fio, so
 * the engine serves the version it was built for and no other.
 */
void __attribute__((visibility("default"))) get_ioengine(struct ioengine_ops** ops) {
  const char* running = dlsym(RTLD_DEFAULT, "fio_version_string");

  if (!running || strcmp(running, NFSRDMA_FIO_VERSION)) {
    log_err(
        "nfsrdma: this libnfsrdma.so was built for %s, but this is %s: build it again with "
        "tests/setup -Dfio_source=DIR, DIR being the source of this fio\n",
        NFSRDMA_FIO_VERSION, running ? running : "an unknown version of fio");
    *ops = NULL;
    return;
  }
  fill_options();
  *ops = &engine;
}
