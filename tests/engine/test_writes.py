#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What direct=, sync=, fsync= and their kin become in NFS, as the server's call log shows it."""
import os
import signal
import sys

from harness import MIB, SANITIZED, case, check, equal, main, wait_for
from libnfs_client import Tree

UNSTABLE, DATA_SYNC, FILE_SYNC = 0, 1, 2
ALL = 256  # blocks of 4 KiB in a file of 1 MiB


def written(context, server, procedure='WRITE', **options):
    """The calls of a job that writes a file of 1 MiB once; the file is there before."""
    with Tree(server.url) as tree:
        tree.write('f', b'')
        tree.truncate('f', MIB)
        before = len(server.calls(procedure))
        context.fio_ok(server, rw='write', verify='crc32c', do_verify=0, **options)
        return server.calls(procedure)[before:]


def stabilities(calls):
    return {c['stable'] for c in calls}


@case
def direct_1_is_file_sync(context):
    server = context.memd()
    calls = written(context, server)
    equal(len(calls), ALL, 'WRITEs')
    equal(stabilities(calls), {FILE_SYNC}, 'stable_how')
    equal(server.calls('COMMIT'), [], 'COMMITs')


@case
def direct_0_is_unstable_and_commit(context):
    server = context.memd()
    calls = written(context, server, direct=0)
    equal(stabilities(calls), {UNSTABLE}, 'stable_how')
    check(server.calls('COMMIT'), 'no COMMIT at the end')
    check(server.calls()[-1]['proc'] in ('COMMIT', 'UMNT'), 'last call', server.calls()[-1])


@case
def sync_1_is_file_sync(context):
    for direct in (0, 1):
        server = context.memd()
        equal(stabilities(written(context, server, sync=1, direct=direct)), {FILE_SYNC},
              'stable_how')
        equal(server.calls('COMMIT'), [], 'COMMITs')


@case
def sync_dsync_is_data_sync(context):
    for direct in (0, 1):
        server = context.memd()
        equal(stabilities(written(context, server, sync='dsync', direct=direct)), {DATA_SYNC},
              'stable_how')
        equal(server.calls('COMMIT'), [], 'COMMITs')


@case
def stable_option(context):
    for word, how in (('unstable', UNSTABLE), ('data_sync', DATA_SYNC), ('file_sync', FILE_SYNC)):
        for direct in (0, 1):
            server = context.memd()
            calls = written(context, server, stable=word, direct=direct)
            equal(stabilities(calls), {how}, f'stable_how with stable={word} direct={direct}')
            equal(bool(server.calls('COMMIT')), how == UNSTABLE, f'COMMIT with stable={word}')


@case
def block_above_wtmax(context):
    """Split; UNSTABLE, and committed before fio hears of it."""
    server = context.memd('--wtmax', '16k', '--rtmax', '16k')
    calls = written(context, server, bs='64k')
    equal(len(calls), MIB // 16384, 'WRITEs')
    equal({c['count'] for c in calls}, {16384}, 'their sizes')
    equal(stabilities(calls), {UNSTABLE}, 'stable_how')
    equal(len(server.calls('COMMIT')), 16, 'COMMITs')
    order = [c['proc'] for c in server.calls() if c['proc'] in ('WRITE', 'COMMIT')][-80:]
    equal(order, (['WRITE'] * 4 + ['COMMIT']) * 16, 'order at iodepth 1')
    run = context.fio_ok(server, rw='randread', bs='64k', verify='crc32c', iodepth=4)
    equal(run.jobs[0]['read']['total_ios'], 16, 'READs as fio counts them')
    equal(run.transport['procedures']['READ']['ops'], 64, 'READs on the wire')


@case
def block_above_wtmax_with_sync(context):
    server = context.memd('--wtmax', '16k')
    equal(stabilities(written(context, server, bs='64k', sync=1)), {FILE_SYNC}, 'stable_how')
    equal(server.calls('COMMIT'), [], 'COMMITs')


@case
def odd_block_sizes(context):
    server = context.memd('--wtmax', '16k', '--rtmax', '16k')
    context.fio_ok(server, rw='randwrite', bs=None, bsrange='512-50k', bs_unaligned=1, size='4m',
                   iodepth=8, verify='crc32c', do_verify=1)
    check(max(c['count'] for c in server.calls('WRITE')) <= 16384, 'a WRITE above wtmax')


@case
def fsync(context):
    server = context.memd()
    run_calls = written(context, server, 'COMMIT', direct=0, fsync=16)
    check(16 <= len(run_calls) <= 17, 'COMMITs', len(run_calls))
    names = [c['proc'] for c in server.calls() if c['proc'] in ('WRITE', 'COMMIT')]
    equal(names.index('COMMIT'), 16, 'WRITEs before the first COMMIT')


@case
def syncs_in_fio_output(context):
    for option in ('fsync', 'fdatasync'):
        server = context.memd()
        run = context.fio_ok(server, rw='write', direct=0, **{option: 32})
        sync = run.jobs[0]['sync']
        if option == 'fsync':  # fio counts no fdatasync there
            check(7 <= sync['total_ios'] <= 8, f'syncs with {option}=32', sync['total_ios'])
        check(7 <= sync['lat_ns']['N'] <= 8, f'syncs timed with {option}=32', sync['lat_ns'])
        check(sync['lat_ns']['mean'] > 1000, 'latency of a sync', sync['lat_ns'])
        sent = len(server.calls('COMMIT'))
        check(sent >= 8, f'COMMITs with {option}=32', sent)
        equal(run.transport['procedures']['COMMIT']['ops'], sent, 'COMMITs in stats_json')


@case
def fsync_without_writes_between(context):
    """An fsync of a file with nothing to commit is no error, also under direct=1."""
    context.fio_ok(context.memd(), rw='randrw', direct=1, fsync=4, iodepth=4)
    context.fio_ok(context.memd(), rw='read', direct=0, fsync=4)


@case
def end_fsync_and_fsync_on_close(context):
    for option in ('end_fsync', 'fsync_on_close'):
        server = context.memd()
        context.fio_ok(server, rw='write', direct=0, **{option: 1})
        check(server.calls('COMMIT'), f'no COMMIT with {option}=1')


@case
def sync_file_range(context):
    server = context.memd()
    context.fio_ok(server, rw='write', direct=0, sync_file_range='write:64')
    check(len(server.calls('COMMIT')) >= 4, 'COMMITs', len(server.calls('COMMIT')))


@case
def close_commits_all(context):
    """After fio's end nothing depends on the server's memory: a lossy restart takes nothing."""
    server = context.memd('--lossy')
    context.fio_ok(server, rw='randwrite', direct=0, iodepth=16, size='4m', verify='crc32c',
                   do_verify=0)
    server.signal(signal.SIGUSR1)
    context.fio_ok(server, rw='randread', size='4m', verify='crc32c', iodepth=16)


@case
def commit_by_bytes(context):
    server = context.memd()
    context.fio_ok(server, rw='write', direct=0, size='4m', commit_bytes='512k')
    sent = len(server.calls('COMMIT'))
    check(8 <= sent <= 12, 'COMMITs of 4 MiB with commit_bytes=512k', sent)


@case
def commit_by_age(context):
    server = context.memd()
    context.fio_ok(server, rw='write', direct=0, rate_iops=100, number_ios=100, commit_ms=100)
    sent = len(server.calls('COMMIT'))
    check(5 <= sent <= 15, 'COMMITs of a second with commit_ms=100', sent)


@case
def small_pool(context):
    """A pool that is full over and over: COMMIT and wait, and every byte right."""
    server = context.memd()
    run = context.fio_ok(server, rw='randwrite', direct=0, size='4m', uncommitted_max='64k',
                         iodepth=32, bs='8k', verify='crc32c', timeout=90)
    check(run.transport['procedures']['COMMIT']['ops'] >= 64, 'COMMITs')


@case
def keeps_nothing(context):
    context.fio_ok(context.memd(), rw='randwrite', direct=0, uncommitted_max=0, iodepth=8,
                   verify='crc32c', fsync=64)


@case
def lost_write_without_a_pool_fails_fsync(context):
    server = context.memd('--lossy', '--verifier-change-after', '40')
    run = context.fio(server, rw='write', direct=0, uncommitted_max=0, end_fsync=1)
    run.failed('restarted and lost', 'uncommitted_max=0')


@case
def restart_resends(context):
    """The server restarts in mid-run and drops what no COMMIT has covered."""
    server = context.memd('--lossy')
    process = context.start_fio(server, rw='randwrite', direct=0, size='8m', iodepth=16,
                                bs=None, bsrange='4k-32k', rate='4m', verify='crc32c', do_verify=1,
                                commit_ms=400)
    wait_for(lambda: len(server.calls('WRITE')) > 20, 'WRITEs')
    for _ in range(3):
        seen = len(server.calls('WRITE'))
        server.signal(signal.SIGUSR1)
        wait_for(lambda seen=seen: len(server.calls('WRITE')) > seen + 20, 'WRITEs', 20)
    run = context.finish(process).passed()
    check(run.transport['verifier_changes'] >= 1, 'verifier changes', run)
    check(run.transport['resent_writes'] >= 1, 'WRITEs sent again', run)
    equal(run.transport['lost_writes'], 0, 'lost WRITEs')


@case
def restart_between_overlapping_writes(context):
    """The newest bytes win, whatever was sent again."""
    server = context.memd('--lossy', '--verifier-change-after', '50')
    context.fio_ok(server, rw='randwrite', direct=0, size='128k', io_size='4m', norandommap=1,
                   iodepth=8, bs=None, bsrange='512-16k', verify='crc32c', do_verify=0,
                   commit_ms=50, serialize_overlap=1)
    server = context.memd('--lossy', '--verifier-change-after', '100')
    run = context.fio_ok(server, rw='write', direct=0, size='64k', loops=20, fsync=50,
                         verify='crc32c', do_verify=1, bs='4k')
    check(run.transport['resent_writes'] >= 1, 'WRITEs sent again', run)


@case
def restart_above_wtmax(context):
    server = context.memd('--lossy', '--wtmax', '16k', '--verifier-change-after', '30')
    run = context.fio_ok(server, rw='randwrite', direct=1, size='2m', bs='64k', iodepth=4,
                         verify='crc32c', do_verify=1)
    check(run.transport['verifier_changes'] >= 1, 'verifier changes', run)


@case
def verify_of_mixed_sizes(context):
    """verify=crc32c over random writes, read back by the job and by another."""
    for direct in (0, 1):
        server = context.memd()
        context.fio_ok(server, rw='randwrite', direct=direct, size='8m', iodepth=32, bs=None,
                       bssplit='4k/30:8k/30:12k/10:64k/30', verify='crc32c', do_verify=1,
                       verify_backlog=64, verify_fatal=1)
        context.fio_ok(server, rw='randwrite', direct=direct, size='8m', iodepth=32, bs=None,
                       bssplit='4k/30:8k/30:12k/10:64k/30', verify='crc32c', verify_only=1)


@case
def sixteen_jobs_verified(context):
    """Random writes of several sizes, every byte verified: 1 GiB, less where time is short."""
    short = SANITIZED or os.environ.get('NFSRDMA_MODE') == 'quick'
    context.fio_ok(context.memd('--capacity', '1200m'), rw='randwrite', numjobs=16,
                   size='8m' if short else '64m', filename=None, bs=None, iodepth=16, direct=0,
                   bssplit='4k/10:16k/30:64k/60', verify='crc32c', do_verify=1,
                   group_reporting=True, timeout=150)


@case
def verify_finds_a_changed_byte(context):
    """So that the cases above mean something."""
    server = context.memd()
    context.fio_ok(server, rw='write', verify='crc32c', do_verify=0)
    with Tree(server.url) as tree:
        old = tree.read('f', 500_000, 1)
        tree.write('f', bytes([old[0] ^ 1]), 500_000)
    run = context.fio(server, rw='read', verify='crc32c')
    check(run.status not in (0, None), 'a changed byte was not found', run)


@case
def same_job_twice_writes_twice(context):
    """No reply from a server's cache of duplicates: xids start from a random number."""
    server = context.memd()
    with Tree(server.url) as tree:
        for byte in ('0x11', '0x22'):
            context.fio_ok(server, rw='write', size='64k', overwrite=1, buffer_pattern=byte)
            check(tree.read('f') == bytes([int(byte, 16)]) * 65536, 'the bytes of the file')
    first = {c['xid'] for c in server.calls('WRITE')}
    equal(len(first), len(server.calls('WRITE')), 'different xids')


if __name__ == '__main__':
    sys.exit(0 if main() else 1)
