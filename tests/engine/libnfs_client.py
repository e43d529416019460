# SPDX-License-Identifier: GPL-2.0-or-later
"""A second client, libnfs through ctypes: what it sees on a server was not seen by our own code."""
import ctypes
import os
import re

from harness import Failure

_lib = ctypes.CDLL('libnfs.so')
_pointer, _text = ctypes.c_void_p, ctypes.c_char_p


def _declare(name, result, *arguments):
    function = getattr(_lib, name)
    function.restype, function.argtypes = result, arguments
    return function


class _Stat(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in
                ('dev', 'ino', 'mode', 'nlink', 'uid', 'gid', 'rdev', 'size', 'blksize', 'blocks',
                 'atime', 'mtime', 'ctime', 'atime_nsec', 'mtime_nsec', 'ctime_nsec', 'used')]


class _Entry(ctypes.Structure):
    _fields_ = [('next', _pointer), ('name', _text)]


_init = _declare('nfs_init_context', _pointer)
_destroy = _declare('nfs_destroy_context', None, _pointer)
_error = _declare('nfs_get_error', _text, _pointer)
_parse = _declare('nfs_parse_url_dir', _pointer, _pointer, _text)
_mount = _declare('nfs_mount', ctypes.c_int, _pointer, _text, _text)
_stat = _declare('nfs_stat64', ctypes.c_int, _pointer, _text, ctypes.POINTER(_Stat))
_open = _declare('nfs_open', ctypes.c_int, _pointer, _text, ctypes.c_int, ctypes.POINTER(_pointer))
_creat = _declare('nfs_creat', ctypes.c_int, _pointer, _text, ctypes.c_int,
                  ctypes.POINTER(_pointer))
_close = _declare('nfs_close', ctypes.c_int, _pointer, _pointer)
_pread = _declare('nfs_pread', ctypes.c_int, _pointer, _pointer, ctypes.c_uint64, ctypes.c_uint64,
                  _pointer)
_pwrite = _declare('nfs_pwrite', ctypes.c_int, _pointer, _pointer, ctypes.c_uint64, ctypes.c_uint64,
                   _pointer)
_mkdir = _declare('nfs_mkdir', ctypes.c_int, _pointer, _text)
_truncate = _declare('nfs_truncate', ctypes.c_int, _pointer, _text, ctypes.c_uint64)
_opendir = _declare('nfs_opendir', ctypes.c_int, _pointer, _text, ctypes.POINTER(_pointer))
_readdir = _declare('nfs_readdir', ctypes.POINTER(_Entry), _pointer, _pointer)
_closedir = _declare('nfs_closedir', None, _pointer, _pointer)

PIECE = 1 << 18


class Tree:
    """The exported tree behind a URL of nfsrdma-memd."""

    def __init__(self, url):
        host, port, path, mount = re.match(r'nfs://([^:/]+):(\d+)(/[^?]*)\?mountport=(\d+)',
                                           url).groups()
        self.nfs = _init()
        _parse(self.nfs, f'nfs://{host}{path}?nfsport={port}&mountport={mount}'.encode())
        self._good(_mount(self.nfs, host.encode(), path.encode()), path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        _destroy(self.nfs)

    def _good(self, status, path):
        if status < 0:
            raise Failure(f'libnfs: {path}: {_error(self.nfs).decode()}')
        return status

    def exists(self, path):
        return _stat(self.nfs, ('/' + path).encode(), ctypes.byref(_Stat())) == 0

    def stat(self, path):
        found = _Stat()
        self._good(_stat(self.nfs, ('/' + path).encode(), ctypes.byref(found)), path)
        return found

    def size(self, path):
        return self.stat(path).size

    def read(self, path, offset=0, length=None):
        handle, data = _pointer(), bytearray()
        length = self.size(path) - offset if length is None else length
        self._good(_open(self.nfs, ('/' + path).encode(), os.O_RDONLY, ctypes.byref(handle)), path)
        buffer = ctypes.create_string_buffer(PIECE)
        while len(data) < length:
            got = self._good(_pread(self.nfs, handle, offset + len(data),
                                    min(PIECE, length - len(data)), buffer), path)
            if got == 0:
                break
            data += buffer.raw[:got]
        _close(self.nfs, handle)
        return bytes(data)

    def write(self, path, data, offset=0):
        handle = _pointer()
        make = _open if self.exists(path) else _creat
        how = os.O_WRONLY if self.exists(path) else 0o644
        self._good(make(self.nfs, ('/' + path).encode(), how, ctypes.byref(handle)), path)
        for at in range(0, len(data), PIECE):
            piece = data[at:at + PIECE]
            got = self._good(_pwrite(self.nfs, handle, offset + at, len(piece), piece), path)
            if got != len(piece):
                raise Failure(f'libnfs: {path}: {got} of {len(piece)} bytes written')
        self._good(_close(self.nfs, handle), path)

    def mkdir(self, path):
        self._good(_mkdir(self.nfs, ('/' + path).encode()), path)

    def truncate(self, path, size):
        self._good(_truncate(self.nfs, ('/' + path).encode(), size), path)

    def names(self, path=''):
        handle, found = _pointer(), []
        self._good(_opendir(self.nfs, ('/' + path).encode(), ctypes.byref(handle)), path)
        while True:
            entry = _readdir(self.nfs, handle)
            if not entry:
                break
            found.append(entry.contents.name.decode())
        _closedir(self.nfs, handle)
        return sorted(name for name in found if name not in ('.', '..'))
