#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Files: laid out through NFS, named, sized, unlinked; and never a local one."""
import os
import sys

from harness import GIB, MIB, case, check, equal, main
from libnfs_client import Tree

PATTERN = '0xa5c3f00f'
PATTERN_BYTES = bytes.fromhex('a5c3f00f')


@case
def missing_file_is_filled_for_reads(context):
    server = context.memd()
    run = context.fio_ok(server, rw='randread', size='3m')
    equal(run.jobs[0]['read']['total_ios'], 768, 'READs')
    with Tree(server.url) as tree:
        data = tree.read('f')
        equal(len(data), 3 * MIB, 'size of the file')
        blocks = {data[at:at + 4096] for at in range(0, len(data), 4096)}
        equal(len(blocks), 768, 'different blocks')
    check(server.calls('CREATE') and server.calls('WRITE') and server.calls('COMMIT'),
          'laid out by other calls than CREATE, WRITE, COMMIT')


@case
def short_file_is_extended_and_kept(context):
    server = context.memd()
    old = os.urandom(MIB)
    with Tree(server.url) as tree:
        tree.write('f', old)
        context.fio_ok(server, rw='read', size='2m')
        data = tree.read('f')
        equal(len(data), 2 * MIB, 'size of the file')
        check(data[:MIB] == old, 'the old bytes were changed')
        check(data[MIB:MIB + 4096] != bytes(4096), 'the new bytes were not filled')


@case
def long_enough_file_is_not_touched(context):
    server = context.memd()
    old = os.urandom(2 * MIB)
    with Tree(server.url) as tree:
        tree.write('f', old)
        before = len(server.calls('WRITE'))
        context.fio_ok(server, rw='read', size='2m')
        equal(len(server.calls('WRITE')), before, 'WRITEs of a job that reads')
        check(tree.read('f') == old, 'the file was changed')


@case
def size_comes_from_the_server(context):
    """A reader without size= reads the whole file, as it does on a local disk."""
    server = context.memd()
    with Tree(server.url) as tree:
        tree.write('f', os.urandom(MIB + 8192))
    run = context.fio_ok(server, rw='read', size=None)
    equal(run.jobs[0]['read']['io_bytes'], MIB + 8192, 'bytes read')


@case
def plain_write_unlinks_first(context):
    server = context.memd()
    with Tree(server.url) as tree:
        tree.write('f', b'old' * 1000)
        context.fio_ok(server, rw='write', buffer_pattern=PATTERN)
        equal([c['name'] for c in server.calls('REMOVE')], ['f'], 'REMOVEs')
        check(tree.read('f') == PATTERN_BYTES * (MIB // 4), 'the bytes of the file')


@case
def write_into_a_large_enough_file_keeps_it(context):
    server = context.memd()
    with Tree(server.url) as tree:
        tree.write('f', bytes(2 * MIB))
        context.fio_ok(server, rw='write', buffer_pattern=PATTERN)
        equal(server.calls('REMOVE'), [], 'REMOVEs')
        check(tree.read('f') == PATTERN_BYTES * (MIB // 4) + bytes(MIB), 'the bytes of the file')


@case
def overwrite_fills_first(context):
    server = context.memd()
    context.fio_ok(server, rw='randwrite', overwrite=1, number_ios=1)
    with Tree(server.url) as tree:
        equal(tree.size('f'), MIB, 'size')
    check(sum(c['count'] for c in server.calls('WRITE')) >= MIB, 'it was not laid out')


@case
def randrw_on_a_missing_file(context):
    run = context.fio_ok(context.memd(), rw='randrw', rwmixread=70, iodepth=8)
    check(run.jobs[0]['read']['total_ios'] > 100 and run.jobs[0]['write']['total_ios'] > 20, run)


@case
def randwrite_on_a_missing_file(context):
    server = context.memd()
    context.fio_ok(server, rw='randwrite', buffer_pattern=PATTERN, iodepth=8)
    with Tree(server.url) as tree:
        check(tree.read('f') == PATTERN_BYTES * (MIB // 4), 'the bytes of the file')


@case
def local_file_of_the_same_name(context):
    """Read, written, unlinked and truncated on the server: the local one stays as it was."""
    path = os.path.join(context.cwd, 'f')
    with open(path, 'wb') as file:
        file.write(b'local bytes')
    context.local_files = ['f']
    server = context.memd()
    for options in ({'rw': 'read'}, {'rw': 'write', 'unlink': 1}, {'rw': 'randrw', 'overwrite': 1},
                    {'rw': 'write', 'create_only': 1}, {'rw': 'write', 'unlink_each_loop': 1,
                                                        'loops': 2}):
        context.fio_ok(server, **options)
        with open(path, 'rb') as file:
            equal(file.read(), b'local bytes', f'local file after {options}')


@case
def local_device_name(context):
    """fio takes a local block or character device of the name for one; on the server it is none."""
    os.symlink('/dev/null', os.path.join(context.cwd, 'f'))
    context.local_files = ['f']
    server = context.memd()
    context.fio_ok(server, rw='write')
    with Tree(server.url) as tree:
        equal(tree.size('f'), MIB, 'size')


@case
def unlink(context):
    server = context.memd()
    context.fio_ok(server, rw='write', direct=0, unlink=1)
    with Tree(server.url) as tree:
        equal(tree.names(), [], 'files left')


@case
def unlink_each_loop(context):
    server = context.memd()
    run = context.fio_ok(server, rw='write', unlink_each_loop=1, loops=3)
    equal(run.jobs[0]['write']['io_bytes'], 3 * MIB, 'bytes written')
    check(len(server.calls('REMOVE')) >= 2, 'REMOVEs', server.calls('REMOVE'))


@case
def create_only(context):
    server = context.memd()
    run = context.fio_ok(server, rw='read', create_only=1)
    equal(run.jobs[0]['read']['total_ios'], 0, 'READs')
    with Tree(server.url) as tree:
        equal(tree.size('f'), MIB, 'size')


@case
def loops(context):
    run = context.fio_ok(context.memd(), rw='read', loops=3)
    equal(run.jobs[0]['read']['total_ios'], 3 * 256, 'READs')


@case
def file_append(context):
    server = context.memd()
    with Tree(server.url) as tree:
        tree.write('f', b'x' * MIB)
        context.fio_ok(server, rw='write', file_append=1, buffer_pattern=PATTERN)
        equal(tree.size('f'), 2 * MIB, 'size')
        check(tree.read('f') == b'x' * MIB + PATTERN_BYTES * (MIB // 4), 'the bytes of the file')


@case
def many_files(context):
    server = context.memd()
    context.fio_ok(server, rw='randrw', nrfiles=200, size='3200k', filename=None, iodepth=16,
                   nfs_dir='many/files', openfiles=50)
    with Tree(server.url) as tree:
        names = tree.names('many/files')
        equal(len(names), 200, 'files')
        equal({tree.size(f'many/files/{name}') for name in names[::20]}, {16384}, 'their sizes')


@case
def filename_format(context):
    server = context.memd()
    context.fio_ok(server, rw='write', nrfiles=3, filename=None, numjobs=2, size='192k',
                   filename_format='$jobname.$jobnum.$filenum')
    with Tree(server.url) as tree:
        equal(tree.names(), [f'job.{j}.{f}' for j in range(2) for f in range(3)], 'files')


@case
def filename_with_folder(context):
    server = context.memd()
    context.fio_ok(server, rw='write', filename='a/b/c/file')
    with Tree(server.url) as tree:
        equal(tree.size('a/b/c/file'), MIB, 'size')


@case
def several_filenames(context):
    server = context.memd()
    context.fio_ok(server, rw='write', filename='one:two:three', size='768k')
    with Tree(server.url) as tree:
        equal({n: tree.size(n) for n in tree.names()},
              {'one': 256 << 10, 'two': 256 << 10, 'three': 256 << 10}, 'files')


@case
def nfs_dir_is_made(context):
    server = context.memd()
    context.fio_ok(server, rw='read', nfs_dir='new/folder')
    with Tree(server.url) as tree:
        equal(tree.names('new/folder'), ['f'], 'files')


@case
def folder_in_the_url(context):
    server = context.memd()
    with Tree(server.url) as tree:
        tree.mkdir('below')
        tree.mkdir('below/it')
        context.fio_ok(server.url.replace('/export?', '/export/below/it?'), rw='write')
        equal(tree.names('below/it'), ['f'], 'files')


@case
def names_with_spaces_and_utf8(context):
    server = context.memd()
    for name in ('with spaces in it', ' x ', 'größe-数据-🙂', 'ä' * 127 + 'b'):
        context.fio_ok(server, rw='randrw', filename=name, size='64k')
        with Tree(server.url) as tree:
            equal(tree.size(name.strip()), 65536, f'size of {name!r}')
    equal(len(('ä' * 127 + 'b').encode()), 255, 'bytes of the longest name')


@case
def name_of_256_bytes(context):
    server = context.memd()
    run = context.fio(server, rw='write', filename='ä' * 128).failed('256 bytes', '255')
    equal(len(run.lines()), 1, 'lines')


@case
def dot_dot_is_refused(context):
    server = context.memd()
    context.fio(server, rw='write', filename='../f').failed(r'\.\.')
    context.fio(server, rw='write', nfs_dir='a/../b').failed(r'\.\.')


@case
def a_directory_as_file(context):
    server = context.memd()
    with Tree(server.url) as tree:
        tree.mkdir('f')
    context.fio(server, rw='read').failed("'f'|f ", 'directory')


@case
def sparse_offsets(context):
    """Above 4 GiB and above 1 TiB; the neighbours of what was written stay holes."""
    server = context.memd()
    for offset in (4 * GIB - 8192, 5 * GIB, 1024 * GIB + 4096):
        name = f'at{offset}'
        with Tree(server.url) as tree:
            tree.write(name, b'')
            tree.truncate(name, offset + 2 * MIB)
            context.fio_ok(server, rw='write', filename=name, offset=offset, size='64k',
                           buffer_pattern=PATTERN, io_size='64k', iodepth=4)
            check(tree.read(name, offset, 65536) == PATTERN_BYTES * 16384, 'bytes at', offset)
            check(tree.read(name, offset - 4096, 4096) == bytes(4096), 'bytes before', offset)
            check(tree.read(name, offset + 65536, 4096) == bytes(4096), 'bytes behind', offset)
            context.fio_ok(server, rw='randread', filename=name, offset=offset, size='64k',
                           verify='pattern', verify_pattern=PATTERN, iodepth=4)


@case
def no_space(context):
    server = context.memd('--capacity', '1m')
    run = context.fio(server, rw='write', size='4m', iodepth=8)
    run.failed('NFS3ERR_NOSPC', within=20)
    equal(run.jobs[0]['error'], 28, 'error of the job')
    run = context.fio(server, rw='write', size='4m', direct=0, filename='g', end_fsync=1)
    run.failed('NFS3ERR_NOSPC', within=20)


@case
def no_space_in_layout(context):
    context.fio(context.memd('--capacity', '1m'), rw='read', size='4m').failed(
        'laying out', 'NFS3ERR_NOSPC', within=20)


@case
def fill_device(context):
    server = context.memd('--capacity', '2m')
    context.fio_ok(server, rw='write', fill_device=1, size='64m')
    with Tree(server.url) as tree:
        check(tree.size('f') >= 2 * MIB - 65536, 'size of the file', tree.size('f'))
    # Without size=, and for a reader, whose file takes all there is.
    run = context.fio_ok(context.memd('--capacity', '2m'), rw='write', fill_device=1, size=None,
                         iodepth=8)
    equal(run.lines(), [], 'lines about a full server, which was asked for')
    run = context.fio_ok(context.memd('--capacity', '2m'), rw='read', fill_device=1, size=None)
    check(run.jobs[0]['read']['io_bytes'] >= 2 * MIB - 65536, 'bytes read', run)


@case
def read_only_export(context):
    server = context.memd('--read-only')
    run = context.fio(server, rw='write').failed('NFS3ERR_ROFS', within=20)
    equal(len(run.lines()), 1, 'lines')
    equal(run.jobs[0]['error'], 30, 'error of the job')


@case
def create_serialize_0(context):
    server = context.memd()
    context.fio_ok(server, rw='randread', filename=None, numjobs=4, create_serialize=0, nrfiles=2)
    with Tree(server.url) as tree:
        equal(len(tree.names()), 8, 'files')


if __name__ == '__main__':
    sys.exit(0 if main() else 1)
