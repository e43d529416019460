#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Wrong input and wrong servers: within the deadline one line that says what was tried and what to
change, a status other than 0, nothing local touched."""
import os
import socket
import sys
import threading

from harness import SANITIZED, case, check, equal, main
from libnfs_client import Tree

DEADLINE = 25  # the time to connect, 10 s, or for a control call, 20 s, and fio's own


def refused(context, url, *words, lines=1, within=8, **options):
    """fio ends with an error; our one line has each of the words."""
    return judged(context.start_fio(url, **{'rw': 'read', **options}), context, words, lines, within)


def judged(process, context, words, lines=1, within=20):
    run = context.finish(process).failed(*words, within=within)
    equal(len(run.lines()), lines, f'lines of ours in {run}')
    for line in run.lines():
        check(len(line) < 700, 'nobody reads so long a line:', line)
    return run


class FakeServer:
    """Takes TCP connections; `answer(connection)` does the rest."""

    def __init__(self, answer):
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.url = f'nfs://127.0.0.1:{self.port}/export?mountport={self.port}'
        self.open = []
        self.answer = answer
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.open.append(connection)
            threading.Thread(target=self.one, args=(connection,), daemon=True).start()

    def one(self, connection):
        try:
            self.answer(connection)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        for connection in self.open:
            connection.close()


class ClosedPort:
    """A port on which nobody listens; bound, so that no other test gets it."""

    def __enter__(self):
        self.socket = socket.socket()
        self.socket.bind(('127.0.0.1', 0))
        return self.socket.getsockname()[1]

    def __exit__(self, *_):
        self.socket.close()


@case(once=True)
def wrong_host(context):
    refused(context, 'nfs://no-such-host.invalid/export?nfsport=1&mountport=1',
            'no-such-host.invalid', 'resolve', 'URL', within=DEADLINE)


@case(once=True)
def wrong_port(context):
    with ClosedPort() as port:
        refused(context, f'nfs://127.0.0.1:{port}/export?mountport={port}', str(port), 'refused',
                'mountport=')
        server = context.memd()
        refused(context, f'nfs://127.0.0.1:{port}/export?mountport={server.port}', str(port),
                'refused', 'nfsport=')


@case(once=True)
def no_portmapper(context):
    with socket.socket() as probe:
        if probe.connect_ex(('127.0.0.1', 111)) == 0:
            return  # this machine has one; which servers it names is its own affair
    refused(context, 'nfs://127.0.0.1/export', '111', 'rpcbind', 'nfsport=2049&mountport=')


@case(once=True)
def host_that_does_not_answer(context):
    """A listener whose backlog is full drops connection requests without a word."""
    with socket.socket() as silent, socket.socket() as first, socket.socket() as second:
        silent.bind(('127.0.0.1', 0))
        silent.listen(0)
        port = silent.getsockname()[1]
        for one in (first, second):
            one.setblocking(False)
            one.connect_ex(('127.0.0.1', port))
        refused(context, f'nfs://127.0.0.1:{port}/export?mountport={port}', f'127.0.0.1:{port}',
                'within 10 s', 'firewall', within=DEADLINE)


@case(once=True)
def wrong_export(context):
    server = context.memd('--export', '/export', '--export', '/other')
    run = refused(context, server.url.replace('/export?', '/exprot?'), '/exprot', 'MNT3ERR_NOENT',
                  'exports: /export, /other')
    check('NOENT' in run.err, run)


@case(once=True)
def wrong_path(context):
    server = context.memd('--mount-exports-only')
    refused(context, server.url.replace('/export?', '/export/nowhere/x?'), 'nowhere', 'no such file',
            'nfs_dir=')
    server = context.memd()
    refused(context, server.url.replace('/export?', '/export/nowhere/x?'), 'nowhere')


@case(once=True)
def path_of_a_file(context):
    server = context.memd()
    with Tree(server.url) as tree:
        tree.write('f', b'x')
    refused(context, server.url.replace('/export?', '/export/f?'), '/export/f', 'not a directory',
            'filename=')


@case
def no_permission(context):
    """The message names path, uid, the server's answer and what to change."""
    server = context.memd('--check-access')
    with Tree(server.url) as tree:
        tree.mkdir('own')
        tree.write('own/f', b'x' * 65536)
    for what in ({'filename': 'own/new'}, {'filename': 'own/f', 'size': '64k'}):
        refused(context, server, what['filename'].split('/')[1], 'NFS3ERR_ACCES', 'uid 4711',
                'auth_uid=', rw='write', overwrite=1, auth_uid=4711, auth_gid=4711, **what)


@case(once=True)
def url_forms(context):
    port = context.memd().port
    started = []
    for url, words in (
            ('http://127.0.0.1/export', ('nfs://host/path',)),
            ('127.0.0.1:/export', ('nfs://host/path',)),
            ('nfs://127.0.0.1', ('no path', 'nfs://host/path')),
            ('nfs:///export', ('host',)),
            ('nfs://::1/export', ('brackets',)),
            ('nfs://[::1/export', (']',)),
            ('nfs://127.0.0.1:99999/export', ('99999', '65535')),
            ('nfs://127.0.0.1:nfs/export', ('port=nfs', '65535')),
            (f'nfs://127.0.0.1:{port}/export/../etc', (r"'\.\.'",)),
            (f'nfs://127.0.0.1:{port}/export?version=4', ('version=4', 'version=3')),
            (f'nfs://127.0.0.1:{port}/export?mountport=0', ('mountport=0', '1 to 65535')),
            (f'nfs://127.0.0.1:{port}/export?nosuch=1', ('nosuch', 'known are')),
            (f'nfs://127.0.0.1:{port}/export?nfsport=1', ('two NFS ports',)),
            (f'nfs://127.0.0.1:{port}/export?sec=krb5', ('sec=krb5', 'AUTH_SYS')),
            ('nfs://root@127.0.0.1/export', ('uid=',)),
            ('nfs://127.0.0.1/%zz', ('%25',)),
            (f'nfs://127.0.0.1:{port}/' + 'x' * 300, ('300 bytes', '255'))):
        refused(context, url, *words)


@case(once=True)
def url_missing(context):
    refused(context, None, 'nfs_url=', 'nfs://HOST/EXPORT')


@case
def settings_that_cannot_be(context):
    server = context.memd()
    started = []
    for options, words in (
            ({'rw': 'trim'}, ('trim', 'NFSv3', 'rw=')),
            ({'rw': 'randtrim'}, ('trim',)),
            ({'rw': 'trimwrite'}, ('trim',)),
            ({'pre_read': 1}, ('pre_read', 'leave it out')),
            ({'io_submit_mode': 'offload'}, ('offload', 'leave it out')),
            ({'iodepth': 100000}, ('iodepth=100000', 'numjobs=')),
            ({'uncommitted_max': '1k'}, ('uncommitted_max=1024', '64k')),
            ({'auth_uid': 'root'}, ('auth_uid=root', 'number')),
            ({'auth_gid': '-1'}, ('auth_gid=-1', 'number')),
            ({'local_address': 'localhost'}, ('local_address=localhost', 'numeric')),
            ({'local_address': '192.0.2.1'}, ('local_address=192.0.2.1',))):
        started.append((context.start_fio(server, **{'rw': 'read', **options}), words))
    for process, words in started:
        judged(process, context, words)


@case(once=True)
def option_out_of_range(context):
    """fio checks these itself, from our table: it names the option and the bounds."""
    server = context.memd()
    for name, value in (('nconnect', 0), ('nconnect', 17), ('timeo', 0), ('retrans', 101),
                        ('soft', 2), ('nfs_poll', 'sometimes'), ('stable', 'maybe'),
                        ('transport', 'udp'), ('commit_bytes', 1), ('reserved_port', 'perhaps')):
        run = context.fio(server, rw='read', **{name: value})
        check(run.status not in (0, None), f'{name}={value} was taken', run)
        check(name in run.err or str(value) in run.err, f'{name} is not named', run)


@case(once=True)
def unknown_option(context):
    run = context.fio(context.memd(), rw='read', nfs_colour='blue')
    check(run.status != 0 and 'nfs_colour' in run.err, run)


@case(once=True)
def directory_option(context):
    """fio looks it up locally before any engine runs, and says so itself."""
    run = context.fio(context.memd(), rw='read', directory='/no/such/folder')
    check(run.status != 0 and '/no/such/folder' in run.err, run)


@case
def stats_json_that_cannot_be_written(context):
    run = context.fio(context.memd(), rw='read', stats_json='/no/such/folder/stats.json')
    text = '\n'.join(run.lines())
    check('/no/such/folder/stats.json' in text and 'No such file' in text, run)


@case(once=True)
def server_that_echoes(context):
    def echo(connection):
        while data := connection.recv(65536):
            connection.sendall(data)
    with FakeServer(echo) as server:
        refused(context, server.url, str(server.port), 'does not answer as an NFS server',
                within=DEADLINE)


@case(once=True)
def server_that_closes(context):
    with FakeServer(lambda connection: connection.close()) as server:
        refused(context, server.url, str(server.port), 'does not answer as an NFS server',
                within=DEADLINE)


@case(once=True)
def server_that_says_nothing(context):
    with FakeServer(lambda connection: None) as server:
        refused(context, server.url, str(server.port), 'no reply within 20 s', within=DEADLINE)


@case(once=True)
def server_of_another_protocol(context):
    def http(connection):
        connection.recv(65536)
        connection.sendall(b'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')
        connection.close()
    with FakeServer(http) as server:
        refused(context, server.url, str(server.port), 'does not answer as an NFS server',
                within=DEADLINE)

    def ssh(connection):
        connection.sendall(b'SSH-2.0-OpenSSH_9.2\r\n')
        connection.recv(1)
    with FakeServer(ssh) as server:
        refused(context, server.url, str(server.port), within=DEADLINE)


def cut_replies(how):
    """A proxy's answer: hands what nfsrdma-memd says through `how`."""
    def proxy(connection, port):
        with socket.create_connection(('127.0.0.1', port)) as upstream:
            while data := connection.recv(65536):
                upstream.sendall(data)
                connection.sendall(how(upstream.recv(65536)))
    return proxy


@case(once=True)
def short_and_garbled_replies(context):
    def short(data):  # a complete record, but only half of the reply
        half = (len(data) - 4) // 8 * 4
        return (0x80000000 | half).to_bytes(4, 'big') + data[4:4 + half]

    def flipped(data):
        return data[:24] + bytes(b ^ 0xff for b in data[24:])

    def status_only(data):
        return (0x80000000 | 24).to_bytes(4, 'big') + data[4:28]

    for how in (short, flipped, status_only):
        memd = context.memd()
        proxy = cut_replies(how)
        with FakeServer(lambda connection, p=proxy, m=memd: p(connection, m.port)) as server:
            refused(context, server.url, str(server.port), 'reply|answer', within=DEADLINE)


@case
def garbage_instead_of_each_reply(context):
    for procedures in ('MNT', 'GETATTR', 'FSINFO', 'LOOKUP', 'CREATE', 'READ', 'WRITE'):
        server = context.memd('--fault', f'garbage:1:{procedures}')
        run = context.fio(server, rw='randrw', timeo=10).failed(within=DEADLINE)
        check(1 <= len(run.lines()) <= 11, 'lines', run)
        check(procedures in run.err, f'{procedures} is not named', run)


@case(once=True)
def many_jobs_say_it_once(context):
    with ClosedPort() as port:
        run = context.fio(f'nfs://127.0.0.1:{port}/export?mountport={port}', rw='read', numjobs=8)
        run.failed('refused', within=8)
    equal(len(run.lines()), 1, 'lines')


@case(once=True)
def many_jobs_wait_once(context):
    with FakeServer(lambda connection: None) as server:
        refused(context, server.url, 'no reply within 20 s', numjobs=16, within=DEADLINE)


@case
def errors_of_one_job_are_bounded(context):
    server = context.memd('--read-only')
    with_file = context.memd('--capacity', '256k')
    run = context.fio(with_file, rw='write', iodepth=64, continue_on_error='all').failed('NOSPC')
    check(len(run.lines()) <= 12, 'lines', len(run.lines()))
    refused(context, server, 'read-only', rw='write', unlink=1)


@case(once=True)
def not_root(context):
    """A user without the right to ports below 1024 gets any port, and a sentence with yes."""
    # Another user cannot reach the fio that preloads a sanitizer's runtime.
    if os.geteuid() != 0 or SANITIZED:
        return
    server = context.memd()
    os.chmod(context.folder, 0o777)
    os.chmod(context.cwd, 0o777)
    for how, good in (('auto', True), ('yes', False)):
        path = context.write_job(context.job_text(server.url, None, {
            'rw': 'write', 'reserved_port': how, 'ioengine': 'external:' + context.engine_for_all(),
            'stats_json': None}))
        run = context.finish(context.start(['--output-format=json', path], user='nobody'))
        if good:
            run.passed()
        else:
            run.failed('below 1024', 'setcap', 'reserved_port=auto')


if __name__ == '__main__':
    sys.exit(0 if main() else 1)
