/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What differs between versions of fio. Included behind fio.h, by fio_engine.c alone. */
#ifndef NFSRDMA_FIO_COMPAT_H
#define NFSRDMA_FIO_COMPAT_H

#if FIO_IOOPS_VERSION < 31
#error "fio 3.31 or newer is needed: older ones cannot be told when an I/O was really issued"
#endif

/* The option group for engines outside fio; the word is only used by fio's graphical client. */
#define NFSRDMA_OPTION_GROUP FIO_OPT_G_INVALID

/* fio 3.37 and later have for_each_td() with a scope of its own; the loop below serves all. */
#define NFSRDMA_EACH_JOB(td, i) \
  for ((i) = 0; (i) < (int)thread_number && ((td) = tnumber_to_td(i)) != NULL; (i)++)

#endif
