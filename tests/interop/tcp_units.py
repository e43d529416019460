# SPDX-License-Identifier: GPL-2.0-or-later
"""Cuts the TCP streams of a capture anew: one MPA unit, or one RPC record, a frame; no byte changed.

For pcap files of Ethernet and IPv4, as `dumpcap -P` writes them on a little-endian machine.
"""

import struct
import sys

IPV4, TCP = b"\x08\x00", 6
SYN, PSH_ACK = 0x02, 0x18
HEADERS_BYTES = 40  # of IPv4 and TCP, without options


class Stream:
    """One direction of a TCP connection, put in order. `sent`: the sequence number of the next unit."""

    def __init__(self, expected, sent):
        self.expected, self.sent, self.data, self.early, self.begun = expected, sent, b"", {}, False

    def add(self, sequence, data):
        self.early[sequence] = data
        while at := self.ready():
            fresh = self.early.pop(at[0])[at[1]:]
            self.data += fresh
            self.expected = (self.expected + len(fresh)) & 0xFFFFFFFF

    def ready(self):
        """A piece that goes on where the data end, or before, and how much of it is known."""
        for at in self.early:
            known = (self.expected - at) & 0xFFFFFFFF
            if known < 1 << 31:
                return at, known
        return None

    def units(self, length_of):
        while (size := length_of(self)) and len(self.data) >= size:
            self.begun = True
            unit, self.data = self.data[:size], self.data[size:]
            yield unit

    def left(self):
        return len(self.data) + sum(map(len, self.early.values()))


def mpa_length(stream):
    """Of the MPA request or reply that begins a direction, then of FPDUs; 0: not known yet."""
    if not stream.begun:
        return 20 + struct.unpack(">H", stream.data[18:20])[0] if len(stream.data) >= 20 else 0
    return (struct.unpack(">H", stream.data[:2])[0] + 5) // 4 * 4 + 4 if len(stream.data) >= 2 else 0


def fragment_length(stream):
    return 4 + (struct.unpack(">I", stream.data[:4])[0] & 0x7FFFFFFF) if len(stream.data) >= 4 else 0


def packets(capture):
    """(record's time, frame) of each TCP packet."""
    while head := capture.read(16):
        *time, captured, length = struct.unpack("<IIII", head)
        frame = capture.read(captured)
        if captured != length:
            sys.exit(f"a frame of {length} bytes was captured to {captured}")
        if frame[12:14] == IPV4 and frame[23] == TCP:
            yield time, frame


def write(out, time, link, addresses, ports, flags, sent, acknowledged, unit):
    # A length of zero is what a packet longer than IP allows has, as with TSO.
    size = HEADERS_BYTES + len(unit)
    packet = link + struct.pack(">BBHHHBBH8s", 0x45, 0, size if size < 65536 else 0, 0, 0x4000, 64, TCP, 0, addresses)
    packet += struct.pack(">HHIIBBHHH", *ports, sent, acknowledged, 0x50, flags, 65535, 0, 0) + unit
    out.write(struct.pack("<IIII", *time, len(packet), len(packet)) + packet)


def cut_anew(source, target, port, length_of):
    """The connections to `port`, one unit a frame; returns the number of bytes that are in no unit."""
    streams, begun = {}, []
    with open(source, "rb") as capture, open(target, "wb") as out:
        out.write(capture.read(24))
        for time, frame in packets(capture):
            ip = frame[14:]
            tcp = ip[(ip[0] & 15) * 4:struct.unpack(">H", ip[2:4])[0] or len(ip)]
            here, there, sequence, _, offset, flags = struct.unpack(">HHIIBB", tcp[:14])
            if port not in (here, there):
                continue
            where = frame[:14], ip[12:20], (here, there)
            if flags & SYN:
                # Ports may be used again: each connection has sequence numbers far from the last one's.
                begin = (len(begun) << 24) & 0xFFFFFFFF
                begun.append(Stream((sequence + 1) & 0xFFFFFFFF, begin + 1))
                streams[here, there] = begun[-1]
                write(out, time, *where, flags, begin, streams[there, here].sent if flags != SYN else 0, b"")
                continue
            stream, other = streams[here, there], streams[there, here]
            if data := tcp[(offset >> 4) * 4:]:
                stream.add(sequence, data)
            for unit in stream.units(length_of):
                write(out, time, *where, PSH_ACK, stream.sent, other.sent, unit)
                stream.sent += len(unit)
    return sum(stream.left() for stream in begun)
