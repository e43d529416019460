# SPDX-License-Identifier: GPL-2.0-or-later
"""Starts nfs-ganesha in this namespace, with exports of several kinds."""
import os
import socket
import subprocess

from harness import Failure, wait_for

NFS_PORT, MOUNT_PORT = 2049, 20048

CONFIG = """
NFS_CORE_PARAM {{ Protocols = 3; NFS_Port = {nfs}; MNT_Port = {mount}; Enable_NLM = false;
                  Enable_RQUOTA = false; }}
NFSV4 {{ Graceless = true; }}
MEM {{ Inode_Size = 2097152; }}
EXPORT_DEFAULTS {{ Access_Type = RW; Squash = No_Root_Squash; SecType = sys; }}
{exports}
"""
EXPORT = """
EXPORT {{ Export_Id = {number}; Path = {path}; Pseudo = /{number}; {more}
          FSAL {{ Name = {fsal}; }} }}
"""


class Ganesha:
    """Folders below `root` are exported: vfs, small (8 MiB), ro, squash, privileged; MEM as /mem."""

    def __init__(self, root):
        self.root = root
        self.log = os.path.join(root, 'log')
        self.process = None
        exports = EXPORT.format(number=1, path='/mem', more='', fsal='MEM')
        kinds = (('vfs', 'size=2g', ''), ('small', 'size=8m', ''),
                 ('ro', 'size=64m', 'Access_Type = RO;'),
                 ('squash', 'size=64m', 'Squash = Root_Squash;'),
                 ('privileged', 'size=64m', 'PrivilegedPort = true;'))
        for number, (name, size, more) in enumerate(kinds, 2):
            path = self.path(name)
            os.makedirs(path)
            subprocess.run(['mount', '-t', 'tmpfs', '-o', f'{size},mode=755', 'none', path],
                           check=True)
            exports += EXPORT.format(number=number, path=path, more=more, fsal='VFS')
        self.config = os.path.join(root, 'ganesha.conf')
        with open(self.config, 'w', encoding='ascii') as file:
            file.write(CONFIG.format(nfs=NFS_PORT, mount=MOUNT_PORT, exports=exports))
        self.start()

    def path(self, name):
        return os.path.join(self.root, 'exports', name)

    def url(self, name, ports=True):
        path = '/mem' if name == 'mem' else self.path(name)
        arguments = f'?nfsport={NFS_PORT}&mountport={MOUNT_PORT}' if ports else ''
        return f'nfs://127.0.0.1{path}{arguments}'

    def start(self):
        with open(self.log + '.out', 'ab') as out:
            self.process = subprocess.Popen(
                ['ganesha.nfsd', '-F', '-f', self.config, '-L', self.log, '-p', '/run/ganesha/pid',
                 '-N', 'NIV_EVENT'], stdout=out, stderr=out, stdin=subprocess.DEVNULL)

        def answers():
            if self.process.poll() is not None:
                raise Failure('ganesha ended: ' + self.last_words())
            with socket.socket() as probe:
                return probe.connect_ex(('127.0.0.1', NFS_PORT)) == 0
        wait_for(answers, 'ganesha listens', 60)

    def last_words(self):
        with open(self.log, encoding='utf-8', errors='replace') as file:
            return ''.join(file.readlines()[-20:])

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
