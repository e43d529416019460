#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Words of fio that work as on a local disk; its output; statistics and latencies that agree."""
import json
import os
import re
import socket
import sys
import time

from harness import PATIENCE, case, check, equal, main
from libnfs_client import Tree


NFS_EXAMPLE = """
[global]
ioengine=external:{engine}
nfs_url={url}
blocksize=8192
iodepth=10
size=1m
lat_percentiles=1
group_reporting
numjobs=4
filename_format=myfiles.$clientuid.$jobnum.$filenum
time_based=1
runtime=1
[write]
rw=write
stonewall
[read]
rw=randread
stonewall
[mixed]
rw=randrw
fsync=8
stonewall
"""


@case
def iodepth_is_reached(context):
    run = context.fio_ok(context.memd('--delay-us', '2000'), rw='randread', iodepth=32, size='4m')
    equal(run.transport['depth_reached'], 32, 'depth reached')
    equal(run.transport['depth_asked'], 32, 'depth asked')
    check(run.jobs[0]['iodepth_level']['32'] > 50, 'levels', run.jobs[0]['iodepth_level'])


@case
def iodepth_1024_in_16_jobs(context):
    run = context.fio_ok(context.memd(), rw='randread', iodepth=1024, numjobs=16, size='1m',
                         io_size='8m', norandommap=1, group_reporting=True)
    equal(run.jobs[0]['read']['total_ios'], 16 * 2048, 'READs')
    # Over RDMA the server's grant bounds what is outstanding; the rest waits in order.
    granted = int(run.transport['negotiated'].get('credits_granted', 1024))
    check(run.transport['depth_reached'] > 16 * min(granted, 200) * 0.9, 'depth', run.transport)


@case
def iodepth_batches(context):
    for options in ({'iodepth_batch': 8}, {'iodepth_batch_complete_min': 8,
                                          'iodepth_batch_complete_max': 16},
                    {'iodepth_low': 4}, {'iodepth_batch_complete_min': 0}):
        run = context.fio_ok(context.memd(), rw='randrw', iodepth=16, **options)
        equal(run.jobs[0]['read']['total_ios'] + run.jobs[0]['write']['total_ios'], 256,
              f'I/Os with {options}')


@case
def rate_iops(context):
    run = context.fio_ok(context.memd(), rw='randread', rate_iops=200, number_ios=200, iodepth=4)
    iops = run.jobs[0]['read']['iops']
    check(0 < iops <= 230, 'IOPS with rate_iops=200', iops)


@case
def threads(context):
    server = context.memd()
    run = context.fio_ok(server, rw='randwrite', thread=True, numjobs=4, filename=None, iodepth=8,
                         verify='crc32c')
    equal(len(run.jobs), 4, 'jobs')
    equal(run.transport['jobs'], 4, 'jobs in stats_json')
    equal(run.transport['procedures']['WRITE']['ops'], 4 * 256, 'WRITEs')
    equal(run.transport['procedures']['READ']['ops'], 4 * 256, 'READs')


@case
def jobs_128(context):
    for thread in (None, True):
        run = context.fio_ok(context.memd('--threads', '2'), rw='randread', numjobs=128, size='16k',
                             filename='f', thread=thread, group_reporting=True)
        equal(run.jobs[0]['read']['total_ios'], 128 * 4, 'READs')
        equal(run.transport['jobs'], 128, 'jobs in stats_json')


@case
def kinds_of_memory(context):
    kinds = ['malloc', 'mmap', 'shm', 'mmap:' + os.path.join(context.folder, 'buffer')]
    with open('/proc/sys/vm/nr_hugepages', encoding='ascii') as file:
        if int(file.read()) >= 4:
            kinds += ['mmaphuge', 'shmhuge']
    for kind in kinds:
        context.fio_ok(context.memd(), rw='randwrite', mem=kind, iodepth=8, verify='crc32c')


@case
def iomem_align_and_buffers(context):
    context.fio_ok(context.memd(), rw='randwrite', iomem_align=512, iodepth=4, verify='md5',
                   refill_buffers=True)


@case
def bssplit(context):
    run = context.fio_ok(context.memd(), rw='randrw', bs=None, bssplit='4k/50:64k/50,8k/100',
                         iodepth=8, size='4m')
    check(run.jobs[0]['write']['total_ios'] * 8192 == run.jobs[0]['write']['io_bytes'], run)


@case
def read_iolog(context):
    log = os.path.join(context.folder, 'log')
    with open(log, 'w', encoding='ascii') as file:
        file.write('fio version 2 iolog\nf add\nf open\n')
        for i in range(32):
            file.write(f'f write {i * 8192} 8192\n')
        file.write('f sync 0 0\n')
        for i in range(32):
            file.write(f'f read {i * 8192} 4096\n')
        file.write('f close\n')
    server = context.memd()
    run = context.fio_ok(server, rw='rw', read_iolog=log, direct=0, size='256k')
    equal(run.jobs[0]['write']['total_ios'], 32, 'WRITEs')
    equal(run.jobs[0]['read']['total_ios'], 32, 'READs')
    with Tree(server.url) as tree:
        equal(tree.size('f'), 32 * 8192, 'size')


@case
def write_iolog(context):
    log = os.path.join(context.folder, 'log')
    context.fio_ok(context.memd(), rw='randrw', write_iolog=log, size='64k')
    with open(log, encoding='ascii') as file:
        equal(len(re.findall(r'(?:read|write) \d+ 4096', file.read())), 16, 'lines of I/O')


@case
def status_interval(context):
    run = context.fio_ok(context.memd('--delay-us', '2000'), args=['--status-interval=1'],
                         rw='randread', time_based=True, runtime=3)
    decoder, text, shown = json.JSONDecoder(), run.out.strip(), []
    while text:
        value, end = decoder.raw_decode(text)
        shown.append(value['jobs'][0]['read']['total_ios'])
        text = text[end:].strip()
    check(len(shown) >= 3 and shown == sorted(shown) and shown[-1] > 0, 'status lines', shown)


@case
def runtime_ends_in_time(context):
    run = context.fio_ok(context.memd('--delay-us', '1000'), rw='randrw', time_based=True,
                         runtime=1, iodepth=64, numjobs=4, filename=None)
    check(run.seconds < 6 * PATIENCE, 'took', run.seconds, 's')


@case
def server_and_client(context):
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port = probe.getsockname()[1]
    process = context.start([f'--server=127.0.0.1,{port}'])
    for _ in range(200):
        try:
            socket.create_connection(('127.0.0.1', port), 1).close()
            break
        except OSError:
            check(process.poll() is None, 'fio --server ended')
            time.sleep(0.05)
    path = context.write_job(context.job_text(context.memd().url, None,
                                              {'rw': 'randrw', 'iodepth': 8}))
    run = context.finish(context.start([f'--client=127.0.0.1,{port}', path])).passed()
    stats = os.path.join(context.folder, 'stats1.json')
    with open(stats, encoding='utf-8') as file:
        found = json.load(file)['transports'][0]['procedures']
    check(found['READ']['ops'] + found['WRITE']['ops'] >= 256, 'I/Os in stats_json', found)
    check('nfsrdma: ' in run.out, 'no summary at the client', run)


@case
def nconnect(context):
    server = context.memd()
    run = context.fio_ok(server, rw='randrw', nconnect=4, iodepth=16, verify='crc32c')
    equal(run.transport['connections'], 4, 'connections')
    equal(run.transport['connects'], 4, 'connects')
    if context.transport == 'tcp':  # the server knows no ports of RDMA connections
        used = {c['port'] for c in server.calls('WRITE')}
        check(len(used) >= 4, 'source ports of the WRITEs', used)


@case
def poll_modes(context):
    for mode in ('event', 'busy', 'hybrid'):
        run = context.fio_ok(context.memd(), rw='randrw', nfs_poll=mode, iodepth=4)
        equal(run.jobs[0]['read']['total_ios'] + run.jobs[0]['write']['total_ios'], 256, 'I/Os')


@case
def latencies_are_sane(context):
    """With 5 ms in the server: clat has them, slat has not, and lat is the sum."""
    run = context.fio_ok(context.memd('--delay-us', '5000'), rw='randread', iodepth=4, number_ios=200)
    read = run.jobs[0]['read']
    slat, clat, lat = (read[name]['mean'] for name in ('slat_ns', 'clat_ns', 'lat_ns'))
    check(clat >= 4_900_000, 'clat', clat)
    check(0 < slat < clat / 2, 'slat', slat, 'clat', clat)
    check(abs(slat + clat - lat) <= 0.1 * lat, 'slat + clat != lat', slat, clat, lat)
    rtt = run.transport['procedures']['READ']['rtt_ns']
    check(4_900_000 <= rtt['mean'] <= clat * 1.05, 'rtt', rtt['mean'], 'clat', clat)


@case
def statistics_agree_with_fio(context):
    run = context.fio_ok(context.memd(), rw='randrw', numjobs=3, filename=None, iodepth=16,
                         overwrite=1)
    procedures = run.transport['procedures']
    for direction, name in (('read', 'READ'), ('write', 'WRITE')):
        ops = sum(job[direction]['total_ios'] for job in run.jobs)
        size = sum(job[direction]['io_bytes'] for job in run.jobs)
        equal(procedures[name]['ops'], ops, f'{name}s')
        equal(procedures[name]['bytes'], size, f'bytes of {name}s')
        equal(procedures[name]['errors'], 0, 'errors')
        exe = procedures[name]['exe_ns']
        equal(exe['N'], ops, 'latencies counted')
        equal(sum(exe['bins'].values()), ops, 'latencies in bins')
        check(0 < exe['min'] <= exe['mean'] <= exe['max'], 'exe_ns', exe)
    series = run.transport['series']
    equal(sum(p['READ'] for p in series), procedures['READ']['ops'], 'READs in the series')
    equal(run.transport['reconnects'], 0, 'reconnects')


@case
def output_stays_parseable(context):
    run = context.fio_ok(context.memd(), rw='randrw')
    json.loads(run.out)  # all of stdout
    check('nfsrdma: ' in run.err, 'no summary on stderr', run)
    run = context.fio_ok(context.memd(), rw='randrw', form='terse')
    lines = run.out.strip().splitlines()
    equal(len(lines), 1, 'lines of terse output')
    check(re.match(r'3;fio-[^;]+;job;0;0;', lines[0]), 'terse output', lines[0])
    run = context.fio_ok(context.memd(), rw='randrw', form='normal')
    equal(len(re.findall(r'^nfsrdma: \w+', run.out, re.MULTILINE)), 1, 'summaries on stdout')


@case
def output_to_a_file(context):
    path = os.path.join(context.folder, 'output')
    context.fio_ok(context.memd(), rw='randrw', numjobs=3, args=[f'--output={path}'])
    with open(path, encoding='utf-8') as file:
        equal(len(json.load(file)['jobs']), 3, 'jobs')


@case
def stats_of_two_servers(context):
    one, two = context.memd(), context.memd()
    run = context.fio_ok(one, [('a', {'rw': 'read'}), ('b', {'rw': 'write', 'filename': 'g',
                                                            'nfs_url': two.url})])
    transports = run.stats['transports']
    equal(len({t['server'] for t in transports}), 2, 'servers')
    equal(sorted(next(iter(t['procedures'])) for t in transports), ['READ', 'WRITE'], 'procedures')


@case
def jobs_one_after_the_other(context):
    run = context.fio_ok(context.memd(), [('w', {'rw': 'write'}),
                                          ('r', {'rw': 'read', 'stonewall': True})],
                         verify='crc32c', do_verify=0)
    equal(run.transport['jobs'], 2, 'jobs')
    equal(run.transport['procedures']['READ']['ops'], 256, 'READs')


@case
def one_io_only(context):
    run = context.fio_ok(context.memd(), rw='read', number_ios=1)
    equal(run.transport['procedures']['READ']['ops'], 1, 'READs')


@case
def job_file_of_fios_own_nfs_engine(context):
    """fio's example for its nfs engine; only ioengine= is another."""
    path = context.write_job(NFS_EXAMPLE.format(engine=context.suite.engine,
                                                url=context.memd().url))
    run = context.finish(context.start(['--output-format=json', path])).passed()
    equal(len(run.jobs), 3, 'groups')
    check(all(j['read']['total_ios'] + j['write']['total_ios'] > 100 for j in run.jobs), run)


@case
def local_address_and_ports(context):
    server = context.memd()
    context.fio_ok(server, rw='write', local_address='127.0.0.5')
    context.fio_ok(server, rw='write', reserved_port='no', filename='g')
    check(all(c['port'] >= 1024 for c in server.calls('WRITE') if c['name'] == 'g'), 'ports')
    if os.geteuid() == 0 and context.transport == 'tcp':
        context.fio_ok(server, rw='write', reserved_port='yes', filename='h')
        check(all(c['port'] < 1024 for c in server.calls('WRITE') if c['name'] == 'h'), 'ports')


@case(once=True)
def send_marker_split(context):
    """The same work, with a send call more for each call."""
    calls = {}
    for how in ('joined', 'split'):
        run = context.fio_ok(context.memd(), rw='randwrite', send_marker=how, verify='crc32c')
        calls[how] = run.transport['send_calls']
    check(calls['split'] >= 2 * calls['joined'] * 0.9, 'send calls', calls)


@case
def auth_ids(context):
    server = context.memd('--check-access')
    with Tree(server.url) as tree:
        tree.mkdir('own')
    context.fio_ok(server, rw='write', auth_uid=0, auth_gid=0, filename='mine')
    context.fio(server, rw='write', auth_uid=4711, auth_gid=4712, filename='own/f').failed(
        'NFS3ERR_ACCES', '4711')


if __name__ == '__main__':
    sys.exit(0 if main() else 1)
