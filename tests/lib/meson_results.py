#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the log of `meson test` and prints one line a test case for tests/run.

Usage: meson_results.py TESTLOG.json
Lines: "ok NAME", "not ok NAME (why)", "skip NAME: reason". A test that is a GoogleTest program
counts by its cases, a script that prints such lines itself by those, any other as one case.
"""
import json
import re
import sys

RUN = re.compile(r'\[ RUN      \] (\S+)')
END = re.compile(r'\[ +(OK|FAILED|SKIPPED) +\] (\S+?),?(?: where .*)? \(\d+ ms\)')
LINE = re.compile(r'^(ok|not ok|skip) (\S.*)$')


def gtest_cases(name, stdout):
    """Cases of a GoogleTest program; one that began and never ended has crashed."""
    current, notes = None, []
    for line in stdout.splitlines():
        run, end = RUN.search(line), END.search(line)
        if run:
            if current:
                yield f'not ok {name}:{current} (did not end)'
            current, notes = run.group(1), []
        elif end and current == end.group(2):
            current = None
            if end.group(1) == 'SKIPPED':
                words = [n for n in notes if n and not n.endswith(': Skipped')]
                yield f'skip {name}:{end.group(2)}: {" ".join(words) or "no reason given"}'
            else:
                yield f'{"ok" if end.group(1) == "OK" else "not ok"} {name}:{end.group(2)}'
        elif current:
            notes.append(line.strip())
    if current:
        yield f'not ok {name}:{current} (did not end)'


def own_lines(name, stdout):
    for line in stdout.splitlines():
        match = LINE.match(line)
        if match:
            yield f'{match.group(1)} {name}:{match.group(2)}'


def cases(test):
    """All lines of one meson test. A test that failed has at least one failed case."""
    name, stdout, result = test['name'], test.get('stdout') or '', test['result']
    found = list(gtest_cases(name, stdout)) or list(own_lines(name, stdout))
    if result == 'SKIP':
        lines = [l for l in stdout.splitlines() if l.strip()]
        return found or [f'skip {name}: {lines[-1] if lines else "no reason given"}']
    if result in ('OK', 'EXPECTEDFAIL'):
        return found or [f'ok {name}']
    if not any(line.startswith('not ok') for line in found):
        found.append(f'not ok {name} ({result}, status {test.get("returncode")})')
    return found


def main():
    with open(sys.argv[1], encoding='utf-8', errors='replace') as log:
        for line in log:
            if line.strip():
                print('\n'.join(cases(json.loads(line))))


if __name__ == '__main__':
    main()
