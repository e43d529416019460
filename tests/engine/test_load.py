#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How fio finds the engine, what its help shows, and whose names its options must not take."""
import os
import re
import shutil
import subprocess
import sys

from harness import case, check, equal, main


def command(*words, **options):
    return subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=120, check=False, **options)


def engine_help(context):
    shown = command('fio', f'--enghelp={context.suite.engine}', cwd=context.cwd)
    equal(shown.returncode, 0, 'status of --enghelp')
    return re.findall(r'^\s*(\w+)\s*: (.*)$', shown.stdout, re.MULTILINE)


def read_in(context, folder, engine, library_path=None):
    """A short job with that ioengine=, started in `folder`."""
    env = {'LD_LIBRARY_PATH': library_path} if library_path else {}
    path = context.write_job(context.job_text(context.memd().url, None, {}).replace(
        f'external:{context.suite.engine}', engine))
    process = context.start(['--output-format=json', path], env, folder)
    run = context.finish(process).passed()
    equal(run.jobs[0]['read']['total_ios'], 256, 'READs')



@case
def from_its_own_folder(context):
    folder = os.path.dirname(context.suite.engine)
    read_in(context, folder, 'external:libnfsrdma.so', folder)


@case
def by_full_path(context):
    read_in(context, context.cwd, f'external:{context.suite.engine}')


@case
def installed(context):
    root = os.path.join(context.folder, 'root')
    done = command('meson', 'install', '-C', context.suite.build, '--no-rebuild', '--destdir', root)
    equal(done.returncode, 0, done.stdout)
    found = [os.path.join(at, name) for at, _, names in os.walk(root) for name in names
             if name == 'libnfsrdma.so']
    equal(len(found), 1, 'libnfsrdma.so below the destination')
    read_in(context, context.cwd, 'libnfsrdma.so', os.path.dirname(found[0]))


@case(once=True)
def help_lists_each_option_once(context):
    lines = engine_help(context)
    names = [name for name, _ in lines]
    equal(sorted(names), sorted(set(names)), 'options in the help')
    equal([name for name, text in lines if len(text) < 10], [], 'options without help')
    table = os.path.join(context.suite.source, 'engine', 'options.cc')
    with open(table, encoding='utf-8') as source:
        wanted = re.findall(r'^    \{"(\w+)",\s*NFSRDMA_OPTION', source.read(), re.MULTILINE)
    check(len(wanted) >= 15, 'the option table was not understood:', wanted)
    equal(sorted(names), sorted(wanted), 'options in the help and in the table')


@case(once=True)
def each_option_has_help_of_its_own(context):
    for name, _ in engine_help(context):
        shown = command('fio', f'--enghelp={context.suite.engine},{name}')
        equal(shown.returncode, 0, f'status of --enghelp for {name}')
        check(re.search(rf'^\s*{name}: ', shown.stdout, re.MULTILINE), name, shown.stdout)


@case(once=True)
def no_option_of_fio_is_taken(context):
    shown = command('fio', '--cmdhelp')
    taken = set(re.findall(r'^\s*(\w+)\s*:', shown.stdout, re.MULTILINE))
    check(len(taken) > 150, 'fio --cmdhelp was not understood:', shown.stdout[:500])
    equal({name for name, _ in engine_help(context)} & taken, set(), 'names that fio uses')


@case(once=True)
def one_exported_symbol(context):
    shown = command('nm', '-D', '--defined-only', context.suite.engine)
    equal([line.split()[-1] for line in shown.stdout.splitlines()], ['get_ioengine'], 'symbols')


@case(once=True)
def built_for_another_fio(context):
    """fio's version is a string in the engine; one digit of it changed makes the other build."""
    version = command('fio', '--version').stdout.strip()
    with open(context.suite.engine, 'rb') as file:
        data = file.read()
    other = version[:-1] + ('8' if version[-1] != '8' else '7')
    pattern = version.encode() + b'\0'
    check(pattern in data, 'the engine does not hold', version)
    path = os.path.join(context.folder, 'libnfsrdma.so')
    with open(path, 'wb') as file:
        file.write(data.replace(pattern, other.encode() + b'\0'))
    shutil.copymode(context.suite.engine, path)
    shown = command('fio', f'--ioengine=external:{path}', '--name=x', '--size=4k', cwd=context.cwd)
    check(shown.returncode > 0, 'fio took it:', shown.stdout)
    line = re.findall(rf'^nfsrdma: .*{re.escape(other)}.*{re.escape(version)}.*$', shown.stdout,
                      re.MULTILINE)
    equal(len(line), 1, 'lines that name both versions in ' + shown.stdout)
    equal(os.listdir(context.cwd), [], 'local files')


if __name__ == '__main__':
    sys.exit(0 if main() else 1)
