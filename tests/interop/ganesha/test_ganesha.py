#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The engine against nfs-ganesha. What it wrote is judged from outside: by fio's psync engine and by
sha256 on the server's own files. Started by `run`, in a namespace of its own."""
import hashlib
import os
import subprocess
import tempfile
import time

from ganesha_server import Ganesha
from harness import MIB, case, check, equal, main, wait_for

PATTERN = '0xa5c3f00f'
PATTERN_BYTES = bytes.fromhex('a5c3f00f')
MIXED = '512/5:4k/40:12k/15:64k/30:256k/10'
SERVER = None


def sha256(path):
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).hexdigest()


def local_verify(context, folder, **options):
    """fio's psync engine checks the server's own files."""
    lines = ['[global]', 'ioengine=psync', f'directory={folder}', 'verify_state_save=0',
             *(f'{k}={v}' for k, v in options.items()), '[job]']
    path = context.write_job('\n'.join(lines) + '\n')
    run = context.finish(context.start(['--output-format=json', '--verify_only', path]), 120)
    run.passed()
    read = sum(job['read']['io_bytes'] for job in run.jobs)
    check(read > 0, 'psync verified nothing', run)
    return read


def shipped(context, name, url, size):
    """jobs/NAME.fio as a user runs it, for some seconds."""
    source = os.path.join(context.suite.source, 'jobs', name + '.fio')
    with open(source, encoding='utf-8') as file:
        text = file.read().replace('runtime=', 'time_based\nruntime=', 1)
    folder = os.path.dirname(context.suite.engine)
    env = {'NFS_URL': url, 'TRANSPORT': context.transport, 'SIZE': size, 'RUNTIME': '6',
           'LD_LIBRARY_PATH': folder}
    path = context.write_job(text.replace('[' + name, f'nfs_dir={name}\n[{name}'))
    return context.finish(context.start(['--output-format=json', path], env, folder), 120).passed()


@case
def mounting(context):
    for url in (SERVER.url('mem', False), SERVER.url('mem'), SERVER.url('vfs', False)):
        context.fio_ok(url, rw='randrw', filename='mounting', iodepth=4)
    os.makedirs(SERVER.path('vfs') + '/a/b')
    below = SERVER.url('vfs').replace('/vfs?', '/vfs/a/b?')
    context.fio_ok(below, rw='write', filename='f')
    check(os.path.exists(SERVER.path('vfs') + '/a/b/f'), 'file in the folder of the URL')


@case
def wrong_export(context):
    run = context.fio('nfs://127.0.0.1/nowhere', rw='read').failed('/nowhere', 'exports: ', '/mem')
    equal(len(run.lines()), 1, 'lines')


@case
def layout(context):
    context.fio_ok(SERVER.url('vfs'), rw='randread', filename='laid', size='8m', iodepth=16)
    equal(os.stat(SERVER.path('vfs') + '/laid').st_size, 8 * MIB, 'size')


@case
def bytes_written(context):
    for direct in (0, 1):
        name = f'pattern{direct}'
        context.fio_ok(SERVER.url('vfs'), rw='randwrite', filename=name, size='16m', iodepth=16,
                       direct=direct, bs='16k', buffer_pattern=PATTERN)
        equal(sha256(f'{SERVER.path("vfs")}/{name}'),
              hashlib.sha256(PATTERN_BYTES * (4 * MIB)).hexdigest(), 'sha256 at the server')


@case
def bytes_read(context):
    """psync writes at the server, the engine verifies."""
    options = {'filename': 'from-server', 'size': '16m', 'bssplit': MIXED, 'verify': 'crc32c'}
    lines = ['[job]', 'ioengine=psync', f'directory={SERVER.path("vfs")}', 'rw=randwrite',
             'do_verify=0', 'verify_state_save=0', *(f'{k}={v}' for k, v in options.items())]
    path = context.write_job('\n'.join(lines) + '\n')
    context.finish(context.start(['--output-format=json', path])).passed()
    run = context.fio_ok(SERVER.url('vfs'), rw='randwrite', verify_only=1, iodepth=16, bs=None,
                         **options)
    check(run.jobs[0]['read']['io_bytes'] == 16 * MIB, 'bytes verified', run)


@case
def verify_of_mixed_sizes(context):
    for export, size in (('mem', '1m'), ('vfs', '16m')):
        for direct in (0, 1):
            context.fio_ok(SERVER.url(export), rw='randwrite', filename=f'mixed{direct}', size=size,
                           bs=None, bssplit=MIXED, iodepth=16, direct=direct, verify='crc32c',
                           do_verify=1)
    for direct in (0, 1):
        local_verify(context, SERVER.path('vfs'), rw='randwrite', filename=f'mixed{direct}',
                     size='16m', bssplit=MIXED, verify='crc32c')


@case
def many_files_and_names(context):
    context.fio_ok(SERVER.url('vfs'), rw='randrw', nrfiles=200, size='3200k', filename=None,
                   nfs_dir='many', iodepth=16)
    equal(len(os.listdir(SERVER.path('vfs') + '/many')), 200, 'files')
    name = 'ä' * 127 + 'b'
    context.fio_ok(SERVER.url('vfs'), rw='write', filename=name, size='64k')
    equal(os.stat(f'{SERVER.path("vfs")}/{name}').st_size, 65536, 'size')
    context.fio_ok(SERVER.url('vfs'), rw='write', filename='with spaces', size='64k', unlink=1)
    check(not os.path.exists(SERVER.path('vfs') + '/with spaces'), 'unlink=1 left the file')


@case
def syncs(context):
    run = context.fio_ok(SERVER.url('vfs'), rw='write', filename='synced', direct=0, fsync=16)
    check(run.jobs[0]['sync']['total_ios'] >= 15, 'syncs', run.jobs[0]['sync'])
    for options in ({'sync': 1}, {'sync': 'dsync'}, {'end_fsync': 1, 'direct': 0},
                    {'file_append': 1}):
        context.fio_ok(SERVER.url('vfs'), rw='write', filename='synced', **options)
    equal(os.stat(SERVER.path('vfs') + '/synced').st_size, 2 * MIB, 'size with file_append')


@case
def no_space(context):
    for direct in (0, 1):
        context.fio(SERVER.url('small'), rw='write', filename=f'f{direct}', size='16m', iodepth=8,
                    direct=direct, unlink=1).failed('NFS3ERR_NOSPC', within=40)
    for name in os.listdir(SERVER.path('small')):
        os.unlink(os.path.join(SERVER.path('small'), name))
    context.fio_ok(SERVER.url('small'), rw='write', filename='fill', size='64m', fill_device=1)
    check(os.stat(SERVER.path('small') + '/fill').st_size > 7 * MIB, 'size of the file')


@case
def read_only(context):
    context.fio(SERVER.url('ro'), rw='write', size='64k').failed('NFS3ERR_ROFS', within=20)


@case
def squashed_root(context):
    run = context.fio(SERVER.url('squash'), rw='write', size='64k')
    run.failed('NFS3ERR_(ACCES|PERM)', 'uid 0', 'no_root_squash', 'auth_uid=', within=20)


@case
def privileged_port(context):
    run = context.fio(SERVER.url('privileged'), rw='write', size='64k', reserved_port='no')
    run.failed('reserved_port=', 'PrivilegedPort = false', within=20)
    context.fio_ok(SERVER.url('privileged'), rw='write', size='64k')


@case
def published_jobs_at_full_depth(context):
    for export, size in (('mem', '1m'), ('vfs', '8m')):
        for name, depth in (('E1', 16), ('E2', 1024)):
            run = shipped(context, name, SERVER.url(export), size)
            job = run.jobs[0]
            equal(job['error'], 0, f'error of {name} on {export}')
            equal(job['job options'].get('iodepth', run.json['global options'].get('iodepth')),
                  str(depth), 'iodepth')
            check(job['read']['iops'] > 100, f'IOPS of {name} on {export}', job['read']['iops'])
            check('errors 0' in run.err and not run.lines(), run)


@case
def sixteen_jobs_of_64_mib(context):
    options = {'rw': 'randwrite', 'size': '64m', 'bssplit': '4k/20:16k/30:64k/50', 'numjobs': 16,
               'filename_format': 'big.$jobnum', 'verify': 'crc32c'}
    context.fio_ok(SERVER.url('vfs'), filename=None, bs=None, iodepth=16, direct=0, do_verify=1,
                   timeout=150, **options)
    equal(local_verify(context, SERVER.path('vfs'), **options), 16 * 64 * MIB, 'bytes verified')
    context.fio_ok(SERVER.url('mem'), filename=None, bs='4k', iodepth=16, do_verify=1,
                   **{**options, 'size': '1m', 'bssplit': None})
    for number in range(16):
        os.unlink(f'{SERVER.path("vfs")}/big.{number}')


@case
def restart_in_mid_run(context):
    """Killed and started again: calls outstanding are sent once more, no byte is lost."""
    for direct in (0, 1):
        process = context.start_fio(SERVER.url('vfs'), rw='randwrite', filename=f'again{direct}',
                                    size='32m', rate='8m', bs='16k', iodepth=16, direct=direct,
                                    verify='crc32c', do_verify=1, timeo=100, retrans=5)
        path = f'{SERVER.path("vfs")}/again{direct}'
        wait_for(lambda p=path: os.path.exists(p) and os.stat(p).st_blocks > 2000, 'writes', 20)
        SERVER.kill()
        time.sleep(0.5)
        SERVER.start()
        run = context.finish(process, 90).passed()
        check(run.transport['reconnects'] >= 1, 'reconnects', run)
        local_verify(context, SERVER.path('vfs'), rw='randwrite', filename=f'again{direct}',
                     size='32m', bs='16k', verify='crc32c')


if __name__ == '__main__':
    with tempfile.TemporaryDirectory(prefix='nfsrdma-ganesha-') as folder:
        SERVER = Ganesha(folder)
        try:
            good = main(at_once=1, transports=['tcp'])
        finally:
            SERVER.stop()
            if not good:
                print(SERVER.last_words())
            subprocess.run(['umount', *(SERVER.path(n) for n in os.listdir(SERVER.path('')))],
                           check=False)
    raise SystemExit(0 if good else 1)
