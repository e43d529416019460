# SPDX-License-Identifier: GPL-2.0-or-later
"""What the engine's tests share: starts nfsrdma-memd and fio, and tells the cases.

A case is a function with @case; it takes a Context and fails by an exception. Each runs once for
each transport that the engine offers, unless @case(once=True). Every fio runs in an empty folder of
the case's own, which has to stay empty: nothing local is ever touched.

Usage of a test: test_NAME.py BUILD_DIR [PATTERN]
"""
import concurrent.futures
import fnmatch
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

MIB = 1 << 20
GIB = 1 << 30
AT_ONCE = 3
# An instrumented build is slower, and a limit of time is not what it is there to find.
SANITIZED = 'ASAN_OPTIONS' in os.environ
# Bounds tell a hang from an answer, not a fast machine from a slow one.
PATIENCE = 6 if SANITIZED else 3

# Options that a transport needs beside its name.
TRANSPORT_OPTIONS = {'tcp': {}, 'rdma': {'fabric': 'iwarp'}}


class Failure(Exception):
    pass


def check(condition, *words):
    if not condition:
        raise Failure(' '.join(str(w) for w in words) or 'condition does not hold')


def equal(found, wanted, what=''):
    check(found == wanted, f'{what}: found {found!r}, wanted {wanted!r}')


def wait_for(condition, what, seconds=10):
    deadline = time.monotonic() + seconds * PATIENCE
    while not condition():
        check(time.monotonic() < deadline, f'{what}: not within {seconds} s')
        time.sleep(0.02)


class Memd:
    """An nfsrdma-memd on free ports of loopback; its stderr goes to a file."""

    def __init__(self, program, folder, args):
        self.log_path = os.path.join(folder, 'calls.log')
        self.err_path = os.path.join(folder, 'memd.err')
        with open(self.err_path, 'wb') as err:
            self.process = subprocess.Popen(
                [program, '--port', '0', '--counters', '--log-calls', self.log_path, *args],
                stdout=subprocess.PIPE, stderr=err, stdin=subprocess.DEVNULL, text=True)
        ready, _, _ = select.select([self.process.stdout], [], [], 15)
        self.url = self.process.stdout.readline().strip() if ready else ''
        if not self.url:
            self.stop()
            raise Failure('nfsrdma-memd did not start: ' + self.errors())
        self.port = int(re.search(r':(\d+)/', self.url).group(1))

    def errors(self):
        with open(self.err_path, encoding='utf-8', errors='replace') as err:
            return err.read()

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()

    def counters(self):
        """Ends the server and returns what it counted."""
        self.stop()
        lines = [line for line in self.errors().splitlines() if line.startswith('{')]
        check(lines, 'memd printed no counters:', self.errors())
        return json.loads(lines[-1])

    def calls(self, procedure=None):
        """The call log: a dict a call, READs left out."""
        found = []
        with open(self.log_path, encoding='utf-8', errors='replace') as log:
            for line in log:
                fields = dict(f.split('=', 1) for f in line.rstrip('\n').split(' ', 7))
                for name in ('offset', 'count', 'stable', 'dup', 'port'):
                    fields[name] = int(fields[name])
                if procedure is None or fields['proc'] == procedure:
                    found.append(fields)
        return found


class Run:
    """What one fio run left behind."""

    def __init__(self, command, status, out, err, seconds, stats_path):
        self.command, self.status, self.out, self.err = command, status, out, err
        self.seconds, self.stats_path = seconds, stats_path

    def __str__(self):
        before = self.out if self.out.find('{') < 0 else self.out[:self.out.find('{') + 100]
        return (f'{" ".join(self.command)}: status {self.status} after {self.seconds:.1f} s\n'
                f'stdout: {before[-3000:]}\nstderr: {self.err[-3000:]}')

    def passed(self):
        check(self.status == 0, self)
        return self

    def failed(self, *words, within=None):
        """It ended by itself with an error; a line of ours says each of the words."""
        check(self.status not in (0, None), 'fio should have failed:', self)
        check(self.status > 0, 'fio crashed:', self)
        text = '\n'.join(self.lines())
        for word in words:
            check(re.search(word, text), f'no line of ours says {word!r}:', self)
        if within:
            check(self.seconds <= within * PATIENCE, f'took longer than {within} s:', self)
        return self

    def lines(self):
        """The engine's own lines, its summary left out."""
        own = [line for line in (self.err + '\n' + self.out).splitlines()
               if line.startswith('nfsrdma: ')]
        return [line for line in own if not re.match(r'nfsrdma: \S+ to \S+: \d+ job', line)]

    @property
    def json(self):
        """fio itself puts its words about a failed job before the JSON; ours are never there."""
        before, brace, text = self.out.partition('{')
        check(not [line for line in before.splitlines() if line and not line.startswith('fio: ')],
              'words before the JSON:', before)
        return json.loads(brace + text)

    @property
    def jobs(self):
        return self.json['jobs']

    @property
    def stats(self):
        with open(self.stats_path, encoding='utf-8') as file:
            return json.load(file)

    @property
    def transport(self):
        transports = self.stats['transports']
        equal(len(transports), 1, 'transports in stats_json')
        return transports[0]


class Context:
    def __init__(self, suite, name, transport):
        self.suite, self.name, self.transport = suite, name, transport
        self.folder = tempfile.mkdtemp(prefix='nfsrdma-test-')
        self.cwd = os.path.join(self.folder, 'empty')
        os.mkdir(self.cwd)
        self.local_files = []  # that a case made in cwd itself
        self.servers = []
        self.processes = []
        self.runs = 0

    def end_processes(self):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for server in self.servers:
            server.stop()

    def no_undefined_behaviour(self):
        """What UBSan said counts, whatever the case thought of status and output."""
        for path in [process.names[1] for process in self.processes] + [
                server.err_path for server in self.servers]:
            with open(path, encoding='utf-8', errors='replace') as err:
                text = err.read()
            check('runtime error: ' not in text, 'undefined behaviour:', text[-3000:])

    def close(self):
        self.end_processes()
        shutil.rmtree(self.folder, ignore_errors=True)

    def memd(self, *args):
        folder = os.path.join(self.folder, f'memd{len(self.servers)}')
        os.mkdir(folder)
        server = Memd(self.suite.memd, folder, args)
        self.servers.append(server)
        return server

    def job_text(self, url, sections, options):
        engine = {'ioengine': f'external:{self.suite.engine}', 'nfs_url': url,
                  'transport': self.transport, **TRANSPORT_OPTIONS[self.transport],
                  'stats_json': os.path.join(self.folder, f'stats{self.runs}.json')}
        basic = {'filename': 'f', 'size': '1m', 'bs': '4k', 'direct': 1, 'verify_state_save': 0}
        lines = ['[global]']
        for key, value in {**engine, **basic, **options}.items():
            if value is not None:
                lines.append(key if value is True else f'{key}={value}')
        for name, own in sections or [('job', {})]:
            lines.append(f'[{name}]')
            lines += [key if value is True else f'{key}={value}' for key, value in own.items()]
        return '\n'.join(lines) + '\n'

    def write_job(self, text):
        path = os.path.join(self.folder, f'job{self.runs}.fio')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return path

    def engine_for_all(self):
        """A copy that every user may read: the build folder may be closed to others."""
        path = os.path.join(self.folder, 'libnfsrdma.so')
        shutil.copy(self.suite.engine, path)
        os.chmod(path, 0o755)
        return path

    def start(self, args, env=None, cwd=None, user=None):
        """A fio in a process group of its own, which close() ends for certain."""
        names = [os.path.join(self.folder, f'{kind}{self.runs}') for kind in ('out', 'err')]
        with open(names[0], 'wb') as out, open(names[1], 'wb') as err:
            process = subprocess.Popen(['fio', *args], cwd=cwd or self.cwd, stdout=out, stderr=err,
                                       stdin=subprocess.DEVNULL, start_new_session=True, user=user,
                                       env={**os.environ, **(env or {})})
        process.names, process.begin = names, time.monotonic()
        self.processes.append(process)
        self.runs += 1
        return process

    def finish(self, process, timeout=60):
        try:
            status = process.wait(timeout * PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
        seconds = time.monotonic() - process.begin
        texts = []
        for name in process.names:
            with open(name, encoding='utf-8', errors='replace') as file:
                texts.append(file.read())
        number = process.names[0].rsplit('out', 1)[1]
        run = Run(process.args, status, texts[0], texts[1], seconds,
                  os.path.join(self.folder, f'stats{number}.json'))
        check(status is not None, 'fio did not end in time:', run)
        equal(sorted(os.listdir(self.cwd)), sorted(self.local_files), 'local files after fio')
        return run

    def start_fio(self, url, sections=None, args=(), form='json', env=None, **options):
        url = url.url if isinstance(url, Memd) else url
        path = self.write_job(self.job_text(url, sections, options))
        return self.start([f'--output-format={form}', *args, path], env)

    def fio(self, url, sections=None, args=(), form='json', timeout=60, env=None, **options):
        """One run to its end; options go into [global], sections are (name, options) pairs."""
        return self.finish(self.start_fio(url, sections, args, form, env, **options), timeout)

    def fio_ok(self, *args, **options):
        return self.fio(*args, **options).passed()


class Suite:
    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.engine = os.path.join(self.build, 'engine', 'libnfsrdma.so')
        self.memd = os.path.join(self.build, 'tests', 'server', 'nfsrdma-memd')
        self.source = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))

    def transports(self):
        help_text = subprocess.run(['fio', f'--enghelp={self.engine},transport'], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                                   check=False).stdout
        found = re.findall(r'(?:valid values:|^\s*:?)\s*(tcp|rdma)\b', help_text, re.MULTILINE)
        check('tcp' in found, 'the engine offers no transport:', help_text)
        return [each for each in dict.fromkeys(found) if each == 'tcp' or self.serves_rdma()]

    def serves_rdma(self):
        with tempfile.TemporaryDirectory() as folder:
            server = Memd(self.memd, folder, [])
            server.stop()
            return 'rdmaport=' in server.url


CASES = []


def case(function=None, *, once=False):
    def add(body):
        CASES.append((body.__name__.replace('_', '-'), body, once))
        return body
    return add(function) if function else add


def run_case(suite, name, body, transport):
    label = f'{transport}:{name}'
    context = Context(suite, name, transport)
    begin = time.monotonic()
    lines, result = [], False
    try:
        body(context)
        context.end_processes()
        context.no_undefined_behaviour()
        lines.append(f'ok {label}')
        result = True
    except Exception as error:  # a broken test is a failed one
        words = str(error) if isinstance(error, Failure) else traceback.format_exc()
        lines += ['  | ' + line for line in words.splitlines()] + [f'not ok {label}']
    finally:
        context.close()
    lines.append(f'  {label}: {time.monotonic() - begin:.1f} s')
    print('\n'.join(lines), flush=True)
    return result


def main(at_once=AT_ONCE, transports=None):
    """Runs the cases; True if there were any and all passed."""
    suite = Suite(sys.argv[1])
    pattern = sys.argv[2] if len(sys.argv) > 2 else '*'
    wanted = [(name, body, transport) for transport in transports or suite.transports()
              for name, body, once in CASES
              if (transport == 'tcp' or not once) and fnmatch.fnmatch(f'{transport}:{name}', pattern)]
    # fio sleeps for most of a short run, so several share the machine.
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        results = list(pool.map(lambda one: run_case(suite, *one), wanted))
    return bool(results) and all(results)
