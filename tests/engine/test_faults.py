#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A server that misbehaves, stops or dies: the right outcome, in bounded time, with a reason."""
import signal
import sys
import time

from harness import MIB, PATIENCE, case, check, equal, main, wait_for
from libnfs_client import Tree

WORK = {'rw': 'randrw', 'overwrite': 1, 'iodepth': 8, 'timeo': 5, 'retrans': 10}
VERIFIED = {'rw': 'randwrite', 'iodepth': 8, 'timeo': 5, 'retrans': 10, 'verify': 'crc32c',
            'do_verify': 1}


def survives(context, fault, *memd_options, **options):
    """Every byte is right in spite of the fault, which did strike."""
    server = context.memd('--fault', fault, *memd_options)
    run = context.fio_ok(server, **{**VERIFIED, **options})
    equal(run.jobs[0]['read']['io_bytes'], MIB, 'bytes verified')
    kind = fault.split(':')[0]
    check(server.counters()['faults'][kind] > 0, f'{kind} never struck')
    return run.transport


def fails(context, fault, *words, within=20, **options):
    server = context.memd('--fault', fault)
    run = context.fio(server, **{**WORK, **options}).failed(*words, within=within)
    return run


@case
def drop(context):
    found = survives(context, 'drop:20:READ+WRITE:4', timeo=3)
    retrans = sum(p['retrans'] for p in found['procedures'].values())
    check(retrans >= 4, 'retransmissions', retrans)


@case
def drop_commit(context):
    survives(context, 'drop:1:COMMIT:1', timeo=3, direct=0)


@case
def close(context):
    check(survives(context, 'close:50:READ+WRITE:4')['reconnects'] >= 3, 'reconnects')


@case
def close_before(context):
    check(survives(context, 'close-before:50:READ+WRITE:4')['reconnects'] >= 3, 'reconnects')


@case
def close_with_unstable_data(context):
    survives(context, 'close-before:50:WRITE+COMMIT:4', direct=0, fsync=32)


@case
def close_with_several_connections(context):
    survives(context, 'close:40:READ+WRITE:4', nconnect=3)


@case(once=True)
def reconnect_from_the_same_port(context):
    """Else a server's cache of duplicates would not know a call that comes again."""
    server = context.memd('--fault', 'close-before:60:WRITE:2')
    context.fio_ok(server, **VERIFIED)
    equal(len({c['port'] for c in server.calls('WRITE')}), 1, 'ports')
    check(any(c['dup'] for c in server.calls('WRITE')), 'no WRITE came twice')


@case(once=True)
def fragment(context):
    survives(context, 'fragment:3')


@case(once=True)
def trickle(context):
    survives(context, 'trickle:40:READ+WRITE:6')


@case
def dup_reply(context):
    found = survives(context, 'dup-reply:5')
    check(found['bad_replies'] >= 10 or context.transport != 'tcp', 'replies dropped', found)


@case
def reorder(context):
    survives(context, 'reorder:1')


@case
def late(context):
    """A reply that comes after its call was sent again belongs to nobody."""
    survives(context, 'late:60:READ+WRITE:4', '--late-ms', '700', timeo=3)


@case(once=True)
def bad_xid(context):
    found = survives(context, 'bad-xid:60:READ+WRITE:3', timeo=3)
    check(found['bad_replies'] >= 3, 'replies dropped', found['bad_replies'])


@case(once=True)
def huge_record(context):
    check(survives(context, 'huge-record:60:READ+WRITE:2')['reconnects'] >= 2, 'reconnects')


@case(once=True)
def huge_records_for_ever(context):
    fails(context, 'huge-record:1:READ', 'no reply', timeo=3, retrans=2)


@case
def garbage(context):
    fails(context, 'garbage:30:READ', 'READ of 4096 bytes from')


@case
def short_read(context):
    survives(context, 'short-read:2')


@case
def short_write(context):
    survives(context, 'short-write:2')


@case
def short_write_unstable(context):
    survives(context, 'short-write:2', direct=0)


@case
def zero_write_once(context):
    survives(context, 'zero-write:20:WRITE:5')


@case
def zero_write(context):
    fails(context, 'zero-write:1', 'WRITE of .* accepts 0 bytes', rw='write', overwrite=0)


@case
def jukebox(context):
    survives(context, 'jukebox:16:READ+WRITE+COMMIT+GETATTR+CREATE')


@case
def long_read(context):
    fails(context, 'long-read:30', 'READ of 4096 bytes from', 'sent 4100 bytes of data|ERR_CHUNK')


@case
def commit_error(context):
    run = fails(context, 'commit-error:1:COMMIT', 'COMMIT of .*NFS3ERR_IO', rw='write', direct=0,
                overwrite=0, fsync=64)
    equal(run.jobs[0]['error'], 5, 'error of the job')
    fails(context, 'commit-error:1:COMMIT', 'COMMIT of .*NFS3ERR_IO', rw='write', direct=0,
          overwrite=0)
    fails(context, 'commit-error:1:COMMIT', 'COMMIT of .*NFS3ERR_IO', rw='write', direct=0,
          overwrite=0, end_fsync=1)


@case
def auth_error(context):
    fails(context, 'auth-error:20:READ', 'READ of .*AUTH')


@case
def wrong_verifier(context):
    fails(context, 'wrong-verifier:1', 'verifier changed', rw='write', direct=0, overwrite=0)


@case
def prog_mismatch(context):
    run = fails(context, 'prog-mismatch:1', 'version 3', 'version 4')
    equal(len(run.lines()), 1, 'lines')


@case
def deny_unreserved(context):
    run = fails(context, 'deny-unreserved', 'insecure', 'reserved_port', reserved_port='no')
    equal(len(run.lines()), 1, 'lines')
    context.fio_ok(context.memd('--fault', 'deny-unreserved'), rw='read', reserved_port='yes')


def running(context, server, **options):
    """A job in mid-run."""
    process = context.start_fio(server, **{'rw': 'randwrite', 'iodepth': 8, 'size': '64m',
                                           'time_based': True, 'runtime': 60, 'rate_iops': 2000,
                                           **options})
    wait_for(lambda: len(server.calls('WRITE')) > 50, 'WRITEs', 20)
    return process


@case
def server_stops(context):
    """soft=1: the error says how long was waited."""
    server = context.memd()
    process = running(context, server, timeo=5, retrans=1)
    server.signal(signal.SIGSTOP)
    begin = time.monotonic()
    run = context.finish(process).failed(r'no reply .*within [12]\.\d s', 'timeo=5')
    check(time.monotonic() - begin < 15, 'it took', time.monotonic() - begin, 's')
    equal(run.jobs[0]['error'], 110, 'error of the job')


@case
def server_stops_with_unstable_data(context):
    server = context.memd()
    process = running(context, server, timeo=5, retrans=1, direct=0)
    server.signal(signal.SIGSTOP)
    begin = time.monotonic()
    context.finish(process).failed('no reply')
    check(time.monotonic() - begin < 15, 'it took', time.monotonic() - begin, 's')


@case
def server_pauses(context):
    """soft=0: goes on when the server does."""
    server = context.memd()
    process = running(context, server, timeo=5, retrans=1, soft=0, runtime=5, verify='crc32c',
                      do_verify=0)
    server.signal(signal.SIGSTOP)
    time.sleep(2.5)
    server.signal(signal.SIGCONT)
    context.finish(process).passed()


@case
def server_dies(context):
    for options in ({'direct': 1}, {'direct': 0}):
        server = context.memd()
        process = running(context, server, timeo=5, retrans=2, **options)
        server.signal(signal.SIGKILL)
        begin = time.monotonic()
        context.finish(process).failed('no reply|refused')
        check(time.monotonic() - begin < 15, 'it took', time.monotonic() - begin, 's')


@case
def fio_is_ended_while_the_server_is_silent(context):
    """soft=0 tries for ever, but not against the user's will."""
    server = context.memd()
    process = running(context, server, timeo=5, soft=0)
    server.signal(signal.SIGSTOP)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    run = context.finish(process, 40)
    check(time.monotonic() - begin < 25, 'it took', time.monotonic() - begin, 's')
    check(run.status >= 0, 'fio crashed', run)


@case(once=True)
def fio_is_ended_while_it_mounts(context):
    server = context.memd()
    server.signal(signal.SIGSTOP)
    process = context.start_fio(server, rw='randread', numjobs=4)
    time.sleep(1)
    run = ended(context, process, 'told to end while waiting for a reply')
    equal(len(run.lines()), 1, 'lines')


@case(once=True)
def fio_is_ended_while_it_lays_out(context):
    """Files as large as the published ones take minutes; what is there already is used again."""
    server = context.memd('--capacity', '8g', '--delay-us', '20000')
    process = context.start_fio(server, rw='randread', size='4g', numjobs=2)
    wait_for(lambda: len(server.calls('WRITE')) > 20, 'WRITEs', 20)
    run = ended(context, process, 'told to end before it was whole')
    equal(len(run.lines()), 1, 'lines')
    with Tree(server.url) as tree:
        check(0 < tree.size('f') < 4 << 30, 'size of the file', tree.size('f'))


@case(once=True)
def fio_is_ended_while_it_lays_out_on_a_silent_server(context):
    server = context.memd('--capacity', '8g', '--delay-us', '20000')
    process = context.start_fio(server, rw='randread', size='4g', soft=0)
    wait_for(lambda: len(server.calls('WRITE')) > 20, 'WRITEs', 20)
    server.signal(signal.SIGSTOP)
    ended(context, process, 'told to end while the server did not answer')


def ended(context, process, words):
    """By the user; soon."""
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    run = context.finish(process, 60).failed(words)
    check(time.monotonic() - begin < 15 * PATIENCE, 'it took', time.monotonic() - begin, 's')
    return run


@case
def runtime_ends_while_the_server_is_silent(context):
    """What is outstanding then is still waited for, as on a hard mount."""
    server = context.memd()
    process = running(context, server, timeo=5, soft=0, runtime=1)
    server.signal(signal.SIGSTOP)
    time.sleep(2)
    server.signal(signal.SIGCONT)
    context.finish(process).passed()


if __name__ == '__main__':
    sys.exit(0 if main() else 1)
